"""Constraints in ask and tell: feasible solutions first, and a level of violation that is tolerated for a while.

The repertoire prefers feasible solutions, then those with less violation [1]. Evolution strategies rank by the epsilon
level comparison [2]: violations up to a level count as none; the level falls from that of a fifth of the first
generation to 0.

References:
    [1] K. Deb. An Efficient Constraint Handling Method for Genetic Algorithms. Computer Methods in Applied Mechanics
        and Engineering 186, 2000.
    [2] T. Takahama, S. Sakai. Constrained Optimization by the epsilon Constrained Differential Evolution with
        Gradient-Based Mutation and Feasible Elites. CEC 2006; eq. (5) and section III.
"""

from __future__ import annotations

import numpy as np

from jedax.types import Float

INFEASIBLE = -1e30
"""Infeasible solutions have a stored fitness of at most this, lower the more they violate."""

_SHARE = 0.2  # of the first generation, whose violations the first level tolerates (theta in [2])
_UNTIL = 0.5  # share of the budget after which nothing is tolerated (T_c)
_POWER = 5  # how fast the level falls (cp)


def first_level(violations: Float[np.ndarray, " batch"]) -> float:
    """Return the level of violation that is tolerated at the start of a search."""
    known = np.sort(violations[np.isfinite(violations)])
    return float(known[int(_SHARE * len(known))]) if len(known) else 0.0


def level_at(first: float, progress: float) -> float:
    """Return the tolerated level at a progress of 0 to 1."""
    return first * max(0.0, 1 - progress / _UNTIL) ** _POWER


def stored(fitness: np.ndarray, violations: np.ndarray, level: float = 0.0) -> np.ndarray:
    """Return the fitness by which solutions are compared: that of those that violate more than `level` is low."""
    excess = np.nan_to_num(violations)
    return np.where(excess > level, INFEASIBLE * (1 + excess / (1 + excess)), fitness)


def violation_of(fitness: float) -> float:
    """Return the violation of a solution from its stored fitness; 0: it is feasible."""
    if not -np.inf < fitness <= INFEASIBLE:
        return 0.0
    share = max(fitness / INFEASIBLE - 1, np.finfo(float).eps)  # violations below that are stored as none
    return share / (1 - share) if share < 1 else np.inf
