"""What one solution of a run does, as pictures, films and numbers."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from jedax.errors import fail
from jedax.report import plots
from jedax.report.films import Replay
from jedax.report.pictures import write_picture
from jedax.store.run import Run, Solution, load
from jedax.tasks import Maze, Task
from jedax.tasks.control.base import ControlTask
from jedax.tasks.gym.task import Gym
from jedax.tasks.playground.task import Playground

FOLDER = "replay"
"""Where in a run's directory pictures go."""


def replay(
    run: Run | str | Path,
    *,
    cell: tuple[float, ...] | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
) -> Replay:
    """Let one solution of a run act again, and draw it.

    Args:
        run: A run, or its directory.
        cell: A descriptor; the solution of the cell it lies in; None: the best solution.
        seed: That of the replica to take it from; None: the replica that found the best solution.
        out: Folder for what is written; None: `replay/` in the run's directory.

    Raises:
        JedaxError: No such run, replica or cell, a task whose solutions cannot be watched, or no folder to write to.
    """
    run = run if isinstance(run, Run) else load(run)
    replica = _replica(run, seed)
    solution = run.best(replica) if cell is None else in_cell(run, replica, cell)
    name = "best" if cell is None else "cell-" + "-".join(f"{number:g}" for number in cell)
    name += "" if seed is None else f"-seed{seed}"
    folder = _folder(run, out)
    if isinstance(run.task, ControlTask):
        from jedax.report.replay_control import show

        return show(run.task, solution, folder, name)
    if isinstance(run.task, Gym | Playground):
        from jedax.report.replay_environment import show as show_episode

        return show_episode(run.task, solution, folder, name)
    if isinstance(run.task, Maze):
        from jedax.report.replay_maze import show as show_maze

        return show_maze(run.task, solution, run.config.run.seed + replica, folder, name)
    if hasattr(run.task, "draw"):
        return _drawn(run.task, solution, folder, name)
    raise fail(
        "replay",
        expected="a run on a maze, a robot or another environment, or a task with a method draw(ax, genotype)",
        received=f"one on {run.task.name}",
        remedy="give its class that method, or see figures/best.png in its directory",
    )


def _drawn(task: Task, solution: Solution, folder: Path, name: str) -> Replay:
    """Write what the task itself draws of a solution, as PNG."""
    figure, ax = plt.subplots(figsize=(4.6, 4.6), layout="constrained")
    plots.drawn_by_task(ax, task, solution.genotype)
    ax.set_title(f"{task.name}: fitness {solution.fitness:.2f}", fontsize=10)
    return Replay(solution, solution.fitness, (write_picture(folder / f"{name}.png", figure),))


def _replica(run: Run, seed: int | None) -> int:
    first, number = run.config.run.seed, run.config.run.replicas
    if seed is None:
        return run.best_replica
    if not first <= seed < first + number:
        raise fail(
            "seed",
            expected=f"one of this run's, {first}" + (f" to {first + number - 1}" if number > 1 else ""),
            received=seed,
            remedy="change it or leave it out",
        )
    return seed - first


def in_cell(run: Run, replica: int, descriptor: tuple[float, ...]) -> Solution:
    """Return the solution of the cell that a descriptor lies in.

    Raises:
        JedaxError: The cell is empty, or the descriptor has another length than the task's.
    """
    if len(descriptor) != run.task.num_descriptors:
        raise fail(
            "cell",
            expected=f"{run.task.num_descriptors} numbers, a descriptor of {run.task.name}",
            received=" ".join(f"{number:g}" for number in descriptor),
            remedy="give one number for each axis of figures/repertoire.png",
        )
    stored = run.repertoire
    index = int(run.cells.assign(jnp.asarray(descriptor, jnp.float32)[None])[0])
    fitness, descriptors = np.asarray(stored.fitness[replica]), np.asarray(stored.descriptors[replica])
    if not np.isfinite(fitness[index]):
        distance = np.linalg.norm(descriptors - np.asarray(descriptor), axis=1)
        nearest = descriptors[np.argmin(np.where(np.isfinite(fitness), distance, np.inf))]
        raise fail(
            "cell",
            expected="a cell that holds a solution",
            received=f"an empty one at {' '.join(f'{number:g}' for number in descriptor)}",
            remedy=f"the nearest solution is at {' '.join(f'{number:.4g}' for number in nearest)}",
        )
    genotype = np.asarray(stored.genotypes[replica, index], np.float32)
    return Solution(genotype, float(fitness[index]), descriptors[index])


def _folder(run: Run, out: str | Path | None) -> Path:
    if out is None and run.path is None:
        raise fail("out", expected="a folder", received="none for a run without a directory", remedy="give one")
    folder = Path(out) if out is not None else Path(run.path or "") / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise fail(
            "out",
            expected="a folder that can be written",
            received=f"{folder} ({error.strerror})",
            remedy="choose another with --out",
        ) from None
    return folder
