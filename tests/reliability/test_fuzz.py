"""Whatever stands in a file: a clear error or a result, never a crash, a hang, code that runs, or another file touched.

Cases are drawn from fixed seeds. The files are read by what `jedax.load`, `resume`, `report`, `compare` and
`Optimizer.load` read them with; after each case the process must not have run, written or removed anything else.
"""

import hashlib
import io
import json
import os
import pickle
import resource
import signal
import sys
import zipfile
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import jedax
from jedax.bench.reading import read_csv
from jedax.errors import JedaxError
from jedax.repertoire.cells import make_cells
from jedax.search import api
from jedax.search.compiled import checked_genotypes
from jedax.store import files, history
from jedax.store import run as results
from jedax.store.config import FullConfig
from jedax.store.directory import RunDirectory
from jedax.tasks import make
from jedax.tasks.maze.settings import load_maze_file
from jedax.tasks.registry import entries

SECONDS = 20  # of processor time, for a case that takes a few milliseconds
MEGABYTES = 1000

pytestmark = pytest.mark.usefixtures("without_figures")


class Trap:
    """What a pickle would do."""

    def __reduce__(self):
        return os.system, ("touch PWNED",)


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("../../PWNED", "x")
    return buffer.getvalue()


def _objects() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([Trap()], dtype=object), allow_pickle=True)
    return buffer.getvalue()


_BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
DOCUMENTS = [
    b"", b"\0", b"\xff\xfe\0\0", b"{", b"[]", b"null", b"1", b'"text"', b"-", b"\n" * 1000, b"[" * 50_000,
    b'{"a":' * 50_000, b"- " * 5_000, b"? " * 3_000, (_BOMB + "task: *i\nwalls: *i\n").encode(),
    b"&a [*a]", b"task: &a {b: *a}", b"task: !!python/object/apply:os.system ['touch PWNED']",
    b"walls: !!python/object/new:os.system ['touch PWNED']", b"!!timestamp x", b"walls: 2001-99-99", b"!!int x",
    b"!!float x", b"!!bool x", b"!!binary x", b"!!omap [x]", b"!!pairs x", b"!!set {x, y}", b"{[1]: 2}", b"{{a: 1}: 2}",
    b"walls: " + b"9" * 5000, b'{"format": 1, "sha256": 1, "facts": {}}', b'{"format": 99, "facts": {"x": 1}}',
    b'{"at": "header", "format": 99}\n', b'{"at": "header", "format": 1}\n{"at": "start"}\n{"at": "cells"}\n',
    b"\xff" * 8 + b"{}", b"\x02\0\0\0\0\0\0\0{}", b"\x08\0\0\0\0\0\0\0" + b"[" * 8, pickle.dumps(Trap()), _zip(),
    _objects(), b"\x93NUMPY\x01\0v\0" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 9), }",
    b"\x7fELF", b"%PDF-1.4", b"<html></html>", b"evaluations\n" + b"8," * 200_000 + b"\n", b"a" * 300_000,
]  # fmt: skip
TOKENS = [
    b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1", b"0", b"1e308", b"9" * 40, b"9" * 5000, b"0x1", b"1_0", b"true",
    b"null", b"[]", b"{}", b'""', b'"x"', b"[[[]]]", b'{"a": 1}', b"../../../PWNED", b"/etc/passwd", b"\0", b"\xc3",
    b",", b"\n", b"\r", b'"', b"'", b":", b"- ", b"&a ", b"*a", b"!!", b"%", b"\xe2\x80\xae", b"F64", b"BOOL", b"BF16",
    b"F8_E4M3", b'"shape":[-1]', b"maze-b", b"sphere", b"maze:x", b"evosax:SNES", b"pickle", b"custom:x", b"2001-02-30",
    b"<script>",
]  # fmt: skip


class Watch:
    """Notes what a process does that reading a file has no need of."""

    def __init__(self):
        self.inside: Path | None = None
        self.seen: list[str] = []
        self._roots = (sys.prefix, sys.base_prefix, str(Path(jedax.__file__).parent), "<frozen")
        sys.addaudithook(self._hook)

    def _hook(self, event, args):
        if self.inside is None:
            return
        if event == "open":
            path, mode, flags = args
            writes = (isinstance(mode, str) and set(mode) & set("wax+")) or (
                isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            )
            # What JAX compiles on the way goes where the user keeps that.
            allowed = (str(self.inside), str(jax.config.jax_compilation_cache_dir))
            if writes and not str(path).startswith(allowed) and "__pycache__" not in str(path):
                self.seen.append(f"{event} {path} {mode}")
        elif event in ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod"):
            if not str(args[0]).startswith(str(self.inside)):
                self.seen.append(f"{event} {args}")
        elif event in ("os.system", "os.exec", "os.fork", "os.posix_spawn", "subprocess.Popen", "socket.connect",
                       "pickle.find_class", "shutil.rmtree", "webbrowser.open", "ctypes.dlopen"):  # fmt: skip
            self.seen.append(f"{event} {args}")
        elif event == "exec" and not str(getattr(args[0], "co_filename", "")).startswith(self._roots):
            self.seen.append(f"{event} {args[0]}")


