"""The file `metrics.csv`: a running search adds rows, a resumed one cuts those after its checkpoint."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jedax.errors import JedaxError, fail
from jedax.store import files


def add(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows, all with the same columns; a file of an older version keeps its own columns."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            header = next(csv.reader(file), None)
    except FileNotFoundError:
        header = None
    except (ValueError, csv.Error) as error:
        raise _damaged(path, error) from None
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer: csv.DictWriter[str] = csv.DictWriter(file, header or list(rows[0]), extrasaction="ignore")
        if header is None:
            writer.writeheader()
        writer.writerows(rows)


def cut(path: Path, evaluations: int) -> None:
    """Remove the rows after `evaluations` and an incomplete last line; remove the file if no row is left."""
    if not path.exists():
        return
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines[1:] if line.endswith("\n") and int(line.split(",", 1)[0]) <= evaluations]
    except ValueError as error:
        raise _damaged(path, error) from None
    if kept:
        files.write_atomic(path, "".join([lines[0], *kept]))
    else:
        path.unlink()


def read(path: Path) -> list[dict[str, float]]:
    """Return the rows, without an incomplete last line; unknown values are NaN, a missing file has no rows."""
    if not path.exists():
        return []
    try:
        text = path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]  # a running search may be writing the last line
        header, *rows = csv.reader(io.StringIO(whole), strict=True) if whole else [[]]
        if "evaluations" not in header and rows:
            raise ValueError("no column 'evaluations'")
        return [{name: _number(value) for name, value in zip(header, row, strict=True)} for row in rows if row]
    except (ValueError, csv.Error) as error:
        raise _damaged(path, error) from None


def _number(text: str) -> float:
    return int(text) if text.lstrip("-").isdigit() else float(text or "nan")


def _damaged(path: Path, error: Exception) -> JedaxError:
    return fail(str(path), expected="numbers under names of columns", received=error, remedy="restore the file")
