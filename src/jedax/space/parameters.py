"""The parameters of a search space, and what the user may write for them."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import reprlib
import sys
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from jedax.errors import fail, unknown

Option = str | int | float | bool | None

_MOST = 2**31 - 1  # what 32-bit integers hold


class Axis(NamedTuple):
    """One coordinate of a genotype, or columns of them.

    The value in the user's units is `offset + factor * coordinate`, on the logarithmic scale if `log`; that of a
    `Choice` is the index of an option.
    """

    low: Any = 0.0  # of the value
    high: Any = 1.0
    offset: Any = 0.0
    factor: Any = 1.0
    log: Any = False
    integer: Any = False
    lower: Any = 0.0  # of the coordinate
    upper: Any = 1.0
    uniform: Any = True  # how random genotypes are drawn: within the range, or standard normals


@dataclass(frozen=True, repr=False)
class Real:
    """A real number.

    Random values are uniform between two bounds (on the logarithmic scale if `log`). With a `scale`, or without two
    bounds, they are normal around `start`, with standard deviation `scale`, and reflected at the bounds.
    `Space` checks the settings, since it knows the parameter's name.

    Attributes:
        low: Lower bound, in the user's units; -inf means none.
        high: Upper bound; inf means none.
        log: Whether equal ratios count equally; `low` must be above 0.
        start: Where a search begins, within the bounds. Without it, it begins in the middle of two bounds (on the
            logarithmic scale if `log`), and normal draws are centred there, at a single bound, or at 0.
        scale: Standard deviation of normal draws before reflection, above 0, in the user's units; if `log`, that of
            the natural logarithm. Without two bounds it is 1 by default.
    """

    low: float = -math.inf
    high: float = math.inf
    _: KW_ONLY
    log: bool = False
    start: float | None = None
    scale: float | None = None

    def __repr__(self) -> str:
        return call_text("Real", self._entry())

    def _entry(self) -> dict[str, Any]:
        return _changed_fields(self)

    def _checked(self, name: str) -> Real:
        low = number_of(name, "low", self.low, finite=False)
        high = number_of(name, "high", self.high, finite=False)
        start = None if self.start is None else number_of(name, "start", self.start)
        scale = None if self.scale is None else number_of(name, "scale", self.scale)
        log = _check_range(name, low, high, self.log, start)
        if log and not low > 0:
            raise fail(name, expected="low above 0 for log=True", received=f"low={low}", remedy="raise low or drop log")
        if scale is not None and not scale > 0:
            raise fail(name, expected="a scale above 0", received=scale, remedy="give a standard deviation")
        return Real(low, high, log=log, start=start, scale=scale)

    def _axes(self) -> list[Axis]:
        low, high = _on_scale(self.log, self.low), _on_scale(self.log, self.high)
        start = None if self.start is None else _on_scale(self.log, self.start)
        axis = Axis(self.low, self.high, log=self.log)
        has_two_bounds = math.isfinite(low) and math.isfinite(high)
        if has_two_bounds and self.scale is None:
            return [axis._replace(offset=low, factor=high - low or math.nan)]  # `Space` refuses NaN
        middle = (low + high) / 2 if has_two_bounds else next(filter(math.isfinite, (low, high)), 0.0)
        origin, scale = middle if start is None else start, 1.0 if self.scale is None else self.scale
        lower, upper = (low - origin) / scale, (high - origin) / scale
        return [axis._replace(offset=origin, factor=scale, lower=lower, upper=upper, uniform=False)]

    def _standard(self) -> Real:
        axis = self._axes()[0]
        if axis.uniform:
            return Real(0.0, 1.0)
        low, high = (end if math.isinf(end) else side for end, side in ((axis.lower, -1.0), (axis.upper, 1.0)))
        return Real(low, high, start=0.0, scale=1.0)

    def _decoded(self, value: float) -> float:
        return value


@dataclass(frozen=True, repr=False)
class Integer:
    """A whole number from `low` to `high`, both included; random genotypes are uniform over the shares of the values.

    Float64 genotypes reach every value; float32 genotypes do so for up to 2^22 values, or up to `high` = 10^5 if `log`.
    NumPy and JAX decode the same float32 genotype to the same value; if `log`, they may differ by one at the end of a
    share, because their exponentials round differently.

    Attributes:
        low: Smallest value, at least -(2^31 - 1), and at least 1 if `log`.
        high: Largest value, above `low`, at most 2^31 - 1.
        log: Whether equal ratios count equally: value k has the share of `[k - 1/2, k + 1/2]` on the logarithmic scale.
        start: Where a search begins, from `low` to `high`; default: in the middle.
    """

    low: int
    high: int
    _: KW_ONLY
    log: bool = False
    start: int | None = None

    def __repr__(self) -> str:
        return call_text("Integer", _changed_fields(self))

    def _entry(self) -> dict[str, Any]:
        return {**_changed_fields(self), "integer": True}

    def _checked(self, name: str) -> Integer:
        low, high = whole_of(name, "low", self.low), whole_of(name, "high", self.high)
        start = None if self.start is None else whole_of(name, "start", self.start)
        log = _check_range(name, low, high, self.log, start)
        if log and low < 1:
            raise fail(name, expected="low above 0 for log=True", received=f"low={low}", remedy="raise low or drop log")
        return Integer(low, high, log=log, start=start)

    def _axes(self) -> list[Axis]:
        offset, factor = float(self.low), self.high - self.low + 1.0
        if self.log:
            offset = math.log(self.low - 0.5)
            factor = math.log(self.high + 0.5) - offset
        return [Axis(float(self.low), float(self.high), offset, factor, self.log, integer=True)]

    def _standard(self) -> Integer:
        return Integer(self.low, self.high, log=True) if self.log else Integer(0, self.high - self.low)

    def _decoded(self, value: float) -> int:
        return int(value)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Choice:
    """One of at least two options without an order; every option is as likely as the others.

    Attributes:
        options: Distinct texts, whole numbers, finite floats, booleans or None.
    """

    options: tuple[Option, ...]

    def __init__(self, *options: Option) -> None:
        object.__setattr__(self, "options", tuple(o.item() if isinstance(o, np.generic) else o for o in options))

    def __repr__(self) -> str:
        return f"Choice({', '.join(map(repr, self.options))})"

    def __eq__(self, other: object) -> bool:
        return repr(self) == repr(other) if isinstance(other, Choice) else NotImplemented  # 1, 1.0 and True differ

    def __hash__(self) -> int:
        return hash(repr(self))

    def _entry(self) -> dict[str, Any]:
        return {"choices": list(self.options)}

    def _checked(self, name: str) -> Choice:
        for option in self.options:
            fits = option is None or type(option) in (str, int, float, bool)
            if not fits or (isinstance(option, float) and not math.isfinite(option)):
                expected = "options that are texts, finite numbers, booleans or None"
                raise fail(name, expected=expected, received=repr(option), remedy="give the options names")
        if len(self.options) < 2 or len({_key(option) for option in self.options}) < len(self.options):
            raise fail(name, expected="at least two distinct options", received=self, remedy="change the options")
        return self

    def _axes(self) -> list[Axis]:
        return [Axis(high=len(self.options) - 1.0, integer=True)] * len(self.options)

    def _standard(self) -> Choice:
        return Choice(*range(len(self.options)))

    def _decoded(self, value: float) -> Option:
        return self.options[int(value)]

    def _index(self, name: str, option: Any) -> int:
        option = option.item() if isinstance(option, np.generic) else option
        known = [_key(one) for one in self.options]
        if not isinstance(option, Option) or _key(option) not in known:
            expected = "one of " + ", ".join(map(repr, self.options))
            raise fail(name, expected=expected, received=repr(option), remedy="choose one of these options")
        return known.index(_key(option))


Parameter = Real | Integer | Choice
"""One parameter of a `Space`."""


def width_of(parameter: Parameter) -> int:
    """Return the number of coordinates of a parameter."""
    return len(parameter.options) if isinstance(parameter, Choice) else 1


def expected_of(parameter: Parameter) -> str:
    """Return the valid values of a parameter in an array, worded to follow "expected"."""
    if isinstance(parameter, Choice):
        return f"the index of an option, a whole number from 0 to {len(parameter.options) - 1}"
    kind = "whole" if isinstance(parameter, Integer) else "finite"
    return f"a {kind} number from {parameter.low} to {parameter.high}"


def _on_scale(log: bool, value: float) -> float:
    return math.log(value) if log else float(value)


def number_of(name: str, setting: str, value: Any, *, finite: bool = True) -> float:
    """Return a number as a float."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
        return float(value)  # also if it has more than 64 bits
    given = np.asarray(value if isinstance(value, int | float | np.generic | np.ndarray | jax.Array) else None)
    if given.ndim or given.dtype.kind not in "iuf" or np.isnan(given) or (finite and np.isinf(given)):
        expected = f"a {'finite ' * finite}number" + f" for {setting}" * bool(setting)
        raise fail(name, expected=expected, received=repr(value), remedy="give a number")
    return float(given)


