"""Searches on eight virtual devices, in a program of its own: JAX counts devices once. Prints what it saw as JSON."""

import hashlib
import json
import os
import sys
import warnings
from pathlib import Path

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"

import jax
import numpy as np

import jedax
from jedax.methods.map_elites import MapElites, MapElitesConfig
from jedax.search import api
from jedax.search.compiled import replica_roots
from jedax.search.devices import describe, mesh_for
from jedax.search.programs import programs_for
from jedax.store.config import FullConfig, RunConfig
from jedax.store.directory import RunDirectory
from jedax.tasks import Maze, PlanarArm
from jedax.tasks.maze.settings import MazeConfig

# Ten genotypes a generation: eight devices take two each, and the last three have nothing to do.
ODD = jedax.JediConfig(population=5, pool=2, generations=10, cells=64, targets="uniform", gp_max_steps=5)
PLAIN = MapElitesConfig(offspring=10, cells=64)
MAZE = Maze(MazeConfig(steps=30))
NOISY_MAZE = Maze(MAZE.config.replace(wheel_noise=0.002))
BUDGET = 10 * 40


def digest(repertoire):
    """Return a checksum of all of a repertoire."""
    return hashlib.sha256(b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(repertoire))).hexdigest()


def search(method, task, devices, evaluations=BUDGET, **settings):
    """Return a checksum of what a search finds, and the best fitness of each replica."""
    run = jedax.run(method, task, evaluations=evaluations, devices=devices, **settings)
    return {"digest": digest(run.repertoire), "best": np.atleast_1d(run.summary["max_fitness"]).tolist()}


def meshes():
    """Return the grids of devices by replicas and devices."""
    asked = [(1, 8), (8, 8), (4, 8), (10, 8), (5, 8), (3, 2), (6, 4), (2, 3)]
    grids = {f"{replicas} on {number}": mesh_for(number, replicas) for replicas, number in asked}
    return {name: [describe(mesh)["replicas"], describe(mesh)["population"]] for name, mesh in grids.items()}


def donated():
    """Return whether programs on several devices use up the repertoire they are given, and where the new one lies."""
    task = PlanarArm(joints=4)
    programs = programs_for(MapElites(PLAIN, task), task, 4, "all")
    roots = replica_roots(0, 4)
    state, _ = programs.begin(roots, np.zeros((0, task.num_params), np.float32))
    after, *_ = programs.advance(roots, state, 2)
    genotypes = after.repertoire.genotypes
    parts = sorted((shard.index[0].start, shard.data.shape[0]) for shard in genotypes.addressable_shards)
    return {"used": all(leaf.is_deleted() for leaf in jax.tree.leaves(state.repertoire)), "parts": parts}


def resumed(folder):
    """Return the checksum of a search that goes on, after each chunk, on another number of devices."""
    settings = RunConfig(evaluations=BUDGET, devices=8, max_seconds=1e-6)
    config = FullConfig(task="maze-a", task_config=MAZE.config, method="jedi-uniform", method_config=ODD, run=settings)
    run = api.start(config, out=folder)
    used = [8]
    while (status := json.loads((folder / "summary.json").read_text())["status"]) == "time":
        used.append(1 if used[-1] == 8 else 8)
        run = jedax.resume(folder, devices=used[-1], draw=None)
    log = (folder / "log.txt").read_text()
    return {"digest": digest(run.repertoire), "used": used, "status": status, "log": log,
            "environment": json.loads((folder / "environment.json").read_text())["devices_used"],
            "config": RunDirectory(folder).read_config().run.devices}  # fmt: skip


def main():
    """Do all of it."""
    warnings.simplefilter("error")  # such as those of buffers that are donated in vain
    found = {
        "devices": len(jax.devices()),
        "meshes": meshes(),
        "population": [search(ODD, MAZE, devices) for devices in (1, "all")],
        "samples": [search(PLAIN.replace(samples_per_evaluation=3), NOISY_MAZE, devices, 3 * BUDGET)
                    for devices in (1, "all")],
        "replicas": [search(PLAIN, PlanarArm(joints=4), devices, replicas=4) for devices in (1, 8, 4)],
        "donated": donated(),
        "resumed": resumed(Path(sys.argv[1])),
    }  # fmt: skip
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
