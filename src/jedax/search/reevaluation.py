"""What a run found, evaluated again, many times: how much of what it reports was luck.

Of many noisy evaluations the best is the luckiest, too: its mean lies lower than what was seen. New samples, drawn
from other random numbers than the search's, tell by how much. To choose a solution by its new mean would bring the
same error back, if a smaller one; so one half of the samples chooses and the other half measures.

References:
    J. W. McKean, R. M. Schrader. A comparison of methods for studentizing the sample median. Communications in
    Statistics 13(6), 1984: the standard error of a median.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from jedax.errors import check_choice, fail
from jedax.sampling import Aggregation
from jedax.search import host
from jedax.search.compiled import reevaluation_key
from jedax.search.engines import LocalEngine
from jedax.store.config import FullConfig
from jedax.store.run import Run
from jedax.tasks.host import HostTask
from jedax.types import Bool, Evaluation, Float, Int

# Evaluations in one program.
_ROWS = 1024
# Of a task without noise: the second sample shows that it is.
_SAMPLES_WITHOUT_NOISE = 2
# Two-sided 99 % of a normal distribution: McKean & Schrader's choice.
_Z = 2.5758293035489004

Note = Callable[[float], None]


@dataclass(frozen=True)
class Chosen:
    """A solution chosen by one half of the samples, measured by the other.

    Attributes:
        row: Which of the solutions.
        fitness: Mean or median of the half that did not choose it.
        error: Its standard error.
    """

    row: int
    fitness: float
    error: float


@dataclass(frozen=True)
class Solutions:
    """Solutions of one replica, and what their new samples say.

    Attributes:
        seed: The replica's.
        cell: `(n,)`, which cell holds it; -1 for the best solution of the run where no cell holds it (any more).
        best: The row of the best solution that the run reports.
        reported: `(n,)`, fitness that the run reports.
        reported_descriptor: `(n, d)`.
        fitness: `(n,)`, mean or median of the samples that did not fail; NaN where all did.
        error: `(n,)`, its standard error.
        descriptor: `(n, d)`, mean or median of theirs.
        new_cell: `(n,)`, the cell in which that lies; -1 where all samples failed.
        failed: `(n,)`, samples whose fitness or descriptor was not finite; the others count as if it had not been
            tried. (In a search with several samples per evaluation a single one is enough to fail a solution.)
        chosen: The best of them, chosen and measured by different samples; None where all failed.
    """

    seed: int
    cell: Int[np.ndarray, " n"]
    best: int
    reported: Float[np.ndarray, " n"]
    reported_descriptor: Float[np.ndarray, "n d"]
    fitness: Float[np.ndarray, " n"]
    error: Float[np.ndarray, " n"]
    descriptor: Float[np.ndarray, "n d"]
    new_cell: Int[np.ndarray, " n"]
    failed: Int[np.ndarray, " n"]
    chosen: Chosen | None

    @property
    def luck(self) -> float:
        """How much of the reported best was luck: that fitness minus the corrected one of the same solution."""
        return float(self.reported[self.best] - self.fitness[self.best])

    @property
    def num_elites(self) -> int:
        """Solutions that a cell holds."""
        return int((self.cell >= 0).sum())

    @property
    def num_kept(self) -> int:
        """Elites whose corrected descriptor lies in the cell that holds them."""
        return int(((self.cell >= 0) & (self.cell == self.new_cell)).sum())

    def elites(self, num_cells: int) -> Float[np.ndarray, " cells"]:
        """Return the fitness of a repertoire in which every elite is where it belongs, -inf in empty cells."""
        placed = np.full(num_cells, -np.inf)
        rows = (self.cell >= 0) & (self.new_cell >= 0)
        np.maximum.at(placed, self.new_cell[rows], self.fitness[rows])
        return placed


@dataclass(frozen=True)
class Reevaluation:
    """New samples of what a run found.

    Attributes:
        config: The run's settings.
        samples: Of each solution.
        seed: Of the random numbers.
        scope: "all": all elites; "best": the best solution of each replica alone.
        is_noisy: Whether the task says that evaluations can differ.
        agree: Whether all samples of every solution are the same, bit for bit.
        num_cells: Of the repertoire.
        qd_offset: The task's.
        replicas: One for each of the run.
    """

    config: FullConfig
    samples: int
    seed: int
    scope: Literal["all", "best"]
    is_noisy: bool
    agree: bool
    num_cells: int
    qd_offset: float
    replicas: tuple[Solutions, ...]

    @property
    def aggregation(self) -> Aggregation:
        """What the corrected numbers are of the samples: what the search took."""
        return self.config.method_config.sample_aggregation  # type: ignore[attr-defined]

    @property
    def evaluations(self) -> int:
        """Evaluations that it took."""
        return self.samples * sum(len(solutions.cell) for solutions in self.replicas)


def sample_again(
    run: Run, samples: int = 128, seed: int = 0, cells: str = "all", note: Note = lambda share: None
) -> Reevaluation:
    """Evaluate what a run found again, each solution many times.

    Args:
        run: The run.
        samples: Evaluations of each solution, at least 4; a task that says that it has no noise gets 2.
        seed: Of their random numbers, which are never those of a search.
        cells: "all" elites, or only the "best" solution of each replica.
        note: Told now and then which share is done, 0 to 1.

    Raises:
        JedaxError: Too few samples, or an unknown choice of cells.
    """
    check_choice("cells", cells, ("all", "best"))
    for name, value, least in (("samples", samples, 4), ("seed", seed, 0)):
        if not least <= value < 2**31:
            raise fail(name, expected=f"a whole number of at least {least}", received=value, remedy="change it")
    number = samples if run.task.is_noisy else _SAMPLES_WITHOUT_NOISE
    chosen = [_rows_of(run, replica, cells == "all") for replica in range(run.config.run.replicas)]
    genotypes = np.concatenate([genotypes for _, _, genotypes in chosen])
    fitness, descriptor = _samples(run, genotypes, number, seed, note)
    ends = np.cumsum([len(cell) for cell, _, _ in chosen])[:-1]
    parts = zip(chosen, np.split(fitness, ends, axis=1), np.split(descriptor, ends, axis=1), strict=True)
    replicas = [_solutions(run, replica, cell, best, *samples_of)
                for replica, ((cell, best, _), *samples_of) in enumerate(parts)]  # fmt: skip
    return Reevaluation(
        config=run.config,
        samples=number,
        seed=seed,
        scope="all" if cells == "all" else "best",
        is_noisy=run.task.is_noisy,
        agree=_agree(fitness) and _agree(descriptor),
        num_cells=run.cells.num_cells,
        qd_offset=run.task.qd_offset,
        replicas=tuple(replicas),
    )


def _agree(values: np.ndarray) -> bool:
    return np.array_equal(values, np.broadcast_to(values[:1], values.shape), equal_nan=True)


def _rows_of(run: Run, replica: int, every: bool) -> tuple[np.ndarray, int, np.ndarray]:
    """Return the cells of the solutions to evaluate, the row of the best one, and their genotypes."""
    repertoire, best = run.repertoire, run.best(replica)
    fitness = np.asarray(repertoire.fitness[replica])
    stored = np.asarray(repertoire.genotypes[replica], np.float32)
    filled = np.flatnonzero(fitness > -np.inf)
    twins = filled[(fitness[filled] == best.fitness) & (stored[filled] == best.genotype).all(axis=1)]
    home = int(twins[0]) if len(twins) else -1
    cell = filled if every else np.array([], np.int64)
    if home < 0 or not every:
        cell = np.concatenate([[home], cell]).astype(np.int64)
    genotypes = np.where((cell < 0)[:, None], best.genotype, stored[cell])
    return cell, int(np.flatnonzero(cell == home)[0]), genotypes


def _solutions(
    run: Run, replica: int, cell: np.ndarray, best: int, fitness_samples: np.ndarray, descriptor_samples: np.ndarray
) -> Solutions:
    how = run.config.method_config.sample_aggregation  # type: ignore[attr-defined]
    own, repertoire = run.best(replica), run.repertoire
    valid = np.isfinite(fitness_samples) & np.isfinite(descriptor_samples).all(axis=-1)
    exact = fitness_samples.astype(np.float64)
    fitness, error = middle(exact, valid, how)
    axes = np.moveaxis(descriptor_samples.astype(np.float64), -1, 0)
    descriptor = np.stack([middle(axis, valid, how)[0] for axis in axes], axis=-1)
    known = np.isfinite(fitness)
    place = np.asarray(run.cells.assign(jnp.asarray(np.where(known[:, None], descriptor, 0), jnp.float32)))
    is_best = cell < 0
    return Solutions(
        seed=run.config.run.seed + replica,
        cell=cell,
        best=best,
        reported=np.where(is_best, own.fitness, np.asarray(repertoire.fitness[replica])[cell]).astype(float),
        reported_descriptor=np.where(
            is_best[:, None], own.descriptor, np.asarray(repertoire.descriptors[replica])[cell]
        ).astype(float),
        fitness=fitness,
        error=error,
        descriptor=descriptor,
        new_cell=np.where(known, place, -1),
        failed=(~valid).sum(axis=0),
        chosen=_choose(exact, valid, how),
    )


def _choose(fitness: Float[np.ndarray, "samples n"], valid: Bool[np.ndarray, "samples n"], how: str) -> Chosen | None:
    half = len(fitness) // 2
    by, _ = middle(fitness[:half], valid[:half], how)
    measured, error = middle(fitness[half:], valid[half:], how)
    by = np.where(np.isfinite(by) & np.isfinite(measured), by, -np.inf)
    row = int(np.argmax(by))
    return Chosen(row, float(measured[row]), float(error[row])) if np.isfinite(by[row]) else None


def middle(
    values: Float[np.ndarray, "samples n"], valid: Bool[np.ndarray, "samples n"], how: str
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return mean or median of the valid values of each column, and its standard error.

    The error of a mean is `s / sqrt(number)`; that of a median is McKean & Schrader's: how far apart the order
    statistics lie between which the median is with 99 %, in units of the normal distribution.

    Args:
        values: The samples.
        valid: Which of them count.
        how: "mean" or "median".

    Returns:
        Both NaN where no value is valid; the error alone where there is one value.
    """
    number = valid.sum(axis=0)
    some = np.maximum(number, 1)
    ordered = np.sort(np.where(valid, values, np.finfo(np.float64).max), axis=0)
    columns = np.arange(values.shape[1])
    if how == "mean":
        centre = np.where(valid, values, 0).sum(axis=0) / some
        squares = np.where(valid, values - centre, 0) ** 2
        error = np.sqrt(squares.sum(axis=0) / np.maximum(number - 1, 1) / some)
    else:
        low, high = ordered[(some - 1) // 2, columns], ordered[some // 2, columns]
        centre = low / 2 + high / 2
        rank = np.maximum(np.rint((some + 1) / 2 - _Z * np.sqrt(some / 4)).astype(int), 1)
        error = (ordered[some - rank, columns] - ordered[rank - 1, columns]) / (2 * _Z)
    return np.where(number > 0, centre, np.nan), np.where(number > 1, error, np.nan)


def _samples(
    run: Run, genotypes: np.ndarray, samples: int, seed: int, note: Note
) -> tuple[Float[np.ndarray, "samples n"], Float[np.ndarray, "samples n d"]]:
    """Return fitness and descriptors of all samples."""
    task, total = run.task, samples * len(genotypes)
    rows = -(-len(genotypes) // -(-len(genotypes) // _ROWS))  # chunks of one size
    # A task without noise takes its samples one by one, so that all of them round alike.
    at_once = min(samples, max(1, _ROWS // rows)) if task.is_noisy else 1
    fitness = np.zeros((samples, len(genotypes)), np.float32)
    descriptor = np.zeros((samples, len(genotypes), task.num_descriptors), np.float32)
    done = 0
    with _evaluator(run, samples, seed) as evaluate:
        for first in range(0, len(genotypes), rows):
            batch = np.resize(genotypes[first : first + rows], (rows, genotypes.shape[1]))
            for sample in range(0, samples, at_once):
                found = evaluate(batch, first, sample, at_once)
                place = slice(sample, sample + at_once), slice(first, first + rows)
                number, width = fitness[place].shape
                fitness[place] = np.asarray(found.fitness)[:number, :width]
                descriptor[place] = np.asarray(found.descriptor)[:number, :width]
                done += number * width
                note(done / total)
    return fitness, descriptor


@contextlib.contextmanager
def _evaluator(run: Run, samples: int, seed: int) -> Iterator[Callable[[np.ndarray, int, int, int], Evaluation]]:
    """Have a function from a batch, its first row, a first sample and a number of samples to these samples."""
    task = run.task
    if isinstance(task, HostTask):
        # Samples that the search did not take.
        first = run.config.method_config.samples_per_evaluation + seed * samples  # type: ignore[attr-defined]
        pool = host.open_pool(LocalEngine(), task, run.config.run)
        try:
            yield lambda batch, row, sample, number: host.evaluate_samples(
                task, pool, batch, range(first + sample, first + sample + number)
            )
        finally:
            pool.close()
        return
    root = reevaluation_key(seed)

    @functools.partial(jax.jit, static_argnums=3)
    def evaluate(genotypes: np.ndarray, row: int, sample: int, number: int) -> Evaluation:
        keys = jax.random.split(jax.random.fold_in(jax.random.fold_in(root, row), sample), number)
        return jax.vmap(task.evaluate_batch, in_axes=(0, None))(keys, jnp.asarray(genotypes))

    yield evaluate
