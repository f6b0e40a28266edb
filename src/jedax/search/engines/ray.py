"""Several machines, with Ray: jobs are Ray tasks and workers are actors, on any node that has room."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import os
import platform
import secrets
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jedax._version import __version__
from jedax.errors import fail
from jedax.imports import require
from jedax.search.engines.base import Engine, Failure, Job
from jedax.search.engines.ray_node import JobResult, probe_of, read_files, run_on_node, write_files
from jedax.search.interrupts import Interrupted, interruptible
from jedax.search.progress import Progress
from jedax.search.workers.evaluator import ENVIRONMENT, Evaluator, Reply
from jedax.search.workers.pool import Worker
from jedax.tasks.work import Work

_ATTEMPTS = 5  # of a job whose process or node is lost each time, before it counts as failed
_BACKLOG = 64  # number of jobs that wait within Ray for resources, where an autoscaler sees them
_POLL_SECONDS = 0.5
_STOP_SECONDS = 120.0  # how long stopped jobs may take to save what they have done
_SHARE_OF_GPU = 0.75  # of a GPU's memory, allocated by JAX


class RayEngine(Engine):
    """Runs jobs and workers on a Ray cluster.

    Args:
        address: `host:port` of a cluster, or "auto" for the cluster of this machine; None: the variable `RAY_ADDRESS`,
            else a cluster is started on this machine and ends with `close`.
        cpus_per_trial: Cores of each job; may be a fraction.
        gpus_per_trial: GPUs of each job; may be a fraction. None: one if the cluster has any, but none for jobs that
            use workers.
        num_workers: Workers of a search that does not say how many; None: one for each core of the cluster.
        may_share: Whether nodes that see the files of this machine write to them directly.
        settings: More arguments of `ray.init`, for a cluster that is started here.

    Raises:
        JedaxError: A number of cores or GPUs, or the address, does not fit; when it is first used: no cluster answers.
    """

    def __init__(
        self,
        address: str | None = None,
        cpus_per_trial: float = 1.0,
        gpus_per_trial: float | None = None,
        num_workers: int | None = None,
        may_share: bool = True,
        settings: dict[str, Any] | None = None,
    ):
        for name, value in (("cpus-per-trial", cpus_per_trial), ("gpus-per-trial", gpus_per_trial or 0.0)):
            if not 0 <= value < float("inf") or (value > 1 and value != int(value)):
                expected = "0, a fraction of one, or a whole number"
                raise fail(name, expected=expected, received=value, remedy="change it")
        self.address = address or os.environ.get("RAY_ADDRESS")
        if self.address is not None and self.address.startswith("ray://"):
            raise fail(
                "address",
                expected="host:port, or auto on a node of the cluster",
                received=self.address,
                remedy="give the command on a node of the cluster; see docs/guides/clusters.md",
            )
        self.may_share, self._cpus, self._gpus = may_share, cpus_per_trial, gpus_per_trial
        self._num_workers, self._settings = num_workers, settings or {}
        self._ray: Any = None
        self._is_ours = False

    @property
    def ray(self) -> Any:
        """The module `ray`, connected to the cluster."""
        if self._ray is None:
            self._ray, self._is_ours = _connect(self.address, self._settings)
        return self._ray

    def close(self) -> None:
        """Disconnect from the cluster; a cluster that was started here ends."""
        if self._ray is not None and self._is_ours:
            self._ray.shutdown()
        self._ray, self._is_ours = None, False

    def run_jobs(self, jobs: Iterable[Job], follow: Callable[[Job], Progress]) -> Iterator[tuple[Job, Failure | None]]:
        """Run jobs on the nodes of the cluster; see `Engine.run_jobs`."""
        wanted = {"CPU": self._cpus, "GPU": self._gpus or 0.0}
        fits = any(all(node.get(name, 0.0) >= number for name, number in wanted.items()) for node in self.nodes())
        if self.address is None and not fits:  # other clusters may grow
            raise fail(
                "cpus-per-trial, gpus-per-trial",
                expected="no more than a node has",
                received=", ".join(f"{number:g} {name}" for name, number in wanted.items()),
                remedy="lower them",
            )
        with interruptible() as caught:
            scheduler = JobScheduler(self, follow)
            try:
                yield from scheduler.run(iter(jobs), caught)
            finally:
                scheduler.close()

    def start_worker(self, work: Work, seconds: float) -> ActorWorker:
        """Start an actor."""
        return ActorWorker(self.ray, work)

    def num_workers(self) -> int:
        """Return the number of workers of a search that does not say how many."""
        return self._num_workers or self.num_cores()

    def memory(self) -> int | None:
        """Return the memory for a job on the node where its jobs have the least; None: unknown."""
        wanted = {name: number for name, number in (("CPU", self._cpus), ("GPU", self._gpus)) if number}

        def num_jobs(node: dict[str, float]) -> float:
            return max(1.0, min((node.get(name, 0.0) // number for name, number in wanted.items()), default=1.0))

        found = [node["memory"] / num_jobs(node) for node in self.nodes() if "memory" in node]
        return int(min(found)) if found else None

    def describe(self) -> dict[str, Any]:
        """Return the name, address and Ray's identifier of the node that this process runs on."""
        return {
            "engine": "ray",
            "node": platform.node(),
            "node_address": self.ray.util.get_node_ip_address(),
            "node_id": self.ray.get_runtime_context().get_node_id(),
        }

    def nodes(self) -> list[dict[str, float]]:
        """Return the resources of the nodes that are alive: CPU, GPU, memory in bytes."""
        return [node["Resources"] for node in self.ray.nodes() if node["Alive"]]

    def num_cores(self) -> int:
        """Return the number of cores of the cluster, at least 1."""
        return max(1, int(sum(node.get("CPU", 0.0) for node in self.nodes())))

    def resources(self, job: Job) -> dict[str, float]:
        """Return the cores and GPUs that Ray reserves for a job; a job that uses workers leaves the cores to them."""
        gpus = self._gpus
        if gpus is None:
            gpus = float(not job.uses_workers and any(node.get("GPU", 0.0) >= 1 for node in self.nodes()))
        return {"num_cpus": 0.0 if job.uses_workers else self._cpus, "num_gpus": gpus}


