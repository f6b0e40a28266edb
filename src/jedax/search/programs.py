"""Which programs run a task, and the programs of tasks that worker processes evaluate."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Literal

import jax
import numpy as np

from jedax.errors import JedaxError, fail
from jedax.methods.base import Method
from jedax.search import failures
from jedax.search.compiled import Genotypes, Programs, StepPrograms
from jedax.search.devices import mesh_for
from jedax.search.engines.base import Engine
from jedax.search.failures import Noted
from jedax.search.workers.pool import Stopped, WorkerPool
from jedax.store.config import FullConfig, RunConfig
from jedax.tasks.base import ConfiguredTask, Task
from jedax.tasks.measured import HostTask
from jedax.types import Array, Evaluation, Float, PRNGKeyArray


def programs_for(method: Method, task: Task, replicas: int, devices: int | Literal["all"] = 1) -> Programs:
    """Return the programs of a method on a task; equal arguments share what is compiled.

    Raises:
        JedaxError: `devices` does not fit the replicas, the machine, or a task in worker processes.
    """
    if not isinstance(task, HostTask):
        return _cached(Programs, method, task, replicas, mesh_for(devices, replicas))
    if devices not in ("all", 1):
        raise fail(
            "devices",
            expected=f"1 for {task.name}, which worker processes evaluate",
            received=devices,
            remedy="give --workers instead",
        )
    return copy.copy(_cached(HostPrograms, method, task, replicas))  # each search has workers of its own


def step_programs_for(method: Method, task: Any) -> StepPrograms:
    """Return the programs of one replica whose evaluations are done elsewhere."""
    programs = copy.copy(_cached(StepPrograms, method, task, 1))
    programs.limits = task.limits
    return programs


def forget_programs() -> None:
    """Empty the cache of programs."""
    _cached.cache_clear()


@functools.lru_cache(maxsize=16)
def _cached(kind: type[Programs], *arguments: Any) -> Any:
    return kind(*arguments)


def evaluate_samples(
    task: HostTask, pool: WorkerPool, genotypes: Float[np.ndarray, "batch params"], samples: range
) -> Evaluation:
    """Return some samples of each genotype, with a leading axis for them; each has its seed if the task takes seeds."""
    seeds = [task.sample_seed(sample) for sample in samples]
    given = None if None in seeds else np.repeat(np.array(seeds, np.int64), len(genotypes))
    found = evaluation_of(task, *pool.evaluate(np.tile(genotypes, (len(samples), 1)), given))
    return jax.tree.map(lambda values: values.reshape(len(samples), len(genotypes), *values.shape[1:]), found)


def evaluation_of(task: HostTask, fitness: np.ndarray, descriptors: np.ndarray) -> Evaluation:
    """Return what workers found as an evaluation, with as many descriptors as the task has."""
    if descriptors.shape[1] != task.num_descriptors:  # nothing but failures
        descriptors = np.full((len(fitness), task.num_descriptors), np.nan)
    return Evaluation(fitness, descriptors)  # type: ignore[arg-type]  # as NumPy arrays, which keep float64


def settled(
    config: FullConfig, task: Task, engine: Engine, note: Callable[[str], None] = lambda message: None
) -> tuple[FullConfig, Task]:
    """Return settings and task with what is measured at the start of a run, such as descriptor bounds not given."""
    if not isinstance(task, ConfiguredTask):
        return config, task
    given = task
    if isinstance(task, HostTask):
        task, run, said = task.prepared(), config.run, []

        def keep(message: str) -> None:
            said.append(message)
            note(message)

        with closing(engine.open_pool(task.work, run.workers, run.evaluation_timeout, keep)) as pool:
            try:
                found = task.settled(pool.evaluate)
            except JedaxError as error:
                why = [note for note in said[-1:] if str(error) not in note]  # a bench shows no notes of this
                raise JedaxError(" ".join([str(error), *why])) from None
    else:
        found = task.settled(functools.partial(_evaluate_in_jax, task))
    return (config if found is given else config.replace(task_config=found.config)), found


def _evaluate_in_jax(task: Task, genotypes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    evaluation = jax.jit(task.evaluate_batch)(jax.random.key(0), genotypes)
    return np.asarray(evaluation.fitness), np.asarray(evaluation.descriptor)


class HostPrograms(StepPrograms):
    """Programs for a task that worker processes evaluate; the batches of all replicas are evaluated as one."""

    failure_kinds = failures.HOST_KINDS
    task: HostTask

    _pool: WorkerPool | None = None

    @contextmanager
    def opened(
        self, settings: RunConfig, note: Callable[[str], None], should_stop: Callable[[], bool], engine: Engine
    ) -> Iterator[None]:
        """Start the workers, and close them at the end."""
        self._pool = engine.open_pool(self.task.work, settings.workers, settings.evaluation_timeout, note)
        self._pool.should_stop = should_stop
        try:
            yield
        finally:
            self._pool.close()
            self._pool = None

    def begin(self, roots: PRNGKeyArray, start_genotypes: Genotypes) -> tuple[Any, Any]:
        """Return the state after the initial batch, which begins with `start_genotypes`, and what was noted of it.

        Raises:
            Stopped: The search was asked to stop before the batch was evaluated.
        """
        genotypes = self.draw(roots, start_genotypes)
        evaluation, noted = self._evaluate_all(genotypes)
        return self.init(roots, genotypes, evaluation), noted

    def advance(self, roots: PRNGKeyArray, state: Any, generations: int) -> tuple[Any, dict[str, Array], Any]:
        """Run a number of generations, fewer if the search is asked to stop."""
        assert self._pool is not None
        evaluation = None
        failed, arrived = np.zeros((self.replicas, len(self.failure_kinds)), int), np.zeros(self.replicas, int)
        try:
            for done in range(generations):
                genotypes, asked = self.ask(roots, state)
                evaluation, now = self._evaluate_all(self.within_bounds(np.asarray(genotypes)))
                failed += now.failed
                arrived = failures.first_arrival(arrived, np.asarray(now.arrived), done * self.method.batch)
                state = self.tell(roots, asked, genotypes, evaluation)
        except Stopped:
            pass
        noted = Noted(failed, arrived)
        if evaluation is None:
            return state, {}, noted
        return state, self._call("loop_results", jax.vmap(self.method.loop_results), (state, evaluation)), noted

    def _evaluate_all(self, genotypes: Float[Array | np.ndarray, "replicas batch params"]) -> tuple[Evaluation, Noted]:
        """Return the evaluations, and what was noted of them."""
        assert self._pool is not None
        replicas, batch, params = genotypes.shape
        rows = np.asarray(genotypes).reshape(-1, params)
        if self.method.samples == 1:
            found = evaluation_of(self.task, *self._pool.evaluate(rows))
        else:
            found = self.aggregate(evaluate_samples(self.task, self._pool, rows, range(self.method.samples)))
        lost = {row % len(rows): kind for row, kind in self._pool.failed.items()}  # of any sample of a solution
        failed = failures.count_on_host(np.asarray(found.fitness), np.asarray(found.descriptor), lost, replicas)
        evaluation = jax.tree.map(lambda values: values.reshape(replicas, batch, *values.shape[1:]), found)
        fitness, descriptor = np.asarray(evaluation.fitness), np.asarray(evaluation.descriptor)
        achieved = np.where(np.isfinite(fitness) & np.isfinite(descriptor).all(axis=-1), fitness, -np.inf)
        arrived = np.asarray(failures.first_at(self.task.goal_fitness, achieved))
        return evaluation, Noted(self.method.samples * failed, arrived)
