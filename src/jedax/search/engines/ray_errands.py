"""Errands as tasks of a Ray cluster: what the driver does, and what the nodes do.

Over the wire go: the settings of each cell as YAML, numbers that tell how far it is, notes, and, from and to nodes that
do not share the driver's files, the files of a run's directory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import shlex
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jedax._version import __version__
from jedax.search.engines.base import Errand, Failure
from jedax.search.engines.ray_node import Mailbox, Order, Reply, obey
from jedax.search.engines.transfer import pack, unpack
from jedax.search.interrupts import Interrupted

if TYPE_CHECKING:
    from jedax.search.engines.ray import RayEngine
    from jedax.search.progress import Progress

# How often an errand is begun before it counts as failed, where its process or node is lost each time.
_ATTEMPTS = 5
# Tasks that wait within Ray, beside those it has room for: a cluster that grows sees what for.
_BACKLOG = 64
_SECONDS_BETWEEN_LOOKS = 0.5
# What is stopped has this long to save what it has done.
_GRACE = 120.0
# Of a GPU's memory, what JAX takes for itself.
_SHARE_OF_GPU = 0.75


@dataclass
class _Going:
    """An errand that is under way."""

    errand: Errand
    number: int
    token: str
    attempt: int = 0
    follower: Progress | None = None


class Desk:
    """Hands out errands, listens to them, and takes in what comes back."""

    def __init__(self, engine: RayEngine, follow: Callable[[Errand], Progress]):
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._engine, self._ray, self._follow = engine, engine.ray, follow
        here = self._ray.get_runtime_context().get_node_id()
        strategy = NodeAffinitySchedulingStrategy(here, soft=False)
        self._mailbox = self._ray.remote(Mailbox).options(
            num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=strategy
        ).remote()  # fmt: skip
        self._ahead: deque[Errand] = deque()
        self._going: dict[Any, _Going] = {}
        self._count = 0

    def work(self, errands: Iterator[Errand], caught: list[int]) -> Iterator[tuple[Errand, Failure | None]]:
        """Do all errands; yield each when it is done.

        Raises:
            Interrupted: There was a signal in `caught`; what had begun has saved what it had done.
        """
        while not caught:
            more = self._hand_out(errands)
            if not self._going:
                return
            ready, _ = self._ray.wait(list(self._going), timeout=0 if more else _SECONDS_BETWEEN_LOOKS)
            self._pass_on()
            for reference in ready:
                yield from self._settle(reference, may_go_on=not caught)
        yield from self._stop()
        raise Interrupted("Stopped; what was finished is there, and what had begun is saved.", caught[0])

    def close(self) -> None:
        """Give up what is still under way."""
        for reference, going in self._going.items():
            with contextlib.suppress(Exception):  # the cluster may be gone
                self._ray.cancel(reference, force=True)
            _probe(going.errand).unlink(missing_ok=True)
        self._going.clear()
        with contextlib.suppress(Exception):
            self._ray.kill(self._mailbox)

    def _hand_out(self, errands: Iterator[Errand]) -> bool:
        """Submit the next errand if there is room; return whether there may be more to submit at once."""
        nodes = self._engine.nodes()
        while len(self._ahead) < max(1, len(nodes)):
            errand = next(errands, None)
            if errand is None:
                break
            self._ahead.append(errand)
        if not self._ahead:
            return False
        using = sum(going.errand.uses_workers for going in self._going.values())
        cores = self._engine.num_cores()
        # Workers make up for the cores that their search does not ask for: more at a time would only be in each
        # other's way.
        limit = max(1, len(nodes)) if self._ahead[0].uses_workers else cores + _BACKLOG
        if (using if self._ahead[0].uses_workers else len(self._going)) >= limit:
            return False
        searches = min(limit, using + sum(errand.uses_workers for errand in self._ahead))
        errand = self._ahead.popleft()
        self._count += 1
        going = _Going(errand, self._count, secrets.token_hex(16))
        self._submit(going, max(1, cores // max(1, searches)))
        return bool(self._ahead)

    def _submit(self, going: _Going, num_workers: int) -> None:
        """Begin an errand, or begin it again."""
        errand = going.errand
        going.attempt += 1
        if self._engine.may_share:
            _probe(errand).parent.mkdir(parents=True, exist_ok=True)
            _probe(errand).write_text(going.token)
        # Within a list, Ray leaves it where it is until a node asks for it.
        held = [self._ray.put(pack(errand.path))] if (errand.path / "config.yaml").is_file() else []
        # Nodes may be in other directories.
        errand = dataclasses.replace(errand, path=errand.path.absolute())
        order = Order(
            errand, str(_probe(errand)), going.number, going.attempt, going.token, num_workers, __version__,
            shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        )  # fmt: skip
        resources = self._engine.resources(errand)
        task = self._ray.remote(obey).options(
            **resources, max_retries=0, scheduling_strategy="SPREAD", name=errand.name,
            runtime_env={"env_vars": _environment(resources["num_gpus"])},
        )  # fmt: skip
        self._going[task.remote(order, held, self._mailbox)] = going

    def _pass_on(self) -> None:
        """Pass on what the errands have told since the last time."""
        goings = {going.number: going for going in self._going.values()}
        for number, attempt, latest, notes in self._ray.get(self._mailbox.take.remote()):
            going = goings.get(number)
            if going is None or going.attempt != attempt:  # a word from a node that was given up
                continue
            follower = self._follower(going)
            for note in notes:
                follower.note(note)
            if latest is not None:
                follower.update(*latest)

    def _follower(self, going: _Going) -> Progress:
        going.follower = going.follower or self._follow(going.errand)
        return going.follower

    def _settle(self, reference: Any, may_go_on: bool) -> Iterator[tuple[Errand, Failure | None]]:
        """Take in what an errand came to; begin it again where its process or node was lost."""
        going = self._going.pop(reference)
        exceptions = self._ray.exceptions
        reason = "was stopped"
        try:
            reply: Reply = self._ray.get(reference)
            if reply.files is not None:
                unpack(reply.files, going.errand.path)
            if not reply.was_stopped:
                yield self._done(going, reply.failure)
                return
        except exceptions.RayTaskError as error:  # it could not even begin: no jedax there, or another one
            yield self._done(going, Failure(str(error.cause), str(error)))
            return
        except exceptions.RayError as error:
            reason = f"was lost with its process or node ({type(error).__name__})"
        if not may_go_on:
            return
        if going.attempt >= _ATTEMPTS:
            yield self._done(going, Failure(f"{going.errand.name} {reason}, {_ATTEMPTS} times", ""))
            return
        self._follower(going).note(f"It {reason}; it is run again.")
        self._submit(going, max(1, self._engine.num_cores() // max(1, len(self._going) + 1)))

    def _done(self, going: _Going, failure: Failure | None) -> tuple[Errand, Failure | None]:
        self._follower(going).close()
        _probe(going.errand).unlink(missing_ok=True)
        return going.errand, failure

    def _stop(self) -> Iterator[tuple[Errand, Failure | None]]:
        """Have what is under way save what it has done, and take that in; leave what has not begun."""
        self._ray.get(self._mailbox.stop.remote())
        self._pass_on()
        limit = time.monotonic() + _GRACE
        for reference, going in self._going.items():
            if going.follower is None:
                self._ray.cancel(reference)
        while self._going and time.monotonic() < limit:
            ready, _ = self._ray.wait(list(self._going), timeout=_SECONDS_BETWEEN_LOOKS)
            for reference in ready:
                yield from self._settle(reference, may_go_on=False)


def _probe(errand: Errand) -> Any:
    """Return a hidden file beside an errand's directory, by which nodes know whether they see the same files."""
    return errand.path.with_name(f".{errand.path.name}.probe")


def _environment(gpus: float) -> dict[str, str]:
    """Return what a process is started with that has so many GPUs for itself."""
    if gpus == 0:
        return {"JAX_PLATFORMS": "cpu"}
    return {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{_SHARE_OF_GPU * min(gpus, 1.0):.3f}"}
