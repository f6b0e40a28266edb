"""Why the paper's MAP-Elites ends lower than ours: its variants on the paper's mazes, one thing changed at a time.

    python results/map_elites.py [--seeds 20]

Each finished variant on a maze is a row of results/map-elites/variants.csv with the final best fitness of each seed and
the git revision; commit them before the next command, which makes the rows that are missing.
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
from claims import PAPER
from keeping import HERE, clean_revision, fill_in

import jedax
from jedax.bench.grids import MAZES
from jedax.methods.map_elites import MapElites, MapElitesState
from jedax.search.compiled import keep_compiled_programs
from jedax.search.programs import forget_programs
from jedax.store.files import write_atomic
from jedax.tasks import Maze, make
from jedax.types import Array, Float, PRNGKeyArray

FOLDER = HERE / "map-elites"


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
    "isotropic 0.05": ("map-elites", {"iso_sigma": 0.05}, None),
    "isotropic 0.5": ("map-elites", {"iso_sigma": 0.5}, None),
    "16 offspring": ("map-elites", {"offspring": 16}, None),
    "1,024 offspring": ("map-elites", {"offspring": 1024}, None),
    "first weights uniform in [-1, 1]": ("map-elites", {}, UniformStart),
    "first weights standard normal": ("map-elites", {}, NormalStart),
    "weights kept within [-1, 1]": (Clipped, {}, None),
    "a grid of 32 x 32 cells": ("map-elites", {"cell_layout": "grid"}, None),
}


def row_of(variant: str, maze: str, seeds: int, revision: str) -> dict[str, Any]:
    """Return the row of one variant on one maze."""
    method, settings, kind = VARIANTS[variant]
    task = make(maze)
    budget = task.default_evaluations
    if kind is not None:
        assert isinstance(task, Maze)
        task = kind(task.config)
    run = jedax.run(method, task, evaluations=budget, replicas=seeds, seed=0, **settings)
    best = [float(run.best(replica).fitness) for replica in range(seeds)]
    forget_programs()
    return {
        "variant": variant,
        "task": maze,
        "median": float(np.median(best)),
        "best": " ".join(f"{value:.5g}" for value in best),
        "revision": revision,
    }


def table(rows: pandas.DataFrame) -> str:
    """Return the medians, and the number of seeds that arrive, beside the paper's medians."""
    lines = [f"| MAP-Elites | {' | '.join(MAZES)} |", "|---|" + "---:|" * len(MAZES)]
    lines.append(f"| in the paper | {' | '.join(map(str, PAPER['map-elites']))} |")
    for variant in VARIANTS:
        cells = []
        for maze in MAZES:
            found = rows[(rows.variant == variant) & (rows.task == maze)]
            best = [float(value) for value in found.best.iloc[0].split()] if len(found) else []
            cells.append(f"{np.median(best):.0f} ({sum(b >= -250 for b in best)} of {len(best)})" if best else "")
        lines.append(f"| {variant} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    path, revision = FOLDER / "variants.csv", clean_revision()
    keep_compiled_programs()
    FOLDER.mkdir(exist_ok=True)
    rows = pandas.read_csv(path).to_dict("records") if path.exists() else []
    done = {(row["variant"], row["task"]) for row in rows}
    for maze in MAZES:
        for variant in VARIANTS:
            if (variant, maze) not in done:
                rows.append(row_of(variant, maze, seeds, revision))
                write_atomic(path, pandas.DataFrame(rows).to_csv(index=False))
                print(maze, variant, rows[-1]["median"], flush=True)
    fill_in(HERE / "README.md", "map-elites", table(pandas.DataFrame(rows)))


if __name__ == "__main__":
    main()
