"""Targets drawn uniformly from all cells."""

from __future__ import annotations

import jax

from jedax.targets.checks import check_num_targets
from jedax.types import Array, Int, PRNGKeyArray


def choose_uniform(key: PRNGKeyArray, num_cells: int, num_targets: int) -> Int[Array, " num_targets"]:
    """Return distinct indices of cells, drawn uniformly from all cells, empty or not.

    Source: the paper's ablation "uniform sampling" (section "Ablation studies").

    Raises:
        JedaxError: `num_targets` is below 1 or above the number of cells.
    """
    check_num_targets(num_targets, num_cells)
    return jax.random.choice(key, num_cells, (num_targets,), replace=False)
