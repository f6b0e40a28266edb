"""Damage changes no number: each reader refuses a damaged directory, names what is missing, or reads what was written.

A case damages one file of a run that has ended, or a saved optimizer, and gives it to one reader. Where the manifest
still covers the damage, the meaning is the oracle: a `JedaxError` of one sentence that names the file, a warning that
names it, or the numbers of the whole directory. Where the manifest was made to fit, removed, or never was, the edited
content is what the directory says: any result or a `JedaxError`. Nothing else is ever raised, no case takes longer
than `SECONDS`, and none more memory than `MEGABYTES`.
"""

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import struct
import sys
import time
from collections import Counter
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors import numpy as safetensors
from tests.conftest import forget_checksums, seal, without_seconds
from tests.reliability.test_fuzz import DOCUMENTS, TOKENS, mutated

import jedax
from jedax.bench.reading import read
from jedax.errors import JedaxError
from jedax.report import pages, reevaluation, replay
from jedax.search.saved import digest
from jedax.store import files

SECONDS = 20  # for a case that takes at most 0.3
MEGABYTES = 3000

pytestmark = [
    pytest.mark.usefixtures("without_figures"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does"),
]

SETTINGS = {"evaluations": 8 * 20, "report_every": 2, "population": 4, "pool": 2, "generations": 5, "cells": 16}
NESTED = "[" * 20_000 + "]" * 20_000
NUMBERS = ["9" * digits for digits in (10, 12, 19, 20, 30, 40, 80, 81, 400, 5000)]
VALUES = [*NUMBERS, *(f"-{number}" for number in NUMBERS[::3]), "-1", "0", "1", "2", "3", "1e308", "1e999", "-0.0",
          "NaN", "nan", "Infinity", "-inf", ".nan", ".inf", "null", "true", "[]", "{}", "[[]]", '""', '"x"', "x",
          '"\\ud800"', '{"a": 1}', "[1, 2]", NESTED, "1000000000000", "2147483647", "2147483648", "4294967296",
          "9223372036854775807", '"maze-a"', "sphere", "../x", "1e-320", "0x10", "1_0", "2001-02-30"]  # fmt: skip


class Hang(BaseException):
    """A case took too long; no handler of errors of the disk may catch it."""


def _too_long(number, frame):
    raise Hang


def _is_part(found, whole) -> bool:
    """Return whether each value is that of the whole, or empty."""
    if isinstance(found, dict) and isinstance(whole, dict):
        return all(name in whole and _is_part(value, whole[name]) for name, value in found.items())
    if isinstance(found, list) and isinstance(whole, list) and len(found) == len(whole):
        return all(map(_is_part, found, whole))
    return found in (None, [], {}, "", 0) or found == whole


def _plain(value):
    """Return a value that compares bit for bit, NaN included."""
    return json.loads(json.dumps(value, default=lambda array: np.asarray(array).tolist()), parse_constant=str)


def _numbers(run):
    history = run.history
    return _plain({
        "config": run.config.model_dump(mode="json"), "summary": run.summary, "rows": run.rows,
        "environment": run.environment,
        "repertoire": None if run.repertoire is None else jax.tree.map(np.ndarray.tolist, vars(run.repertoire)),
        "arrays": [run.gp_mean, run.gp_std, run.targets],
        "loops": [] if history is None else [
            [loop.evaluations, loop.targets, loop.ends, loop.gp_mean, loop.gp_std] for loop in history.loops],
        "cells": [] if history is None else [[s.evaluations, s.fitness] for s in history.snapshots],
    })  # fmt: skip


def read_whole(path):
    return _numbers(jedax.load(path)), ()


def read_partial(path):
    run = jedax.load(path, partial=True)
    return _numbers(run), run.missing


def read_comparison(path):
    return [[r.label, r.task, r.seed, r.budget, str(r.settings), str(r.curve.to_dict())]
            for r in read([path]).records], ()  # fmt: skip


def read_page(path):
    """The numbers of the page, which is also rendered, and what it says is missing."""
    text = pages.run_page(path, plotly_path="plotly.js")
    data, missing = PAGE.pop("data"), PAGE.pop("missing")
    assert len(text) > 1000
    return _plain(data), missing


def read_reevaluation(path):
    return _plain(reevaluation.as_dict(jedax.reevaluate(path, samples=4))), ()


def read_replay(path):
    found = replay.replay(path)
    return _plain([found.solution.genotype, found.solution.fitness, found.fitness, found.remarks]), ()


def read_resumed(path):
    run = jedax.resume(path)
    return _plain([jax.tree.map(np.ndarray.tolist, vars(jax.device_get(run.repertoire))), without_seconds(run.rows),
                   run.status, run.evaluations]), ()  # fmt: skip


def read_optimizer(path):
    """The batch to be told, and the one after that."""
    optimizer = jedax.Optimizer.load(path / "optimizer.safetensors")
    found = [optimizer.evaluations, optimizer.ask()]
    optimizer.tell(found[1], -(found[1] ** 2).sum(axis=1), found[1][:, :1])
    return _plain([*found, optimizer.ask(), optimizer.best.fitness]), ()


PAGE: dict = {}
READERS = {
    "load": (read_whole, 22), "partial": (read_partial, 14), "compare": (read_comparison, 14), "report": (read_page, 5),
    "reevaluate": (read_reevaluation, 7), "replay": (read_replay, 12), "resume": (read_resumed, 6),
    "optimizer": (read_optimizer, 15),
}  # fmt: skip


@pytest.fixture(scope="module")
def wholes(tmp_path_factory, without_figures):
    """Directories whose files the cases take, the first three with the oracle; and what their readers say."""
    top = tmp_path_factory.mktemp("wholes")
    start = np.zeros((2, 10), np.float32)
    made = {
        "uniform": ("jedi-uniform", {}), "gp": ("jedi", {"gp_max_steps": 3}),
        "other seed": ("jedi-uniform", {"seed": 5}), "other replicas": ("jedi-uniform", {"replicas": 3}),
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        # Pictures take most of the time, and no reader takes a number from them.
        for module in (replay, reevaluation):
            patch.setattr(module, "write_picture", lambda path, figure: plt.close(figure) or path)
        patch.setattr(reevaluation, "figure", lambda found: None)
        data_of, head_of = pages.run_data, pages.head_of
        patch.setattr(pages, "run_data", lambda *given: PAGE.setdefault("data", data_of(*given)))
        patch.setattr(pages, "head_of", lambda run: PAGE.update(missing=run.missing) or head_of(run))
        for name, (method, changes) in made.items():
            jedax.run(method, "arm", **{"replicas": 2, **SETTINGS, **changes}, out=top / name, start_genotypes=start)
        optimizer = jedax.Optimizer(num_params=3, descriptor_bounds=([-1], [1]), evaluations=100, cells=4,
                                    cell_layout="grid", method="map-elites", offspring=2)  # fmt: skip
        (top / "optimizer").mkdir()
        for step in range(3):
            batch = optimizer.ask()
            if step < 2:
                optimizer.tell(batch, -(batch**2).sum(axis=1), batch[:, :1])
        optimizer.save(top / "optimizer" / "optimizer.safetensors")
        meanings = {}
        for base in ("uniform", "gp", "optimizer"):
            for reader, (function, _) in READERS.items():
                if (reader == "optimizer") == (base == "optimizer"):
                    place = top / "case" / "run"  # the same path as in each case, since pages name it
                    shutil.copytree(top / base, place)
                    meanings[base, reader], missing = function(place)
                    assert not missing
                    shutil.rmtree(place)
        yield top, meanings


def names_of(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")
                  if path.is_file() and path.name not in ("log.txt", ".lock"))  # fmt: skip


def _lines(chance, data):
    """Damage a text line by line: cut before a line, drop, repeat, swap or keep only the header."""
    lines = data.splitlines(keepends=True) or [b""]
    at, to = chance.randrange(len(lines)), chance.randrange(len(lines))
    how = chance.choice(["cut", "half", "header", "drop", "repeat", "swap", "reverse", "double"])
    if how == "cut":
        lines = lines[:at]
    elif how == "half":
        lines = [*lines[:at], lines[at][: len(lines[at]) // 2]]
    elif how == "header":
        lines = lines[:1]
    elif how == "drop":
        del lines[at]
    elif how == "repeat":
        lines.insert(to, lines[at])
    elif how == "swap":
        lines[at], lines[to] = lines[to], lines[at]
    elif how == "reverse":
        lines.reverse()
    else:
        lines *= 2
    return b"".join(lines)


def _paths(value, path=()):
    """Yield the path of each value inside a JSON or YAML value."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value[:4]) if isinstance(value, list) else ()
    for key, part in inner:
        yield from _paths(part, (*path, key))


class Raw(str):
    """Text that stands in JSON as it is."""


def _edited(chance, value):
    """Rename, remove, repeat or replace one value inside a JSON value."""
    paths = list(_paths(value))
    if not paths:
        return Raw(chance.choice(VALUES))
    *above, key = chance.choice(paths)
    holder = value
    for step in above:
        holder = holder[step]
    how = chance.choice(["replace", "replace", "replace", "rename", "remove", "copy"])
    if how == "remove":
        del holder[key]
    elif how == "rename" and isinstance(holder, dict):
        holder[chance.choice(["x", f"{key}s", key.upper(), "", "\x1b[31m", "a" * 2000])] = holder.pop(key)
    elif how == "copy" and isinstance(holder, dict):
        holder[key] = holder[chance.choice(list(holder))]
    else:
        holder[key] = Raw(chance.choice(VALUES))
    return value


def _json(value):
    """Return JSON text in which `Raw` values stand unquoted."""
    raw = {}

    def marked(part):
        if isinstance(part, dict):
            return {key: marked(inner) for key, inner in part.items()}
        if isinstance(part, list):
            return [marked(inner) for inner in part]
        if isinstance(part, Raw):
            raw[f"raw {len(raw)}"] = part
            return f"raw {len(raw) - 1}"
        return part

    text = json.dumps(marked(value), indent=2)
    for mark, inner in raw.items():
        text = text.replace(f'"{mark}"', inner)
    return text.encode()


def _yaml(chance, data):
    """Rename a key or replace a value of YAML that has one of them per line."""
    lines = data.decode().splitlines()
    at = chance.choice([number for number, line in enumerate(lines) if ":" in line])
    name, _, value = lines[at].partition(":")
    if chance.random() < 0.2:
        name = chance.choice([f"{name}s", name.strip(), f"  {name}", "x", "? "])
    else:
        value = " " + chance.choice(VALUES)
    lines[at] = f"{name}:{value}"
    return "\n".join(lines).encode() + b"\n"


def _csv(chance, data):
    """Replace a value, rename a column, or remove one, of CSV."""
    rows = [line.split(b",") for line in data.splitlines()]
    at, column = chance.randrange(len(rows)), chance.randrange(len(rows[0]))
    how = chance.choice(["value", "value", "rename", "remove", "copy"])
    if how == "value":
        rows[at][column] = chance.choice(VALUES).encode()
    elif how == "rename":
        rows[0][column] = chance.choice([b"x", b"", b"evaluations", b"replica"])
    else:
        for row in rows:
            if how == "remove":
                del row[column]
            else:
                row[column] = row[(column + 1) % len(row)]
    return b"\n".join(map(b",".join, rows)) + b"\n"


def _tensors(chance, data):
    """Edit the header of safetensors, or the numbers behind it."""
    (size,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + size]), bytearray(data[8 + size :])
    names = [name for name in header if name != "__metadata__"]
    weights = [1, 6 * ("__metadata__" in header), 1, 2, 1, 1, 1]
    how = chance.choices(["edit", "facts", "swap", "numbers", "replicas", "cut", "tail"], weights)[0]
    if how == "edit" or (how == "facts" and "facts" not in header.get("__metadata__", {})):
        header = _edited(chance, header)
    elif how == "facts":
        facts = _edited(chance, json.loads(header["__metadata__"]["facts"]))
        header["__metadata__"]["facts"] = _json(facts).decode()
    elif how == "swap":
        one, other = chance.choice(names), chance.choice(names)
        header[one], header[other] = header[other], header[one]
    elif how == "numbers" and len(body) >= 4:
        at = 4 * chance.randrange(len(body) // 4)
        body[at : at + 4] = struct.pack("<f", chance.choice([np.nan, np.inf, -np.inf, 1e38, 0.0, -1.5]))
    elif how == "replicas":
        changed = {name: array[:1] if array.ndim else array for name, array in safetensors.load(data).items()}
        return safetensors.save(changed, header.get("__metadata__"))
    elif how == "cut":
        body = body[: chance.randrange(len(body) + 1)]
    else:
        body += b"\0" * chance.randrange(1, 9)
    text = _json(header)
    return struct.pack("<Q", len(text)) + text + bytes(body)


def _npy(chance, folder):
    array = chance.choice([np.zeros((2, 9)), np.zeros((0, 10)), np.zeros(10), np.full((2, 10), np.nan), np.zeros(()),
                           np.full((2, 10), 1e300), np.zeros((2, 10), complex), np.zeros((2, 10), bool),
                           np.array([["x"] * 10] * 2), np.zeros((2, 10), "M8[s]"), np.zeros((1000, 10))])  # fmt: skip
    np.save(folder, array)


def _random_bits(chance, data):
    case = []
    for _ in range(chance.randint(1, 4)):
        place = chance.random() ** chance.choice([1, 4])
        how = chance.choice(["truncate", "flip", "insert", "replace", "delete", "repeat", "document"])
        more = {"flip": [chance.randrange(8)], "insert": [chance.choice(TOKENS)], "replace": [chance.choice(TOKENS)],
                "delete": [chance.randint(1, 200)], "repeat": [chance.randint(1, 200)],
                "document": [chance.choice(DOCUMENTS)]}  # fmt: skip
        case.append((how, place, *more.get(how, [])))
    return mutated(data, case)


def _crafted(chance, path):
    """Write damage that knows what the file holds."""
    data, kind = path.read_bytes(), path.suffix
    if kind == ".json":
        data = _json(_edited(chance, json.loads(data))) if chance.random() < 0.8 else _lines(chance, data)
    elif kind == ".jsonl":
        lines = data.splitlines()
        if chance.random() < 0.6:
            at = chance.randrange(len(lines))
            lines[at] = _json(_edited(chance, json.loads(lines[at]))).replace(b"\n", b"")
            data = b"\n".join(lines) + b"\n"
        else:
            data = _lines(chance, data)
    elif kind == ".yaml":
        data = _yaml(chance, data) if chance.random() < 0.8 else _lines(chance, data)
    elif kind == ".csv":
        data = _csv(chance, data) if chance.random() < 0.6 else _lines(chance, data)
    elif kind == ".safetensors":
        data = _tensors(chance, data)
    elif kind == ".npy":
        _npy(chance, path)
        return
    path.write_bytes(data)


def _placed(chance, path, top, run):
    """Put another kind of thing in the place of a file, or a file from elsewhere."""
    name = path.relative_to(run).as_posix()
    data = path.read_bytes()
    how = chance.choice(["empty", "none", "folder", "pipe", "link", "loop", "zero", "nowhere", "stranger", "sibling"])
    path.unlink()
    if how == "empty":
        path.write_bytes(b"")
    elif how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "link":
        elsewhere = run.parent / "elsewhere"
        elsewhere.write_bytes(data)
        path.symlink_to(elsewhere)
    elif how == "loop":
        path.symlink_to(path)
    elif how == "zero":
        path.symlink_to("/dev/zero")
    elif how == "nowhere":
        path.symlink_to("nowhere")
    elif how == "stranger":
        stranger = top / chance.choice(["other seed", "other replicas", "gp", "uniform"]) / name
        if stranger.exists():
            shutil.copy(stranger, path)
    elif how == "sibling" and (others := names_of(run)):
        shutil.copy(run / chance.choice(others), path)
    return how


def _reseal_optimizer(path):
    """Give the settings of a saved optimizer the checksum that they should have."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    facts = json.loads(header["__metadata__"]["facts"])
    facts.pop("facts_sha256", None)
    with contextlib.suppress(ValueError, SafetensorError):
        facts["sha256"] = digest(safetensors.load(data))
    facts["facts_sha256"] = files.digest(facts)
    header["__metadata__"]["facts"] = json.dumps(facts)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])


def damage(chance, run, top):
    """Damage one file and return what was done, and whether the checksums still cover it."""
    name = chance.choice(names_of(run))
    path = run / name
    covers = chance.choices(["kept", "made to fit", "removed", "earlier version"], [60, 25, 5, 10])[0]
    if covers == "earlier version" and (run / "manifest.json").exists():
        forget_checksums(run)
        if not path.exists():  # the manifest itself
            return name, "forgotten", covers
    before = path.read_bytes()
    kind = chance.choices(["bits", "crafted", "placed"], [25, 55, 20])[0]
    if kind == "bits":
        path.write_bytes(_random_bits(chance, before))
    elif kind == "crafted":
        _crafted(chance, path)
    else:
        kind = _placed(chance, path, top, run)
    if covers == "made to fit" and kind not in ("pipe", "zero", "folder", "loop"):
        # What cannot be sealed stays as it is.
        with contextlib.suppress(OSError, ValueError, LookupError, AttributeError, TypeError, struct.error,
                                 RecursionError, SafetensorError):  # fmt: skip
            if path.name == "optimizer.safetensors":
                _reseal_optimizer(path)
            else:
                seal(run)
    elif covers == "removed":
        with contextlib.suppress(OSError):  # a folder in its place stays
            (run / "manifest.json").unlink()
    return name, kind, covers


def within_limits(function, *given):
    """Call a function that may take `SECONDS` and `MEGABYTES`."""
    pages_now = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages_now * resource.getpagesize() + MEGABYTES * 2**20, hard))
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return function(*given)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def attempt(number, top, meanings, reader=None):
    """Carry out one case and return reader, damage and outcome in words; raise what no user may see."""
    chance = random.Random(number)
    reader = reader or chance.choices([*READERS], [weight for _, weight in READERS.values()])[0]
    base = "optimizer" if reader == "optimizer" else chance.choices(["uniform", "gp"], [3, 1])[0]
    if reader == "resume":
        base = "uniform"
    folder = top / "case"
    run = folder / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copytree(top / base, run)
    name, kind, covers = damage(chance, run, top)
    PAGE.clear()
    try:
        found, missing = within_limits(READERS[reader][0], run)
    except JedaxError as error:
        said = str(error)
        assert 10 < len(said.encode()) < 3000
        assert "\n" not in said
        assert covers != "kept" or str(run) in said
        return reader, (name, kind, covers), "refused"
    whole = meanings[base, reader]
    if covers != "kept":
        return reader, (name, kind, covers), "same" if found == whole else "warned" if missing else "edited"
    if found == whole:
        return reader, (name, kind, covers), "same"
    if name == "manifest.json" and not (run / name).exists() and reader in ("load", "partial", "report"):
        # Then the directory is that of a run that has not ended, and says so.
        for status in ("summary", "phases", "evaluations"):
            if isinstance(found, dict) and status in found:
                found = {**found, status: None}
        assert _is_part(found, whole)
        return reader, (name, kind, covers), "running"
    assert missing, "another number"
    assert _is_part(found, whole)
    assert any(name in sentence or "checkpoint" in sentence for sentence in missing)
    return reader, (name, kind, covers), "warned"


