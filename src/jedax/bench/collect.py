"""Finished runs of a bench, copied into one directory from those that several machines wrote to."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jedax.bench.trials import is_finished, seeds_of
from jedax.errors import JedaxError, fail
from jedax.store.directory import RunDirectory, runs_below
from jedax.store.files import replacing
from jedax.store.guard import check_no_links
from jedax.store.lock import Lock

_RUN = re.compile(r"seeds-\d+-\d+")


@dataclass(frozen=True)
class Collected:
    """The outcome of `collect`; runs by their place within the bench, TASK/LABEL/seeds-FIRST-LAST."""

    copied: tuple[str, ...]
    before: tuple[str, ...]  # were there before
    unfinished: tuple[Path, ...]  # directories that were not copied because their runs have not ended


def collect(sources: Sequence[str | Path], out: str | Path) -> Collected:
    """Copy the finished runs below some directories to their places in the bench `out`, whose finished runs stay.

    Raises:
        JedaxError: No runs, a run that cannot be copied, or runs of one trial whose settings differ or that share a
            seed; in this last case nothing has been copied.
    """
    out = Path(out)
    held = [run for run in _bench_runs(out) if is_finished(run)]
    finished, unfinished = list(held), []
    for source in map(Path, sources):
        runs = _bench_runs(source)
        if not runs:
            expected, received = "directories with runs of a bench", f"none below {source}"
            raise fail(
                "collect", expected=expected, received=received, remedy="name the --out of the commands that ran"
            )
        for run in runs:
            (finished if is_finished(run) else unfinished).append(run)
    _check_together(finished)
    found: dict[str, Path] = {}
    for run in finished:
        found.setdefault(place_of(run), run)
    before = tuple(map(place_of, held))
    new = tuple(place for place in found if place not in before)
    for place in new:
        _copy(found[place], check_no_links(out, *place.split("/")))
    return Collected(new, before, tuple(run for run in unfinished if place_of(run) not in found))


def _bench_runs(folder: Path) -> list[Path]:
    return [run for run in runs_below(folder) if _RUN.fullmatch(run.name)]


def place_of(run: Path) -> str:
    """Return the place of a run within its bench, TASK/LABEL/seeds-FIRST-LAST."""
    return "/".join(run.absolute().parts[-3:])


def _check_together(runs: Iterable[Path]) -> None:
    """Raise an error for runs of one trial, or copies of one run, that differ, and for a seed in two places."""
    first: dict[object, tuple[object, Path]] = {}
    for run in runs:
        config, place = RunDirectory.open(run).read_config(), place_of(run)
        trial, seeds = place.rpartition("/")[0], seeds_of(config)
        settings = config.model_dump(exclude={"run": {"seed", "replicas"}})
        for what, value in ((trial, settings), (place, seeds)):
            theirs, other = first.setdefault(what, (value, run))
            if value != theirs:
                raise _conflict("the same settings", f"{other} and {run}")
        for seed in seeds:
            theirs, other = first.setdefault((trial, seed), (place, run))
            if place != theirs:
                raise _conflict("each seed once", f"seed {seed} in {other} and in {run}")


def _conflict(expected: str, received: str) -> JedaxError:
    expected = f"runs of a trial with {expected}"
    return fail("collect", expected=expected, received=received, remedy="leave one of them out")


def _copy(run: Path, target: Path) -> None:
    """Copy a run; readers see the target's old state or the whole new one. Symbolic links are left out."""
    try:
        # An error if another process writes there.
        with Lock(target) if target.is_dir() else contextlib.nullcontext(), replacing(target) as arriving:
            shutil.copytree(run, arriving, ignore=lambda at, names: [n for n in names if (Path(at) / n).is_symlink()])
    except OSError as error:
        expected = "a directory that can be written"
        raise fail(str(target), expected=expected, received=error, remedy="give the same command again") from None
