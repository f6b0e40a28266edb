"""The file `metrics.csv`: a running search adds rows, a resumed one cuts those after its checkpoint."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jedax.errors import JedaxError, fail
from jedax.store import files

_MOST_DIGITS = 40  # no number that a run writes is as long
_MOST_OF_WHOLE = 18  # digits, so that 64 bits hold the number


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
        writer: csv.DictWriter[str] = csv.DictWriter(
            file, header or list(rows[0]), extrasaction="ignore", lineterminator="\n"
        )
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
        found = [{name: _number(value) for name, value in zip(header, row, strict=True)} for row in rows if row]
        for row in found:
            if not all(
                isinstance(row[name], int) and row[name] >= 0 for name in ("evaluations", "replica") if name in row
            ):
                raise ValueError("evaluations or replicas that are no whole numbers")
        return found
    except (OSError, ValueError, csv.Error) as error:
        raise _damaged(path, error) from None


def check_end(path: Path, rows: Sequence[Mapping[str, float]], summary: Mapping[str, Any]) -> None:
    """Check that the rows of each replica end where a run ended, as far as its summary tells."""
    replicas = {int(row.get("replica", 0)): row["evaluations"] for row in rows}
    ends = {replica: summary.get("evaluations", at) for replica, at in replicas.items()}
    if replicas != ends or len(replicas) != summary.get("replicas", len(replicas)):
        expected, received = "a last report at the end of every replica", f"reports until {min(replicas.values()):,}"
        raise fail(str(path), expected=expected, received=received, remedy="restore the file")


def _number(text: str) -> float:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} characters")
    is_whole = text.lstrip("-").isdecimal() and len(text) <= _MOST_OF_WHOLE
    return int(text) if is_whole else float(text or "nan")


def _damaged(path: Path, error: Exception) -> JedaxError:
    return fail(str(path), expected="numbers under names of columns", received=error, remedy="restore the file")
