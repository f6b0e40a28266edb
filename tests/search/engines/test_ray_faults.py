"""A bench on two nodes of which one, or a process, is killed ends with the results of an undisturbed bench."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import assert_same_bits
from tests.search.engines.conftest import assert_same_bench

import jedax
from jedax.bench.bench import BenchProgress, bench
from jedax.bench.grids import Grid, parse_entry
from jedax.search.engines.ray import RayEngine

pytestmark = pytest.mark.nightly

METHODS = ("map-elites,cells=16,offspring=8", "map-elites,cells=64,offspring=8")
TASK = "tests.search.engines.work:Slow"
GRID = Grid("", (TASK,), tuple(map(parse_entry, METHODS)), seeds=1, evaluations=4000)
COMMAND = ["bench", TASK, "--methods", *METHODS, "--seeds", "1", "--evaluations", "4000", "--engine", "ray"]
PATIENCE = 200.0


@pytest.fixture(scope="module")
def cluster(ray_settings, pids):
    from ray.cluster_utils import Cluster

    system = {
        "health_check_initial_delay_ms": 1000,
        "health_check_period_ms": 1000,
        "health_check_failure_threshold": 3,
    }
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": system}
    made = Cluster(initialize_head=True, head_node_args=head)
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, pids):
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    assert bench(GRID, out).failed == ()
    return out


@pytest.fixture
def second_node(cluster):
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    yield node
    if node in cluster.worker_nodes:
        cluster.remove_node(node)


def until(condition, process=None):
    """Wait until a condition holds, and return its value."""
    limit = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < limit, "it never came"
        assert process is None or process.poll() is None, "the command has ended"
        time.sleep(0.05)
    return found


def in_the_middle(out, number):
    """Return the directories of runs that have reported a few times, if there are so many."""
    found = [path.parent for path in out.rglob("metrics.csv") if len(path.read_text().splitlines()) > 3]
    return found if len(found) >= number and not list(out.rglob("summary.json")) else None


def facts_of(path):
    return json.loads((path / "environment.json").read_text())


def node_of(path):
    return facts_of(path)["node_id"]


def disturbed(cluster, out, strike, grid=GRID):
    """Run a bench while `strike` waits in a thread for its moment; an error in the thread fails the test."""
    errors = []

    def watch():
        try:
            strike()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    with RayEngine(address=cluster.address) as engine:
        outcome = bench(grid, out, engine=engine)
    thread.join(PATIENCE)
    assert errors == []
    assert outcome.failed == ()


def test_a_node(cluster, second_node, undisturbed, tmp_path):
    lost = []

    def strike():
        cells = until(lambda: in_the_middle(tmp_path / "out", 2))
        lost.extend(cell for cell in cells if node_of(cell) == second_node.node_id)
        cluster.remove_node(second_node, allow_graceful=False)

    disturbed(cluster, tmp_path / "out", strike)
    (cell,) = lost
    assert "Resumed." in (cell / "log.txt").read_text()
    (elsewhere,) = facts_of(cell)["resumed_on"]
    assert elsewhere["node_id"] != second_node.node_id
    assert_same_bench(tmp_path / "out", undisturbed)


def test_a_process(cluster, second_node, undisturbed, tmp_path, pids):
    killed = []

    def strike():
        until(lambda: in_the_middle(tmp_path / "out", 2))
        killed.append(int(next(iter(pids.iterdir())).name))
        os.kill(killed[0], signal.SIGKILL)

    for marker in pids.iterdir():
        marker.unlink()
    disturbed(cluster, tmp_path / "out", strike)
    assert killed
    logs = [path.read_text() for path in (tmp_path / "out").rglob("log.txt")]
    assert sorted(log.count("Resumed.") for log in logs) == [0, 1]
    assert_same_bench(tmp_path / "out", undisturbed)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_the_driver(cluster, second_node, undisturbed, tmp_path, number, code):
    """After SIGKILL or Ctrl-C the same command continues; after Ctrl-C all runs are saved."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "jedax", *COMMAND, "--address", cluster.address, "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    cells = until(lambda: in_the_middle(out, 2), process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, errors
    if number == signal.SIGINT:
        assert "same command" in errors
        assert [json.loads((cell / "summary.json").read_text())["status"] for cell in cells] == ["interrupted"] * 2
    again = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
    assert again.returncode == 0, again.stderr
    assert [(cell / "log.txt").read_text().count("Resumed.") for cell in cells] == [1, 1]
    assert not [path for path in out.rglob(".*") if path.is_file() or path.is_dir()]
    assert_same_bench(out, undisturbed)


def session_of(pid):
    """Return the session of a process; None: it is gone."""
    try:
        state, _, _, session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
        return None if state == "Z" else int(session)
    except OSError:
        return None


def test_ctrl_c_where_files_are_not_shared(cluster, second_node, undisturbed, tmp_path):
    """The files of unfinished runs come back from the nodes, and the runs continue."""
    out = tmp_path / "out"
    with RayEngine(address=cluster.address, may_share=False) as engine:
        interrupt = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))

        class Watched(BenchProgress):
            def show(self, name, done):
                if done > 1000 and interrupt.ident is None:
                    interrupt.start()

        with pytest.raises(jedax.Interrupted):
            bench(GRID, out, engine=engine, progress=Watched(None))
        summaries = [json.loads(path.read_text()) for path in out.rglob("summary.json")]
        assert [summary["status"] for summary in summaries] == ["interrupted"] * 2
        assert all(0 < summary["evaluations"] < 4000 for summary in summaries)
        assert bench(GRID, out, engine=engine).failed == ()
    assert [path.read_text().count("Resumed.") for path in out.rglob("log.txt")] == [1, 1]
    assert_same_bench(out, undisturbed)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes as Linux shows them")
def test_ctrl_c_in_a_terminal_reaches_all_of_its_processes(ray_settings, tmp_path, pids):
    """The processes of Ray receive it, too: all runs are saved all the same, and no process is left."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "jedax", *COMMAND, "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    cells = until(lambda: in_the_middle(out, 1), process)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, errors
    assert [json.loads((cell / "summary.json").read_text())["status"] for cell in cells] == ["interrupted"] * len(cells)
    numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    until(lambda: not any(session_of(number) == process.pid for number in numbers))


@pytest.mark.parametrize("victim", ["node", "process"])
def test_an_evaluation(cluster, second_node, pids, tmp_path, victim):
    """The search runs in this process, its evaluations on both nodes."""
    method = {"offspring": 64, "cells": 16, "evaluations": 64 * 150, "replicas": 1}
    task = "tests.search.engines.work:patient"
    expected = jedax.run("map-elites", task, **method)
    struck = []

    def strike(report):
        if report.evaluations == 64:  # while a callback lasts, nobody evaluates
            for marker in pids.iterdir():
                marker.unlink()
        elif len(list(pids.iterdir())) == 2 and not struck:
            struck.append(report.evaluations)
            if victim == "node":
                cluster.remove_node(second_node, allow_graceful=False)
            else:
                os.kill(int(next(iter(pids.iterdir())).name), signal.SIGKILL)

    with RayEngine(address=cluster.address, num_workers=2) as engine:
        run = jedax.run("map-elites", task, engine=engine, callbacks=[strike], out=tmp_path / "run", **method)
    assert struck
    assert "or its node was lost" in (tmp_path / "run" / "log.txt").read_text()
    assert_same_bits(run.repertoire, expected.repertoire)
    assert np.all(run.summary["num_failed"] == 0)