def _connect(address: str | None, settings: dict[str, Any]) -> tuple[Any, bool]:
    """Return the module `ray`, connected to a cluster, and whether this call has connected it."""
    loaded = sys.modules.get("ray")
    if loaded is not None and loaded.is_initialized():  # by other code of this process; on a node, by Ray itself
        return loaded, False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None and loaded is None:
        # Ray listens on all addresses of a machine: a cluster that is started here answers only those who know this
        # token, which Ray reads when it is imported.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    ray: Any = require("ray", "ray", "engine")
    where = {"address": "local", "include_dashboard": False, **settings} if address is None else {"address": address}
    try:
        with warnings.catch_warnings():
            # JAX warns of every fork; a process that Ray forks becomes another program at once.
            warnings.filterwarnings("ignore", message=r".*os\.fork\(\)", category=RuntimeWarning)
            ray.init(log_to_driver=False, logging_level="ERROR", **where)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise fail(
            "address",
            expected="a Ray cluster that answers",
            received=f"{address or 'none started'} ({' '.join(str(error).split())})",
            remedy="check it with: ray status --address ADDRESS",
        ) from None
    return ray, True


class ActorWorker(Worker):
    """A worker in an actor, on any node with a free core."""

    max_failed_starts = 20  # a node that is lost takes several workers with it

    def __init__(self, ray: Any, work: Work):
        super().__init__(deadline=math.inf)  # the cluster may take any time to find a free core
        self._ray, self._error = ray, ""
        self._actor = ray.remote(Evaluator).options(
            num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD", runtime_env={"env_vars": ENVIRONMENT}
        ).remote()  # fmt: skip
        self._reply = self._actor.start.remote(work.factory, dict(work.settings))

    def send(self, inputs: list[tuple[np.ndarray, ...]]) -> None:
        """Call the actor."""
        self._reply = self._actor.evaluate.remote(inputs)

    @staticmethod
    def wait(workers: Sequence[ActorWorker], seconds: float) -> list[ActorWorker]:
        """Return the workers that have replied or died, after at most `seconds`."""
        by_reply, ray = {worker._reply: worker for worker in workers}, workers[0]._ray
        ready, _ = ray.wait(list(by_reply), num_returns=1, timeout=seconds)
        if ready:
            ready, _ = ray.wait(list(by_reply), num_returns=len(by_reply), timeout=0)
        return [by_reply[reference] for reference in ready]

    def receive(self) -> list[Reply] | None:
        """Return its replies; None: there are none, or the actor has died."""
        if not self._ray.wait([self._reply], timeout=0)[0]:
            return None
        try:
            return self._ray.get(self._reply)
        except self._ray.exceptions.RayError as error:
            self._error = type(error).__name__
            return None

    def exit_reason(self) -> str:
        """Return Ray's error; empty: the actor is running."""
        return f"a worker or its node was lost ({self._error})" if self._error else ""

    def close(self) -> None:
        """Kill the actor."""
        with contextlib.suppress(Exception):  # the actor or the cluster may be gone
            self._ray.kill(self._actor)


