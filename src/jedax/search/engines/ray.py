"""Several machines, by Ray: errands are tasks, workers are actors, on whatever nodes have room."""

from __future__ import annotations

import os
import platform
import secrets
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from jedax.errors import fail
from jedax.imports import require
from jedax.search.engines.base import Engine, Errand, Failure
from jedax.search.interrupts import interruptible
from jedax.search.workers.crew import Work
from jedax.search.workers.pool import Pool

if TYPE_CHECKING:
    from jedax.search.progress import Progress

# Ray's own ways of reaching the network; and since Ray listens on all of a machine's addresses, what is started here
# answers nobody who does not know a secret.
_SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0"}
_SECRET = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


class RayEngine(Engine):
    """A Ray cluster: one that runs already, or one that is started on this machine and ends with `close`.

    Args:
        address: `host:port` of a cluster, or "auto" for the one of this machine; None: what `RAY_ADDRESS` says, else
            Ray is started here.
        cpus_per_cell: Cores of each errand, which may be a fraction.
        gpus_per_cell: GPUs of each errand, which may be a fraction; None: one where the cluster has any, but none for
            errands that leave the work to workers.
        num_workers: Workers of a search that does not say how many; None: one for each core of the cluster.
        command: The command line to note down; None: that of this process.
        may_share: Whether nodes that see the files of this one, under the same names, write to them directly.
        settings: More for `ray.init`, where Ray is started here.

    Raises:
        JedaxError: A number or an address that does not fit.
    """

    def __init__(
        self,
        address: str | None = None,
        cpus_per_cell: float = 1.0,
        gpus_per_cell: float | None = None,
        num_workers: int | None = None,
        command: str | None = None,
        may_share: bool = True,
        settings: dict[str, Any] | None = None,
    ):
        for name, value in (("cpus-per-cell", cpus_per_cell), ("gpus-per-cell", gpus_per_cell or 0.0)):
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
        self.cpus_per_cell, self.gpus_per_cell = cpus_per_cell, gpus_per_cell
        self.num_workers, self.may_share = num_workers, may_share
        self._command, self._settings = command, settings or {}
        self._ray: Any = None
        self._is_ours = False

    @property
    def ray(self) -> Any:
        """Ray, connected to the cluster.

        Raises:
            JedaxError: Ray is not installed, or the cluster does not answer.
        """
        if self._ray is None:
            loaded = sys.modules.get("ray")
            self._is_ours = loaded is None or not loaded.is_initialized()
            if self._is_ours:  # else it is somebody else's, or this process is one of Ray's
                # A Ray that has been imported has made up its mind about secrets.
                settings = _SETTINGS | (_SECRET if self.address is None and loaded is None else {})
                os.environ.update({name: value for name, value in settings.items() if name not in os.environ})
            ray = require("ray", "ray", "engine")
            if self._is_ours:
                self._connect(ray)
            self._ray = ray
        return self._ray

    def _connect(self, ray: Any) -> None:
        common: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            with warnings.catch_warnings():
                # JAX warns of every fork; what Ray forks becomes another program at once.
                warnings.filterwarnings("ignore", message=r".*os\.fork\(\)", category=RuntimeWarning)
                if self.address is None:
                    ray.init(address="local", include_dashboard=False, **common, **self._settings)
                else:
                    ray.init(address=self.address, **common)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise fail(
                "address",
                expected="a Ray cluster that answers",
                received=f"{self.address or 'none started'} ({' '.join(str(error).split())})",
                remedy="check it with: ray status --address ADDRESS",
            ) from None

    def close(self) -> None:
        """Leave the cluster; what was started here ends."""
        if self._ray is not None and self._is_ours:
            self._ray.shutdown()
        self._ray, self._is_ours = None, False

    def open_pool(
        self,
        work: Work,
        size: int | None,
        seconds: float,
        note: Callable[[str], None] = lambda message: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Pool:
        """Return actors, one for each core of the cluster unless `size` says otherwise; see `Engine.open_pool`."""
        from jedax.search.engines.ray_workers import Actors

        number = size or self.num_workers or self.num_cores()
        return Pool(work, number, seconds, note, should_stop, Actors(self.ray, note))

    def carry_out(
        self, errands: Iterable[Errand], follow: Callable[[Errand], Progress]
    ) -> Iterator[tuple[Errand, Failure | None]]:
        """Do errands on the nodes of the cluster; see `Engine.carry_out`."""
        from jedax.search.engines.ray_errands import Desk

        self._check_room()
        with interruptible() as caught:
            desk = Desk(self, follow)
            try:
                yield from desk.work(iter(errands), caught)
            finally:
                desk.close()

    def memory(self) -> int | None:
        """Return what the smallest node has for each of the errands that it has cores for."""
        wanted = {"CPU": self.cpus_per_cell, "GPU": self.gpus_per_cell or 0.0}
        found = []
        for node in self.nodes():
            at_a_time = [node.get(name, 0.0) // number for name, number in wanted.items() if number]
            if "memory" in node:
                found.append(node["memory"] / max(1.0, min(at_a_time, default=1.0)))
        return int(min(found)) if found else None

    def describe(self) -> dict[str, Any]:
        """Return the name, address and Ray's number of the node that this process runs on."""
        context = self.ray.get_runtime_context()
        command = {} if self._command is None else {"command": self._command}
        return command | {
            "engine": "ray",
            "node": platform.node(),
            "node_address": self.ray.util.get_node_ip_address(),
            "node_id": context.get_node_id(),
        }

    def nodes(self) -> list[dict[str, float]]:
        """Return what the nodes have that live, or were alive a few seconds ago: CPU, GPU, memory in bytes."""
        return [node["Resources"] for node in self.ray.nodes() if node["Alive"]]

    def num_cores(self) -> int:
        """Return the cores of the cluster, at least 1."""
        return max(1, int(sum(node.get("CPU", 0.0) for node in self.nodes())))

    def resources(self, errand: Errand) -> dict[str, float]:
        """Return what Ray is to keep free for an errand; one that uses workers leaves the cores to them."""
        gpus = self.gpus_per_cell
        if gpus is None:
            gpus = float(not errand.uses_workers and any(node.get("GPU", 0.0) >= 1 for node in self.nodes()))
        return {"num_cpus": 0.0 if errand.uses_workers else self.cpus_per_cell, "num_gpus": gpus}

    def _check_room(self) -> None:
        """Refuse what a cluster that cannot grow has no room for, and would wait for in silence."""
        wanted = {"CPU": self.cpus_per_cell, "GPU": self.gpus_per_cell or 0.0}
        nodes = self.nodes()
        if self.address is None and not any(all(node.get(n, 0.0) >= w for n, w in wanted.items()) for node in nodes):
            raise fail(
                "cpus-per-cell, gpus-per-cell",
                expected="no more than a node has",
                received=", ".join(f"{number:g} {name}" for name, number in wanted.items()),
                remedy="lower them",
            )
