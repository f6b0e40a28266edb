"""Clocks that jump, memory that runs out, a learning method that is killed, and a million parameters."""

import itertools
import os
import random
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.conftest import assert_same_bits, without_seconds

import jedax
from jedax.search.interrupts import Interrupted
from jedax.store.checkup import check_directory
from jedax.store.directory import RunDirectory
from jedax.tasks import Sphere

pytestmark = pytest.mark.usefixtures("without_figures")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")


def interrupt(evaluations):
    """Return a callback that presses Ctrl-C once, when so many evaluations are done."""
    presses = iter([signal.SIGINT])

    def press(report):
        if report.evaluations >= evaluations:
            for number in presses:
                signal.raise_signal(number)

    return press


@pytest.mark.parametrize(
    "jumps", [[3600.0, -3600.0], [-1e6], [1e9], [0.0]], ids=["to and fro", "back", "ahead", "still"]
)
def test_clocks_that_jump_change_no_result(tmp_path, small, arm, monkeypatch, jumps):
    """Back, ahead, to and fro at each look, or not moving at all; both the clock on the wall and the steady one."""
    whole = jedax.run(small, arm, evaluations=8 * 60, report_every=5, seed=3)
    names = ("time", "monotonic", "perf_counter")
    if jumps == [0.0]:
        for name in names:
            monkeypatch.setattr(time, name, lambda: 1000.0)
    else:
        for name in names:
            offsets, real = itertools.cycle([0.0, *jumps]), getattr(time, name)
            monkeypatch.setattr(time, name, lambda offsets=offsets, real=real: real() + next(offsets))
    path = tmp_path / "run"
    with pytest.raises(Interrupted):
        jedax.run(small, arm, evaluations=8 * 60, report_every=5, seed=3, out=path, checkpoint_seconds=0.01,
                  callbacks=[interrupt(8 * 30)])  # fmt: skip
    assert 8 * 30 <= jedax.load(path, task=arm).evaluations < 8 * 60
    resumed = jedax.resume(path, task=arm)
    assert_same_bits(resumed.repertoire, whole.repertoire)
    assert without_seconds(resumed.rows) == without_seconds(whole.rows)
    found = jedax.load(path, task=arm)
    assert found.summary["wall_seconds"] >= 0
    assert min(found.summary["phase_seconds"].values()) >= 0
    assert check_directory(path).is_sound


KILLED = """
import sys, time
from tests.methods.point_mass import PointMass
from jedax.methods.pga_me import PGAMEConfig
import jedax
config = PGAMEConfig(offspring=8, cells=16, cell_layout="grid", critic_hidden=(8,), critic_steps=4, critic_batch=16,
                     buffer=300)
task, path = PointMass(hidden=(8,), steps=10), sys.argv[1]
settings = {"task": task, "callbacks": [lambda report: time.sleep(0.01)]}
if sys.argv[2] == "start":
    jedax.run(config, evaluations=8 * 400, report_every=5, seed=4, out=path, checkpoint_seconds=0,
              draw=None, **settings)
else:
    jedax.resume(path, draw=None, **settings)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.nightly)])
def test_a_method_that_learns_is_killed_and_resumed_bit_for_bit(tmp_path, kills):
    """The critic, its optimiser and the replay buffer are part of the checkpoint."""

    def start(path, how):
        command = [sys.executable, "-c", KILLED, str(path), how]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def finish(process):
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said

    whole, path, chance = tmp_path / "whole", tmp_path / "run", random.Random(kills)
    finish(start(whole, "start"))
    newest, process = 0, start(path, "start")
    for kill in range(kills):
        limit = newest + chance.randrange(8, 8 * 300 // kills)
        while process.poll() is None and not any(
            int(folder.name) > limit for folder in RunDirectory(path).checkpoints()
        ):
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL, f"kill {kill} came too late"
        newest = int(RunDirectory(path).checkpoints()[0].name)
        process = start(path, "resume")
    finish(process)
    from tests.methods.point_mass import PointMass

    task = PointMass(hidden=(8,), steps=10)
    one, other = jedax.load(whole, task=task), jedax.load(path, task=task)
    assert_same_bits(one.repertoire, other.repertoire)
    assert without_seconds(one.rows) == without_seconds(other.rows)
    states = [
        (run / "checkpoint" / f"{one.evaluations:012d}" / "state.safetensors").read_bytes() for run in (whole, path)
    ]
    assert states[0] == states[1]


LIMITED = """
import resource, sys
from pathlib import Path
import jedax, jedax.cli
from jedax.search import loop
save = loop.Search._save_checkpoint
def limited(self):
    save(self)
    if self.evaluations > 8 * 20:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]) * 2**20, resource.RLIM_INFINITY))
