"""Why the paper's MAP-Elites ends lower than ours: its variants on the paper's mazes, one thing changed at a time.

    python results/map_elites.py [--report]

Each finished variant on a maze is a row of results/map-elites/variants.csv with the final best fitness of each of 20
seeds and the git revision. The next command makes the rows that are missing.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import pandas
from claims import PAPER, with_arrivals
from keeping import HERE, add_rows, fill_in, of_revisions, rows_of

import jedax
from jedax.bench.grids import MAZES
from jedax.methods.map_elites import MapElites, MapElitesState
from jedax.search.programs import forget_programs
from jedax.tasks import Maze, make
from jedax.types import Array, Float, PRNGKeyArray

FOLDER, SEEDS = HERE / "map-elites", 20


class Clipped(MapElites):
    """MAP-Elites whose genotypes stay within [-1, 1]."""

    name = "map-elites-clipped"

    def ask(self, key: PRNGKeyArray, state: MapElitesState) -> tuple[Float[Array, "batch params"], MapElitesState]:
        """Vary elites."""
        genotypes, state = super().ask(key, state)
        return jnp.clip(genotypes, -1.0, 1.0), state


@dataclass(frozen=True)
class UniformStart(Maze):
    """A maze whose first genotypes are uniform in [-1, 1]."""

    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Return a random genotype."""
        return jax.random.uniform(key, (self.num_params,), minval=-1.0, maxval=1.0)


@dataclass(frozen=True)
class NormalStart(Maze):
    """A maze whose first genotypes are standard normal."""

    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Return a random genotype."""
        return jax.random.normal(key, (self.num_params,))


# Name: method, its settings, class of the maze.
VARIANTS: dict[str, tuple[Any, dict[str, Any], type[Maze] | None]] = {
    "the paper's settings (isotropic 0.2, line 0, 64 offspring)": ("map-elites", {}, None),
    "isotropic 0.02": ("map-elites", {"iso_sigma": 0.02}, None),
    "isotropic 0.03": ("map-elites", {"iso_sigma": 0.03}, None),
    "isotropic 0.04": ("map-elites", {"iso_sigma": 0.04}, None),
    "isotropic 0.05": ("map-elites", {"iso_sigma": 0.05}, None),
    "isotropic 0.5": ("map-elites", {"iso_sigma": 0.5}, None),
    "16 offspring": ("map-elites", {"offspring": 16}, None),
    "1,024 offspring": ("map-elites", {"offspring": 1024}, None),
    "first weights uniform in [-1, 1]": ("map-elites", {}, UniformStart),
    "first weights standard normal": ("map-elites", {}, NormalStart),
    "weights kept within [-1, 1]": (Clipped, {}, None),
    "a grid of 32 x 32 cells": ("map-elites", {"cell_layout": "grid"}, None),
}


def search(variant: str, task: str) -> dict[str, Any]:
    """Return the row of one variant on one maze."""
    method, settings, kind = VARIANTS[variant]
    maze = make(task)
    budget = maze.default_evaluations
    if kind is not None:
        assert isinstance(maze, Maze)
        maze = kind(maze.config)
    run = jedax.run(method, maze, evaluations=budget, replicas=SEEDS, seed=0, **settings)
    best = [float(run.best(replica).fitness) for replica in range(SEEDS)]
    forget_programs()
    return {"median": float(np.median(best)), "best": " ".join(f"{value:.5g}" for value in best)}


def table(rows: pandas.DataFrame) -> str:
    """Return the medians, and the number of seeds that arrive, beside the paper's medians."""
    lines = [f"| MAP-Elites | {' | '.join(MAZES)} |", "|---|" + "---:|" * len(MAZES)]
    lines.append(f"| in the paper | {' | '.join(map(str, PAPER['map-elites']))} |")
    for variant in VARIANTS:
        cells = []
        for maze in MAZES:
            found = rows[(rows.variant == variant) & (rows.task == maze)]
            cells.append(with_arrivals(np.array(found.best.iloc[0].split(), float)) if len(found) else "")
        lines.append(f"| {variant} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", of_revisions(rows)]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true", help="run nothing, only write the table anew")
    options = parser.parse_args()
    keys = [{"variant": variant, "task": maze} for maze in MAZES for variant in VARIANTS]
    if not options.report:
        add_rows(FOLDER / "variants.csv", keys, search)
    fill_in(HERE / "README.md", "map-elites", table(pandas.DataFrame(rows_of(FOLDER / "variants.csv"))))


if __name__ == "__main__":
    main()
