"""Finished runs of a bench, copied into one directory from those that several machines wrote to."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jedax.bench.trials import is_finished, seeds_of
from jedax.errors import fail
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
    held = {_place(path): path for path in _runs_below(out) if is_finished(path)}
    found, unfinished = dict(held), []
    for source in map(Path, sources):
        paths = _runs_below(source)
        if not paths:
            raise fail(
                "collect",
                expected="directories with runs of a bench",
                received=f"none below {source}",
                remedy="name the --out of the commands that ran",
            )
        for path in paths:
            if not is_finished(path):
                unfinished.append(path)
                continue
            known = found.setdefault(_place(path), path)
            if known.resolve() != path.resolve() and _settings(known) != _settings(path):
                raise _conflict("the same settings", f"{known} and {path}")
    _check_trials(found)
    new = [place for place in found if place not in held]
    for place in new:
        _copy(found[place], out / place)
    return Collected(tuple(new), tuple(held), tuple(path for path in unfinished if _place(path) not in found))


def _runs_below(folder: Path) -> list[Path]:
    """Return the directories of runs of benches, in order."""
    runs = (path.parent for path in folder.rglob("config.yaml") if _RUN.fullmatch(path.parent.name))
    return sorted(run for run in runs if not any(part.startswith(".") for part in run.relative_to(folder).parts))


def _place(path: Path) -> str:
    return "/".join(path.absolute().parts[-3:])


def _check_trials(found: dict[str, Path]) -> None:
    """Raise a `JedaxError` if runs of a trial share a seed or differ in another setting."""
    known: dict[str, Path] = {}
    seeds: dict[tuple[str, int], Path] = {}
    for place, path in found.items():
        trial = place.rpartition("/")[0]
        first = known.setdefault(trial, path)
        if _settings(first, seeds=False) != _settings(path, seeds=False):
            raise _conflict("the same settings", f"{first} and {path}")
        for seed in seeds_of(RunDirectory.open(path).read_config()):
            other = seeds.setdefault((trial, seed), path)
            if other is not path:
                raise _conflict("each seed once", f"seed {seed} in {other} and in {path}")


def _conflict(expected: str, received: str) -> Exception:
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


def _settings(path: Path, *, seeds: bool = True) -> dict[str, Any]:
    left_out = {} if seeds else {"run": {"seed", "replicas"}}
    return RunDirectory.open(path).read_config().model_dump(exclude=left_out)
