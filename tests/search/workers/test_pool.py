"""Worker processes: the same results whatever happens to them, and NaN for solutions that fail at every attempt."""

import errno
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from tests.search.workers.work import sphere

from jedax.errors import JedaxError
from jedax.search.engines import LocalEngine
from jedax.search.workers.pool import Stopped, Worker, WorkerPool
from jedax.tasks.work import Work

GENOTYPES = np.random.default_rng(0).normal(size=(11, 3)).astype(np.float32)
BAD = GENOTYPES.copy()
BAD[4, 0] = 9


@pytest.fixture
def pool():
    """Return a function that opens pools; close them after the test."""
    pools = []

    def make(size=2, seconds=60.0, chunk=3, factory="make", **settings):
        notes = []
        work = Work(f"tests.search.workers.work:{factory}", settings, chunk)
        pools.append(LocalEngine().open_pool(work, size, seconds, note=notes.append))
        return pools[-1], notes

    yield make
    for made in pools:
        made.close()


def assert_evaluated(found, genotypes, failed=()):
    fitness, descriptors = (np.array(values, np.float64) for values in sphere(genotypes))
    fitness[list(failed)], descriptors[list(failed)] = np.nan, np.nan
    np.testing.assert_array_equal(found[0], fitness)
    np.testing.assert_array_equal(found[1], descriptors)
    assert found[0].dtype == found[1].dtype == np.float64


def test_different_numbers_of_descriptors_are_refused(pool):
    made, _ = pool(size=1, chunk=1, factory="uneven")
    with pytest.raises(JedaxError, match="descriptors: expected as many for every solution, got 1 and 2; return"):
        made.evaluate(np.array([[1.0, 2.0], [-1.0, 2.0]]))


@pytest.mark.parametrize(("size", "chunk"), [(1, 3), (2, 1), (3, 100)])
def test_results_in_the_order_of_the_batch(pool, size, chunk):
    made, notes = pool(size, chunk=chunk)
    assert_evaluated(made.evaluate(GENOTYPES), GENOTYPES)
    before = [worker.process.pid for worker in made._workers]
    assert len(before) == min(size, -(-len(GENOTYPES) // chunk))
    assert_evaluated(made.evaluate(GENOTYPES[::-1]), GENOTYPES[::-1])
    assert [worker.process.pid for worker in made._workers] == before
    assert notes == []


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("raise", "the evaluation raised ArithmeticError: out of reach"),
        ("sys.exit", "the evaluation raised SystemExit: 3"),
        ("interrupt", "the evaluation raised KeyboardInterrupt"),
        ("exit", "a worker ended with exit code 7"),
        ("kill", "a worker was killed by SIGKILL"),
        ("real-time signal", "a worker was killed by signal 40"),
        ("hang", "a worker took more than 2 s"),
    ],
)
def test_a_failure_is_retried(pool, tmp_path, how, reason):
    made, notes = pool(marker=str(tmp_path / "marker"), how=how, seconds=2.0)
    assert_evaluated(made.evaluate(BAD), BAD)
    (note,) = notes
    place = r" \(work\.py, line \d+\)" if "raised" in reason else ""
    assert re.fullmatch(f"3 evaluations will be run again: {re.escape(reason)}{place}\\.", note)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("raise", "the evaluation raised ArithmeticError: out of reach"),
        ("sys.exit", "the evaluation raised SystemExit: 3"),
        ("interrupt", "the evaluation raised KeyboardInterrupt"),
        ("exit", "a worker ended with exit code 7"),
    ],
)
def test_a_solution_that_fails_at_every_attempt_fails_alone(pool, how, reason):
    made, notes = pool(how=how)
    assert_evaluated(made.evaluate(BAD), BAD, failed=[4])
    place = r" \(work\.py, line \d+\)" if "raised" in reason else ""
    assert re.fullmatch(f"1 evaluation failed 3 times: {reason}{place}\\.", notes[-1])
    assert made.failed == {4: "died" if how == "exit" else "raised"}
    assert_evaluated(made.evaluate(GENOTYPES), GENOTYPES)


def test_a_problem_that_goes_on_is_noted_when_its_sum_has_one_digit_more(pool):
    made, notes = pool(how="raise")
    for _ in range(12):
        made.evaluate(BAD)
    place = r"the evaluation raised ArithmeticError: out of reach \(work\.py, line \d+\)"
    failed = [note for note in notes if "failed" in note]
    assert re.fullmatch(rf"1 evaluation failed 3 times: {place}\.", failed[0])
    assert re.fullmatch(rf"1 evaluation failed 3 times: {place} \(10 evaluations so far\)\.", failed[1])
    assert len(failed) == 2


