"""Run directories without a search: written by the same functions, with curves made up."""

import numpy as np

from jedax.methods.registry import method_defaults
from jedax.store import files
from jedax.store.config import FullConfig, RunConfig
from jedax.store.directory import RunDirectory
from jedax.tasks.registry import settings_of

BASELINE = "es"


def write_run(
    folder, curves, *, task="maze-a", label="", method="jedi", seed=0, reports=None, budget=None, coverage=None,
    status="finished", cells=None, task_settings=None, settings=None, run=None, restarts=None,
):  # fmt: skip
    """Write a run directory.

    `curves` is `(replicas, reports)`, or `(replicas,)` for a report at a tenth of the budget and one at its end;
    `cells` is a pair of arrays `(replicas, cells)`, fitness and counts; `settings` change the method's, `run` those
    of the run, and `restarts` is the last number of restarts of each replica.
    """
    curves = np.asarray(curves, float)
    if curves.ndim == 1:
        curves = np.stack([curves - 1, curves], axis=1)
    if reports is None:
        reports = [1000, 10_000] if curves.shape[1] == 2 else np.arange(1, curves.shape[1] + 1) * 1000
    coverage = np.full_like(curves, 0.25) if coverage is None else np.asarray(coverage, float)
    custom = task.startswith("custom:")
    config = FullConfig(
        task=task,
        task_config=None if custom else settings_of(task, task_settings or {}, str(folder)),
        method=method,
        method_config=method_defaults(method, task).replace(**(settings or {})),
        label=label,
        run=RunConfig(evaluations=budget or int(reports[-1]), seed=seed, replicas=len(curves), **(run or {})),
    )
    directory = RunDirectory.create(folder)
    directory.write_config(config)
    directory.add_metrics(
        [
            {
                "evaluations": int(e),
                "replica": r,
                "max_fitness": curves[r, i],
                "coverage": coverage[r, i],
                "qd_score": 0.0,
                **({} if restarts is None else {"num_restarts": restarts[r] * (i == len(reports) - 1)}),
            }
            for i, e in enumerate(reports)
            for r in range(len(curves))
        ]
    )
    if cells is not None:
        from jedax.tasks import make

        fitness, counts = (np.asarray(array, np.float32) for array in cells)
        lows, highs = ((0, 0), (1, 1)) if custom else make(task).descriptor_bounds
        side = round(fitness.shape[1] ** 0.5)
        axes = [low + (np.arange(side) + 0.5) / side * (high - low) for low, high in zip(lows, highs, strict=True)]
        centroids = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2).astype(np.float32)
        files.write_tensors(
            directory.path / "repertoire.safetensors",
            {"fitness": fitness, "counts": counts.astype(np.int32), "centroids": centroids},
        )
    if status is not None:
        files.write_json(directory.path / "summary.json", {"status": status})
    return directory.path
