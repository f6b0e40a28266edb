"""What is kept of the runs of a grid: its tables and figures, and where they come from."""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Container, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas
from PIL import Image
from scipy.stats import kruskal

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from jedax.bench.bench import BenchProgress, bench
from jedax.bench.comparison import Comparison, compare_records
from jedax.bench.grids import Grid
from jedax.bench.reading import Record, Records, read
from jedax.report import tables
from jedax.report.comparisons import write_comparison
from jedax.search.compiled import keep_compiled_programs
from jedax.store import environment
from jedax.store.files import write_atomic, write_json
from jedax.store.lock import Lock, LockedError

HERE = Path(__file__).parent
_MOST_BYTES = 150_000  # of a picture
_POINTS = 100  # of a curve


def parser(names: Iterable[str]) -> argparse.ArgumentParser:
    """Return what reads a script's arguments: where runs lie, and which of the grids with these names to do."""
    found = argparse.ArgumentParser()
    found.add_argument("--runs", type=Path, default=Path("runs/results"))
    found.add_argument("--only", nargs="+", choices=names, default=list(names))
    found.add_argument("--report", action="store_true", help="run nothing, only write tables and figures anew")
    return found


def clean_revision(*ignored: str) -> str:
    """Return the revision that each row of results names; ends the script if files have changed that are not ignored.

    Args:
        ignored: Patterns of git for files of which changes do not count.
    """
    command = ["git", "-C", str(HERE.parent), "status", "--porcelain", "--untracked-files=no", "--", "."]
    command += [f":!{pattern}" for pattern in ignored]
    if subprocess.run(command, capture_output=True, text=True, check=True).stdout:
        sys.exit("expected a checkout without changes, since each row names its revision; commit them first")
    return revision()


def revision() -> str:
    """Return the revision of the checkout, whether it has changes or not."""
    return str(environment.describe()["git_revision"]).removesuffix("-dirty")


def add_rows(path: Path, keys: Iterable[dict[str, Any]], search: Callable[..., dict[str, Any]]) -> pandas.DataFrame:
    """Add to a CSV file the rows that it lacks, each when it is done, and return all rows.

    The file environment.json beside it tells the versions and the machine of the last rows. Several processes may add
    rows to one file; a row that two of them have made is added once, and a search that another one is at is left to
    that one. Changes of pages and in the file's folder need not
    be committed before.

    Args:
        path: The file; its folder is made.
        keys: The columns that tell a row from the others.
        search: Returns the other columns of the row with a key, given as keyword arguments.
    """
    of_rows = clean_revision("*.md", os.path.relpath(path.parent, HERE.parent))
    keep_compiled_programs()
    path.parent.mkdir(parents=True, exist_ok=True)
    for key in keys:
        if has_row(path, key):
            continue
        try:
            row = {**key, **search(**key), "revision": of_rows}
        except LockedError as error:
            print(error, flush=True)
            continue
        with Lock(path.parent, patience=60):
            if has_row(path, key):  # by now, from another process
                continue
            write_atomic(path, pandas.DataFrame([*rows_of(path), row]).to_csv(index=False))
            write_json(path.parent / "environment.json", {**environment.describe(), "git_revision": of_rows})
            print(*(value for value in row.values() if len(str(value)) < 60), flush=True)
    return pandas.DataFrame(rows_of(path))