def test_a_child_that_returns_from_the_evaluation_ends(pool, tmp_path):
    made, notes = pool(factory="forks", pids=str(tmp_path / "pids"))
    for genotypes in (GENOTYPES, GENOTYPES[::-1]):
        assert_evaluated(made.evaluate(genotypes), genotypes)
    assert notes == []
    children = [int(line) for line in (tmp_path / "pids").read_text().split()]
    assert len(children) == 8
    assert not any(map(is_alive, children))


def test_replies_to_other_requests_are_dropped(pool):
    made, notes = pool(factory="replies_twice")
    for genotypes in (GENOTYPES, GENOTYPES[::-1]):
        assert_evaluated(made.evaluate(genotypes), genotypes)
    assert notes == []


def test_fewer_workers_where_no_more_can_be_started():
    started = []

    def start(work, seconds):
        if len(started) == 5:
            raise OSError(errno.EMFILE, "Too many open files")
        started.append(FakeWorker(1e-4, []))
        return started[-1]

    notes = []
    made = WorkerPool(Work("", {}, 2), 16, 60.0, start, notes.append)
    genotypes = np.random.default_rng(1).normal(size=(400, 3)).astype(np.float32)
    assert_evaluated(made.evaluate(genotypes), genotypes)
    assert notes == ["Only 2 of 16 workers are used: no other could be started (Too many open files)."]
    assert made._workers == started[:2]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs the limits of Linux")
def test_a_limit_of_open_files():
    """16 workers need 32 files beside those of the search."""
    script = """
        import resource
        import numpy as np
        from jedax.search.engines import LocalEngine
        from jedax.tasks.work import Work
        resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
        pool = LocalEngine().open_pool(Work("tests.search.workers.work:make", {}, 1), 16, 60, note=print)
        print(np.isfinite(pool.evaluate(np.zeros((64, 3), np.float32))[0]).all())
        pool.close()
    """
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert re.fullmatch(r"Only \d of 16 workers are used: [^\n]*\(Too many open files\)\.\nTrue\n", found.stdout)
    assert found.stderr == ""


