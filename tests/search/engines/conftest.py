"""Ray with one token for all tests of a process, and comparisons of benches."""

import json
import os

import numpy as np
import pytest

import jedax


@pytest.fixture(scope="session")
def ray_settings():
    os.environ.update({
        "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0", "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": "0" * 64,
    })  # fmt: skip
    pytest.importorskip("ray", reason="needs the extra [ray]")
    return {"num_cpus": 2}


@pytest.fixture(scope="session", autouse=True)
def pids(tmp_path_factory):
    """Return the directory where `tests.search.engines.work` leaves the numbers of its processes."""
    folder = tmp_path_factory.mktemp("pids")
    os.environ["JEDAX_TEST_PIDS"] = str(folder)
    return folder


def layout(out):
    """Return the paths of all files of a bench but checkpoints, which depend on the clock."""
    found = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    return {name for name in found if "/checkpoint/" not in name}


def assert_same_bench(out, expected):
    """Assert that two benches wrote the same files with the same results."""
    assert layout(out) == layout(expected)
    configs = sorted(expected.rglob("config.yaml"))
    assert configs
    for config in configs:
        theirs, ours = config.parent, out / config.parent.relative_to(expected)
        assert (ours / "config.yaml").read_text() == config.read_text()
        assert (ours / "repertoire.safetensors").read_bytes() == (theirs / "repertoire.safetensors").read_bytes()
        assert summary_of(ours) == summary_of(theirs)
        rows = [jedax.load(path).metrics.drop(columns="seconds") for path in (ours, theirs)]
        np.testing.assert_array_equal(rows[0].to_numpy(), rows[1].to_numpy())


def summary_of(path):
    summary = json.loads((path / "summary.json").read_text())
    for name in ("wall_seconds", "evaluations_per_second", "phase_seconds"):
        del summary[name]
    return summary
