"""Search spaces: the parameters in a user's units, and the genotypes on which evolution strategies work.

A genotype is a row of floating-point numbers, its coordinates:

| parameter | coordinates | value in the user's units |
|---|---|---|
| `Real` with two bounds and no `scale` | one in [0, 1] | `low + (high - low) u`; log: `low (high / low)^u` |
| any other `Real` | one, with the same bounds | `origin + scale g`; log: `origin exp(scale g)` |
| `Integer` | one in [0, 1] | equal shares of [0, 1]; log: shares of `[k - 1/2, k + 1/2]` on the logarithmic scale |
| `Choice` of k options | k in [0, 1] | the option with the largest coordinate, the first of equals |

Coordinates outside their range are reflected at its ends [1].

References:
    [1] R. Biedrzycki. Handling bound constraints in CMA-ES: An experimental study. Swarm and Evolutionary Computation
        52:100627, 2020. doi:10.1016/j.swevo.2019.100627.
"""

from __future__ import annotations

import contextlib
import dataclasses
import keyword
import math
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from jedax.errors import fail, unknown
from jedax.types import Array, Float, PRNGKeyArray

Option = str | int | float | bool | None

_MOST = 2**31 - 1  # what 32-bit integers hold


class _Axis(NamedTuple):
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
        start: Where a search begins, within the bounds, if all parameters have one. Without it, normal draws are
            centred in the middle of two bounds (on the logarithmic scale if `log`), at a single bound, or at 0.
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
        return _call("Real", self._entry())

    def _entry(self) -> dict[str, Any]:
        return _changed_fields(self)

    def _checked(self, name: str) -> Real:
        low = _number(name, "low", self.low, finite=False)
        high = _number(name, "high", self.high, finite=False)
        start = None if self.start is None else _number(name, "start", self.start)
        scale = None if self.scale is None else _number(name, "scale", self.scale)
        log = _check_range(name, low, high, self.log, start)
        if log and not low > 0:
            raise fail(name, expected="low above 0 for log=True", received=f"low={low}", remedy="raise low or drop log")
        if scale is not None and not scale > 0:
            raise fail(name, expected="a scale above 0", received=scale, remedy="give a standard deviation")
        return Real(low, high, log=log, start=start, scale=scale)

    def _axes(self) -> list[_Axis]:
        low, high = _on_scale(self.log, self.low), _on_scale(self.log, self.high)
        start = None if self.start is None else _on_scale(self.log, self.start)
        axis = _Axis(self.low, self.high, log=self.log)
        has_two_bounds = math.isfinite(low) and math.isfinite(high)
        if has_two_bounds and self.scale is None:
            return [axis._replace(offset=low, factor=high - low or math.nan)]  # `Space` refuses NaN
        middle = (low + high) / 2 if has_two_bounds else next(filter(math.isfinite, (low, high)), 0.0)
        origin, scale = middle if start is None else start, 1.0 if self.scale is None else self.scale
        lower, upper = (low - origin) / scale, (high - origin) / scale
        return [axis._replace(offset=origin, factor=scale, lower=lower, upper=upper, uniform=False)]

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
        start: Where a search begins, from `low` to `high`, if all parameters have one.
    """

    low: int
    high: int
    _: KW_ONLY
    log: bool = False
    start: int | None = None

    def __repr__(self) -> str:
        return _call("Integer", _changed_fields(self))

    def _entry(self) -> dict[str, Any]:
        return {**_changed_fields(self), "integer": True}

    def _checked(self, name: str) -> Integer:
        low, high = _whole(name, "low", self.low), _whole(name, "high", self.high)
        start = None if self.start is None else _whole(name, "start", self.start)
        log = _check_range(name, low, high, self.log, start)
        if log and low < 1:
            raise fail(name, expected="low above 0 for log=True", received=f"low={low}", remedy="raise low or drop log")
        return Integer(low, high, log=log, start=start)

    def _axes(self) -> list[_Axis]:
        offset, factor = float(self.low), self.high - self.low + 1.0
        if self.log:
            offset = math.log(self.low - 0.5)
            factor = math.log(self.high + 0.5) - offset
        return [_Axis(float(self.low), float(self.high), offset, factor, self.log, integer=True)]

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

    def _axes(self) -> list[_Axis]:
        return [_Axis(high=len(self.options) - 1.0, integer=True)] * len(self.options)

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


@dataclass(frozen=True, init=False, repr=False)
class Space:
    """The parameters of a search, and the mapping between their values and genotypes; immutable and hashable.

    `Space({"gain": Real(0.1, 400, log=True), "material": ["steel", "brass"], "angle": (0, 90)})`: a tuple of two
    numbers is a `Real` with these bounds, None standing for no bound, a list is a `Choice`, and a dict has the settings
    of `from_spec`, such as `{"low": 8, "high": 60, "integer": True}`. A list of two numbers is refused, because it can
    mean either. Names that are Python identifiers can be keyword arguments.

    Methods that take genotypes accept NumPy arrays, lists, and JAX arrays, also traced ones; they return arrays of the
    same library, in float64 for float64 genotypes and in float32 for float32 and smaller ones. Bounds that float32
    cannot tell apart are an error with float32 genotypes.

    Attributes:
        names: Names of the parameters, in the order of the values.
        parameters: The parameters, in the same order.
        is_named: Whether the user named the parameters; those of `box` and `around` are called x0, x1, ...

    Raises:
        JedaxError: There are no parameters, a name is not a text, occurs twice, or a parameter's settings are invalid.
    """

    names: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    is_named: bool

    def __init__(self, parameters: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        if not isinstance(parameters, Mapping | None):
            received, remedy = type(parameters).__name__, "name the parameters"
            raise fail("space", expected="a mapping of names to parameters", received=received, remedy=remedy)
        given = dict(parameters or {})
        for name in given:
            if not isinstance(name, str) or not name:
                raise fail("space", expected="names that are texts", received=repr(name), remedy="rename the parameter")
            if name in named:
                raise fail(name, expected="one parameter of this name", received="two", remedy="rename one of them")
        self._fill({**given, **named}, is_named=True)

    def _fill(self, given: Mapping[str, Any], *, is_named: bool) -> None:
        if not given:
            raise fail("space", expected="at least one parameter", received="none", remedy="add parameters")
        object.__setattr__(self, "names", tuple(given))
        labels = given if is_named else (f"parameter {i}" for i in range(len(given)))
        parameters = tuple(_parameter(label, one) for label, one in zip(labels, given.values(), strict=True))
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "is_named", is_named)
        self._table(np.dtype(np.float64))

    @classmethod
    def box(
        cls, lows: Any = None, highs: Any = None, *, start: Any = None, scale: Any = None, num_params: int | None = None
    ) -> Self:
        """Return a space of real parameters without names of their own: x0, x1, ...

        Args:
            lows: Lower bounds: one number for all parameters, or one number per parameter; None or -inf means none.
            highs: Upper bounds, likewise.
            start: Where a search begins, likewise; see `Real`.
            scale: Standard deviations of random values, likewise; see `Real`.
            num_params: Number of parameters; needed if no other argument has one number per parameter.

        Raises:
            JedaxError: The lengths differ, or the settings of a parameter are invalid.
        """
        columns = {"lows": lows, "highs": highs, "start": start, "scale": scale}
        columns = {key: column.tolist() if hasattr(column, "tolist") else column for key, column in columns.items()}
        size = None if num_params is None else _whole("num_params", "", num_params)
        for key, column in columns.items():
            if not isinstance(column, list | tuple):
                continue
            if size is None:
                size = len(column)
            if size != len(column):
                received = f"{len(column)}"
                raise fail(key, expected=f"{size} numbers", received=received, remedy="give one number per parameter")
        if size is None or size < 1:
            received = "none" if size is None else size
            raise fail("num_params", expected="a number of at least 1", received=received, remedy="give it")
        rows = zip(*(c if isinstance(c, list | tuple) else [c] * size for c in columns.values()), strict=True)
        space = cls.__new__(cls)
        reals = [dataclasses.replace(_pair(low, high), start=x, scale=sigma) for low, high, x, sigma in rows]
        space._fill({f"x{i}": real for i, real in enumerate(reals)}, is_named=False)
        return space

    @classmethod
    def around(cls, x0: Any, sigma0: Any, bounds: tuple[Any, Any] | None = None) -> Self:
        """Return a space whose random genotypes are normal around a point and reflected at the bounds, as in pycma.

        Args:
            x0: `(num_params,)`, where a search begins, within the bounds.
            sigma0: Standard deviation, above 0: one number for all parameters, or one number per parameter.
            bounds: `(lows, highs)`, each as in `box`; None means no bounds.

        Raises:
            JedaxError: As in `box`.
        """
        if bounds is not None and not (isinstance(bounds, list | tuple | np.ndarray) and len(bounds) == 2):
            raise fail("bounds", expected="the pair (lows, highs)", received=repr(bounds), remedy="give two bounds")
        lows, highs = (None, None) if bounds is None else bounds
        points = x0 if isinstance(x0, list | tuple) else np.atleast_1d(x0)
        start = [_number("x0", "", x) for x in points]
        sigmas = sigma0 if isinstance(sigma0, list | tuple) else np.atleast_1d(sigma0)
        scale = [_number("sigma0", "", sigma) for sigma in sigmas]
        if not all(sigma > 0 for sigma in scale):
            raise fail("sigma0", expected="numbers above 0", received=repr(sigma0), remedy="change it")
        if len(scale) not in (1, len(start)):
            expected, remedy = f"1 or {len(start)} numbers", "give one number, or one per parameter"
            raise fail("sigma0", expected=expected, received=len(scale), remedy=remedy)
        return cls.box(lows, highs, start=start, scale=scale * len(start) if len(scale) == 1 else scale)

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Self:
        """Return the space that a plain mapping describes, such as one from a YAML file.

        Each name has one of these:

        - `{low: 0.1, high: 400, log: true}`: the settings of `Real`, all optional;
        - `{low: 8, high: 60, integer: true}`: the settings of `Integer`;
        - `{choices: [steel, brass, 3, true]}`: the options of `Choice`;
        - `[0, 90]`: two numbers are the bounds of a `Real`, null standing for no bound;
        - `[steel, brass]`: texts that are not numbers are options. Other lists are errors, never guesses.

        A mapping with `lows` or `highs` that are not mappings holds the arguments of `box` instead: parameters of these
        names need the long forms above. Numbers may be texts, because YAML reads `1e-3` as one.

        Raises:
            JedaxError: The mapping is malformed, or as in `Space` and `box`.
        """
        bounds = [spec[key] for key in ("lows", "highs") if key in spec] if isinstance(spec, Mapping) else []
        if bounds and not any(isinstance(one, Mapping) for one in bounds):
            known = ("lows", "highs", "start", "scale", "num_params")
            for key in spec:
                if key not in known:
                    raise unknown("space", str(key), known)
            return cls.box(**{key: _numeric(value) for key, value in spec.items()})
        if not isinstance(spec, Mapping):
            received = type(spec).__name__
            raise fail("space", expected="a mapping of names to parameters", received=received, remedy="name them")
        return cls({name: _from_entry(str(name), entry) for name, entry in spec.items()})

    def spec(self) -> dict[str, Any]:
        """Return the mapping of texts, numbers, booleans and lists that `from_spec` turns into an equal space."""
        if self.is_named:
            return {name: one._entry() for name, one in zip(self.names, self.parameters, strict=True)}
        columns = {"lows": "low", "highs": "high", "start": "start", "scale": "scale"}
        spec: dict[str, Any] = {}
        for key, setting in columns.items():
            column = [one._entry().get(setting) for one in self.parameters]
            spec[key] = column[0] if len(set(column)) == 1 else column
        optional = {key: spec[key] for key in ("start", "scale") if spec[key] is not None}
        return {"lows": spec["lows"], "highs": spec["highs"], **optional, "num_params": self.num_values}

    def __repr__(self) -> str:
        if not self.is_named:
            return _call("Space.box", self.spec())
        pairs = list(zip(self.names, self.parameters, strict=True))
        if all(name.isidentifier() and not keyword.iskeyword(name) for name in self.names):
            return f"Space({', '.join(f'{name}={one}' for name, one in pairs)})"
        return f"Space({{{', '.join(f'{name!r}: {one}' for name, one in pairs)}}})"

    @property
    def num_values(self) -> int:
        """Return the number of parameters."""
        return len(self.parameters)

    @cached_property
    def num_params(self) -> int:
        """Return the number of coordinates of a genotype."""
        return sum(_width(one) for one in self.parameters)

    def fold(self, genotypes: Any) -> Any:
        """Reflect coordinates at the ends of their ranges, as often as needed.

        Args:
            genotypes: `(..., num_params)`.

        Returns:
            An array of the same shape. Coordinates within their ranges are unchanged; on devices that flush subnormal
            numbers, these become 0. NaN stays NaN, and so does an infinite coordinate between two bounds.

        Raises:
            JedaxError: The last axis is not `num_params` long.
        """
        xp, g, axis = self._read(genotypes)
        inside = (g > axis.lower) & (g < axis.upper)
        if xp is np and inside.all():
            return g.copy()
        has_lower, has_upper = np.isfinite(axis.lower), np.isfinite(axis.upper)
        lower, upper = np.where(has_lower, axis.lower, 0), np.where(has_upper, axis.upper, 0)
        width = np.where(has_lower & has_upper, upper - lower, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            size = xp.abs(g - lower) / width
            period = size - 2 * xp.floor(size / 2)  # exact, in [0, 2)
            between = xp.clip(lower + width * xp.minimum(period, 2 - period), axis.lower, axis.upper)
            above, below = lower + xp.abs(g - lower), upper - xp.abs(upper - g)
        reflected = xp.where(has_lower & has_upper, between, xp.where(has_lower, above, below))
        return xp.where(inside | ~(has_lower | has_upper), g, reflected)

    def values(self, genotypes: Any) -> Any:
        """Return the parameters' values in the user's units, within their bounds also after rounding.

        Args:
            genotypes: `(..., num_params)`; coordinates outside their ranges are reflected first, as `fold` does.

        Returns:
            `(..., num_values)`; whole numbers for an `Integer`, and the index of the option for a `Choice`. Values
            without a bound are clipped to the largest float. NaN stays NaN, but a `Choice` with NaN has some option.

        Raises:
            JedaxError: The last axis is not `num_params` long.
        """
        xp, g, axis = self._read(self.fold(genotypes))
        first, numeric = self._columns
        u = g
        if not numeric.all():
            u, axis = g[..., first[numeric]], _Axis(*(column[first[numeric]] for column in axis))
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            scaled = axis.factor * u
            if axis.integer.any():  # floored before the sum, so that NumPy and all devices agree on the value
                scaled = xp.where(axis.integer & ~axis.log, xp.floor(scaled), scaled)
            x = axis.offset + scaled
            if axis.log.any():
                x = xp.where(axis.log, xp.exp(xp.where(axis.log, x, 0)), x)
                x = xp.where(axis.log & axis.integer, xp.floor(x + 0.5), x)
        # The ends are exact: exp(log(400)) is not 400.
        x = xp.where(u <= axis.lower, axis.low, xp.where(u >= axis.upper, axis.high, x))
        x = xp.clip(x, axis.low, axis.high)
        if numeric.all():
            return x
        coordinates = xp.where(self._options < 0, -np.inf, g[..., self._options])
        chosen = xp.argmax(coordinates, axis=-1).astype(g.dtype)
        order = np.argsort(np.concatenate([np.flatnonzero(numeric), np.flatnonzero(~numeric)]))
        return xp.concatenate([x, chosen], axis=-1)[..., order]

    def tolerances(self, genotypes: np.ndarray, share: float) -> np.ndarray:
        """Return by how much a small change of the coordinates changes the values; 0 for whole numbers and options.

        Args:
            genotypes: `(..., num_params)`, NumPy.
            share: Change of each coordinate, as a share of the coordinate, but at least of 1.

        Returns:
            `(..., num_values)`, float64, in the user's units.
        """
        _, g, axis = self._read(self.fold(np.asarray(genotypes, np.float64)))
        first, _ = self._columns
        axis = _Axis(*(column[first] for column in axis))
        slopes = axis.factor * np.where(axis.log, self.values(g), 1)
        return np.where(axis.integer, 0.0, share * np.maximum(1, np.abs(g[..., first])) * slopes)

    def dicts(self, genotypes: Any) -> list[dict[str, Any]]:
        """Return the parameters of each genotype by name: floats, whole numbers and options.

        Args:
            genotypes: `(batch, num_params)`, finite; as in `values`, but not traced.

        Raises:
            JedaxError: The shape differs or a coordinate is not finite.
        """
        rows = np.asarray(genotypes)
        values = self.values(rows)
        if rows.ndim != 2:
            expected, remedy = f"shape (batch, {self.num_params})", "give one genotype per row"
            raise fail("genotypes", expected=expected, received=rows.shape, remedy=remedy)
        if not np.isfinite(rows).all():
            raise fail("genotypes", expected="finite numbers", received="NaN or inf", remedy="leave these rows out")
        pairs = list(zip(self.names, self.parameters, strict=True))
        return [{name: one._decoded(x) for (name, one), x in zip(pairs, row, strict=True)} for row in values.tolist()]

    def dict_of(self, genotype: Any) -> dict[str, Any]:
        """Return the parameters of one genotype, `(num_params,)`, by name; see `dicts`."""
        return self.dicts(np.asarray(genotype)[None])[0]

    def rows(self, dicts: Iterable[Mapping[str, Any]]) -> np.ndarray:
        """Return the values of parameters by name as an array `(batch, num_values)`; bounds are not checked.

        Raises:
            JedaxError: A name is unknown or missing, or a value is no number and no option.
        """
        return np.array([self._row(one) for one in dicts]).reshape(-1, self.num_values)

    def genotypes(self, values: Any) -> np.ndarray:
        """Return genotypes with the given values: `values(genotypes(v))` equals v, for real parameters up to rounding.

        A whole number becomes the middle of its share, or its logarithm if `log`; an option the centroid of the
        genotypes that choose it.

        Args:
            values: One mapping with a value for each name, a list of such mappings, or an array `(..., num_values)`
                that holds the index of the option for each `Choice`. Float32 arrays are compared with the bounds
                as rounded to float32.

        Returns:
            `(num_params,)`, `(batch, num_params)` or `(..., num_params)`, float64, within the coordinates' ranges.

        Raises:
            JedaxError: A value is not finite, out of its bounds, not whole or not an option; a name is unknown or
                missing; or the shape differs.
        """
        if isinstance(values, Mapping):
            return self._encoded(np.array(self._row(values)))
        if isinstance(values, list | tuple) and all(isinstance(one, Mapping) for one in values):
            return self._encoded(self.rows(values))
        return self._encoded(np.asarray(_array("values", values, self.num_values)))

    @property
    def start_genotype(self) -> np.ndarray | None:
        """Return the genotype `(num_params,)`, float64, of the parameters' `start`; None unless all have one."""
        starts = [getattr(one, "start", None) for one in self.parameters]
        return None if None in starts else self.genotypes(np.array(starts, np.float64))

    def draw(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Return a random genotype `(num_params,)`, within the coordinates' ranges; jittable.

        Coordinates are uniform or normal, as `Real`, `Integer` and `Choice` say.
        """
        uniform_key, normal_key = jax.random.split(key)
        axis = self._table(np.dtype(jnp.result_type(float)))
        uniform = jax.random.uniform(uniform_key, (self.num_params,))
        if axis.uniform.all():
            return uniform
        return self.fold(jnp.where(axis.uniform, uniform, jax.random.normal(normal_key, (self.num_params,))))

    def _read(self, genotypes: Any) -> tuple[Any, Any, _Axis]:
        """Return the library of an array of genotypes, the array in float32 or float64, and the axes in its type."""
        array = _array("genotypes", genotypes, self.num_params)
        xp: Any = jnp if isinstance(array, jax.Array) else np
        dtype = np.dtype(np.float32 if xp.result_type(array.dtype, np.float32) == np.float32 else np.float64)
        return xp, array.astype(dtype), self._table(dtype)

    @cached_property
    def _columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first coordinate of each parameter, and which parameters are numbers: `(num_values,)` each."""
        widths = [_width(one) for one in self.parameters]
        return np.cumsum([0, *widths[:-1]]), np.array([not isinstance(one, Choice) for one in self.parameters])

    @cached_property
    def _options(self) -> np.ndarray:
        """Return the coordinates of the options of each `Choice`: `(choices, most options)`, filled with -1."""
        first, numeric = self._columns
        widths = np.array([_width(one) for one in self.parameters])[~numeric]
        options = np.arange(widths.max(initial=0))
        return np.where(options < widths[:, None], first[~numeric][:, None] + options, -1)

    @cached_property
    def _tables(self) -> dict[np.dtype, _Axis]:
        return {}

    def _table(self, dtype: np.dtype) -> _Axis:
        """Return the axes as arrays `(num_params,)` of a type, with bounds that this type does not round outwards."""
        if dtype not in self._tables:
            axes = [axis for one in self.parameters for axis in one._axes()]
            exact = _Axis(*(np.array(column) for column in zip(*axes, strict=True)))
            with np.errstate(over="ignore", under="ignore"):
                cast = _Axis(*(c if c.dtype == bool else c.astype(dtype) for c in exact))
                table = cast._replace(low=_inwards(exact.low, dtype, 1), high=_inwards(exact.high, dtype, -1))
            fits = (table.low < table.high) & np.isfinite(table.offset) & np.isfinite(table.factor) & (table.factor > 0)
            if not fits.all():
                one = np.searchsorted(self._columns[0], np.argmin(fits), side="right") - 1
                remedy = "change the bounds" + " or use float64 genotypes" * (dtype == np.float32)
                expected = f"a range that {dtype} numbers resolve"
                raise fail(self.names[one], expected=expected, received=self.parameters[one], remedy=remedy)
            self._tables[dtype] = table
        return self._tables[dtype]

    def _row(self, values: Mapping[str, Any]) -> list[float]:
        """Return the values of one mapping as numbers, in the order of the parameters."""
        known = set(self.names)
        for name in values:
            if name not in known:
                raise unknown("parameter", str(name), self.names)
        for name in self.names:
            if name not in values:
                raise fail(name, expected="a value", received="none", remedy="give all of " + ", ".join(self.names))
        pairs = zip(self.names, self.parameters, strict=True)
        return [
            float(one._index(name, values[name])) if isinstance(one, Choice) else _number(name, "", values[name])
            for name, one in pairs
        ]

    def _encoded(self, values: np.ndarray) -> np.ndarray:
        """Return the genotypes of an array of values, which it checks."""
        first, numeric = self._columns
        axis = _Axis(*(column[first] for column in self._table(np.dtype(np.float64))))
        dtype = values.dtype if values.dtype.kind == "f" else np.dtype(np.float64)
        with np.errstate(over="ignore"):
            lows, highs = axis.low.astype(dtype), axis.high.astype(dtype)
        whole = ~axis.integer | (values == np.floor(values))
        fits = (values >= lows) & (values <= highs) & np.isfinite(values) & whole
        if not fits.all():
            *row, column = np.argwhere(~fits)[0].tolist()
            name = self.names[column] + "".join(f"[{i}]" for i in row)
            expected, received = _expected(self.parameters[column]), values[(*row, column)]
            raise fail(name, expected=expected, received=received, remedy="change the value")
        values = np.clip(values.astype(np.float64), axis.low, axis.high)
        axis = _Axis(*(column[numeric] for column in axis))
        genotypes = np.empty((*values.shape[:-1], self.num_params))
        x = np.where(axis.integer & ~axis.log, values[..., numeric] + 0.5, values[..., numeric])
        x = np.where(axis.log, np.log(np.where(axis.log, x, 1)), x)
        with np.errstate(over="ignore"):
            coordinates = np.clip((x - axis.offset) / axis.factor, axis.lower, axis.upper)
        genotypes[..., first[numeric]] = np.nan_to_num(coordinates)  # finite
        for column in np.flatnonzero(~numeric):
            width = _width(self.parameters[column])
            chosen = np.arange(width) == values[..., column, None]
            # Of k uniform numbers, the largest is k / (k + 1) on average, and the others half of that.
            centroid = np.where(chosen, width, width / 2) / (width + 1)
            genotypes[..., first[column] : first[column] + width] = centroid
        return genotypes


def _width(parameter: Parameter) -> int:
    """Return the number of coordinates of a parameter."""
    return len(parameter.options) if isinstance(parameter, Choice) else 1


def _expected(parameter: Parameter) -> str:
    """Return the valid values of a parameter in an array, worded to follow "expected"."""
    if isinstance(parameter, Choice):
        return f"the index of an option, a whole number from 0 to {len(parameter.options) - 1}"
    kind = "whole" if isinstance(parameter, Integer) else "finite"
    return f"a {kind} number from {parameter.low} to {parameter.high}"


def _array(argument: str, given: Any, width: int) -> Any:
    """Return an array of numbers whose last axis has the given width; JAX arrays stay what they are."""
    try:
        array = given if isinstance(given, jax.Array) else np.asarray(given)
    except ValueError:  # rows of several lengths
        array = np.array(None)
    if not any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.floating, jnp.integer)):
        raise fail(argument, expected="an array of numbers", received=repr(given), remedy="give rows of equal length")
    if array.shape[-1:] != (width,):
        expected, remedy = f"shape (..., {width})", "give one number per column"
        raise fail(argument, expected=expected, received=array.shape, remedy=remedy)
    return array


