"""Settings that must stand before JAX is imported, and results shared by many tests."""

import json
import os
import signal
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "jedax-tests" / "xla"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("MPLBACKEND", "Agg")
_STATE = tempfile.TemporaryDirectory(prefix="jedax-state-", ignore_cleanup_errors=True)
os.environ["XDG_STATE_HOME"] = _STATE.name  # the key of the user who runs the tests stays as it is
# Threads of the BLAS spin while they wait for each other: with two processes on two cores, most of the time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Most of the time of the tests is compilation: unoptimised code takes less than half of it, and code that XLA's older
# emitters write half of that again. XLA stops at a flag that it does not know, and a later one may drop the second.
_QUICK = "--xla_backend_optimization_level=0"
if version("jaxlib").startswith("0.10."):
    _QUICK += " --xla_cpu_use_fusion_emitters=false"
if "JEDAX_TESTS" not in os.environ:  # else a test has started this process with settings of its own
    for _name in ("XLA_FLAGS", "JEDAX_ISA", "JEDAX_NATIVE_OFF", "RAY_ADDRESS"):  # of the user who runs the tests
        os.environ.pop(_name, None)
    os.environ["JEDAX_TESTS"] = "yes"
os.environ.setdefault("XLA_FLAGS", _QUICK)
USUAL_EMITTERS = {"xla_cpu_use_fusion_emitters": True} if "fusion_emitters" in os.environ["XLA_FLAGS"] else None
"""Options of `jax.jit` where a test compares to the last bits: the emitters that XLA takes by itself."""

# A command that a script starts with `&` ignores SIGINT, and so would these tests and the commands that they stop.
signal.signal(signal.SIGINT, signal.default_int_handler)

MOST_MAPS = 6_000  # with so many a process takes more than 1 GB

assert "jax" not in sys.modules

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

# The same cases each time, however long they take; `--hypothesis-profile=default` draws others.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


def _memory_maps():
    """Return how many memory maps this process holds, or as many as it may where that is not known."""
    try:
        return Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:
        return MOST_MAPS


@pytest.fixture(scope="module", autouse=True)
def _let_programs_go():
    """A process may hold 65,530 memory maps on a common Linux, and each compiled program takes several, and memory."""
    yield
    import jax

    if _memory_maps() >= MOST_MAPS:
        jax.clear_caches()


@pytest.fixture(autouse=True)
def _imports_end_with_their_test(tmp_path_factory):
    """Modules of a test's own and where it looks for them: another test may have a module of the same name."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    own = str(tmp_path_factory.getbasetemp())
    for name in sys.modules.keys() - modules:
        if str(getattr(sys.modules[name], "__dict__", {}).get("__file__")).startswith(own):
            del sys.modules[name]


@pytest.fixture(scope="session")
def small():
    """A search that takes a second: an arm of 4 joints, 64 cells, 2 ES of 4, loops of 5 generations."""
    from jedax import JediConfig

    return JediConfig(population=4, pool=2, generations=5, cells=64, gp_max_steps=5, targets="uniform")


@pytest.fixture(scope="session")
def plain():
    """The settings whose programs compile fastest: MAP-Elites with generations of 8 and 64 cells."""
    from jedax.methods.map_elites import MapElitesConfig

    return MapElitesConfig(offspring=8, cells=64)


@pytest.fixture(scope="session")
def arm():
    from jedax.tasks import PlanarArm

    return PlanarArm(joints=4)


def draw_nothing(patch):
    """Let runs draw nothing, which takes most of the time of a small one."""
    patch.setattr("jedax.report.figures.write_figures", lambda run, folder: [])


@pytest.fixture
def without_comparison_figures(monkeypatch):
    """Comparisons draw nothing, which takes most of their time."""
    monkeypatch.setattr("jedax.report.comparisons.write_comparison_figures", lambda *given, **settings: [])


@pytest.fixture
def undrawn(monkeypatch):
    """Runs draw nothing in this test."""
    draw_nothing(monkeypatch)


@pytest.fixture(scope="module")
def without_figures():
    """Runs draw nothing."""
    with pytest.MonkeyPatch.context() as patch:
        draw_nothing(patch)
        yield


@pytest.fixture(scope="module")
def programs_kept():
    """Trials of a bench keep their compiled programs, which other trials of the tests share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jedax.bench.trials.free_programs", lambda: None)
        yield


def assert_same_bits(one, other):
    """Two trees hold the same bits (NaN equals NaN)."""
    import jax

    ours, theirs = jax.tree.leaves(one), jax.tree.leaves(other)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def without_seconds(rows):
    """Metrics without the one column that may differ."""
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def assert_same_run(run, other):
    """Two runs found the same, to the last bit, and report the same."""
    assert_same_bits(run.repertoire, other.repertoire)
    assert without_seconds(run.rows) == without_seconds(other.rows)


def wait_until(holds, seconds=60):
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def seal(path):
    """Give the files of a run that a test has changed the checksums they should have, also the facts of checkpoints."""
    from jedax.store import files
    from jedax.store.directory import RunDirectory

    for manifest in path.glob("checkpoint/*/manifest.json"):
        found = json.loads(manifest.read_text())
        manifest.write_text(json.dumps(found | {"facts_sha256": files.digest(found["facts"])}))
    if (path / "manifest.json").exists():
        RunDirectory(path).seal()


def forget_checksums(path):
    """Make of a run what an earlier version left: no checksums but those of the states."""
    (path / "manifest.json").unlink()
    summary = json.loads((path / "summary.json").read_text())
    del summary["checksums"]
    (path / "summary.json").write_text(json.dumps(summary))
    for manifest in path.glob("checkpoint/*/manifest.json"):
        facts = json.loads(manifest.read_text())
        del facts["facts_sha256"]
        manifest.write_text(json.dumps(facts))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty directory that is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