@dataclass
class _Running:
    """A job that has been submitted: its latest token and attempt, and the receiver of its progress once it began."""

    job: Job
    token: str = ""
    attempt: int = 0
    follower: Progress | None = None


class JobScheduler:
    """Submits jobs to a cluster, passes on their progress and stores their results."""

    def __init__(self, engine: RayEngine, follow: Callable[[Job], Progress]):
        self._engine, self._ray, self._follow = engine, engine.ray, follow
        from ray.util.queue import Queue
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)
        self._queue = Queue(actor_options={
            "num_cpus": 0, "max_restarts": -1, "max_task_retries": -1, "scheduling_strategy": here
        })  # fmt: skip
        self._ahead: deque[Job] = deque()
        self._running: dict[Any, _Running] = {}

    def run(self, jobs: Iterator[Job], caught: list[int]) -> Iterator[tuple[Job, Failure | None]]:
        """Run all jobs and yield each when it has ended; on a signal in `caught`, running jobs save what they have."""
        while not caught:
            has_submitted = self._submit_next(jobs)
            if not self._running:
                return
            yield from self._finish_some(0 if has_submitted else _POLL_SECONDS, caught)
        for reference in self._running:  # a job that has begun gets a KeyboardInterrupt and saves what it has done
            self._ray.cancel(reference, recursive=False)
        limit = time.monotonic() + _STOP_SECONDS
        while self._running and time.monotonic() < limit:
            yield from self._finish_some(_POLL_SECONDS, caught)
        raise Interrupted("Stopped; finished jobs are complete, and all others are saved.", caught[0])

    def close(self) -> None:
        """Cancel the jobs that are still running."""
        with contextlib.suppress(Exception):  # the cluster may be gone
            for reference in self._running:
                self._ray.cancel(reference, force=True)
            self._queue.shutdown(force=True)
        for running in self._running.values():
            probe_of(running.job).unlink(missing_ok=True)

    def _submit_next(self, jobs: Iterator[Job]) -> bool:
        """Submit the next job if there is room for it; return whether it was submitted."""
        num_nodes, num_cores = max(1, len(self._engine.nodes())), self._engine.num_cores()
        self._ahead.extend(itertools.islice(jobs, max(0, num_nodes - len(self._ahead))))
        if not self._ahead:
            return False
        # Jobs that use workers reserve no core: as many as there are nodes run at a time, and share all cores.
        num_searches = sum(running.job.uses_workers for running in self._running.values())
        if self._ahead[0].uses_workers:
            has_room = num_searches < num_nodes
        else:
            has_room = len(self._running) < num_cores + _BACKLOG
        if has_room:
            sharing = min(num_nodes, num_searches + sum(job.uses_workers for job in self._ahead))
            self._submit(_Running(self._ahead.popleft()), num_cores // max(1, sharing))
        return has_room

    def _submit(self, running: _Running, num_workers: int) -> None:
        """Submit a job, or submit it again."""
        job = running.job
        running.token, running.attempt = secrets.token_hex(16), running.attempt + 1
        if self._engine.may_share:
            probe_of(job).parent.mkdir(parents=True, exist_ok=True)
            probe_of(job).write_text(running.token)
        # In a list, so that Ray copies the files only to a node that asks for them.
        files = self._ray.put(read_files(job.path)) if (job.path / "config.yaml").is_file() else None
        # Nodes may have another working directory.
        job = dataclasses.replace(job, path=job.path.absolute())
        engine = RayEngine(num_workers=max(1, num_workers))
        resources = self._engine.resources(job)
        task = self._ray.remote(run_on_node).options(
            **resources, max_retries=0, scheduling_strategy="SPREAD", name=job.name,
            runtime_env={"env_vars": _environment(resources["num_gpus"])},
        )  # fmt: skip
        self._running[task.remote(job, running.token, [files], engine, __version__, sys.argv, self._queue)] = running

    def _finish_some(self, seconds: float, caught: list[int]) -> Iterator[tuple[Job, Failure | None]]:
        """Wait at most so many seconds, pass on the progress of all jobs, and finish those that have ended."""
        from ray.util.queue import Empty

        ready, _ = self._ray.wait(list(self._running), timeout=seconds)
        by_token = {running.token: running for running in self._running.values()}
        reports: list[Any] = []
        with contextlib.suppress(Empty):  # the queue has just been restarted
            reports = self._queue.get_nowait_batch(self._queue.qsize())
        for token, numbers, note in reports:
            if token in by_token:  # else of an attempt that was given up
                follower = self._follower(by_token[token])
                if note is not None:
                    follower.note(note)
                if numbers is not None:
                    follower.update(*numbers)
        for reference in ready:
            yield from self._finish(reference, may_retry=not caught)

    def _follower(self, running: _Running) -> Progress:
        running.follower = running.follower or self._follow(running.job)
        return running.follower

    def _finish(self, reference: Any, may_retry: bool) -> Iterator[tuple[Job, Failure | None]]:
        """Store the files of a job and yield it, or submit it again if its process or node was lost."""
        running, errors = self._running.pop(reference), self._ray.exceptions
        job, failure, reason = running.job, None, ""
        probe_of(job).unlink(missing_ok=True)
        try:
            result: JobResult = self._ray.get(reference)
            if result.files is not None:
                write_files(result.files, job.path)
            failure, reason = result.failure, "was stopped" if result.was_stopped else ""
        except errors.TaskCancelledError:
            reason = "was stopped"
        except errors.RayTaskError as error:  # the node has no jedax, or another version
            failure = Failure(str(error.cause), str(error))
        except errors.RayError as error:
            reason = f"was lost with its process or node ({type(error).__name__})"
        if reason and not may_retry:
            return
        if reason and running.attempt < _ATTEMPTS:
            self._follower(running).note(f"It {reason}; it is run again.")
            self._submit(running, self._engine.num_cores() // (len(self._running) + 1))
            return
        self._follower(running).close()
        yield job, Failure(f"{job.name} {reason}, {_ATTEMPTS} times", "") if reason else failure


def _environment(gpus: float) -> dict[str, str]:
    """Return the environment of a job that may use so many GPUs."""
    if gpus == 0:
        return {"JAX_PLATFORMS": "cpu"}
    return {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{_SHARE_OF_GPU * min(gpus, 1.0):.3f}"}
