"""Run a grid: every method on every task with every seed, nothing twice; see `jedax.bench.cells`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jedax.bench.cells import Cell, Job, cells_of, error_file, left_to_do, parts_of
from jedax.bench.grids import Grid
from jedax.bench.progress import BenchProgress
from jedax.errors import check_choice
from jedax.search import engines
from jedax.search.engines import Engine, LocalEngine
from jedax.search.progress import Progress
from jedax.search.tracking import Tracker
from jedax.search.tracking import make as make_tracking
from jedax.store.config import FullConfig
from jedax.store.files import write_atomic


@dataclass(frozen=True)
class Outcome:
    """What a bench came to.

    Attributes:
        done: Runs that finished now.
        before: Seeds that had finished before.
        failed: The runs that failed, with their errors.
        elsewhere: Runs that another process works on, or has finished meanwhile; they were left to it.
    """

    done: int
    before: int
    failed: tuple[tuple[Path, str], ...]
    elsewhere: tuple[Path, ...] = ()


def bench(
    grid: Grid,
    out: str | Path,
    *,
    progress: BenchProgress | None = None,
    figures: str | None = None,
    track: Sequence[str | Tracker] = (),
    engine: Engine | None = None,
    only: Sequence[str] = (),
) -> Outcome:
    """Run what a grid asks for and `out` does not hold yet.

    Several processes may share `out`: a run that another one works on is left to it.

    Args:
        grid: Tasks, methods, seeds, budget.
        out: The directory of all its runs; seeds, methods and tasks can be added later.
        progress: What shows how far it is; None: nothing does.
        figures: `module:function` that draws the figures of each run; None: no figures.
        track: Trackers that follow each run, as in `jedax.run`; with an engine elsewhere by name.
        engine: Where runs are done; None: one after the other in this process.
        only: The cells to run, each as its folder within `out`; none: all.

    Returns:
        What was done; a run that failed left its error beside its directory and did not stop the others.

    Raises:
        JedaxError: A task, method or cell that does not exist, or a directory that holds the same cell with other
            settings; nothing has run then.
        Interrupted: Ctrl-C or SIGTERM; all that was done is saved, and the same call goes on.
    """
    shown, engine = progress or BenchProgress(None), engine or LocalEngine()
    make_tracking(track, Path(out))  # what does not fit shows before anything is run
    jobs: list[Job] = []
    before = 0
    for cell in chosen_cells(grid, Path(out), engine, only):
        to_do, done = left_to_do(cell, grid.seeds)
        jobs += to_do
        before += len(done)
    configs: dict[Path, FullConfig] = {}

    def follow(job: engines.Job) -> Progress:
        return shown.run(job.name, configs[job.path])

    def parts():
        for job in jobs:
            for part in parts_of(job, engine.memory()):
                configs[part.path] = part.config
                yield part.job(figures, track)

    failed: list[tuple[Path, str]] = []
    elsewhere: list[Path] = []
    done = 0
    shown.begin(sum(job.config.run.evaluations * job.config.run.replicas for job in jobs), len(jobs), before)
    try:
        for job, failure in engine.run_jobs(parts(), follow):
            note = error_file(job.path)
            if failure is None:
                note.unlink(missing_ok=True)
                done += 1
            elif failure.taken_by_another_process:
                shown.note(f"{job.name} is left to another process. {failure.message}")
                elsewhere.append(job.path)
            else:
                note.parent.mkdir(parents=True, exist_ok=True)
                write_atomic(note, f"{failure.message}\n\n{failure.details}")
                shown.note(f"{job.name} failed: {failure.message}")
                failed.append((job.path, failure.message))
    finally:
        shown.close()
    return Outcome(done, before, tuple(failed), tuple(elsewhere))


def chosen_cells(grid: Grid, out: Path, engine: Engine, only: Sequence[str] = ()) -> list[Cell]:
    """Return the cells of a grid, or those of them that are named.

    Raises:
        JedaxError: As `cells_of`, or there is no cell of that name.
    """
    cells = {cell.place: cell for cell in cells_of(grid, out, engine)}
    chosen = {check_choice("cells", place, cells) for place in only}
    return [cell for place, cell in cells.items() if not chosen or place in chosen]