def whole_of(name: str, setting: str, value: Any) -> int:
    """Return a whole number of at most 32 bits as an int."""
    number = number_of(name, setting, value)
    if number != int(number) or abs(number) > _MOST:
        expected = f"a whole number from -{_MOST} to {_MOST}" + f" for {setting}" * bool(setting)
        raise fail(name, expected=expected, received=value, remedy="round it, or use Real")
    return int(number)


def _flag(name: str, setting: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise fail(name, expected=f"true or false for {setting}", received=repr(value), remedy="change it")
    return value


def _check_range(name: str, low: float, high: float, log: Any, start: float | None) -> bool:
    """Check what `Real` and `Integer` share; return `log`."""
    if not low < high:
        remedy = "leave a fixed parameter out" if low == high else "swap or change them"
        raise fail(name, expected="low below high", received=f"low={low}, high={high}", remedy=remedy)
    if start is not None and not low <= start <= high:
        raise fail(name, expected=f"a start from {low} to {high}", received=start, remedy="move it within the bounds")
    return _flag(name, "log", log)


def _changed_fields(parameter: Real | Integer) -> dict[str, Any]:
    """Return the settings of a parameter that differ from their defaults."""
    given = {field.name: getattr(parameter, field.name) for field in dataclasses.fields(parameter)}
    defaults = {field.name: field.default for field in dataclasses.fields(parameter)}
    return {name: value for name, value in given.items() if value != defaults[name]}


def call_text(name: str, settings: Mapping[str, Any]) -> str:
    """Return the text of a call; long lists are shortened."""
    return f"{name}({', '.join(f'{key}={reprlib.repr(value)}' for key, value in settings.items())})"


def _key(option: Option) -> tuple[bool, Option]:
    """Return what tells options apart: True is not 1, but 1.0 is."""
    return isinstance(option, bool), option


def pair(low: Any, high: Any) -> Real:
    """Return a parameter with two bounds, None standing for no bound."""
    return Real(-math.inf if low is None else low, math.inf if high is None else high)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def parameter_of(name: str, given: Any) -> Parameter:
    """Return the checked parameter that the user gave, also in short form."""
    if isinstance(given, Parameter):
        return given._checked(name)
    is_pair = isinstance(given, list | tuple) and len(given) == 2 and all(v is None or _is_number(v) for v in given)
    if isinstance(given, tuple) and is_pair:
        return pair(*given)._checked(name)
    if isinstance(given, list) and not is_pair:
        return Choice(*given)._checked(name)
    if isinstance(given, Mapping):
        return from_entry(name, given)._checked(name)
    expected = "a Real, an Integer, a Choice, a tuple (low, high), a list of options or a dict of settings"
    remedy = "write (low, high) for a range, Real(low, high, log=True) for a logarithmic one or Choice(...) for options"
    raise fail(name, expected=expected, received=repr(given), remedy=remedy)


def as_numbers(value: Any) -> Any:
    """Return texts that are numbers as floats, also within a list; other values are returned unchanged."""
    if isinstance(value, list | tuple):
        return [as_numbers(one) for one in value]
    with contextlib.suppress(ValueError):
        return float(value) if isinstance(value, str) else value
    return value


def from_entry(name: str, entry: Any) -> Parameter:
    """Return the parameter that an entry of a specification describes; see `Space.from_spec`."""
    if isinstance(entry, list | tuple):
        values = as_numbers(entry)
        if len(values) == 2 and all(value is None or _is_number(value) for value in values):
            return pair(*values)
        if values and all(isinstance(value, str) for value in values):
            return Choice(*values)
        expected, remedy = "a list of two numbers or of texts", "write other options as {choices: [...]}"
        raise fail(name, expected=expected, received=entry, remedy=remedy)
    if not isinstance(entry, Mapping):
        expected, remedy = "a mapping of settings, two bounds or a list of options", "write {low: 0, high: 1}"
        raise fail(name, expected=expected, received=repr(entry), remedy=remedy)
    if "choices" in entry:
        kind, known = Choice, ["choices"]
    elif _flag(name, "integer", entry.get("integer", False)):
        kind, known = Integer, ["low", "high", "log", "start", "integer"]
    else:
        kind, known = Real, ["low", "high", "log", "start", "scale", "integer", "choices"]
    for key in entry:
        if key not in known:
            raise unknown(name, str(key), known)
    if kind is Choice:
        if not isinstance(entry["choices"], list | tuple):
            raise fail(name, expected="a list of choices", received=repr(entry["choices"]), remedy="write [a, b]")
        return Choice(*entry["choices"])
    given = {key: as_numbers(value) for key, value in entry.items() if key != "integer" and value is not None}
    for key in ("low", "high"):
        if kind is Integer and key not in given:
            raise fail(name, expected=f"{key} for integer", received="none", remedy="give both bounds")
    return kind(**given)
