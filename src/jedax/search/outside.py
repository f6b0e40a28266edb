"""A problem whose solutions are evaluated elsewhere: its parameters and its descriptors, as the user describes them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from jedax.errors import JedaxError, fail
from jedax.space import Real, Space
from jedax.tasks.measured import MARGIN
from jedax.types import Bounds


@dataclass(frozen=True)
class OutsideTask:
    """What is known about a problem that is evaluated elsewhere.

    Problems that differ in `limits` alone are equal, so that they share programs: see `Space.limited`.
    """

    num_params: int
    descriptor_bounds: Bounds
    space: Space | None = None
    initial_std: float = 1.0
    descriptor_names: tuple[str, ...] = ()
    limits: np.ndarray | None = field(default=None, compare=False, repr=False)

    @property
    def num_descriptors(self) -> int:
        """Number of descriptors."""
        return len(self.descriptor_bounds[0])

    @property
    def qd_offset(self) -> float:
        """A lower bound of the fitness: unknown."""
        raise fail(
            "threshold_min",
            expected="a number, because no lower bound of your problem's fitness is known",
            received="'task'",
            remedy="give a lower bound of the fitness; with minimise=True, minus an upper bound of what you minimise",
        )

    def init(self, key: Any) -> Any:
        """Draw a genotype: as the space of the parameters says, or of normal numbers around zero."""
        if self.space is not None:
            return self.space.draw(key)
        return self.initial_std * jax.random.normal(key, (self.num_params,))


def space_of(num_params: Any, space: Any, bounds: Any, x0: Any, sigma0: Any) -> Space | None:
    """Return the space that the arguments of `Optimizer` describe; None: any numbers, as the search draws them."""
    limits: tuple[Any, Any] = (None, None) if bounds is None else lows_and_highs("bounds", bounds)
    lows, highs = limits
    if space is not None:
        for name, given, field in (("bounds", bounds, "bounds"), ("sigma0", sigma0, "scale")):
            if given is not None:
                remedy = f"give the parameters of the space their {field}, as in jedax.Real(0, 10, scale=2)"
                raise fail("space", expected=f"no {name} beside it", received=f"{name}={given!r}", remedy=remedy)
        found = space if isinstance(space, Space) else Space(space)
    elif x0 is None and sigma0 is None:
        lows, highs = _fitted(lows, highs, num_params)
        found = None if lows is None and highs is None else Space.box(lows, highs, num_params=num_params)
    else:
        if x0 is None and num_params is None and not (np.ndim(lows) or np.ndim(highs)):
            remedy = "give it, x0, or bounds of each parameter"
            raise fail("num_params", expected="the number of parameters", received="None", remedy=remedy)
        if isinstance(x0, list | tuple | np.ndarray) and any(isinstance(x, list | tuple) or np.ndim(x) for x in x0):
            raise fail("x0", expected="one number per parameter", received=repr(x0), remedy="give one solution")
        size = num_params if x0 is None else len(np.atleast_1d(x0))
        lows, highs = _fitted(lows, highs, size)
        box = Space.box(lows, highs, num_params=size)
        if x0 is None:
            x0 = box.values(np.where(np.isfinite(_widths(box)), 0.5, 0.0))
        if sigma0 is None:
            sigma0 = [0.3 * width if np.isfinite(width) else 1.0 for width in _widths(box)]
        found = Space.around(x0, sigma0, (lows, highs))
    if found is None and num_params is None:
        remedy = "give it, or space, bounds or x0"
        raise fail("num_params", expected="the number of parameters", received="None", remedy=remedy)
    if found is not None and num_params not in (None, found.num_values):
        expected = f"{found.num_values}, as many as {'x0' if space is None else 'space'} has"
        raise fail("num_params", expected=expected, received=num_params, remedy="leave num_params out")
    return found


def spread_follows_bounds(found: Space, space: Any, sigma0: Any) -> bool:
    """Return whether the bounds say how far random solutions spread, for arguments and what `space_of` made of them."""
    is_default = space is None and sigma0 is None and bool(np.isfinite(_widths(found)).all())
    return found.is_uniform or is_default


def _widths(box: Space) -> list[float]:
    return [float(one.high - one.low) for one in box.parameters if isinstance(one, Real)]


def _fitted(lows: Any, highs: Any, size: int | None) -> tuple[Any, Any]:
    """Return bounds of so many parameters: lows and highs, or a low and a high for all of them.

    An array of one number holds for all, as in `scipy.optimize.Bounds`; other lengths are errors.
    """
    lows, highs = (bound[0] if size is not None and np.shape(bound) == (1,) else bound for bound in (lows, highs))
    for which, bound in (("lows", lows), ("highs", highs)):
        if size is not None and np.ndim(bound) and len(bound) != size:
            received, remedy = f"{len(bound)} {which} for {size} parameters", "give one low and one high per parameter"
            raise fail("bounds", expected=f"{size} {which}", received=received, remedy=remedy)
    return lows, highs


def lows_and_highs(name: str, given: Any) -> tuple[Any, Any]:
    """Return bounds, of parameters or of descriptors, in any of their forms as (lows, highs).

    A list of tuples has pairs, a tuple of lists or arrays has lows and highs. Two times two numbers in another form are
    read in the way in which each low is below its high, and refused if both ways are such. `name` is the argument's.
    """
    if hasattr(given, "lb") and hasattr(given, "ub"):
        lows, highs = np.broadcast_arrays(given.lb, given.ub)
        return lows, highs
    try:
        size, widths = len(given), {np.size(part) for part in given}
    except (TypeError, ValueError):
        size, widths = 0, set()
    are_pairs, are_bounds = widths == {2}, size == 2
    if are_pairs and are_bounds:
        are_pairs = isinstance(given, list) and all(isinstance(pair, tuple) for pair in given)
        are_bounds = isinstance(given, tuple) and not any(isinstance(part, tuple) for part in given)
        if not are_pairs and not are_bounds:
            are_pairs, are_bounds = _are_below(*zip(*given, strict=True)), _are_below(*given)
    if are_pairs == are_bounds:
        expected = "(lows, highs), or a list of tuples (low, high)"
        remedy = "write ([0, 0], [1, 5]), [(0, 1), (0, 5)] or scipy.optimize.Bounds([0, 0], [1, 5])"
        raise fail(name, expected=expected, received=repr(given), remedy=remedy)
    if are_bounds:
        return tuple(given)  # type: ignore[return-value]
    lows, highs = zip(*given, strict=True)
    return list(lows), list(highs)


def _are_below(lows: Iterable[Any], highs: Iterable[Any]) -> bool:
    """Return whether each low is below its high, None standing for no bound."""
    pairs = ((-np.inf if a is None else a, np.inf if b is None else b) for a, b in zip(lows, highs, strict=True))
    try:
        return all(low < high for low, high in pairs)
    except TypeError:  # texts
        return False


def box_of(bounds: Any) -> Bounds | None:
    """Return bounds of descriptors as the user gives them; None: there are none."""
    if bounds is None:
        return None
    try:
        lows, highs = (tuple(float(b) for b in bound) for bound in lows_and_highs("descriptor_bounds", bounds))
    except (TypeError, ValueError) as error:
        if isinstance(error, JedaxError):
            raise
        raise fail(
            "descriptor_bounds",
            expected="(lows, highs), or a list of tuples (low, high)",
            received=repr(bounds),
            remedy="write ([0, 0], [1, 5]) or [(0, 1), (0, 5)]",
        ) from None
    return lows, highs


def measured_box(descriptors: np.ndarray) -> Bounds:
    """Return bounds of the descriptors of the first generation, `(n, samples, d)`; a warning where all are equal.

    At least one of them is finite.
    """
    known = descriptors.reshape(-1, descriptors.shape[-1])
    known = known[np.isfinite(known).all(axis=1)]
    lows, highs = known.min(axis=0), known.max(axis=0)
    are_equal = lows == highs
    margin = np.where(are_equal, np.maximum(np.abs(lows), 1) / 2, MARGIN * (highs - lows))
    lows, highs = (lows - margin).tolist(), (highs + margin).tolist()
    for i in np.flatnonzero(are_equal):
        warnings.warn(
            f"descriptor {i} is the same in the whole first generation, so its bounds are not measured: they are "
            f"{lows[i]:g} and {highs[i]:g}. Begin again with descriptor_bounds if it has other values later.",
            stacklevel=2,
        )
    return tuple(lows), tuple(highs)
