"""Worker processes against gymnasium's own SyncVectorEnv: the same policies, the same episodes.

    python benchmarks/gym_workers.py [--repeats 5] [--steps 200] [--policies 64]

All ways take turns, and the best time of each counts. The vector environment gets its actions from the same NumPy
product per layer, for all policies at once; so what is compared is stepping in one process and in several. Then 200
generations of a whole search, with the memory of search and workers on the way.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import gymnasium
import jax
import numpy as np

import jedax
from jedax.networks import Policies
from jedax.search.engines import LocalEngine
from jedax.tasks import make
from jedax.tasks.mujoco import quiet_mujoco

TASK = "gym:HalfCheetah-v5"


def resident(pid: int | str) -> float:
    """Return the memory of a process in MB, its code apart."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024


def compare(repeats: int, steps: int, number: int) -> None:
    task = make(TASK, steps=steps)
    genotypes = np.asarray(jax.vmap(task.init)(jax.random.split(jax.random.key(0), number)))
    with warnings.catch_warnings(), quiet_mujoco():
        warnings.simplefilter("ignore")
        environments = gymnasium.make_vec("HalfCheetah-v5", number, "sync", max_episode_steps=steps)
    policies = Policies(genotypes, task.layer_sizes, task.config.activation)

    def plain() -> np.ndarray:
        observations, _ = environments.reset(seed=[task.config.episode_seed] * number)
        fitness = np.zeros(number)
        for _ in range(steps):
            observations, rewards, *_ = environments.step(policies(observations))
            fitness += rewards
        return fitness

    pools = {f"{size} worker{'s' * (size > 1)}": LocalEngine().open_pool(task.work, size, 600) for size in (1, 2)}
    ways = {"SyncVectorEnv": plain} | {
        name: lambda pool=pool: pool.evaluate(genotypes)[0] for name, pool in pools.items()
    }
    expected = plain()
    seconds = dict.fromkeys(ways, np.inf)
    for _ in range(repeats + 1):  # the first time, workers start
        for name, way in ways.items():
            began = time.perf_counter()
            fitness = way()
            seconds[name] = min(seconds[name], time.perf_counter() - began)
            assert abs(fitness - expected).max() < 0.01
    for name, best in seconds.items():
        ratio = seconds["SyncVectorEnv"] / best
        print(f"{name:<14} {number / best:7.1f} evaluations/s {number * steps / best:8.0f} steps/s {ratio:5.2f}")
    for pool in pools.values():
        pool.close()


def watch_memory(generations: int) -> None:
    def look(report: jedax.Report) -> None:
        workers = [resident(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if is_worker(path)]
        print(f"generation {report.evaluations // 16 - 1:>4}: search {resident('self'):.1f} MB, "
              f"workers {' and '.join(f'{size:.1f}' for size in workers)} MB", flush=True)  # fmt: skip

    task = make(TASK, steps=50, hidden=(16,), chunk=8)
    jedax.run("map-elites", task, evaluations=16 * (generations + 1), offspring=16, cells=64, workers=2,
              report_every=generations // 8, callbacks=[look])  # fmt: skip


def is_worker(path: Path) -> bool:
    """Whether a process is a worker of this one."""
    try:
        parent = Path(path.parent / "status").read_text().partition("PPid:")[2].split()[0]
        return parent == str(Path("/proc/self").resolve().name) and b"jedax.search.workers" in path.read_bytes()
    except OSError:
        return False


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--policies", type=int, default=64)
    parser.add_argument("--generations", type=int, default=200)
    options = parser.parse_args()
    compare(options.repeats, options.steps, options.policies)
    watch_memory(options.generations)