loop.Search._save_checkpoint = limited
path = sys.argv.pop(1)
jedax.cli.main(["run", "sphere", "--method", "map-elites", "--dimensions", "200000", "--offspring", "8",
                "--cells", "64", "--cell-layout", "grid", "--evaluations", "240", "--report-every", "1",
                "--checkpoint-seconds", "0", "--out", path])
"""


@linux
def test_a_run_that_the_limit_of_memory_stops_is_resumed(tmp_path):
    """`ulimit -v` at the size that the process has in the middle of its search."""
    path = tmp_path / "run"
    done = subprocess.run([sys.executable, "-c", LIMITED, str(path), "1"], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("jedax: ")
    whole = jedax.run("map-elites", Sphere(dimensions=200_000), offspring=8, cells=64, cell_layout="grid",
                      evaluations=240, report_every=1)  # fmt: skip
    resumed = jedax.resume(path)
    assert_same_bits(resumed.repertoire, whole.repertoire)
    assert check_directory(path).is_sound


@linux
@pytest.mark.parametrize(
    "words",
    [
        ["--cells", "100000000"],
        ["--dimensions", "2000000000"],
        ["--offspring", "2000000000", "--evaluations", "2147483647"],
    ],
)
def test_settings_that_ask_for_more_than_ulimit_allows(tmp_path, words):
    path = tmp_path / "run"
    command = ["bash", "-c", 'ulimit -v 6000000; exec "$@"', "bash", sys.executable, "-m", "jedax", "run",
               "sphere", "--method", "map-elites", *words, "--out", str(path)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("jedax: memory: expected enough for these settings, got ")


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.nightly
@linux
def test_a_million_parameters(tmp_path):
    """16 cells, 4 offspring: a checkpoint of about 80 MB; a run and an `Optimizer`, stopped and continued."""
    params, path = 1_000_000, tmp_path / "run"
    settings = {"offspring": 4, "cells": 16, "cell_layout": "grid"}
    task, before = Sphere(dimensions=params), _peak()
    whole = jedax.run("map-elites", task, evaluations=4 * 20, report_every=1, **settings)
    with pytest.raises(Interrupted):
        jedax.run("map-elites", task, evaluations=4 * 20, report_every=1, out=path, checkpoint_seconds=0, **settings,
                  callbacks=[interrupt(4 * 10)])  # fmt: skip
    began = time.monotonic()
    resumed = jedax.resume(path)
    took = time.monotonic() - began
    assert_same_bits(resumed.repertoire, whole.repertoire)
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 1e6
    print(f"run: directory {size:.0f} MB, resumed in {took:.1f} s, peak {_peak():.0f} MB, {before:.0f} before")  # noqa: T201
    optimizer = jedax.Optimizer(num_params=params, descriptor_bounds=([-1], [1]), evaluations=100, method="map-elites",
                                **settings)  # fmt: skip
    for step in range(6):
        batch = optimizer.ask()
        if step == 3:
            optimizer.save(tmp_path / "optimizer.safetensors")
            other = jedax.Optimizer.load(tmp_path / "optimizer.safetensors")
        if step >= 3:
            np.testing.assert_array_equal(other.ask(), batch)
            other.tell(batch, -(batch**2).mean(axis=1), batch[:, :1])
        optimizer.tell(batch, -(batch**2).mean(axis=1), batch[:, :1])
    assert_same_bits(other.repertoire, optimizer.repertoire)
    size = os.path.getsize(tmp_path / "optimizer.safetensors") / 1e6
    print(f"optimizer: file {size:.0f} MB, peak {_peak():.0f} MB")  # noqa: T201
    assert _peak() - before < 2500
