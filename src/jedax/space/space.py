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
    [2] B. Doerr, C. Doerr, T. Kötzing. Static and Self-Adjusting Mutation Strengths for Multi-valued Decision
        Variables. Algorithmica 80:1732-1768, 2018. doi:10.1007/s00453-017-0341-1.
"""

from __future__ import annotations

import contextlib
import dataclasses
import keyword
import math
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from jedax.errors import fail, unknown
from jedax.space.parameters import (
    Axis,
    Choice,
    Parameter,
    as_numbers,
    call_text,
    expected_of,
    from_entry,
    number_of,
    pair,
    parameter_of,
    whole_of,
    width_of,
)
from jedax.types import Array, Float, PRNGKeyArray

_OTHER_END = 0.1  # probability; larger ones make more late results useless, since strategies refuse distant ones
_limited: ContextVar[tuple[Any, Any]] = ContextVar("limited", default=(None, None))  # a space and its ends in a context
_CORNER = 0.03  # of the range of a real number, see `Space.from_smooth`
_RESOLVED = 8  # times the distance of numbers: that far from an end of a share, rounding does not change the value


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
        parameters = tuple(parameter_of(label, one) for label, one in zip(labels, given.values(), strict=True))
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
        size = None if num_params is None else whole_of("num_params", "", num_params)
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
        reals = [dataclasses.replace(pair(low, high), start=x, scale=sigma) for low, high, x, sigma in rows]
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
        start = [number_of("x0", "", x) for x in points]
        sigmas = sigma0 if isinstance(sigma0, list | tuple) else np.atleast_1d(sigma0)
        scale = [number_of("sigma0", "", sigma) for sigma in sigmas]
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
            return cls.box(**{key: as_numbers(value) for key, value in spec.items()})
        if not isinstance(spec, Mapping):
            received = type(spec).__name__
            raise fail("space", expected="a mapping of names to parameters", received=received, remedy="name them")
        return cls({name: from_entry(str(name), entry) for name, entry in spec.items()})

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
            return call_text("Space.box", self.spec())
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
        return sum(width_of(one) for one in self.parameters)

    @cached_property
    def coordinates(self) -> Space:
        """Return the space in units of its own: each real number is its coordinate.

        Spaces that differ only in the user's units, or in where the bounds are around a start, have equal ones. Around
        a start, bounds are at -1 and 1 there; `limited` says where they are.
        """
        return Space({f"x{i}": one._standard() for i, one in enumerate(self.parameters)})

    @property
    def limits(self) -> np.ndarray:
        """Return the ends of the coordinates, lower and upper ones, `(2, num_params)`, float64."""
        axis = self._table(np.dtype(np.float64))
        return np.stack([axis.lower, axis.upper])

    @contextlib.contextmanager
    def limited(self, limits: Any) -> Iterator[None]:
        """Give coordinates within this context the ends of another space's, whose `coordinates` are this space.

        So programs that are traced here do for all these spaces, if `limits` is one of their arguments.

        Args:
            limits: The other space's `limits`, or an array that stands for them while programs are traced.
        """
        token = _limited.set((self, limits))
        try:
            yield
        finally:
            _limited.reset(token)

    @property
    def is_real(self) -> bool:
        """Return whether all parameters are real numbers."""
        return bool(self.is_real_coordinate.all())

    @property
    def is_discrete(self) -> bool:
        """Return whether all parameters are whole numbers or options."""
        return not self.is_real_coordinate.any()

    @property
    def is_categorical(self) -> bool:
        """Return whether there are options and no real numbers."""
        return self.is_discrete and bool(self._is_option.any())

    @property
    def num_solutions(self) -> float:
        """Return the number of different solutions; infinite where a parameter is a real number."""
        counts = [len(o.options) if isinstance(o, Choice) else o.high - o.low + 1 for o in self.parameters]
        return math.prod(counts) if self.is_discrete else math.inf

    @property
    def is_real_coordinate(self) -> np.ndarray:
        """Return which coordinates are those of a `Real`, `(num_params,)`."""
        return ~self._table(np.dtype(np.float64)).integer

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
        has_lower, has_upper = xp.isfinite(axis.lower), xp.isfinite(axis.upper)
        lower, upper = xp.where(has_lower, axis.lower, 0), xp.where(has_upper, axis.upper, 0)
        width = xp.where(has_lower & has_upper, upper - lower, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            size = xp.abs(g - lower) / width
            period = size - 2 * xp.floor(size / 2)  # exact, in [0, 2)
            between = xp.clip(lower + width * xp.minimum(period, 2 - period), axis.lower, axis.upper)
            above, below = lower + xp.abs(g - lower), upper - xp.abs(upper - g)
        reflected = xp.where(has_lower & has_upper, between, xp.where(has_lower, above, below))
        return xp.where(inside | ~(has_lower | has_upper), g, reflected)

    def from_smooth(self, points: Float[Array, "*batch params"]) -> Float[Array, "*batch params"]:
        """Return the genotypes that smooth points stand for; jittable.

        Points equal genotypes but near the bounds of real numbers. Let `a` be 3 % of the range, of the scale where
        there is one bound. A genotype crosses the bound where its point is `a` beyond it; if u is the distance of the
        point from there, up to 2 a, the genotype is `u |u| / (4 a)` from the bound. So the reflected genotype (`fold`)
        changes with the point without an edge, as with the boundary transformation of pycma.

        Args:
            points: `(..., num_params)`.
        """
        a, lower, upper = self._corners(points)
        bent = jnp.where(upper - points < a, upper - _squared(upper - points + a, a), points)
        return jnp.where(points - lower < a, lower + _squared(points - lower + a, a), bent)

    def to_smooth(self, genotypes: Float[Array, "*batch params"]) -> Float[Array, "*batch params"]:
        """Return the smooth points of genotypes, which may be out of bounds: the inverse of `from_smooth`; jittable.

        Args:
            genotypes: `(..., num_params)`.
        """
        a, lower, upper = self._corners(genotypes)
        bent = jnp.where(upper - genotypes < a, upper + a - _rooted(upper - genotypes, a), genotypes)
        return jnp.where(genotypes - lower < a, lower - a + _rooted(genotypes - lower, a), bent)

    def _corners(self, genotypes: Array) -> tuple[Array, Array, Array]:
        """Return the distance `a` of `from_smooth`, and the bounds of real numbers; infinite: there is none."""
        axis = self._table(np.dtype(genotypes.dtype))
        lower = jnp.where(self.is_real_coordinate, axis.lower, -jnp.inf)
        upper = jnp.where(self.is_real_coordinate, axis.upper, jnp.inf)
        return _CORNER * jnp.where(jnp.isfinite(upper - lower), upper - lower, 1), lower, upper

    def step_within_reach(
        self, key: PRNGKeyArray, genotype: Float[Array, " params"], reach: Float[Array, " params"]
    ) -> Float[Array, " params"]:
        """Return the step after which a change by `reach` can make other whole numbers and options; jittable.

        The step of a whole number leads to a distance of `reach` from the nearer end of the number's share, one time in
        ten from the other end, if this is none of the range; the step is 0 if an end is as near before. The step of an
        option raises its coordinate until this is below the largest one by at most the root of the sum of the two
        squared reaches. Steps change no value: where numbers do not resolve `reach`, the distance is larger.

        Args:
            key: Random key, which chooses between two ends.
            genotype: `(num_params,)`; the step of coordinates outside their ranges is that of their reflections,
                reflected.
            reach: `(num_params,)`, at least 0.
        """
        g = self.fold(jnp.asarray(genotype))
        _, _, axis = self._read(g)
        reach = jnp.maximum(reach, _RESOLVED * jnp.finfo(g.dtype).eps)
        value, chosen = self._decided(g)
        lower, upper = self._place_of(value - 0.5), self._place_of(value + 0.5)
        has_lower, has_upper = self._is_whole & (value > axis.low), self._is_whole & (value < axis.high)
        is_low = has_lower & (((g - lower < upper - g) ^ jax.random.bernoulli(key, _OTHER_END, g.shape)) | ~has_upper)
        is_near = (has_lower & (g - lower <= reach)) | (has_upper & (upper - g <= reach))
        target = jnp.where(is_low, lower + reach, upper - reach)
        step = jnp.where((has_lower | has_upper) & ~is_near, target - g, 0)
        raised = jnp.maximum(0, g[chosen] - jnp.hypot(reach[chosen], reach) - g)
        step = jnp.where(self._is_option, raised, step)
        return step * jnp.where(jnp.floor(genotype) % 2 == 0, 1, -1)

    def mutated(self, key: PRNGKeyArray, genotypes: Float[Array, "*batch params"]) -> Float[Array, "*batch params"]:
        """Return genotypes of which a few parameters have another whole number or option; jittable.

        Each of them changes with a probability of one over their number, and one drawn at random where none does. A
        whole number changes by k with a probability that falls as log((k + 1) / k), about 1 / k, as with the harmonic
        steps of [2]. Of the other options each is equally likely. Real numbers stay.

        Args:
            key: Random key.
            genotypes: `(..., num_params)`, of a space whose parameters are not all real numbers.
        """
        g = self.fold(jnp.asarray(genotypes))
        _, _, axis = self._read(g)
        value, chosen = self._decided(g)
        each_key, one_key, size_key, sign_key, option_key = jax.random.split(key, 5)
        discrete = np.unique(self._owners[~self.is_real_coordinate])
        each = jax.random.bernoulli(each_key, 1 / len(discrete), (*g.shape[:-1], self.num_values))
        one = jax.random.choice(one_key, discrete, (*g.shape[:-1], 1)) == np.arange(self.num_values)
        changes = jnp.where(each[..., discrete].any(axis=-1, keepdims=True), each, one)[..., self._owners]
        below, above = value - axis.low, axis.high - value
        most = jnp.maximum(below, above)
        size = jnp.floor(jnp.exp(jax.random.uniform(size_key, g.shape, g.dtype) * jnp.log1p(most)))
        size = jnp.clip(size, 1, most)
        is_up = (jax.random.bernoulli(sign_key, 0.5, g.shape) | (size > below)) & (size <= above)
        number = self._place_of(jnp.where(is_up, value + size, value - size))
        is_chosen = chosen == np.arange(self.num_params)
        option = jnp.where(is_chosen, 0, jax.random.uniform(option_key, g.shape, g.dtype, jnp.finfo(g.dtype).tiny))
        other = jnp.where(self._is_option, option, jnp.where(self._is_whole, number, g))
        return jnp.where(changes, other, g)

    def canonical(self, genotypes: Float[Array, "*batch params"]) -> Float[Array, "*batch params"]:
        """Return genotypes with the same values, and with equal coordinates for equal whole numbers and options.

        Real numbers have the reflected coordinates, whole numbers the middle of their share, and of the options of a
        `Choice` the chosen one has 1, the others 0. Whole numbers beyond what `Integer` says of float32 may change.
        Jittable.
        """
        g = self.fold(jnp.asarray(genotypes))
        value, chosen = self._decided(g)
        g = jnp.where(self._is_whole, self._place_of(value), g)
        return jnp.where(self._is_option, chosen == np.arange(self.num_params), g)

    def _decided(self, g: Array) -> tuple[Array, Array]:
        """Return the value of each coordinate's parameter, and the coordinate of the option that a `Choice` has.

        Both are `(..., num_params)`; the second is 0 for the coordinates of numbers.
        """
        value = self.values(g)[..., self._owners]
        first = self._columns[0][self._owners]
        return value, jnp.where(self._is_option, first + value, 0).astype(int)

    def _place_of(self, number: Array) -> Array:
        """Return the coordinates of whole numbers, or of the ends of their shares, which are half a number away."""
        _, number, axis = self._read(number)
        on_scale = jnp.where(axis.log, jnp.log(jnp.maximum(number, 0.5)), number + 0.5)
        return (on_scale - axis.offset) / axis.factor

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
            u, axis = g[..., first[numeric]], Axis(*(column[first[numeric]] for column in axis))
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
        axis = Axis(*(column[first] for column in axis))
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

    def unrounded(self, values: np.ndarray) -> np.ndarray:
        """Return values that were rounded to float32, those that are rounded bounds as the bounds."""
        first, _ = self._columns
        axis = Axis(*(column[first] for column in self._table(np.dtype(np.float64))))
        for bound in (axis.low, axis.high):
            with np.errstate(over="ignore"):
                values = np.where(values == bound.astype(np.float32), bound, values)
        return values

    @property
    def is_uniform(self) -> bool:
        """Return whether all coordinates of random genotypes are uniform."""
        return bool(self._table(np.dtype(np.float64)).uniform.all())

    @property
    def has_start(self) -> bool:
        """Return whether any parameter has a `start`."""
        return any(start is not None for start in self._starts)

    @property
    def start_genotype(self) -> np.ndarray | None:
        """Return the genotype `(num_params,)`, float64, where a search begins.

        It has the `start` of each parameter, or else the middle of its two bounds. None: some parameter has neither.
        """
        axis, (first, _) = self._table(np.dtype(np.float64)), self._columns
        is_given = np.array([start is not None for start in self._starts])
        has_two_bounds = np.isfinite(axis.lower[first]) & np.isfinite(axis.upper[first])
        if not (is_given | has_two_bounds).all():
            return None
        middle = np.where(axis.uniform, 0.5, 0.0)
        values = self.values(middle)
        values[is_given] = [start for start in self._starts if start is not None]
        return np.where(is_given[self._owners], self.genotypes(values), middle)

    @property
    def _starts(self) -> list[float | None]:
        return [getattr(one, "start", None) for one in self.parameters]

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

    def _read(self, genotypes: Any) -> tuple[Any, Any, Axis]:
        """Return the library of an array of genotypes, the array in float32 or float64, and the axes in its type."""
        array = _array("genotypes", genotypes, self.num_params)
        xp: Any = jnp if isinstance(array, jax.Array) else np
        dtype = np.dtype(np.float32 if xp.result_type(array.dtype, np.float32) == np.float32 else np.float64)
        table = self._table(dtype)
        return jnp if isinstance(table.lower, jax.Array) else xp, array.astype(dtype), table

    @property
    def _is_option(self) -> np.ndarray:
        """Return which coordinates are those of a `Choice`, `(num_params,)`."""
        return ~self._columns[1][self._owners]

    @property
    def _is_whole(self) -> np.ndarray:
        """Return which coordinates are those of an `Integer`, `(num_params,)`."""
        return ~self.is_real_coordinate & ~self._is_option

    @cached_property
    def _owners(self) -> np.ndarray:
        """Return the number of the parameter that each coordinate belongs to, `(num_params,)`."""
        return np.repeat(np.arange(self.num_values), [width_of(one) for one in self.parameters])

    @cached_property
    def _columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first coordinate of each parameter, and which parameters are numbers: `(num_values,)` each."""
        widths = [width_of(one) for one in self.parameters]
        return np.cumsum([0, *widths[:-1]]), np.array([not isinstance(one, Choice) for one in self.parameters])

    @cached_property
    def _options(self) -> np.ndarray:
        """Return the coordinates of the options of each `Choice`: `(choices, most options)`, filled with -1."""
        first, numeric = self._columns
        widths = np.array([width_of(one) for one in self.parameters])[~numeric]
        options = np.arange(widths.max(initial=0))
        return np.where(options < widths[:, None], first[~numeric][:, None] + options, -1)

    @cached_property
    def _tables(self) -> dict[np.dtype, Axis]:
        return {}

    def _table(self, dtype: np.dtype) -> Axis:
        """Return the axes as arrays `(num_params,)` of a type, with bounds that this type does not round outwards."""
        if dtype not in self._tables:
            axes = [axis for one in self.parameters for axis in one._axes()]
            exact = Axis(*(np.array(column) for column in zip(*axes, strict=True)))
            with np.errstate(over="ignore", under="ignore"):
                cast = Axis(*(c if c.dtype == bool else c.astype(dtype) for c in exact))
                table = cast._replace(low=_inwards(exact.low, dtype, 1), high=_inwards(exact.high, dtype, -1))
            fits = (table.low < table.high) & np.isfinite(table.offset) & np.isfinite(table.factor) & (table.factor > 0)
            if not fits.all():
                one = np.searchsorted(self._columns[0], np.argmin(fits), side="right") - 1
                remedy = "change the bounds" + " or use float64 genotypes" * (dtype == np.float32)
                expected = f"a range that {dtype} numbers resolve"
                raise fail(self.names[one], expected=expected, received=self.parameters[one], remedy=remedy)
            self._tables[dtype] = table
        return self._with_limits(self._tables[dtype])

    def _with_limits(self, table: Axis) -> Axis:
        """Return the axes with the ends of `limited`, where this space is the one in that context."""
        space, limits = _limited.get()
        if space is None or (space is not self and space != self):
            return table
        xp: Any = jnp if isinstance(limits, jax.Array) else np
        lower, upper = limits.astype(table.lower.dtype)
        low, high = (xp.where(table.uniform, *ends) for ends in ((table.low, lower), (table.high, upper)))
        return table._replace(lower=lower, upper=upper, low=low, high=high)

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
            float(one._index(name, values[name])) if isinstance(one, Choice) else number_of(name, "", values[name])
            for name, one in pairs
        ]

    def _encoded(self, values: np.ndarray) -> np.ndarray:
        """Return the genotypes of an array of values, which it checks."""
        first, numeric = self._columns
        axis = Axis(*(column[first] for column in self._table(np.dtype(np.float64))))
        dtype = values.dtype if values.dtype.kind == "f" else np.dtype(np.float64)
        with np.errstate(over="ignore"):
            lows, highs = axis.low.astype(dtype), axis.high.astype(dtype)
        whole = ~axis.integer | (values == np.floor(values))
        fits = (values >= lows) & (values <= highs) & np.isfinite(values) & whole
        if not fits.all():
            *row, column = np.argwhere(~fits)[0].tolist()
            name = self.names[column] + "".join(f"[{i}]" for i in row)
            expected, received = expected_of(self.parameters[column]), values[(*row, column)]
            raise fail(name, expected=expected, received=received, remedy="change the value")
        values = np.clip(values.astype(np.float64), axis.low, axis.high)
        axis = Axis(*(column[numeric] for column in axis))
        genotypes = np.empty((*values.shape[:-1], self.num_params))
        x = np.where(axis.integer & ~axis.log, values[..., numeric] + 0.5, values[..., numeric])
        x = np.where(axis.log, np.log(np.where(axis.log, x, 1)), x)
        with np.errstate(over="ignore"):
            coordinates = np.clip((x - axis.offset) / axis.factor, axis.lower, axis.upper)
        genotypes[..., first[numeric]] = np.nan_to_num(coordinates)  # finite
        for column in np.flatnonzero(~numeric):
            width = width_of(self.parameters[column])
            chosen = np.arange(width) == values[..., column, None]
            # Of k uniform numbers, the largest is k / (k + 1) on average, and the others half of that.
            centroid = np.where(chosen, width, width / 2) / (width + 1)
            genotypes[..., first[column] : first[column] + width] = centroid
        return genotypes


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


def _squared(u: Array, a: Array) -> Array:
    """Return u |u| / (4 a) up to a distance of 2 a, and from there on the line that continues it."""
    return jnp.where(jnp.abs(u) < 2 * a, u * jnp.abs(u) / (4 * a), u - jnp.sign(u) * a)


def _rooted(d: Array, a: Array) -> Array:
    """Return the inverse of `_squared`."""
    return jnp.where(jnp.abs(d) < a, jnp.sign(d) * jnp.sqrt(4 * a * jnp.abs(d)), d + jnp.sign(d) * a)
