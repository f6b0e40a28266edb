"""Constraints in ask and tell: feasible solutions first, and an augmented Lagrangian for evolution strategies.

The repertoire prefers feasible solutions, then those with less violation [1]. Evolution strategies minimise
`f(x) + sum_j p_j(g_j(x))`, where f is the fitness to be minimised, g_j are the values of the constraints, above 0 where
violated, and

    p_j(g) = a_j g + b_j g^2 / 2  if a_j + b_j g > 0,  else -a_j^2 / (2 b_j),

with multipliers a_j and penalty factors b_j that adapt to the search [2, 3]. Three things differ from these papers: the
mean of the parents replaces the mean of the distribution, factors that are far too small or too large for a generation
are set anew, and multipliers adapt faster (d_gamma is 2 instead of 5).

References:
    [1] K. Deb. An Efficient Constraint Handling Method for Genetic Algorithms. Computer Methods in Applied Mechanics
        and Engineering 186, 2000.
    [2] A. Atamna, A. Auger, N. Hansen. Linearly Convergent Evolution Strategies via Augmented Lagrangian Constraint
        Handling. FOGA 2017; eqs. (3) to (5).
    [3] P. Dufosse, N. Hansen. Augmented Lagrangian, Penalty Techniques and Surrogate Modeling for Constrained
        Optimization with CMA-ES. GECCO 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jedax.repertoire.repertoire import INFEASIBLE
from jedax.types import Float

_LARGEST = 709.78  # log(1 + v) of the largest violations, which count as infinite
_LEAST = -1e100  # value of a constraint that can hardly be satisfied better
_FIRST = 0.4  # first penalty factor, in interquartile ranges of fitness over n times the squared one of the constraint
_CHANGE = 3.0  # k1 in [2]: the factor grows while so many times the penalty is below the change of the Lagrangian
_STEP = 5.0  # k2 in [2]: the factor grows while so many times the change of the constraint's mean is below its value
_MOST = 1000.0  # factor of an inactive constraint, in first factors of the present generation
_RATE = 0.5  # of the multipliers, 1 / d_gamma
_RANGE = (1e-100, 1e100)  # of penalty factors


def total_violation(constraints: Float[np.ndarray, "batch constraints"]) -> Float[np.ndarray, " batch"]:
    """Return the sum of the violated constraints."""
    return np.maximum(constraints, 0).sum(axis=1)


def stored(fitness: np.ndarray, violations: np.ndarray) -> np.ndarray:
    """Return the fitness by which the repertoire compares solutions: that of infeasible ones is low."""
    excess = np.nan_to_num(violations)
    return np.where(excess > 0, INFEASIBLE * (1 + np.log1p(excess)), fitness)


def violation_of(fitness: float) -> float:
    """Return the violation of a solution from its stored fitness; 0: it is feasible."""
    if not -np.inf < fitness <= INFEASIBLE:
        return 0.0
    excess = max(fitness / INFEASIBLE - 1, np.finfo(float).eps)  # violations below that are stored as none
    return float(np.expm1(excess)) if excess < _LARGEST else np.inf


@dataclass(frozen=True)
class Penalty:
    """What evolution strategies add to the fitness of solutions, see the module.

    Attributes:
        multipliers: a_j, at least 0.
        factors: b_j; 0 until a solution violates the constraint.
        mean: The fitness, to be minimised, and the constraints' values of the last parents; NaN: there are none.
    """

    multipliers: Float[np.ndarray, " constraints"]
    factors: Float[np.ndarray, " constraints"]
    mean: Float[np.ndarray, " 1+constraints"]

    @classmethod
    def begin(cls, number: int) -> Penalty:
        """Return penalties of 0 for a number of constraints."""
        return cls(np.zeros(number), np.zeros(number), np.full(1 + number, np.nan))

    @property
    def number(self) -> int:
        """Number of constraints."""
        return len(self.factors)

    def check(self) -> int:
        """Return the number of constraints; a `ValueError` where the numbers do not fit each other."""
        shapes = [(array.shape, array.dtype.kind) for array in (self.multipliers, self.factors, self.mean)]
        if shapes != [((self.number,), "f"), ((self.number,), "f"), ((1 + self.number,), "f")]:
            raise ValueError("penalty")
        return self.number

    def scores(
        self, fitness: Float[np.ndarray, " batch"], constraints: Float[np.ndarray, "batch constraints"]
    ) -> Float[np.ndarray, " batch"]:
        """Return what evolution strategies maximise, given the fitness; -inf where a constraint is inf or NaN."""
        is_known = np.max(constraints, axis=1) < np.inf
        values = np.where(np.isfinite(constraints), constraints, _LEAST)
        return np.where(is_known, -self._penalised(-fitness, values), -np.inf)

    def adapted(
        self, fitness: Float[np.ndarray, " batch"], constraints: Float[np.ndarray, "batch constraints"], num_params: int
    ) -> Penalty:
        """Return the penalty after a generation of the evolution strategies that maximise fitness."""
        rows = np.column_stack([-fitness, np.maximum(constraints, _LEAST)])
        rows = rows[np.isfinite(rows).all(axis=1)]
        if len(rows) < 2:
            return self
        factors = self._fitted(rows, num_params)
        found = Penalty(self.multipliers, factors, self.mean)
        best = rows[np.argsort(found._penalised(rows[:, 0], rows[:, 1:]), kind="stable")[: len(rows) // 2]]
        weights = np.log(len(best) + 0.5) - np.log(np.arange(1, len(best) + 1))
        mean = weights @ best / weights.sum()
        if np.isnan(self.mean).any():
            return Penalty(self.multipliers, factors, mean)
        now, before = mean[1:], self.mean[1:]
        change = abs(found._penalised(mean[0], now) - found._penalised(self.mean[0], before))
        is_weak = factors * now**2 < _CHANGE * change / num_params
        is_weak |= _STEP * np.abs(now - before) < np.abs(before)
        is_active = self.multipliers + factors * now > 0
        growth = np.where(is_weak, 2 ** (1 / (4 * num_params)), 2 ** (-1 / num_params))
        changed = np.clip(factors * growth, *_RANGE)
        is_used = (factors > 0) & (is_active | (self.multipliers > 0))
        multipliers = np.maximum(0, self.multipliers + _RATE * factors * now)
        return Penalty(multipliers, np.where(is_used, changed, factors), mean)

    def _fitted(
        self, rows: Float[np.ndarray, "batch 1+constraints"], num_params: int
    ) -> Float[np.ndarray, " constraints"]:
        """Return the penalty factors, changed where they do not suit the present generation by far.

        They begin where a solution violates a constraint, grow where most solutions are far outside, and are bounded
        where the constraint is inactive.
        """
        low, high = np.percentile(rows, [25, 75], axis=0)
        extent, values = high - low, rows[:, 1:]
        extents = np.where(extent[1:] > 0, extent[1:], np.abs(values).max(axis=0))
        is_violated = (values > 0).any(axis=0)
        losses = rows[:, 0]  # equal ones tell no scale but their size
        scale = extent[0] or np.ptp(losses) or max(1.0, np.abs(losses).max())
        first = _FIRST * scale / num_params / np.where(is_violated, extents, 1) ** 2
        first = np.where(is_violated, np.clip(first, *_RANGE), 0.0)
        is_lost = low[1:] > extent[1:]
        factors = np.where(is_lost | (self.factors == 0), np.maximum(first, self.factors), self.factors)
        is_inactive = (self.multipliers == 0) & (self.mean[1:] < 0) & (first > 0)
        return np.where(is_inactive, np.minimum(factors, _MOST * first), factors)

    def _penalised(self, loss: np.ndarray | float, constraints: np.ndarray) -> np.ndarray:
        """Return the augmented Lagrangian of losses `(...)` and constraints' values `(..., constraints)`."""
        slope, factors = self.multipliers, self.factors
        is_active = slope + factors * constraints > 0
        inside = slope**2 / (2 * np.where(factors > 0, factors, 1))
        return loss + np.where(is_active, slope * constraints + factors / 2 * constraints**2, -inside).sum(axis=-1)
