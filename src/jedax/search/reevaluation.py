"""New samples of the solutions that a run found, which show how much of its results was luck.

The best of many noisy evaluations is also the luckiest: its mean is lower than the reported fitness. New samples, from
random numbers that no search draws, measure the difference. A solution that is chosen by its new mean is lucky again,
so one half of the samples chooses and the other half measures. Where nothing is random, noise on the parameters shows
how much of a fitness remains when a solution changes a little: simulators of robots are often chaotic.

References:
    J. W. McKean, R. M. Schrader. A comparison of methods for studentizing the sample median. Communications in
    Statistics 13(6), 1984: the standard error of a median.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jedax.errors import check_choice, check_whole, fail
from jedax.methods.base import spread_of
from jedax.sampling import Aggregation
from jedax.search.compiled import reevaluation_key
from jedax.search.engines import LocalEngine
from jedax.search.programs import evaluate_samples
from jedax.store.run import Run
from jedax.tasks.measured import HostTask
from jedax.types import Bool, Evaluation, Float, Int

_ROWS = 1024  # evaluations in one program
_PARAMETER_NOISE = 1  # the stream of its random numbers
_SAMPLES_WITHOUT_NOISE = 2  # the second sample shows that the first one is exact
_Z = 2.5758293035489004  # two-sided 99 % of a normal distribution, as McKean and Schrader chose

Note = Callable[[float], None]


@dataclass(frozen=True)
class Chosen:
    """A solution that one half of the samples chose and the other half measured."""

    row: int  # the index of the solution
    fitness: float  # mean or median of the half that measured
    error: float  # its standard error


@dataclass(frozen=True)
class Solutions:
    """The solutions of one replica and what their new samples say."""

    seed: int
    cell: Int[np.ndarray, " n"]  # that holds the solution; -1: the best solution of the run, if no cell holds it
    best: int  # the index of the best solution that the run reports
    reported: Float[np.ndarray, " n"]  # fitness that the run reports
    reported_descriptor: Float[np.ndarray, "n d"]
    fitness: Float[np.ndarray, " n"]  # mean or median of the samples that did not fail; NaN where all failed
    error: Float[np.ndarray, " n"]  # its standard error
    descriptor: Float[np.ndarray, "n d"]  # mean or median
    new_cell: Int[np.ndarray, " n"]  # of that descriptor; -1 where all samples failed
    # Number of samples whose fitness or descriptor was not finite; in a search with several samples per evaluation one
    # of them is enough to fail a solution.
    failed: Int[np.ndarray, " n"]
    chosen: Chosen | None  # the best of the solutions, chosen and measured by different samples; None: all failed

    @property
    def luck(self) -> float:
        """The reported fitness of the best solution minus its corrected fitness."""
        return float(self.reported[self.best] - self.fitness[self.best])

    @property
    def num_elites(self) -> int:
        """The number of solutions that a cell holds."""
        return int((self.cell >= 0).sum())

    @property
    def num_kept(self) -> int:
        """The number of elites whose corrected descriptor lies in the cell that holds them."""
        return int(((self.cell >= 0) & (self.cell == self.new_cell)).sum())

    def elites(self, num_cells: int) -> Float[np.ndarray, " cells"]:
        """Return the fitness of a repertoire in which each elite is in its corrected cell; -inf where empty."""
        placed = np.full(num_cells, -np.inf)
        rows = (self.cell >= 0) & (self.new_cell >= 0)
        np.maximum.at(placed, self.new_cell[rows], self.fitness[rows])
        return placed


@dataclass(frozen=True)
class Reevaluation:
    """New samples of the solutions of a run."""

    run: Run
    samples: int  # of each solution
    seed: int  # of their random numbers
    scope: str  # "all": all elites; "best": only the best solution of each replica
    parameter_noise: float  # standard deviation, in units of the spread of random genotypes
    agree: bool  # whether all samples of every solution have the same bits
    replicas: tuple[Solutions, ...]

    def __repr__(self) -> str:
        """Return how many solutions were evaluated, and how often each."""
        solutions = f"{self.evaluations // self.samples:,} solutions"
        return f"<Reevaluation: {solutions}, {self.samples:,} samples each, of {self.run!r}>"

    @property
    def aggregation(self) -> Aggregation:
        """How samples are aggregated: as in the search."""
        return self.run.config.method_config.sample_aggregation

    @property
    def evaluations(self) -> int:
        """The number of evaluations."""
        return self.samples * sum(len(solutions.cell) for solutions in self.replicas)


def sample_again(
    run: Run,
    samples: int = 128,
    seed: int = 0,
    cells: str = "all",
    parameter_noise: float = 0.0,
    note: Note = lambda share: None,
) -> Reevaluation:
    """Return new samples of the solutions of a run; for the arguments see `jedax.reevaluate`.

    Raises:
        JedaxError: An argument does not fit, or the task's code was not loaded with the run.
    """
    check_choice("cells", cells, ("all", "best"))
    samples, seed = check_whole("samples", samples, 4, 2**31 - 1), check_whole("seed", seed, 0, 2**31 - 1)
    if not isinstance(parameter_noise, int | float | np.number) or not 0 <= parameter_noise < math.inf:
        expected, remedy = "a number of at least 0", "change it"
        raise fail("parameter_noise", expected=expected, received=repr(parameter_noise), remedy=remedy)
    run.check_code()
    number = samples if run.task.is_noisy or parameter_noise else _SAMPLES_WITHOUT_NOISE
    noise = parameter_noise and parameter_noise * float(spread_of(jax.random.key(seed), run.task))
    rows = [_rows(run, replica, cells == "all") for replica in range(run.replicas)]
    found = _sample(run, np.concatenate([genotypes for _, _, genotypes in rows]), number, seed, noise, note)
    ends = np.cumsum([len(cell) for cell, _, _ in rows])[:-1]
    fitness, descriptor = (np.split(values, ends, axis=1) for values in found)
    agree = all(np.array_equal(values, np.broadcast_to(values[:1], values.shape), equal_nan=True) for values in found)
    replicas = tuple(_solutions(run, replica, cell, best, fitness[replica], descriptor[replica])
                     for replica, (cell, best, _) in enumerate(rows))  # fmt: skip
    return Reevaluation(run, number, seed, cells, parameter_noise, agree, replicas)


def _rows(run: Run, replica: int, every: bool) -> tuple[np.ndarray, int, np.ndarray]:
    """Return the cells of the solutions to evaluate, the index of the best one, and the genotypes."""
    best = run.best(replica)
    fitness = np.asarray(run.repertoire.fitness[replica])
    stored = np.asarray(run.repertoire.genotypes[replica])
    filled = np.flatnonzero(fitness > -np.inf)
    equal = filled[(fitness[filled] == best.fitness) & (stored[filled] == best.genotype).all(axis=1)]
    home = int(equal[0]) if len(equal) else -1
    cell = filled if every else np.array([], np.int64)
    if home < 0 or not every:
        cell = np.concatenate([[home], cell]).astype(np.int64)
    genotypes = np.where((cell < 0)[:, None], best.genotype, stored[cell])
    return cell, int(np.flatnonzero(cell == home)[0]), genotypes


def _solutions(
    run: Run, replica: int, cell: np.ndarray, best: int, fitness_samples: np.ndarray, descriptor_samples: np.ndarray
) -> Solutions:
    how = run.config.method_config.sample_aggregation
    own, repertoire = run.best(replica), run.repertoire
    valid = np.isfinite(fitness_samples) & np.isfinite(descriptor_samples).all(axis=-1)
    exact = fitness_samples.astype(np.float64)
    fitness, error = middle(exact, valid, how)
    axes = np.moveaxis(descriptor_samples.astype(np.float64), -1, 0)
    descriptor = np.stack([middle(axis, valid, how)[0] for axis in axes], axis=-1)
    known = np.isfinite(fitness)
    place = run.cells.assign_on_host(np.where(known[:, None], descriptor, 0).astype(own.descriptor.dtype))
    reported = np.where(cell < 0, own.fitness, np.asarray(repertoire.fitness[replica])[cell])
    stored_at = np.asarray(repertoire.descriptors[replica])[cell]
    return Solutions(
        seed=run.config.run.seed + replica,
        cell=cell,
        best=best,
        reported=reported.astype(float),
        reported_descriptor=np.where((cell < 0)[:, None], own.descriptor, stored_at).astype(float),
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
    """Return the mean or median of the valid values of each column, and its standard error.

    The error of a mean is `s / sqrt(number)`. That of a median is McKean and Schrader's: the distance between the order
    statistics that enclose the median with 99 %, in units of the normal distribution. Both are NaN where no value is
    valid, the error alone where one is.
    """
    number = valid.sum(axis=0)
    some = np.maximum(number, 1)
    if how == "mean":
        centre = np.where(valid, values, 0).sum(axis=0) / some
        squares = np.where(valid, values - centre, 0) ** 2
        error = np.sqrt(squares.sum(axis=0) / np.maximum(number - 1, 1) / some)
    else:
        ordered = np.sort(np.where(valid, values, np.finfo(np.float64).max), axis=0)
        columns = np.arange(values.shape[1])
        centre = ordered[(some - 1) // 2, columns] / 2 + ordered[some // 2, columns] / 2
        rank = np.maximum(np.rint((some + 1) / 2 - _Z * np.sqrt(some / 4)).astype(int), 1)
        error = (ordered[some - rank, columns] - ordered[rank - 1, columns]) / (2 * _Z)
    return np.where(number > 0, centre, np.nan), np.where(number > 1, error, np.nan)


def _sample(
    run: Run, genotypes: np.ndarray, samples: int, seed: int, noise: float, note: Note
) -> tuple[Float[np.ndarray, "samples n"], Float[np.ndarray, "samples n d"]]:
    """Return fitness and descriptors of all samples."""
    task, total = run.task, samples * len(genotypes)
    rows = -(-len(genotypes) // -(-len(genotypes) // _ROWS))  # chunks of one size
    # Without noise one sample at a time, so that all of them round alike.
    at_once = min(samples, max(1, _ROWS // rows)) if task.is_noisy and not noise else 1
    chance = np.random.default_rng([seed, _PARAMETER_NOISE])
    fitness = np.zeros((samples, len(genotypes)))
    descriptor = np.zeros((samples, len(genotypes), task.num_descriptors))
    done = 0
    with _evaluator(run, samples, seed) as evaluate:
        for first in range(0, len(genotypes), rows):
            batch = np.resize(genotypes[first : first + rows], (rows, genotypes.shape[1]))
            for sample in range(0, samples, at_once):
                shaken = batch
                if noise:
                    shaken = (batch + noise * chance.standard_normal(batch.shape, np.float32)).astype(batch.dtype)
                found = evaluate(shaken, first, sample, at_once)
                place = slice(sample, sample + at_once), slice(first, first + rows)
                number, width = fitness[place].shape
                fitness[place] = np.asarray(found.fitness)[:number, :width]
                descriptor[place] = np.asarray(found.descriptor)[:number, :width]
                done += number * width
                note(done / total)
    return fitness, descriptor


@contextlib.contextmanager
def _evaluator(run: Run, samples: int, seed: int) -> Iterator[Callable[[np.ndarray, int, int, int], Evaluation]]:
    """Yield a function from a batch, its first row, a first sample and a number of samples to an evaluation."""
    task = run.task
    if isinstance(task, HostTask):
        # The samples after those of the search.
        first = run.config.method_config.samples_per_evaluation + seed * samples
        settings = run.config.run
        made = LocalEngine().open_pool(task.work, settings.workers, settings.evaluation_timeout)
        with contextlib.closing(made) as pool:
            yield lambda batch, row, sample, number: evaluate_samples(
                task, pool, batch, range(first + sample, first + sample + number)
            )
        return
    root = reevaluation_key(seed)

    @functools.partial(jax.jit, static_argnums=3)
    def evaluate(genotypes: np.ndarray, row: int, sample: int, number: int) -> Evaluation:
        keys = jax.random.split(jax.random.fold_in(jax.random.fold_in(root, row), sample), number)
        return jax.vmap(task.evaluate_batch, in_axes=(0, None))(keys, jnp.asarray(genotypes))

    yield evaluate
