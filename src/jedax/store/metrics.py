"""The file `metrics.csv`: rows are added while a run goes on, and cut where it goes back to a checkpoint."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jedax.errors import JedaxError, fail
from jedax.store import files


def add(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows, all with the same columns; the first brings the header.

    A file that is there keeps its columns: an older version may have begun it.
    """
    header = _header(path)
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer: csv.DictWriter[str] = csv.DictWriter(file, header or list(rows[0]), extrasaction="ignore")
        if header is None:
            writer.writeheader()
        writer.writerows(rows)


def _header(path: Path) -> list[str] | None:
    try:
        with open(path, newline="", encoding="utf-8") as file:
            return next(csv.reader(file), None)
    except FileNotFoundError:
        return None
    except (ValueError, csv.Error) as error:
        raise _foreign(path, error) from None


def cut(path: Path, evaluations: int) -> None:
    """Drop rows that come after `evaluations`, and a last line that was not written whole; none left, no file.

    Raises:
        JedaxError: The file is damaged.
    """
    if not path.exists():
        return
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        whole = [line for line in lines[1:] if line.endswith("\n")]
        kept = [line for line in whole if int(line.split(",", 1)[0]) <= evaluations]
    except ValueError as error:
        raise _foreign(path, error) from None
    if kept:
        files.write_atomic(path, "".join([lines[0], *kept]))
    else:
        path.unlink()


def read(path: Path) -> list[dict[str, float]]:
    """Return the rows; what was never measured is NaN.

    Raises:
        JedaxError: The file is damaged.
    """
    if not path.exists():
        return []
    try:
        text = path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]  # a run that goes on may be writing its last line
        header, *rows = csv.reader(io.StringIO(whole), strict=True) if whole else [[]]
        if "evaluations" not in header and rows:
            raise ValueError("no column 'evaluations'")
        return [{name: _number(value) for name, value in zip(header, row, strict=True)} for row in rows if row]
    except (ValueError, csv.Error) as error:
        raise _foreign(path, error) from None


def _number(text: str) -> float:
    """Read back a number of the metrics; whole ones stay whole."""
    return int(text) if text.lstrip("-").isdigit() else float(text or "nan")


def _foreign(path: Path, error: Exception) -> JedaxError:
    return fail(str(path), expected="numbers under names of columns", received=error, remedy="restore the file")
