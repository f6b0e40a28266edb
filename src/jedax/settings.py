"""The base class of all settings, their common types, and the wording of validation errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from jedax.errors import JedaxError, fail, unknown
from jedax.imports import is_custom, load_object, object_name


class Config(BaseModel):
    """Immutable, hashable settings; unknown names and invalid values are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="after")
    def _check_hashable(self) -> Self:
        for name, value in vars(self).items():
            try:
                hash(value)
            except TypeError:
                expected = "a value that can be hashed, since compiled programs are kept by settings"
                remedy = "declare the field as a tuple or a frozen dataclass"
                raise fail(name, expected=expected, received=f"a {type(value).__name__}", remedy=remedy) from None
        return self

    @classmethod
    def build(cls, values: Mapping[str, Any], *, where: str = "") -> Self:
        """Return the settings with the given values, the others by default; errors begin with `where`, such as a file.

        Raises:
            JedaxError: A name is unknown or a value is invalid.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            raise _in_words(cls, error, where) from None

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some values changed; errors as in `build`."""
        return self.build({**{name: getattr(self, name) for name in type(self).model_fields}, **changes})


def _expectation(complaint: Mapping[str, Any]) -> str:
    """Return what pydantic expected, worded to follow "expected"."""
    limits = complaint.get("ctx", {})
    if complaint["type"] in ("too_short", "string_too_short"):
        return f"a length of at least {limits['min_length']}"
    if complaint["type"] == "too_long":
        return f"a length of at most {limits['max_length']}"
    message = complaint["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return message.partition(", unable to parse")[0]


def _in_words(model: type[BaseModel], error: ValidationError, where: str) -> JedaxError:
    """Return the first complaint of pydantic as a `JedaxError`."""
    complaints = error.errors(include_url=False)
    complaint = complaints[0]
    prefix = f"{where}: " if where else ""
    cause = complaint.get("ctx", {}).get("error")
    if isinstance(cause, JedaxError):
        return type(cause)(f"{prefix}{cause}")
    path = str(complaint["loc"][0]) if complaint["loc"] else model.__name__
    path += "".join(f"[{part}]" for part in complaint["loc"][1:] if isinstance(part, int))
    if complaint["type"] == "extra_forbidden":
        return unknown(f"{prefix}parameter", path, model.model_fields)
    if complaint["type"] == "missing" and isinstance(complaint["loc"][-1], int):
        lists = [e["loc"] for e in complaints if e["type"] == "missing" and e["loc"][:-1] == complaint["loc"][:-1]]
        expected, received = f"{max(int(loc[-1]) for loc in lists) + 1} values", len(complaint["input"])
        path = path.rpartition("[")[0]
        return fail(f"{prefix}{path}", expected=expected, received=received, remedy="give all of them")
    if complaint["type"] == "missing":
        return fail(f"{prefix}{path}", expected="a value", received="none", remedy="give it")
    # For a union, pydantic complains once for each of its types.
    same = [e for e in complaints if e["loc"][:1] == complaint["loc"][:1]]
    expected = " or ".join(dict.fromkeys(_expectation(e) for e in same))
    field = model.model_fields.get(str(complaint["loc"][0])) if complaint["loc"] else None
    remedy = "change it"
    if field is not None and not field.is_required():
        remedy = "change it, or leave it out to get the default"
    return fail(f"{prefix}{path}", expected=expected, received=repr(complaint["input"]), remedy=remedy)


def _check_range(bounds: tuple[float, float], info: ValidationInfo) -> tuple[float, float]:
    low, high = bounds
    if not low < high:
        name = info.field_name or "range"
        raise fail(name, expected="a low bound below a high one", received=bounds, remedy="swap or widen them")
    return bounds


MOST = 2**31 - 1
"""The largest count: what 32-bit integers hold."""

Count = Annotated[int, Field(ge=1, le=MOST)]
"""A whole number from 1 to `MOST`."""

Positive = Annotated[float, Field(gt=0)]
"""A number above 0."""

NotNegative = Annotated[float, Field(ge=0)]
"""A number of at least 0."""

Share = Annotated[float, Field(ge=0, le=1)]
"""A number from 0 to 1."""

Range = Annotated[tuple[Positive, Positive], AfterValidator(_check_range)]
"""A low and a high bound, both above 0."""


def reference_name(value: Any) -> str | None:
    """Return the name of a `Reference`; names and None are returned unchanged."""
    return value if value is None or isinstance(value, str) else object_name(value)


Reference = Annotated[Any, PlainSerializer(reference_name, return_type=str | None)]
"""A setting that is a registered name, `module:attribute`, or a Python object, which is stored by its name."""


def references(config: Config) -> dict[str, Any]:
    """Return the settings of type `Reference` that are not None, by name."""
    fields = type(config).model_fields.items()
    names = [name for name, field in fields if any(getattr(m, "func", None) is reference_name for m in field.metadata)]
    return {name: getattr(config, name) for name in names if getattr(config, name) is not None}


def texts(values: Any) -> Iterator[str]:
    """Yield all texts in nested lists and dicts, names included."""
    if isinstance(values, str):
        yield values
    elif isinstance(values, Mapping):
        yield from texts([*values, *values.values()])
    elif isinstance(values, list | tuple):
        for value in values:
            yield from texts(value)


def object_names(values: Any) -> list[str]:
    """Return the texts in nested lists and dicts that can name an object as `module:object`: those without spaces."""
    return [text for text in texts(values) if re.fullmatch(r"\S+:(?!//)\S+", text)]


def resolve(argument: str, value: Any) -> Any:
    """Return the object of a `Reference` that is not a registered name; None is returned unchanged."""
    if not isinstance(value, str):
        return value
    if is_custom(value):
        raise fail(
            argument,
            expected="an object that can be imported by name",
            received=f"{value}, which was a Python object in the earlier run",
            remedy="define it at the top level of a module, and give it as module:name",
        )
    return load_object(value, argument)
