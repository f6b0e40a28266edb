"""Finished runs of a bench, copied into one directory from those that several machines wrote to."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jedax.bench.trials import is_finished, seeds_of
from jedax.errors import JedaxError, fail
from jedax.store.directory import RunDirectory

_RUN = re.compile(r"seeds-\d+-\d+")


@dataclass(frozen=True)
class Collected:
    """The outcome of `collect`.

    Attributes:
        copied: Runs that were copied, each as its place within the bench, TASK/LABEL/seeds-FIRST-LAST.
        before: Runs that were there before.
        unfinished: Directories of runs that were not copied because they have not ended.
    """

    copied: tuple[str, ...]
    before: tuple[str, ...]
    unfinished: tuple[Path, ...]


def collect(sources: Sequence[str | Path], out: str | Path) -> Collected:
    """Copy the finished runs below some directories to their places in one bench.

    Args:
        sources: Directories that hold benches, at any depth.
        out: Directory of the bench; its finished runs stay as they are.

    Raises:
        JedaxError: No runs, a run that cannot be copied, or runs of one trial whose settings differ or that share a
            seed; in this last case nothing has been copied.
    """
    out = Path(out)
    held = {_place(run): run for run in _runs_below(out) if is_finished(run)}
    found, unfinished = dict(held), []
    for source in map(Path, sources):
        runs = _runs_below(source)
        if not runs:
            raise fail(
                "collect",
                expected="directories with runs of a bench",
                received=f"none below {source}",
                remedy="name the --out of the commands that ran",
            )
        for run in runs:
            if is_finished(run):
                _add(run, found)
            else:
                unfinished.append(run)
    new = [place for place in found if place not in held]
    for place in new:
        _copy(found[place], out / place)
    return Collected(tuple(new), tuple(held), tuple(run for run in unfinished if _place(run) not in found))


def _runs_below(folder: Path) -> list[Path]:
    """Return the directories of runs of benches, in order."""
    runs = (path.parent for path in folder.rglob("config.yaml") if _RUN.fullmatch(path.parent.name))
    return sorted(run for run in runs if not any(part.startswith(".") for part in run.relative_to(folder).parts))


def _place(run: Path) -> str:
    return "/".join(run.absolute().parts[-3:])


def _add(run: Path, found: dict[str, Path]) -> None:
    """Add a run under its place, unless it is there; raise a `JedaxError` if it does not fit the runs of its trial."""
    place, config = _place(run), RunDirectory.open(run).read_config()
    for other_place, other in found.items():
        if Path(other_place).parent != Path(place).parent:
            continue
        theirs = RunDirectory.open(other).read_config()
        seeds = set() if place == other_place else {"seed", "replicas"}
        ours, others = (one.model_dump(exclude={"run": seeds}) for one in (config, theirs))
        if ours != others:
            raise _conflict("the same settings", f"{other} and {run}")
        shared = set(seeds_of(config)).intersection(seeds_of(theirs))
        if shared and place != other_place:
            raise _conflict("each seed once", f"seed {min(shared)} in {other} and in {run}")
    found.setdefault(place, run)


def _conflict(expected: str, received: str) -> JedaxError:
    expected = f"runs of a trial with {expected}"
    return fail("collect", expected=expected, received=received, remedy="leave one of them out")


def _copy(run: Path, target: Path) -> None:
    """Copy a run; readers see the target's old state or the whole new one. Symbolic links are left out."""
    arriving = target.with_name(f".{target.name}.arriving")
    shutil.rmtree(arriving, ignore_errors=True)
    try:
        shutil.copytree(run, arriving, ignore=lambda at, names: [n for n in names if (Path(at) / n).is_symlink()])
        shutil.rmtree(target, ignore_errors=True)
        arriving.rename(target)
    except OSError as error:
        shutil.rmtree(arriving, ignore_errors=True)
        expected = "a directory that can be written"
        raise fail(str(target), expected=expected, received=error, remedy="give the same command again") from None
