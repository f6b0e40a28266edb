"""One of two processes that search together, two virtual devices each; what is told comes as arguments.

Run: python on_two_processes.py PORT PROCESS FOLDER
"""

import hashlib
import json
import os
import sys
from pathlib import Path

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"

import jax
import numpy as np

import jedax
from jedax.search import api
from jedax.store.config import FullConfig, RunConfig
from jedax.tasks import PlanarArm

METHOD = jedax.JediConfig(population=5, pool=2, generations=10, cells=64, targets="uniform", gp_max_steps=5)


def found(run):
    """Return a checksum of a run's repertoire."""
    leaves = jax.tree.leaves(run.repertoire)
    return hashlib.sha256(b"".join(np.asarray(leaf).tobytes() for leaf in leaves)).hexdigest()


def main():
    """Stop a search after its first generations, go on with it, and search the same alone."""
    port, process, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    jax.distributed.initialize(f"localhost:{port}", num_processes=2, process_id=process)
    task = PlanarArm(joints=4)
    settings = {"evaluations": 310, "replicas": 2, "seed": 4, "report_every": 15}
    run = RunConfig(**settings, devices="all", max_seconds=1e-6)
    config = FullConfig(task="arm", task_config=task.config, method="jedi-uniform", method_config=METHOD, run=run)
    together = api.start(config, out=folder)
    while together.summary["status"] == "time":
        together = api.resume(folder)
    alone = jedax.run(METHOD, task, **settings)
    best = [run.summary["max_fitness"] for run in (together, alone)]
    told = json.dumps({"path": str(together.path), "digest": found(together), "best": best})
    sys.stdout.write(f"\n{told}\n")  # on a line of its own: Gloo writes too


if __name__ == "__main__":
    main()