def has_row(path: Path, key: dict[str, Any]) -> bool:
    """Return whether a CSV file has a row with some values."""
    return any(key.items() <= row.items() for row in rows_of(path))


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a CSV file; none if there is no such file."""
    return pandas.read_csv(path).to_dict("records") if path.exists() else []  # type: ignore[return-value]


def of_revisions(rows: pandas.DataFrame) -> str:
    """Return a sentence that tells which revisions of jedax rows are from, or how many."""
    found = sorted(set(rows.revision.str[:12]))
    return f"All rows are from revision {found[0]}." if len(found) == 1 else f"Rows are from {len(found)} revisions."


def run(grid: Grid, runs: Path) -> None:
    """Run what is left of a grid, from a checkout without changes."""
    clean_revision()
    keep_compiled_programs()
    outcome = bench(grid, runs, progress=BenchProgress(sys.stderr))
    for path, message in outcome.failed:
        print(f"failed: {path}: {message}")


def keep(
    runs: Path,
    folder: Path,
    command: str,
    *,
    reference: str | None = None,
    maps: Iterable[str] = (),
    mapped: Sequence[str] | None = None,
    figures: bool = True,
) -> Comparison:
    """Compare the runs of a grid, together with what `folder` has kept of others, and keep what is worth keeping.

    A trial (a method on a task) of which there are no runs stays what it was, so a grid can be run in parts, and tables
    and figures can be made without any run.

    Args:
        runs: Where they are.
        folder: Where tables and figures go.
        command: What makes all of it again.
        reference: Label of the method that others are tested against; None: the better JEDi.
        maps: Tasks whose maps of cells are kept, in a small size; the comparison draws those of all tasks.
        mapped: Labels whose cells are drawn; None: the reference and the best others.
        figures: Whether any other figure is kept.
    """
    new = read([runs]).records if any(runs.rglob("summary.json")) else ()
    others = stored(folder, {(record.task, record.label) for record in new})
    records = sorted([*new, *others], key=lambda r: (r.task, r.label, r.seed))
    if not records:
        sys.exit(f"expected finished runs in {runs} or results in {folder}, found none")
    found = compare_records(Records(tuple(records), {}), reference=reference)
    write_comparison(found, runs / "compare", formats=("png",), cells=mapped)
    seeds = _with_origins(pandas.read_csv(runs / "compare" / "seeds.csv", dtype=str), found, runs, folder)
    folder.mkdir(parents=True, exist_ok=True)
    for file in ("table.csv", "reached.csv", "table.tex"):
        rows = len((runs / "compare" / file).read_text().splitlines()) - file.endswith(".csv")
        if rows > 0:  # no task with a goal: nothing is reached
            shutil.copyfile(runs / "compare" / file, folder / file)
    write_atomic(folder / "seeds.csv", seeds.to_csv(index=False))
    write_atomic(folder / "curves.csv", curves(records))
    drawn, kept = sorted((runs / "compare" / "figures").glob("*.png")), {f"cells-{task}" for task in maps}
    pictures = [one for one in drawn if one.stem in kept or (figures and not one.stem.startswith("cells-"))]
    if pictures:
        (folder / "figures").mkdir(exist_ok=True)
    for picture in pictures:
        write_small(picture, folder / "figures" / picture.name)
    shown = sorted((folder / "figures").glob("*.png")) if pictures else []
    shown = [f"figures/{one.name}" for one in shown if one.stem in kept | {picture.stem for picture in pictures}]
    write_atomic(folder / "table.md", tables.markdown(found, shown).partition("\n## Sources")[0].rstrip() + "\n")
    hours = seeds.hours.astype(float).groupby(seeds.label).sum()
    write_json(folder / "environment.json", {
        **_environment(runs, folder / "environment.json"),
        "command": command,
        "revisions": sorted(set(seeds.revision)),
        "runs": int(seeds.source.nunique()),
        "evaluations": int(sum(record.curve.index[-1] for record in records)),
        "hours": round(float(hours.sum()), 2),
        "hours_by_method": {str(label): round(value, 3) for label, value in hours.items()},
    })  # fmt: skip
    return found


def stored(folder: Path, known: Container[tuple[str, str]] = ()) -> list[Record]:
    """Return the results that a folder has kept, without those of known tasks and labels."""
    if not (folder / "seeds.csv").exists():
        return []
    if not (folder / "curves.csv").exists():
        sys.exit(f"expected the curves of the seeds in {folder}, got none; remove its CSV files to make all anew")
    key = ["task", "label", "seed"]
    reached = folder / "reached.csv"
    arrivals = pandas.read_csv(reached).set_index([*key, "fitness"]).evaluations.to_dict() if reached.exists() else {}
    trials = pandas.read_csv(folder / "table.csv").set_index(["task", "label"])[["budget", "goal"]]
    reports = dict(iter(pandas.read_csv(folder / "curves.csv").groupby(["task", "method", "seed"])))
    found = []
    for row in pandas.read_csv(folder / "seeds.csv").itertuples():
        task, label, seed = str(row.task), str(row.label), int(row.seed)
        if (task, label) in known:
            continue
        curve = reports[task, label, seed].set_index("evaluations")[["max_fitness", "coverage"]]
        curve.iloc[-1] = row.final_fitness, row.coverage  # in full precision
        budget, goal = trials.loc[(task, label)]
        found.append(Record(
            label=label, method=row.method, task=task, seed=seed, curve=curve, source=Path(row.source),
            budget=int(budget), goal=None if np.isnan(goal) else goal, replica=row.replica,
            goal_evaluations=arrivals.get((task, label, seed, goal)),
        ))  # fmt: skip
    return found


def _with_origins(seeds: pandas.DataFrame, found: Comparison, runs: Path, folder: Path) -> pandas.DataFrame:
    """Return the rows of seeds with the method, the hours and the revision of each."""
    origins: dict[str, dict[str, Any]] = {}
    if (folder / "seeds.csv").exists():
        before = pandas.read_csv(folder / "seeds.csv", dtype=str)
        origins = before.drop_duplicates("source").set_index("source")[["hours", "revision"]].to_dict("index")
    for path in runs.rglob("summary.json"):
        summary = json.loads(path.read_text())
        revision = json.loads(path.with_name("environment.json").read_text())["git_revision"]
        hours = f"{summary['wall_seconds'] / summary['replicas'] / 3600:.3g}"
        origins[str(path.parent)] = {"hours": hours, "revision": revision}
    names = {record.label: record.method for record in found.records.records}
    seeds.insert(2, "method", seeds.label.map(names))
    for column in ("hours", "revision"):
        seeds[column] = [origins[source][column] for source in seeds["source"]]
    seeds["source"] = seeds["source"].str.replace(f"{runs}/", f"runs/results/{runs.name}/", regex=False)
    return seeds


def _environment(runs: Path, before: Path) -> dict[str, Any]:
    """Return versions and machine of the first of the runs; without runs those that were kept."""
    found = [json.loads(path.read_text()) for path in runs.rglob("environment.json")]
    first = min(found or [json.loads(before.read_text())], key=lambda one: one["started"])
    return {key: value for key, value in first.items() if key not in ("command", "task", "node", "devices_used")}


def curves(records: Iterable[Record]) -> str:
    """Return the curves of all seeds in at most `_POINTS` points each, as a CSV file that `jedax compare` reads.

    The points are as dense at the beginning, where most happens, as the reports of the runs allow.
    """
    parts = []
    for record in records:
        last = len(record.curve) - 1
        early = np.geomspace(1, last + 1, _POINTS // 2).round().astype(int) - 1
        rows = np.unique([*early, *np.linspace(0, last, _POINTS - len(early)).round().astype(int)])
        rows = rows if last >= _POINTS else np.arange(last + 1)
        thin = record.curve.iloc[rows][["max_fitness", "coverage"]].reset_index().astype({"evaluations": int})
        names = {"method": record.label, "task": record.task, "seed": record.seed}
        parts.append(thin.assign(**names)[[*names, "evaluations", "max_fitness", "coverage"]])
    return pandas.concat(parts).to_csv(index=False, float_format="%.6g")


def write_small(picture: Path | Figure, path: Path) -> None:
    """Write a picture or a figure with so few colours, at most 256, and so narrow that it takes at most 150 kB.

    A figure is closed.
    """
    if isinstance(picture, Figure):
        drawn = io.BytesIO()
        picture.savefig(drawn, dpi="figure")
        plt.close(picture)
    else:
        drawn = picture
    with Image.open(drawn) as image:
        whole = image.convert("RGB")
    for width, colours in product(range(1600, 200, -100), (256, 128)):
        buffer, width = io.BytesIO(), min(width, whole.width)
        small = whole.resize((width, round(whole.height * width / whole.width)), Image.Resampling.LANCZOS)
        small.quantize(colours, Image.Quantize.MAXCOVERAGE, kmeans=3).save(buffer, "PNG", optimize=True)
        if buffer.tell() <= _MOST_BYTES:
            break
    write_atomic(path, buffer.getvalue())


def cross(found: Comparison, values: dict[tuple[str, str], str]) -> str:
    """Return values by method and task as a table, the more of the two as its rows."""
    tasks = [table.task for table in found.tables]
    rows, columns, of = found.labels, tasks, (lambda row, column: (row, column))
    if len(tasks) > len(found.labels):
        rows, columns, of = tasks, found.labels, (lambda row, column: (column, row))
    lines = [f"| | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    lines += [f"| {row} | {' | '.join(values.get(of(row, column), '') for column in columns)} |" for row in rows]
    return "\n".join(lines) + "\n"


def differences(found: Comparison) -> str:
    """Return p of the test of Kruskal and Wallis on each task, whether the methods differ at all."""
    each = {table.task: [entry.final for entry in table.entries] for table in found.tables}
    ps = ", ".join(
        f"p = {float(kruskal(*final).pvalue):.2g} on {task}" for task, final in each.items() if len(final) > 1
    )
    return f"Do they differ at all? Kruskal-Wallis tests: {ps}.\n"


def fill_in(page: Path, name: str, text: str) -> None:
    """Replace what stands on a page between the marks `<!-- begin name -->` and `<!-- end name -->`."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(f"<!-- begin {name} -->\n")
    _, end, after = rest.partition(f"<!-- end {name} -->")
    assert begin, f"{page} has no place for {name}"
    assert end, f"{page}: the place for {name} has no end"
    write_atomic(page, before + begin + text + end + after)