def check(first, number, wholes):
    """Carry out some cases, print a table of readers and outcomes, and fail with the seeds of those that went wrong."""
    top, meanings = wholes
    outcomes, wrong = Counter(), []
    began, slowest, memory = time.monotonic(), 0.0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for case in range(first, first + number):
        at = time.monotonic()
        try:
            reader, _, outcome = attempt(case, top, meanings)
            outcomes[reader, outcome] += 1
        except (Exception, Hang) as error:
            wrong.append(f"case {case}: {error!r:.300}")
        if case % 1000 == 999:
            jax.clear_caches()  # edited settings compile programs of their own, which stay
        slowest = max(slowest, time.monotonic() - at)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    print(f"{number} cases from {first} in {time.monotonic() - began:.0f} s, slowest {slowest:.1f} s, "  # noqa: T201
          f"memory grew by {grown:.0f} MB, {len(wrong)} wrong")  # fmt: skip
    kinds = sorted({outcome for _, outcome in outcomes})
    for reader in READERS:
        print(f"{reader:>12}", *(f"{outcomes[reader, kind]:6} {kind}" for kind in kinds))  # noqa: T201
    assert not wrong, "\n".join(wrong)
    assert grown < MEGABYTES


def test_damage_changes_no_number(wholes):
    check(0, 150, wholes)


@pytest.mark.nightly
def test_damage_changes_no_number_in_twenty_thousand_cases(wholes):
    check(1_000_000, 20_000, wholes)
