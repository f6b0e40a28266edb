"""What all settings have in common: immutable, hashable, strict about names, errors in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, PlainSerializer, ValidationError

from jedax.errors import JedaxError, fail, unknown
from jedax.imports import CUSTOM, load_object, object_name


class Config(BaseModel):
    """A frozen set of parameters; unknown names and values out of range are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def build(cls, values: Mapping[str, Any], *, where: str = "") -> Self:
        """Return the settings given by name in `values`.

        Args:
            values: Parameter names and their values; what is left out keeps its default.
            where: Put in front of a parameter's name in errors, such as a file's name.

        Raises:
            JedaxError: An unknown name or a value that does not fit, worded in one sentence.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            raise word_validation_error(cls, error, where=where) from None

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some parameters changed, checked like the original."""
        return self.build({**{name: getattr(self, name) for name in type(self).model_fields}, **changes})


def _expectation(complaint: Mapping[str, Any]) -> str:
    """Return what pydantic expected, to be read after the word "expected"."""
    limits = complaint.get("ctx", {})
    if complaint["type"] in ("too_short", "string_too_short"):
        return f"a length of at least {limits['min_length']}"
    if complaint["type"] == "too_long":
        return f"a length of at most {limits['max_length']}"
    message = complaint["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return message.partition(", unable to parse")[0]


def word_validation_error(model: type[BaseModel], error: ValidationError, *, where: str = "") -> JedaxError:
    """Turn the first complaint of pydantic into a sentence of ours."""
    complaint = error.errors(include_url=False)[0]
    prefix = f"{where}: " if where else ""
    cause = complaint.get("ctx", {}).get("error")
    if isinstance(cause, JedaxError):
        return JedaxError(f"{prefix}{cause}")
    path = str(complaint["loc"][0]) if complaint["loc"] else model.__name__
    path += "".join(f"[{part}]" for part in complaint["loc"][1:] if isinstance(part, int))
    if complaint["type"] == "extra_forbidden":
        return unknown(f"{prefix}parameter", path, model.model_fields)
    if complaint["type"] == "missing":
        return fail(f"{prefix}{path}", expected="a value", received="none", remedy="give it")
    # A value that may be several things is refused once for each of them.
    same = [e for e in error.errors(include_url=False) if e["loc"][:1] == complaint["loc"][:1]]
    expected = " or ".join(dict.fromkeys(_expectation(e) for e in same))
    field = model.model_fields.get(str(complaint["loc"][0])) if complaint["loc"] else None
    remedy = "change it"
    if field is not None and not field.is_required():
        remedy = f"leave it out to get the default, {field.get_default(call_default_factory=True)}"
    return fail(f"{prefix}{path}", expected=expected, received=repr(complaint["input"]), remedy=remedy)


def reference_name(value: Any) -> str | None:
    """Return the name of a `Reference`: a name as it is, the name of an object from Python, or None."""
    return value if value is None or isinstance(value, str) else object_name(value)


Reference = Annotated[Any, PlainSerializer(reference_name, return_type=str | None)]
"""A setting that is a registered name, `module:attribute`, or an object from Python; files keep its name."""


def resolve(argument: str, value: Any) -> Any:
    """Return the object of a `Reference` that is no registered name; None as it is.

    Raises:
        JedaxError: It cannot be imported.
    """
    if not isinstance(value, str):
        return value
    if value.startswith(CUSTOM):
        raise fail(
            argument,
            expected="an object that can be imported by name",
            received=f"{value}, which the earlier run got as a Python object",
            remedy="define it in a module, outside functions, and give it as module:name",
        )
    return load_object(value, argument)
