"""What one solution of a run does, as a picture, a film and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from jedax.errors import fail
from jedax.report.numbers import agrees, decimals_for, fitness_text
from jedax.report.pictures import write_arrays, write_film, write_picture, writing
from jedax.store.run import Run, Solution, opened
from jedax.tasks.base import Task
from jedax.tasks.drawing import drawing_of


class Replay(NamedTuple):
    """A solution as the run recorded it, its fitness in the replay, the files written, and remarks for the user."""

    solution: Solution
    fitness: float
    files: tuple[Path, ...]
    remarks: tuple[str, ...]


def replay(
    run: Run | str | Path, *, cell: tuple[float, ...] | None = None, seed: int | None = None,
    out: str | Path | None = None, task: Task | None = None, trust: bool = False,
) -> Replay:  # fmt: skip
    """Let the best solution of a run, or that of the cell that holds the descriptor `cell`, act again, and draw it.

    `seed` names a replica; None: the one with the best solution. `out` is a folder; None: `replay/` of the run. `task`
    and `trust` as in `jedax.resume`.
    """
    run = opened(run, task, trust=trust)
    run.check_code()
    replica = _replica(run, seed)
    solution = run.best(replica) if cell is None else in_cell(run, replica, cell)
    name = "best" if cell is None else "cell-" + "-".join(f"{number:g}" for number in cell)
    name += "" if seed is None else f"-seed{seed}"
    if out is None and run.path is None:
        raise fail("out", expected="a folder", received="none for a run without a directory", remedy="give one")
    folder = Path(out) if out is not None else Path(run.path or "") / "replay"
    with writing("a folder", folder):
        folder.mkdir(parents=True, exist_ok=True)
    drawing = drawing_of(run.task)
    recording = drawing.replay(solution.genotype, solution.fitness, run.config.run.seed + replica)
    if recording is None:
        expected = "a task that draws its solutions, such as a maze, a robot or a class with draw(ax, genotype)"
        remedy = "give its class that method, or see figures/best.png in the run's directory"
        raise fail("replay", expected=expected, received=run.task.name, remedy=remedy)
    film, numbers = folder / f"{name}.gif", folder / f"{name}.npz"
    for stale in (film, numbers):
        stale.unlink(missing_ok=True)
    files = [write_picture(folder / f"{name}.png", recording.figure)]
    if recording.frames:
        files.append(write_film(film, recording.frames, recording.seconds))
    if recording.arrays:
        files.append(write_arrays(numbers, recording.arrays))
    remarks = recording.remarks
    if not agrees(recording.fitness, solution.fitness, run.repertoire.fitness):
        recorded = fitness_text(solution.fitness, decimals_for([solution.fitness, recording.fitness]))
        remarks += (f"the run recorded fitness {recorded}: {drawing.why_different}",)
    return Replay(solution, recording.fitness, tuple(files), remarks)


def _replica(run: Run, seed: int | None) -> int:
    first, number = run.config.run.seed, run.config.run.replicas
    if seed is None:
        return run.best_replica
    if not first <= seed < first + number:
        expected = f"one of this run's, {first}" + (f" to {first + number - 1}" if number > 1 else "")
        raise fail("seed", expected=expected, received=seed, remedy="change it or leave it out")
    return seed - first


def in_cell(run: Run, replica: int, descriptor: tuple[float, ...]) -> Solution:
    """Return the solution of the cell that a descriptor lies in."""
    given = " ".join(f"{number:g}" for number in descriptor)
    if len(descriptor) != run.task.num_descriptors:
        expected = f"{run.task.num_descriptors} numbers, a descriptor of {run.task.name}"
        remedy = "give one number for each axis of figures/repertoire.png"
        raise fail("cell", expected=expected, received=given, remedy=remedy)
    stored = run.repertoire
    fitness, descriptors = np.asarray(stored.fitness[replica]), np.asarray(stored.descriptors[replica])
    index = int(run.cells.assign_on_host(np.asarray(descriptor, descriptors.dtype)))
    if not np.isfinite(fitness[index]):
        distance = np.linalg.norm((descriptors - np.asarray(descriptor)) / run.cells.widths, axis=1)
        nearest = descriptors[np.argmin(np.where(np.isfinite(fitness), distance, np.inf))]
        received = f"an empty one at {given}"
        remedy = f"the nearest solution is at {' '.join(f'{number:.4g}' for number in nearest)}"
        raise fail("cell", expected="a cell that holds a solution", received=received, remedy=remedy)
    genotype = np.asarray(stored.genotypes[replica, index]).astype(np.asarray(stored.best_genotype).dtype)
    return Solution(genotype, float(fitness[index]), descriptors[index])
