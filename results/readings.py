"""Why the paper's runs arrive and ours do not: three other readings of how JEDi chooses its targets.

    python results/readings.py [--runs runs/results] [--only readings]

Research code of the paper's authors that was published with and after the paper allows these readings. Each of them
replaces one step of `jedi` with the decaying alpha; the rest of the method stays. Runs that are finished are not
repeated and a run that was stopped goes on, so the command can be stopped and given again.
"""

from __future__ import annotations

import claims
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cholesky, solve_triangular
from keeping import HERE, fill_in, keep, parser, run

from jedax.bench.comparison import Comparison
from jedax.bench.grids import MAZES, Entry, Grid
from jedax.gp import GPData, Prediction, one_by_one
from jedax.gp.sequential import in_float64
from jedax.methods.jedi import JEDi, JEDiState
from jedax.types import Array, Float, PRNGKeyArray


class NeverFitted(JEDi):
    """The weighted GP with hyperparameters that are never fitted.

    On fitness scaled to [0, 1], with mean 0: signal 0.5, length scale 0.2, noise variance 1 over the evaluations of a
    cell.
    """

    name = "never-fitted"

    def fit_model(self, state: JEDiState) -> tuple[JEDiState, Prediction]:
        """Return the prediction at all centroids."""

        def predict(data: GPData, centroids: Array) -> Prediction:
            x, at = data.x.astype(jnp.float64), centroids.astype(jnp.float64)
            among, between = (0.25 * kernel(x, other, 0.2) for other in (x, at))
            both = data.mask[:, None] & data.mask
            noise = jnp.where(data.mask, 1 / jnp.maximum(data.counts, 1), 1.0)
            factor = cholesky(jnp.where(both, among, 0.0) + jnp.diag(noise), lower=True)
            weights = solve_triangular(factor, jnp.where(data.mask[:, None], between, 0.0), lower=True)
            mean = weights.T @ solve_triangular(factor, scaled(data).astype(jnp.float64), lower=True)
            variance = 0.25 - jnp.sum(weights**2, axis=0)
            return Prediction(mean.astype(jnp.float32), variance.astype(jnp.float32))

        return state, one_by_one(in_float64(predict))(self.gp_data(state.repertoire), centroids_of(self))


class WithoutInverse(JEDi):
    """Mean and variance from the kernel alone, without the inverse of its matrix.

    The mean is the average fitness plus the sum of kernel times deviation, the variance 1 minus the sum of the squared
    kernel; the length scale is 0.4.
    """

    name = "without-inverse"

    def fit_model(self, state: JEDiState) -> tuple[JEDiState, Prediction]:
        """Return the prediction at all centroids."""
        data = self.gp_data(state.repertoire)
        fitness = scaled(data)
        average = jnp.mean(fitness, where=data.mask)
        between = jnp.where(data.mask[:, None], kernel(data.x, centroids_of(self), 0.4), 0.0)
        mean = average + between.T @ jnp.where(data.mask, fitness - average, 0.0)
        # Only the order of variances counts; with the number of cells added none is negative.
        return state, Prediction(mean, self.cells.num_cells + 1 - jnp.sum(between**2, axis=0))


class PermutedIndices(JEDi):
    """Places in a random order of the cells, taken for the indices of cells."""

    name = "permuted-indices"

    def choose_targets(self, key: PRNGKeyArray, at: Prediction) -> Float[Array, "pool descriptor"]:
        """Return the targets."""
        order_key, target_key = jax.random.split(key)
        order = jax.random.permutation(order_key, self.cells.num_cells)
        return super().choose_targets(target_key, Prediction(at.mean[order], at.variance[order]))


def kernel(one: Float[Array, "n d"], other: Float[Array, "m d"], length_scale: float) -> Float[Array, "n m"]:
    """Return the squared exponential kernel with signal 1 between two sets of points."""
    squared = jnp.sum(jnp.square(one[:, None] - other), axis=-1)
    return jnp.exp(-squared / (2 * length_scale**2))


def scaled(data: GPData) -> Float[Array, " size"]:
    """Return the fitness of the filled cells scaled to [0, 1]; 0 elsewhere."""
    low = jnp.min(data.fitness, where=data.mask, initial=jnp.inf)
    high = jnp.max(data.fitness, where=data.mask, initial=-jnp.inf)
    return jnp.where(data.mask, (data.fitness - low) / jnp.where(high > low, high - low, 1.0), 0.0)


def centroids_of(method: JEDi) -> Float[Array, "cells d"]:
    """Return the centroids of the cells in the unit box."""
    return method.cells.to_unit_box(jnp.asarray(method.cells.centroids))


READINGS = (NeverFitted, WithoutInverse, PermutedIndices)
GRIDS = {"readings": Grid("", MAZES, tuple(Entry(reading.name, reading) for reading in READINGS), 30)}


def main() -> None:
    arguments = parser(GRIDS).parse_args()
    for name in arguments.only:
        if not arguments.report:
            run(GRIDS[name], arguments.runs / name)
        command = f"python results/readings.py --only {name}"
        found = keep(arguments.runs / name, HERE / name, command, figures=False)
        fill_in(HERE / "README.md", name, table(found))


def table(found: Comparison) -> str:
    """Return medians and arrivals of the readings, of JEDi as we read it and with uniform targets, and of the paper."""
    lines = [f"| | {' | '.join(claims.SHORT.values())} |", "|---|" + "---:|" * len(MAZES)]
    finals = {(each.task, entry.label): entry.final for each in found.tables for entry in each.entries}
    for label in found.labels:
        cells = (claims.with_arrivals(finals[maze, label]) if (maze, label) in finals else "" for maze in MAZES)
        lines.append(f"| {label.replace('-', ' ')} | {' | '.join(cells)} |")
    for label in ("jedi decay", "jedi-uniform"):
        cells = (claims.known(maze, label, "final_fitness") for maze in MAZES)
        lines.append(f"| `{label}` | {' | '.join(cells)} |")
    lines.append(f"| JEDi in the paper | {' | '.join(map(str, claims.PAPER['jedi decay']))} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