def _inwards(bounds: np.ndarray, dtype: np.dtype, direction: int) -> np.ndarray:
    """Return bounds in a type, rounded up or down, as finite numbers that are not subnormal.

    Args:
        bounds: `(n,)`, float64.
        dtype: The type to round to.
        direction: 1 to round lower bounds up, -1 to round upper bounds down.
    """
    limits = np.finfo(dtype)
    rounded = bounds.astype(dtype)
    outwards = direction * rounded.astype(np.float64) < direction * bounds
    rounded = np.where(outwards, np.nextafter(rounded, dtype.type(direction * np.inf)), rounded)
    normal = np.where(direction * rounded > 0, direction * limits.tiny, 0).astype(dtype)  # devices flush subnormals
    return np.clip(np.where(np.abs(rounded) < limits.tiny, normal, rounded), limits.min, limits.max)


def _on_scale(log: bool, value: float) -> float:
    return math.log(value) if log else float(value)


def _number(name: str, setting: str, value: Any, *, finite: bool = True) -> float:
    """Return a number as a float."""
    given = np.asarray(value if isinstance(value, int | float | np.generic | np.ndarray | jax.Array) else None)
    if given.ndim or given.dtype.kind not in "iuf" or np.isnan(given) or (finite and np.isinf(given)):
        expected = f"a {'finite ' * finite}number" + f" for {setting}" * bool(setting)
        raise fail(name, expected=expected, received=repr(value), remedy="give a number")
    return float(given)