@pytest.fixture(scope="module")
def watch():
    return Watch()


def _too_long(number, frame):
    raise TimeoutError(f"still at work after {SECONDS} s")


CELLS = make_cells(((-1, -1), (1, 1)), 64)
LIKE = {
    "key": jax.random.key(0), "numbers": np.zeros((2, 3), np.float32), "count": np.zeros((), np.int32),
}  # fmt: skip
FACTS = {"evaluations": 8, "seconds": 1.5, "phases": {"io": 0.5}, "status": "running", "config": "abc",
         "failures": {"nan": [0], "infinite": [1]}}  # fmt: skip


@pytest.fixture(scope="module")
def originals(tmp_path_factory, small, arm, without_figures):
    """One whole file of every kind, from a run."""
    path = tmp_path_factory.mktemp("originals") / "run"
    jedax.run(small, arm, evaluations=8 * 8, report_every=2, out=path, start_genotypes=np.zeros((2, 4), np.float32))
    FullConfig.parse("task: arm\nmethod_config: {es: 'evosax:SNES'}", "x")  # imports evosax, which cases may name
    folder = path / "tree"
    files.save_tree(folder, LIKE, FACTS)
    optimizer = jedax.Optimizer(num_params=2, descriptor_bounds=([-1], [1]), evaluations=100, cells=4,
                                cell_layout="grid", method="map-elites", offspring=2)  # fmt: skip
    optimizer.save(path / "optimizer.safetensors")
    made = {name: (path / name).read_bytes() for name in (
        "config.yaml", "metrics.csv", "history.jsonl", "summary.json", "repertoire.safetensors", "start_genotypes.npy",
        "optimizer.safetensors",
    )}  # fmt: skip
    made["maze.yaml"] = (Path(jedax.__file__).parent / "tasks" / "maze" / "layouts" / "maze-c.yaml").read_bytes()
    made["results.csv"] = (
        b"method,task,seed,evaluations,max_fitness,coverage\n"
        b"PGA-ME,maze-a,0,64,-320.5,0.01\nPGA-ME,maze-a,0,2e4,-291.2,0.22\nes,mine,3,7,1,\n"
    )
    (path / "results.csv").write_bytes(made["results.csv"])
    read_csv(path / "results.csv")  # imports what writes code of its own
    made["state.safetensors"] = (folder / "state.safetensors").read_bytes()
    made["manifest.json"] = (folder / "manifest.json").read_bytes()
    return made


def read_checkpoint(folder, arm):
    loaded = RunDirectory(folder).load_checkpoint(LIKE)
    assert loaded is not None


def checkpoint(name):
    """A directory whose one checkpoint has this file; the other one is whole, its checksum made to fit the state."""

    def lay(folder, data, originals):
        inner = folder / "checkpoint" / f"{FACTS['evaluations']:012d}"
        inner.mkdir(parents=True, exist_ok=True)
        state = data if name == "state.safetensors" else originals["state.safetensors"]
        manifest = json.loads(originals["manifest.json"])
        if name == "state.safetensors":
            manifest["sha256"] = hashlib.sha256(state).hexdigest()
        (inner / "state.safetensors").write_bytes(state)
        (inner / "manifest.json").write_bytes(data if name == "manifest.json" else json.dumps(manifest).encode())

    return lay


def lay_alone(name):
    return lambda folder, data, originals: (folder / name).write_bytes(data)


def read_config(folder, arm):
    found = RunDirectory(folder).read_config()
    assert FullConfig.parse(found.dump(), "again") == found


def read_metrics(folder, arm):
    """Cutting comes second, for it mends."""
    try:
        RunDirectory(folder).read_metrics()
    finally:
        RunDirectory(folder).cut(40)


def read_history(folder, arm):
    try:
        history.read(folder / history.FILE, CELLS, 1)
    finally:
        history.cut(folder / history.FILE, 40)


def read_start(folder, arm):
    path = folder / "start_genotypes.npy"
    assert checked_genotypes("start_from", api._read_genotypes(path), 128, 4).shape[1] == 4


def read_optimizer(folder, arm):
    assert jedax.Optimizer.load(folder / "optimizer.safetensors").ask().shape == (2, 2)


KINDS = {
    "config.yaml": (lay_alone, read_config),
    "maze.yaml": (lay_alone, lambda folder, arm: load_maze_file(folder / "maze.yaml")),
    "metrics.csv": (lay_alone, read_metrics),
    "results.csv": (lay_alone, lambda folder, arm: read_csv(folder / "results.csv")),
    "history.jsonl": (lay_alone, read_history),
    "summary.json": (lay_alone, lambda folder, arm: RunDirectory(folder).read_summary()),
    "state.safetensors": (checkpoint, read_checkpoint),
    "manifest.json": (checkpoint, read_checkpoint),
    "repertoire.safetensors": (
        lay_alone, lambda folder, arm: results.read_arrays(folder / "repertoire.safetensors", 1)),
    "optimizer.safetensors": (lay_alone, read_optimizer),
    "start_genotypes.npy": (lay_alone, read_start),
}  # fmt: skip