@pytest.mark.parametrize(("reader", "printed"), [("head -c 5", "xxxxx"), ("wc -c", "400004\n")])
def test_a_worker_may_print_even_if_nobody_reads(tmp_path, reader, printed):
    script = """
        import sys
        import numpy as np
        from jedax.search.engines import LocalEngine
        from jedax.tasks.work import Work
        pool = LocalEngine().open_pool(Work("tests.search.workers.work:prints", {}, 1), 1, 60)
        fitness, _ = pool.evaluate(np.zeros((2, 3), np.float32))
        open(sys.argv[1], "w").write(f"{np.isfinite(fitness).all()} {pool.failed}")
        pool.close()
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(script))
    line = f"{sys.executable} {tmp_path}/script.py {tmp_path}/found 2>&1 | {reader}"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=env)
    assert (tmp_path / "found").read_text() == "True {}"
    assert found.stdout == printed


def test_not_even_one_worker():
    def start(work, seconds):
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    made = WorkerPool(Work("", {}, 2), 16, 60.0, start)
    with pytest.raises(JedaxError, match=r"workers: expected a machine that can start one, got Resource temporarily"):
        made.evaluate(GENOTYPES)


class FakeWorker(Worker):
    """Replies at once, and pretends that each chunk took `seconds`; it dies of the parameters in `deadly`."""

    max_failed_starts = 3
    loads: list[list[int]]

    def __init__(self, seconds, loads, deadly=()):
        super().__init__(deadline=np.inf)
        self.seconds, self.loads, self.deadly, self.replies = seconds, loads, deadly, [("ok", None)]

    def send(self, inputs):
        self.loads.append([len(genotypes) for (genotypes,) in inputs])
        self.sent_at -= self.seconds * len(inputs)
        is_dead = any(genotypes[0, 0] in self.deadly for (genotypes,) in inputs)
        self.replies = None if is_dead else [("ok", sphere(genotypes)) for (genotypes,) in inputs]

    @staticmethod
    def wait(workers, seconds):
        return list(workers)

    def receive(self):
        return self.replies

    def exit_reason(self):
        return "a worker is gone"

    def close(self):
        pass


def evaluate_with_fakes(genotypes, seconds, deadly=()):
    """Return results, the sizes of the chunks of each load, and notes; no time passes but what the workers pretend."""
    notes, loads = [], []
    made = WorkerPool(Work("", {}, 2), 2, 60.0, lambda work, limit: FakeWorker(seconds, loads, deadly), notes.append)
    with mock.patch("jedax.search.workers.pool.time", SimpleNamespace(monotonic=lambda: 0.0)):
        return made.evaluate(genotypes), loads, notes


def test_quick_chunks_are_sent_together():
    """At most half of a fair share, so that no worker finishes long after the others."""
    genotypes = np.random.default_rng(1).normal(size=(400, 3)).astype(np.float32)
    found, loads, _ = evaluate_with_fakes(genotypes, 1e-4)
    assert_evaluated(found, genotypes)
    sizes = [len(load) for load in loads]
    assert sum(sizes) == 200
    assert sizes[:3] == [1, 1, 50]  # the time of the first two is not known yet
    assert sizes[2:] == sorted(sizes[2:], reverse=True)
    assert sizes[-1] == 1
    assert len(sizes) < 30
    assert {length for load in loads for length in load} == {2}


@pytest.mark.parametrize(("seconds", "most"), [(1.0, 1), (0.01, 5)])
def test_slow_chunks_are_not(seconds, most):
    _, loads, _ = evaluate_with_fakes(np.zeros((400, 3), np.float32), seconds)
    assert max(map(len, loads)) == most


def test_chunks_of_a_lost_load_are_sent_alone():
    genotypes = np.arange(600, dtype=np.float32).reshape(200, 3)
    found, loads, notes = evaluate_with_fakes(genotypes, 1e-4, deadly=(genotypes[150, 0],))
    assert_evaluated(found, genotypes, failed=[150])
    assert re.fullmatch(r"\d\d evaluations will be run again: a worker is gone\.", notes[0])
    assert notes[1:] == ["1 evaluation failed 3 times: a worker is gone."]
    assert loads[-4:] == [[2], [1], [1], [1]]  # the innocent solution once more, and the deadly one twice


def test_all_solutions_fail(pool):
    made, _ = pool(how="raise", bad=-100.0)
    fitness, descriptors = made.evaluate(GENOTYPES[:2])
    assert np.isnan(fitness).all()
    assert np.isnan(descriptors).all()
    assert len(fitness) == len(descriptors) == 2


def test_workers_that_do_not_start(pool):
    made, _ = pool(factory="dies_at_start")
    with pytest.raises(JedaxError, match=r"workers: expected workers that start, got 3 that did not \(.*code 3"):
        made.evaluate(GENOTYPES)
    made, _ = pool(factory="nothing_like_it")
    with pytest.raises(JedaxError, match=r"worker: expected 'nothing_like_it' in tests.search.workers.work, got none"):
        made.evaluate(GENOTYPES)


def test_workers_that_do_not_start_for_long_are_told_once(pool, monkeypatch):
    monkeypatch.setattr("jedax.search.workers.pool._PATIENCE_SECONDS", 0.05)
    made, notes = pool(factory="starts_slowly")
    assert_evaluated(made.evaluate(GENOTYPES), GENOTYPES)
    assert notes == ["No worker has started for 0.05 s: is a core free for one?"]
    assert_evaluated(made.evaluate(GENOTYPES), GENOTYPES)
    assert len(notes) == 1


def test_should_stop_ends_the_workers(pool):
    made, _ = pool(how="hang", bad=-100.0)
    made.should_stop = lambda: bool(made._workers and made._workers[0].chunks)
    with pytest.raises(Stopped):
        made.evaluate(GENOTYPES)
    assert made._workers == []


def test_close_ends_all_processes(pool):
    made, _ = pool()
    made.evaluate(GENOTYPES)
    processes = [worker.process for worker in made._workers]
    made.close()
    assert [process.returncode for process in processes] == [-signal.SIGKILL] * 2


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes as Linux shows them")
def test_workers_end_with_the_search_even_while_they_evaluate():
    """The search is a script without a main guard."""
    script = """
        import threading, time
        import numpy as np
        from jedax.search.engines import LocalEngine
        from jedax.tasks.work import Work
        pool = LocalEngine().open_pool(Work("tests.search.workers.work:make", {"how": "hang", "bad": -100.0}, 1), 1, 60)
        threading.Thread(target=pool.evaluate, args=[np.zeros((1, 3), np.float32)], daemon=True).start()
        while not pool._workers or not pool._workers[0].chunks:
            time.sleep(0.01)
        print(pool._workers[0].process.pid, flush=True)
        time.sleep(60)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    assert is_alive(pid)
    process.kill()
    process.communicate()
    limit = time.monotonic() + 20
    while is_alive(pid):
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_programs_that_an_evaluation_started_end_with_it(pool, tmp_path):
    made, _ = pool(1, seconds=60.0, factory="starting", file=str(tmp_path / "pid"))
    made.should_stop = (tmp_path / "pid").exists
    with pytest.raises(Stopped):
        made.evaluate(GENOTYPES[:1])
    number, stdin = (tmp_path / "pid").read_text().split()
    assert stdin == "0"  # bytes that the program could read
    limit = time.monotonic() + 20
    while is_alive(int(number)):
        assert time.monotonic() < limit
        time.sleep(0.02)