def _whole(name: str, setting: str, value: Any) -> int:
    """Return a whole number of at most 32 bits as an int."""
    number = _number(name, setting, value)
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
        raise fail(name, expected="low below high", received=f"low={low}, high={high}", remedy="swap or change them")
    if start is not None and not low <= start <= high:
        raise fail(name, expected=f"a start from {low} to {high}", received=start, remedy="move it within the bounds")
    return _flag(name, "log", log)


def _changed_fields(parameter: Real | Integer) -> dict[str, Any]:
    """Return the settings of a parameter that differ from their defaults."""
    given = {field.name: getattr(parameter, field.name) for field in dataclasses.fields(parameter)}
    defaults = {field.name: field.default for field in dataclasses.fields(parameter)}
    return {name: value for name, value in given.items() if value != defaults[name]}


def _call(name: str, settings: Mapping[str, Any]) -> str:
    """Return the text of a call; long lists are shortened."""
    return f"{name}({', '.join(f'{key}={reprlib.repr(value)}' for key, value in settings.items())})"


def _key(option: Option) -> tuple[bool, Option]:
    """Return what tells options apart: True is not 1, but 1.0 is."""
    return isinstance(option, bool), option


def _pair(low: Any, high: Any) -> Real:
    """Return a parameter with two bounds, None standing for no bound."""
    return Real(-math.inf if low is None else low, math.inf if high is None else high)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _parameter(name: str, given: Any) -> Parameter:
    """Return the checked parameter that the user gave, also in short form."""
    if isinstance(given, Parameter):
        return given._checked(name)
    is_pair = isinstance(given, list | tuple) and len(given) == 2 and all(v is None or _is_number(v) for v in given)
    if isinstance(given, tuple) and is_pair:
        return _pair(*given)._checked(name)
    if isinstance(given, list) and not is_pair:
        return Choice(*given)._checked(name)
    if isinstance(given, Mapping):
        return _from_entry(name, given)._checked(name)
    expected = "a Real, an Integer, a Choice, a tuple (low, high), a list of options or a dict of settings"
    remedy = "write (low, high) for a range or Choice(...) for options"
    raise fail(name, expected=expected, received=repr(given), remedy=remedy)


def _numeric(value: Any) -> Any:
    """Return texts that are numbers as floats, also within a list; other values are returned unchanged."""
    if isinstance(value, list | tuple):
        return [_numeric(one) for one in value]
    with contextlib.suppress(ValueError):
        return float(value) if isinstance(value, str) else value
    return value


def _from_entry(name: str, entry: Any) -> Parameter:
    """Return the parameter that an entry of a specification describes; see `Space.from_spec`."""
    if isinstance(entry, list | tuple):
        values = _numeric(entry)
        if len(values) == 2 and all(value is None or _is_number(value) for value in values):
            return _pair(*values)
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
    given = {key: _numeric(value) for key, value in entry.items() if key != "integer" and value is not None}
    for key in ("low", "high"):
        if kind is Integer and key not in given:
            raise fail(name, expected=f"{key} for integer", received="none", remedy="give both bounds")
    return kind(**given)