places = st.floats(0, 1, exclude_max=True)
# Small files, and the headers of large ones, are where most can go wrong.
early = st.one_of(places, places.map(lambda place: place**4))
mutations = st.one_of(
    st.tuples(st.just("truncate"), early),
    st.tuples(st.just("flip"), early, st.integers(0, 7)),
    st.tuples(st.just("insert"), early, st.one_of(st.sampled_from(TOKENS), st.binary(max_size=20))),
    st.tuples(st.just("replace"), early, st.sampled_from(TOKENS)),
    st.tuples(st.just("delete"), early, st.integers(1, 200)),
    st.tuples(st.just("repeat"), early, st.integers(1, 200)),
    st.tuples(st.just("document"), st.just(0.0), st.sampled_from(DOCUMENTS)),
)
cases = st.lists(mutations, min_size=1, max_size=4)


def mutated(data, case):
    """Return a file after what has happened to it; "replace" puts a token in the place of a whole word."""
    for how, place, *rest in case:
        at = int(place * len(data))
        if how == "truncate":
            data = data[:at]
        elif how == "flip" and data:
            data = data[:at] + bytes([data[at] ^ (1 << rest[0])]) + data[at + 1 :]
        elif how == "insert":
            data = data[:at] + rest[0] + data[at:]
        elif how == "replace":
            end = at
            while end < len(data) and data[end : end + 1] not in b' ,:\n"[]{}':
                end += 1
            data = data[:at] + rest[0] + data[end:]
        elif how == "delete":
            data = data[:at] + data[at + rest[0] :]
        elif how == "repeat":
            data = data[:at] + data[at : at + rest[0]] * 3 + data[at:]
        elif how == "document":
            data = rest[0]
    return data


def attempt(kind, data, folder, originals, arm, watch):
    """Read one file, and see what else happened."""
    lay, read = KINDS[kind]
    run = folder / "run"
    run.mkdir(exist_ok=True)
    lay(kind)(run, data, originals)
    before = sorted(os.listdir(folder)), sorted(os.listdir())
    watch.seen.clear()
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    watch.inside = run
    try:
        read(run, arm)
        refused = None
    except JedaxError as error:
        refused = str(error)
    finally:
        watch.inside = None
        signal.setitimer(signal.ITIMER_PROF, 0)
    assert watch.seen == []
    assert (sorted(os.listdir(folder)), sorted(os.listdir())) == before
    assert refused is None or 10 < len(refused) < 1500
    return refused


def fuzz(kind, number, first, folder, originals, arm, watch):
    assert attempt(kind, originals[kind], folder, originals, arm, watch) is None  # imports what it needs, too
    refused = []

    @seed(first)
    @settings(max_examples=number, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(cases)
    def check(case):
        refused.append(attempt(kind, mutated(originals[kind], case), folder, originals, arm, watch) is not None)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    check()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MEGABYTES
    assert len(refused) >= number
    assert np.mean(refused) > 0.2
    print(f"{kind}: {len(refused)} cases, {sum(refused)} refused, {len(refused) - sum(refused)} read")  # noqa: T201


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_were_damaged_or_crafted(tmp_path, originals, arm, watch, kind):
    fuzz(kind, 46, 1, tmp_path, originals, arm, watch)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_of_them(tmp_path, originals, arm, watch, kind):
    for document in DOCUMENTS:
        attempt(kind, document, tmp_path, originals, arm, watch)
    fuzz(kind, 1000, 20_000, tmp_path, originals, arm, watch)


def test_the_watch_sees_what_it_is_for(tmp_path, watch):
    watch.seen.clear()
    watch.inside = tmp_path / "run"
    try:
        (tmp_path / "outside").write_text("x")
        pickle.loads(pickle.dumps(Path))
        exec("1 + 1")
        os.system("true")
    finally:
        watch.inside = None
    assert [seen.split()[0] for seen in watch.seen] == ["open", "pickle.find_class", "exec", "os.system"]


def test_a_checkpoint_that_was_damaged_is_never_taken_for_whole(tmp_path, originals):
    """Without the checksum made to fit, every change of the state is noticed."""
    lay = checkpoint("manifest.json")
    data = originals["state.safetensors"]
    for place in range(0, len(data), 7):
        lay(tmp_path, originals["manifest.json"], originals)
        state = tmp_path / "checkpoint" / "000000000008" / "state.safetensors"
        state.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(JedaxError, match="checksum"):
            RunDirectory(tmp_path).load_checkpoint(LIKE)


def test_every_task_can_be_named_by_a_config_without_being_run():
    """What a config may do is to name a task; only `module:name` imports something, as the page on reliability says."""
    for name in entries():
        assert FullConfig.parse(f"task: {name}", "x").task == name
    with pytest.raises(JedaxError, match="unknown name"):
        make("os.system")
