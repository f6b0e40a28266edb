"""Run a grid: every method on every task with every seed, each once; see `jedax.bench.trials`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jedax.bench.grids import Grid
from jedax.bench.progress import BenchProgress
from jedax.bench.trials import TrialRun, error_file, left_to_do, parts_of, trials_of
from jedax.errors import check_choice
from jedax.search.engines import Engine, Job, LocalEngine
from jedax.search.progress import Progress
from jedax.search.tracking import Tracker
from jedax.search.tracking import make as make_tracking
from jedax.store.config import FullConfig
from jedax.store.files import write_atomic


@dataclass(frozen=True)
class Outcome:
    """The outcome of a bench.

    Attributes:
        done: Number of runs that were finished now.
        before: Number of seeds that were done before.
        failed: The runs that failed, with their errors.
        elsewhere: Runs that another process works on, or has finished meanwhile.
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

    Several processes may share `out`: a run that another process works on is skipped.

    Args:
        grid: Tasks, methods, seeds, budget.
        out: Directory of all runs; seeds, methods and tasks can be added later.
        progress: Shows the progress; None: nothing is shown.
        figures: `module:function` that draws the figures of each run; None: no figures.
        track: Trackers that follow each run, as in `jedax.run`; with an engine on other machines by name.
        engine: Where runs are done; None: one after the other in this process.
        only: The trials to run, each as its folder within `out`, TASK/LABEL; empty: all.

    Returns:
        What was done. A run that failed has left its error beside its directory and did not stop the others.

    Raises:
        JedaxError: An unknown task, method or trial, or a directory that holds the same trial with other settings;
            nothing has run then.
        Interrupted: Ctrl-C or SIGTERM; everything done is saved, and the same call continues.
    """
    shown, engine = progress or BenchProgress(None), engine or LocalEngine()
    make_tracking(track, Path(out))  # raises for unknown trackers before anything runs
    left = [left_to_do(trial) for trial in chosen_trials(grid, Path(out), engine, only)]
    runs, before = [run for to_do, _ in left for run in to_do], sum(len(done) for _, done in left)
    configs: dict[Path, FullConfig] = {}

    def jobs() -> Iterator[Job]:
        for run in runs:
            for part in parts_of(run, engine.memory()):
                configs[part.path] = part.config
                yield part.job(figures, track)

    def follow(job: Job) -> Progress:
        return shown.run(job.name, configs[job.path].run.replicas)

    failed: list[tuple[Path, str]] = []
    elsewhere: list[Path] = []
    done = 0
    shown.begin(sum(run.config.run.evaluations * run.config.run.replicas for run in runs), len(runs), before)
    try:
        for job, failure in engine.run_jobs(jobs(), follow):
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


def chosen_trials(grid: Grid, out: Path, engine: Engine, only: Sequence[str] = ()) -> list[TrialRun]:
    """Return the trials of a grid, or those at some places TASK/LABEL, each as the run of all its seeds.

    Raises:
        JedaxError: As `trials_of`, or an unknown trial.
    """
    trials = trials_of(grid, out, engine)
    chosen = {check_choice("trials", place, trials) for place in only}
    return [trial for place, trial in trials.items() if not chosen or place in chosen]
