"""Finished runs of a bench, brought together from the directories that several machines wrote to."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jedax.bench.cells import is_finished, seeds_of
from jedax.errors import fail
from jedax.search.engines.transfer import read_files, write_files
from jedax.store.config import FullConfig
from jedax.store.directory import RunDirectory

_RUN = re.compile(r"seeds-\d+-\d+")


@dataclass(frozen=True)
class Collected:
    """What came together.

    Attributes:
        copied: Runs that are there now, each as its place within the bench, TASK/LABEL/seeds-FIRST-LAST.
        before: Those that were there before.
        unfinished: Directories of runs that were left where they are, for they have not ended.
    """

    copied: tuple[str, ...]
    before: tuple[str, ...]
    unfinished: tuple[Path, ...]


def collect(sources: Sequence[str | Path], out: str | Path) -> Collected:
    """Copy the finished runs below some directories to their places in one, in the layout of a bench.

    Args:
        sources: Directories that hold benches, at any depth.
        out: Where to; runs that are finished there stay as they are.

    Raises:
        JedaxError: No runs there; or runs of one cell that do not belong together, for their settings differ or a
            seed is there twice. Nothing has been copied then.
    """
    out = Path(out)
    held = {_place(path): path for path in _runs_below(out) if is_finished(path)} if out.is_dir() else {}
    found = dict(held)
    unfinished: list[Path] = []
    for source in map(Path, sources):
        paths = list(_runs_below(source))
        if not paths:
            raise fail(
                "collect",
                expected="directories with runs of a bench",
                received=f"none below {source}",
                remedy="name the --out of the commands that ran",
            )
        for path in paths:
            known = found.get(_place(path))
            if not is_finished(path):
                unfinished.append(path)
            elif known is None:
                found[_place(path)] = path
            elif known.resolve() != path.resolve():
                _check_together(known, path, same_seeds=True)
    _check_cells(found)
    new = [place for place in found if place not in held]
    for place in new:
        write_files(read_files(found[place]), out / place)
    return Collected(tuple(new), tuple(held), tuple(path for path in unfinished if _place(path) not in found))


def _runs_below(folder: Path) -> Iterator[Path]:
    """Return the directories of runs of benches, in order."""
    for name, folders, files in os.walk(folder):
        folders[:] = sorted(entry for entry in folders if not entry.startswith("."))
        if "config.yaml" in files and _RUN.fullmatch(Path(name).name):
            folders.clear()
            yield Path(name)


def _place(path: Path) -> str:
    return "/".join(path.absolute().parts[-3:])


def _check_cells(found: dict[str, Path]) -> None:
    """Raise a `JedaxError` where a cell has a seed twice, or other settings for some of its seeds."""
    cells: dict[str, list[Path]] = {}
    for place, path in found.items():
        cells.setdefault(place.rpartition("/")[0], []).append(path)
    for paths in cells.values():
        for earlier, later in itertools.pairwise(paths):
            _check_together(earlier, later)
        seeds: dict[int, Path] = {}
        for path in paths:
            for seed in seeds_of(_settings(path)):
                if seed in seeds:
                    raise fail(
                        "collect",
                        expected="each seed of a cell once",
                        received=f"seed {seed} in {seeds[seed]} and in {path}",
                        remedy="leave one of them out",
                    )
                seeds[seed] = path


def _check_together(one: Path, other: Path, same_seeds: bool = False) -> None:
    ours, theirs = _settings(one), _settings(other)
    if not same_seeds:
        theirs = theirs.replace(run=theirs.run.replace(seed=ours.run.seed, replicas=ours.run.replicas))
    if ours.dump() != theirs.dump():
        raise fail(
            "collect",
            expected="runs of a cell with the same settings",
            received=f"{one} and {other}",
            remedy="leave one of them out; see the config.yaml of both",
        )


def _settings(path: Path) -> FullConfig:
    return RunDirectory.open(path).read_config()
