"""`compare`: tables and figures of directories of runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from jedax.bench import comparison as experiments
from jedax.bench.comparison import Comparison
from jedax.bench.statistics import BANDS
from jedax.errors import check_choice, fail
from jedax.report import latex, tables
from jedax.report.comparison_figures import FORMATS, write_comparison_figures
from jedax.store.files import write_atomic


def compare(
    directories: str | Path | Iterable[str | Path],
    *,
    out: str | Path | None = None,
    reference: str | None = None,
    band: str = "quartiles",
    fitness: Sequence[float] = (),
    formats: Sequence[str] = FORMATS,
    cells: Sequence[str] | None = None,
) -> Comparison:
    """Compare all runs below some directories, and write tables and figures; nothing is run.

    Example:
        `jedax.compare("bench").tables[0].entries`

    Args:
        directories: Directories, searched with everything below them, and CSV files of other programs (see
            `jedax.bench.reading.read_csv`).
        out: Where to write; None: the folder `compare` in the first directory.
        reference: Label that all others are tested against; None: the best JEDi of each task.
        band: Around the median in figures: "quartiles", or "std" for one standard deviation as in the paper.
        fitness: Fitness values, besides the goal, for which the evaluations to reach them are counted.
        formats: Of the figures: "png", "pdf".
        cells: Labels whose cells are drawn; None: the reference and the best others, four in all.

    Returns:
        The comparison as data.

    Raises:
        JedaxError: No results, results that do not belong together, an unknown name, or a directory that cannot be
            written.
    """
    paths = [Path(path) for path in ([directories] if isinstance(directories, str | Path) else directories)]
    if not paths:
        raise fail("directories", expected="at least one", received="none", remedy="name the directory of a bench")
    check_choice("band", band, BANDS)
    for kind in formats:
        check_choice("formats", kind, FORMATS)
    found = experiments.compare(paths, reference=reference, fitness=fitness)
    for label in cells or ():
        check_choice("cells", label, found.labels)
    folder = folder_for(paths[0], out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        drawn = write_comparison_figures(found, folder / "figures", band=band, formats=formats, cells=cells)
        pictures = [path.relative_to(folder).as_posix() for path in drawn if path.suffix == ".png"]
        write_atomic(folder / "table.md", tables.markdown(found, pictures))
        write_atomic(folder / "table.csv", tables.summary_csv(found))
        write_atomic(folder / "seeds.csv", tables.seeds_csv(found))
        write_atomic(folder / "reached.csv", tables.reached_csv(found))
        write_atomic(folder / "table.tex", latex.latex(found))
    except OSError as error:
        received = f"{folder} ({error.strerror or error})"
        raise fail("out", expected="a directory that can be written", received=received, remedy="give --out") from None
    return found


def folder_for(first: Path, out: str | Path | None = None) -> Path:
    """Return where a comparison is written: `out`, else `compare` in the first directory or beside the first file."""
    if out is not None:
        return Path(out)
    return (first.parent if first.is_file() else first) / "compare"


def outcome(comparison: Comparison, folder: Path) -> str:
    """Return the text that the command line prints after a comparison was written to `folder`."""
    lines = [tables.plain_table(comparison), *comparison.notes]
    if left_out := comparison.records.left_out:
        lines.append(f"runs that have not ended, left out: {len(left_out)}; table.md lists them")
    return "\n".join([*lines, f"tables and figures are in {folder}: see {folder / 'table.md'}"])
