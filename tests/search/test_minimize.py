"""`jedax.minimize`: scipy's result, bounds, constraints, spaces, workers and failures."""

import contextlib
import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, OptimizeResult, rosen
from tests.conftest import wait_until
from tests.search.minimized import (
    OPTIMUM,
    always_deadly,
    always_hanging,
    deadly,
    hanging,
    leaving,
    light,
    noting,
    solving,
    sometimes_slow,
    sphere,
)

import jedax
from jedax.search.minimize import EVALUATIONS_PER_PARAMETER

BOX = ([-3.0] * 3, [3.0] * 3)


def test_sphere_gives_the_result_of_scipy():
    found = jedax.minimize(sphere, bounds=BOX, evaluations=1500)
    assert isinstance(found, OptimizeResult)
    assert found.success
    assert (found.status, found.violation, found.parameters) == (0, 0, None)
    assert found.fun < 1e-8
    assert found.fun == sphere(found.x)
    np.testing.assert_allclose(found.x, OPTIMUM, atol=1e-3)
    assert 1490 <= found.nfev <= 1500
    assert found.nit == found.optimizer.generations > 100
    assert found.message == found.optimizer.stop_reason
    assert found.optimizer.best.fitness == found.fun


def test_default_budget_and_seeds():
    one, other = (jedax.minimize(rosen, [1.0, 0.0], bounds=(-1, 2), seed=3) for _ in range(2))
    assert 2 * EVALUATIONS_PER_PARAMETER - 8 <= one.nfev <= 2 * EVALUATIONS_PER_PARAMETER
    assert (one.x == other.x).all()


def test_rosenbrock_with_an_optimum_at_the_bound():
    seen = []

    def fun(x):
        seen.append(x)
        return rosen(x)

    found = jedax.minimize(fun, [0.0, 0.0], bounds=Bounds([-2, -2], [0.5, 2]), evaluations=2000)
    np.testing.assert_allclose(found.x, [0.5, 0.25], atol=1e-4)
    assert (np.array(seen) <= [0.5, 2]).all()
    assert (seen[0] == 0).all()


@pytest.mark.parametrize(
    "bounds",
    [
        ([-5, 0], [10, 15]),
        (np.array([-5, 0]), np.array([10, 15])),
        [(-5, 10), (0, 15)],
        Bounds([-5, 0], [10, 15]),
    ],
)
def test_forms_of_bounds(bounds):
    seen = []
    jedax.minimize(lambda x: seen.append(x) or 0.0, bounds=bounds, evaluations=200)
    lows, highs = np.min(seen, 0), np.max(seen, 0)
    assert (lows >= [-5, 0]).all()
    assert (highs <= [10, 15]).all()
    assert lows[0] < -1
    assert highs[1] > 11


@pytest.mark.parametrize("arguments", [{"x0": [1.0, 2.0, 3.0]}, {"num_params": 3}, {"num_params": 3, "sigma0": 0.5}])
@pytest.mark.parametrize("bounds", [Bounds(-5, 5), Bounds([-5], 5), Bounds(-5, [5] * 3), ([-5], [5]), (-5, 5)])
def test_one_low_and_one_high_hold_for_all_parameters(bounds, arguments):
    optimizer = jedax.Optimizer(bounds=bounds, **arguments)
    assert [(one.low, one.high) for one in optimizer.task.space.parameters] == [(-5, 5)] * 3


@pytest.mark.parametrize(
    "constraints",
    [
        lambda x: x[0] + x[1] - 1,
        LinearConstraint([[1, 1]], -np.inf, 1),
        [NonlinearConstraint(lambda x: x[0] + x[1], -np.inf, 1)],
    ],
)
def test_constrained_optimum(constraints):
    def fun(x):
        return (x[0] - 2) ** 2 + (x[1] - 1) ** 2

    found = jedax.minimize(fun, bounds=([-3, -3], [3, 3]), constraints=constraints, evaluations=3000)
    assert found.success
    assert found.violation == 0
    np.testing.assert_allclose(found.x, [1, 0], atol=2e-2)
    assert found.x.sum() <= 1 + 1e-9


def test_equalities_hold_within_a_tolerance():
    circle = NonlinearConstraint(lambda x: x @ x, 1, 1)
    found = jedax.minimize(lambda x: x[0], bounds=([-2, -2], [2, 2]), constraints=circle, evaluations=3000)
    assert found.success
    assert abs(found.x @ found.x - 1) <= 1e-4
    assert found.fun == pytest.approx(-1, abs=0.02)


def test_no_feasible_solution_is_said():
    found = jedax.minimize(sphere, bounds=BOX, constraints=lambda x: 1 + abs(x[0]), evaluations=400)
    assert not found.success
    assert found.status == 1
    assert found.violation == pytest.approx(1, abs=0.05)
    assert "No solution was feasible" in found.message


def test_space_of_integers_and_choices():
    def fun(design):
        assert isinstance(design["teeth"], int)
        return abs(design["teeth"] - 17) + {"steel": 0, "brass": 3}[design["metal"]] + (design["width"] - 0.5) ** 2

    space = {"teeth": jedax.Integer(8, 60), "metal": ["steel", "brass"], "width": (0.0, 1.0)}
    found = jedax.minimize(fun, space=space, evaluations=2000)
    assert found.parameters["teeth"] == 17
    assert found.parameters["metal"] == "steel"
    assert found.fun < 1e-4
    np.testing.assert_allclose(found.x, [17, 0, found.parameters["width"]])


def test_descriptors_fill_a_repertoire():
    found = jedax.minimize(sphere, bounds=BOX, descriptors=lambda x: x[:2], evaluations=2000, cells=64)
    assert found.optimizer.repertoire.filled.sum() > 15
    np.testing.assert_array_equal(found.descriptors, found.x[:2])
    bounds = ([-3, -3], [3, 3])
    pair = jedax.minimize(lambda x: (sphere(x), x[:2]), bounds=BOX, descriptor_bounds=bounds, evaluations=1000)
    assert pair.fun < 0.1


def test_vectorised_functions_take_a_generation():
    def fun(x):
        assert x.ndim == 2
        return np.square(x - OPTIMUM).sum(axis=1)

    limits = {"constraints": LinearConstraint([1, 0, 0], 0.5, 3), "descriptors": lambda x: x[:, 1:], "vectorised": True}
    found = jedax.minimize(fun, bounds=BOX, evaluations=2000, **limits)
    assert found.x[0] >= 0.5
    assert found.fun == pytest.approx(0.04, abs=0.02)


def test_processes_do_not_import_jax_and_find_the_optimum():
    found = jedax.minimize(light, bounds=BOX, evaluations=800, workers=2)
    assert found.success
    assert found.fun < 1e-2
    assert found.nfev <= 800


def test_a_process_for_each_core(monkeypatch):
    monkeypatch.setattr("jedax.search.minimize.num_cores", lambda: 3)
    sizes = set()

    def count(found):
        sizes.add(len(multiprocessing.active_children()))

    jedax.minimize(light, bounds=BOX, evaluations=100, workers=-1, callback=count)
    assert sizes == {3}


@pytest.mark.slow
def test_a_slow_evaluation_holds_nobody_up(tmp_path, monkeypatch):
    monkeypatch.setenv("JEDAX_TEST_NOTES", str(tmp_path / "notes"))
    found = jedax.minimize(noting, [2.5, 0, 0], sigma0=1e-3, bounds=BOX, evaluations=16, workers=2)
    assert found.nfev == 16
    times = sorted(tuple(map(float, line.split())) for line in (tmp_path / "notes").read_text().splitlines())
    assert len(times) == 16
    assert any(begin < end for (_, end), (begin, _) in pairwise(times))  # two at a time


def test_a_process_that_dies_is_a_failure(monkeypatch, tmp_path):
    """Of the solution that it evaluated, and of no other."""
    monkeypatch.setenv("JEDAX_TEST_NOTES", str(tmp_path / "deaths.txt"))
    found = jedax.minimize(deadly, [1.5, 0, 0], sigma0=1.0, bounds=BOX, evaluations=150, workers=4)
    deaths = len((tmp_path / "deaths.txt").read_text().splitlines())
    assert f" {deaths} of {found.nfev} evaluations failed, first with: the end of its worker process" in found.message
    assert found.success


def test_a_function_like_map():
    with ThreadPoolExecutor(2) as pool:
        found = jedax.minimize(sphere, bounds=BOX, evaluations=800, workers=pool.map)
    same = jedax.minimize(sphere, bounds=BOX, evaluations=800, workers=map)
    assert found.fun < 1e-2
    assert (found.x == same.x).all()


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_results_are_told_one_by_one_or_together_with_the_same_outcome(monkeypatch, seconds):
    """As with `ask(1)`, also where evaluations fail; quick ones are told together."""
    monkeypatch.setattr("jedax.search.minimize._TOGETHER_SECONDS", seconds)
    told = []
    tell = jedax.Optimizer.tell

    def noting(self, genotypes, *results, **more):
        told.append(len(genotypes))
        tell(self, genotypes, *results, **more)

    def failing(x):
        return np.nan if x[0] > 1 else sphere(x)

    optimizer = jedax.Optimizer(bounds=BOX, evaluations=400, minimise=True)
    while not optimizer.done:
        x = optimizer.ask(1)
        optimizer.tell(x, [failing(x[0])])
    monkeypatch.setattr(jedax.Optimizer, "tell", noting)
    found = jedax.minimize(failing, bounds=BOX, evaluations=400)
    assert max(told) == (1 if seconds == 0 else optimizer.config.population)
    assert found.nfev == sum(told)
    assert found.optimizer.num_failed == optimizer.num_failed > 0
    np.testing.assert_array_equal(found.x, optimizer.best.genotype)


def test_failures_are_counted_and_the_first_is_reported():
    def fun(x):
        if x[0] > 1:
            raise ZeroDivisionError("no value here")
        return sphere(x)

    found = jedax.minimize(fun, bounds=BOX, evaluations=800)
    assert found.success
    assert found.fun < 1e-2
    failures = found.nfev - found.optimizer.evaluations
    assert failures > 0
    text = (
        f"{found.optimizer.num_failed:,} of {found.nfev:,} evaluations failed, first with: ZeroDivisionError: no value"
    )
    assert text in found.message
    half = jedax.minimize(lambda x: np.nan if x[0] > 1 else sphere(x), bounds=BOX, evaluations=200)
    assert "a result of fun that is not finite" in half.message


def test_a_search_that_has_had_a_value_does_not_give_up():
    values = iter([1.0])
    with pytest.warns(UserWarning, match="evaluations failed; the search goes on"):
        found = jedax.minimize(lambda x: next(values, np.nan), bounds=BOX, callback=lambda found: found.nfev > 200)
    assert found.fun == 1
    assert f"{found.nfev - 1} of {found.nfev} evaluations failed" in found.message


def test_constraints_that_are_not_numbers_are_failures():
    found = jedax.minimize(sphere, bounds=BOX, constraints=lambda x: np.nan if x[0] > 1 else -1.0, evaluations=200)
    assert found.x[0] <= 1
    assert "a result of constraints that is not finite" in found.message


def test_failures_alone_are_an_error_and_the_first_is_told_at_once():
    calls = []

    def fun(x):
        calls.append(x)
        raise KeyError("weight")

    message = "evaluations: expected one that succeeds, got 100 that failed, first with KeyError: 'wei"
    with (
        pytest.warns(UserWarning, match="the first evaluation failed with KeyError: 'weight'; the search goes on"),
        pytest.raises(jedax.JedaxError, match=message),
    ):
        jedax.minimize(fun, bounds=BOX)
    assert 100 <= len(calls) < 120  # whole generations
    calls.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="the first evaluation failed"):
            jedax.minimize(fun, bounds=BOX)
    assert len(calls) < 20


def test_a_target_ends_the_search():
    found = jedax.minimize(sphere, bounds=BOX, target=1e-3)
    assert found.success
    assert found.fun <= 1e-3
    assert found.nfev < 500
    assert found.message == "The target 0.001 is reached."
    limited = jedax.minimize(sphere, bounds=BOX, constraints=lambda x: 1 - x[0], target=1e-3, evaluations=200)
    assert limited.message == limited.optimizer.stop_reason  # no feasible solution has that value


def test_seconds_end_the_search():
    def slow(x):
        time.sleep(0.02)
        return sphere(x)

    found = jedax.minimize(slow, bounds=BOX, max_seconds=0.01)
    assert found.success
    assert 0 < found.nfev < 100
    assert found.message == "The seconds have passed."


def test_seconds_end_worker_processes_that_hang(monkeypatch, tmp_path):
    monkeypatch.setenv("JEDAX_TEST_NOTES", str(tmp_path / "notes"))
    found = jedax.minimize(hanging, bounds=BOX, workers=2, max_seconds=10)
    assert found.message == "The seconds have passed."
    assert found.fun < 40


def test_seconds_pass_before_the_first_evaluation_ends():
    with pytest.raises(jedax.JedaxError, match=r"^evaluations: .*, got none that has ended; correct"):
        jedax.minimize(always_hanging, bounds=BOX, workers=2, max_seconds=2)


@pytest.mark.parametrize("workers", [1, 3])
def test_an_evaluation_that_takes_too_long_is_a_failure(workers, monkeypatch, tmp_path):
    """The program that it has started ends, too."""
    monkeypatch.setenv("JEDAX_TEST_NOTES", str(tmp_path / "notes"))
    limits = {"bounds": BOX, "sigma0": 1.0, "evaluations": 60, "workers": workers, "evaluation_timeout": 0.5}
    found = jedax.minimize(solving, [1.5, 0, 0], **limits)
    assert found.success
    programs = list(map(int, (tmp_path / "notes").read_text().splitlines()))
    assert f" {len(programs)} of {found.nfev} evaluations failed, first with: no result after 0.5 s." in found.message
    wait_until(lambda: not any(map(is_running, programs)), 60)


def test_programs_of_an_evaluation_end_with_the_search(monkeypatch, tmp_path):
    notes = tmp_path / "notes"
    monkeypatch.setenv("JEDAX_TEST_NOTES", str(notes))

    def interrupt():
        wait_until(lambda: notes.exists() and notes.read_text().count("\n") == 2, 120)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    found = jedax.minimize(solving, [1.5, 0, 0], sigma0=1.0, bounds=BOX, workers=2)
    thread.join()
    assert found.status == 2
    programs = list(map(int, notes.read_text().splitlines()))
    assert len(programs) == 2
    wait_until(lambda: not any(map(is_running, programs)), 60)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workers": map}, "with a function as workers"),
        ({"vectorised": True}, "with vectorised=True"),
        ({"evaluation_timeout": 0}, "expected seconds above 0, got 0"),
        ({"evaluation_timeout": "1 s"}, "expected a finite number"),
    ],
)
def test_unusable_timeouts(given, message):
    with pytest.raises(jedax.JedaxError, match=f"^evaluation_timeout: .*{message}"):
        jedax.minimize(sphere, bounds=BOX, **{"evaluation_timeout": 1.0, **given})


@pytest.mark.filterwarnings("ignore:the first evaluation failed")  # with two processes another one may end first
@pytest.mark.parametrize("workers", [1, 2])
def test_an_evaluation_that_leaves_the_program_is_a_failure(workers):
    found = jedax.minimize(leaving, bounds=BOX, evaluations=200, workers=workers)
    assert found.success
    assert "evaluations failed, first with: SystemExit: no licence." in found.message


@pytest.mark.parametrize(
    ("strange", "reason"),
    [
        ("ERR", "fun: expected numbers of shape (1,), got text; return a number."),
        (np.zeros(0), "fun: expected shape (1,), got (0,); return a number."),
        ((1.0, 2.0), 'fun: expected numbers, got (1.0, 2.0); give descriptor_bounds, such as "measure"'),
    ],
)
def test_a_strange_result_after_others_is_a_failure(strange, reason):
    results = iter([1.0] * 20 + [strange])
    found = jedax.minimize(lambda x: next(results, 2.0), bounds=BOX, evaluations=60)
    assert found.fun == 1
    assert f"1 of {found.nfev} evaluations failed, first with: {reason}" in found.message


@pytest.mark.parametrize("strange", [[], [1.0], [1.0, 2.0, 3.0], True])
def test_strange_constraints_after_others_are_a_failure(strange):
    results = iter([[-1.0, -1.0]] * 20 + [strange])
    limits = {"constraints": lambda x: next(results, [-1.0, -1.0])}
    found = jedax.minimize(sphere, bounds=BOX, evaluations=60, **limits)
    assert found.success
    assert f"1 of {found.nfev} evaluations failed, first with: " in found.message


@pytest.mark.parametrize("given", [{"target": "low"}, {"target": np.nan}, {"max_seconds": []}])
def test_targets_and_seconds_that_are_no_numbers(given):
    with pytest.raises(jedax.JedaxError, match=f"{next(iter(given))}: expected a number"):
        jedax.minimize(sphere, bounds=BOX, **given)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("maxfev", "evaluations"), ("pop_size", "population"), ("ftarget", "target"), ("measures", "descriptors")],
)
def test_names_of_other_libraries_are_translated(theirs, ours):
    with pytest.raises(jedax.JedaxError, match=f"unknown name '{theirs}'; it is called '{ours}' here"):
        jedax.minimize(sphere, bounds=BOX, **{theirs: 1})


def test_maximising_is_explained():
    with pytest.raises(jedax.JedaxError, match="unknown name 'maximize'; leave it out: return minus the value"):
        jedax.minimize(sphere, bounds=BOX, maximize=True)
    with pytest.raises(jedax.JedaxError, match="'maximise'; leave it out: fitness is maximised without minimise=True"):
        jedax.Optimizer(3, maximise=True)


def test_a_callback_is_told_that_the_search_goes_on():
    seen = []
    jedax.minimize(sphere, bounds=BOX, evaluations=40, callback=seen.append)
    assert {(one.success, one.status, one.message) for one in seen} == {(False, -1, "The search goes on.")}


def test_the_best_solution_may_lie_in_a_corner():
    """Values above the optimum; CMA-ES that learned from reflections at the bounds ended at 10 to 42."""
    weights = np.arange(1, 11)
    for seed in range(3):
        found = jedax.minimize(lambda x: weights @ (x + 5), bounds=([-5] * 10, [5] * 10), evaluations=1000, seed=seed)
        assert found.fun < 3


def test_many_failures_in_a_row_are_said():
    calls = []

    def fun(x):
        calls.append(x)
        if len(calls) > 30:
            raise OSError("no licence")
        return sphere(x)

    with pytest.warns(UserWarning, match=r"the last 1\d\d evaluations failed; the search goes on"):
        jedax.minimize(fun, bounds=BOX, evaluations=100)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tol": 1e-8}, "unknown name 'tol'; no tolerance ends a search, as ES restart: give target="),
        ({"args": (1,)}, "unknown name 'args'; give functools"),
        ({"method": "cma-es"}, "method: expected a method, got 'cma-es', a strategy; give es='cma-es'"),
    ],
)
def test_what_others_call_otherwise(arguments, message):
    with pytest.raises(jedax.JedaxError, match=message):
        jedax.minimize(sphere, bounds=BOX, **arguments)


def test_the_function_that_raises_is_named():
    message = "first with ZeroDivisionError: division by zero, raised by constraints; correct that"
    raised = pytest.raises(jedax.JedaxError, match=message)
    with pytest.warns(UserWarning, match="the first evaluation failed"), raised:
        jedax.minimize(sphere, bounds=BOX, constraints=lambda x: 1 / 0)


def test_a_function_without_a_result_is_named():
    with pytest.raises(jedax.JedaxError, match="first with None, returned by constraints, instead of numbers"):
        jedax.minimize(sphere, bounds=BOX, constraints=lambda x: None)


def test_callback_sees_results_and_stops():
    seen = []

    def callback(intermediate_result):
        seen.append(intermediate_result.fun)
        return len(seen) == 5

    found = jedax.minimize(sphere, bounds=BOX, callback=callback)
    assert seen == sorted(seen, reverse=True)
    assert (found.success, found.status, found.nit) == (False, 99, 5)
    assert found.message.startswith("Stopped by the callback")
    assert found.fun == seen[-1]

    def change(result):
        result.x[:] = 99

    found = jedax.minimize(sphere, bounds=BOX, callback=change, evaluations=200)
    assert found.fun == sphere(found.x)

    def stop(result):
        raise StopIteration

    assert jedax.minimize(sphere, bounds=BOX, callback=stop).nit == 1


def test_interrupt_gives_the_best_so_far():
    calls = []

    def fun(x):
        calls.append(x)
        if len(calls) == 100:
            raise KeyboardInterrupt
        return sphere(x)

    found = jedax.minimize(fun, bounds=BOX)
    assert (found.success, found.status, found.nfev) == (False, 2, 99)
    assert found.fun == min(map(sphere, calls[:99]))
    assert "Ctrl-C" in found.message


def test_interrupt_before_any_result():
    def fun(x):
        raise KeyboardInterrupt

    assert jedax.minimize(fun, bounds=BOX).message == "Stopped by Ctrl-C."


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupt_that_python_drops_ends_the_search(request):
    """As in a callback of the garbage collection, which prints the exception and goes on."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    calls = []

    def fun(x):
        calls.append(x)
        if len(calls) == 50:
            with contextlib.suppress(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1)
        return sphere(x)

    found = jedax.minimize(fun, bounds=BOX)
    assert (found.status, found.nfev < 100) == (2, True)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_handler_of_the_user_decides(request):
    caught = []
    before = signal.signal(signal.SIGINT, lambda number, frame: caught.append(number))
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    found = jedax.minimize(
        sphere, bounds=BOX, evaluations=200, callback=lambda found: os.kill(os.getpid(), signal.SIGINT)
    )
    assert (found.status, len(caught) > 5) == (0, True)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_interrupt_ends_worker_processes(request):
    # A shell may start its background jobs, such as checks, with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    sent = []

    def interrupt(found):
        if not sent:
            sent.append(os.kill(os.getpid(), signal.SIGINT))

    settings = {"sigma0": 1e-3, "bounds": BOX, "workers": 2, "evaluations": 2000, "callback": interrupt}
    found = jedax.minimize(sometimes_slow, [2.9, 0, 0], **settings)
    assert found.status == 2
    assert found.nfev < 1000
    wait_until(lambda: not multiprocessing.active_children(), 60)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_worker_processes_end_with_a_killed_parent(tmp_path):
    script = tmp_path / "search.py"
    script.write_text(
        "import os, time, jedax\n"
        "def f(x):\n    open(f'worker-{os.getpid()}', 'w').close()\n    time.sleep(0.01)\n    return x @ x\n"
        "if __name__ == '__main__':\n    jedax.minimize(f, [1., 2.], workers=2, evaluations=100_000)\n"
    )
    parent = subprocess.Popen([sys.executable, str(script)], cwd=tmp_path)
    wait_until(lambda: len(list(tmp_path.glob("worker-*"))) == 2, 120)
    parent.kill()
    parent.wait()
    workers = [int(path.name.partition("-")[2]) for path in tmp_path.glob("worker-*")]
    wait_until(lambda: not any(is_running(pid) for pid in workers), 60)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")  # one that has ended may wait for another parent to notice
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bounds": [[-2, -1], [3, 4]]}, "bounds: expected .* or a list of tuples"),
        ({"bounds": 3}, "bounds: expected"),
        ({}, "x0: expected x0, bounds or space"),
        ({"x0": [(-1, 1), (-2, 2)]}, "x0: expected one number per parameter, .*write bounds=... if these are bounds"),
        ({"x0": {"a": (-1, 1)}}, "x0: expected one number per parameter, .*write space=... if these are bounds"),
        ({"x0": np.ones((3, 2))}, "x0: expected one number per parameter"),
        ({"x0": Bounds([0, 0], [1, 1])}, "x0: expected one number per parameter"),
        ({"bounds": BOX, "workers": 0}, "workers: expected a number of processes"),
        ({"bounds": BOX, "workers": True}, "workers: expected a number of processes"),
        ({"bounds": BOX, "workers": 2, "vectorised": True}, "workers: expected 1"),
        ({"bounds": BOX, "workers": map, "vectorised": True}, "workers: expected 1"),
        (
            {"bounds": BOX, "constraints": {"type": "ineq"}},
            r'constraints: expected no dict, .*\(fun, 0, inf\) for "ineq"',
        ),
        ({"bounds": BOX, "evaluations": 0}, "evaluations: expected a whole number"),
        ({"bounds": BOX, "descriptors": 3}, "descriptors: expected a function"),
        ({"bounds": BOX, "popsize": 3}, "popsize"),
        ({"bounds": BOX, "samples_per_evaluation": 2}, "samples_per_evaluation: expected 1"),
        (
            {"space": {"a": (0, 1), "b": (0, 1)}, "constraints": LinearConstraint([1, 1], 0, 1)},
            "no LinearConstraint with space",
        ),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    with pytest.raises(jedax.JedaxError, match=message):
        jedax.minimize(sphere, **arguments)


@pytest.mark.parametrize(
    ("fun", "message"),
    [
        (lambda x: "text", "fun: expected numbers of shape"),
        (lambda x: [1.0, 2.0], "fun: expected shape"),
        (lambda x: None if x[0] > 9 else [[1.0], [2.0, 3.0]], "fun: expected numbers"),
        (lambda x: (1.0, [0.0, 0.0]), "give descriptor_bounds"),
    ],
)
def test_functions_that_return_something_else(fun, message):
    with pytest.raises(jedax.JedaxError, match=message):
        jedax.minimize(fun, bounds=BOX)


def test_constraints_that_are_truth_values():
    """A user may mean what must hold, and jedax what must not."""
    with pytest.raises(jedax.JedaxError, match=r"^constraints: expected numbers, above 0 .*, got truth values"):
        jedax.minimize(sphere, bounds=BOX, constraints=lambda x: x[0] > 0, evaluations=100)


def test_functions_that_processes_cannot_import():
    with pytest.raises(jedax.JedaxError, match=r"workers: expected functions that processes can import, got .*lambda"):
        jedax.minimize(lambda x: 0.0, bounds=BOX, workers=2)
    with pytest.raises(jedax.JedaxError, match="fun: expected evaluations that return, got 20 that ended"):
        jedax.minimize(always_deadly, bounds=BOX, workers=2)


def test_a_script_without_a_guard_is_told(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import jedax\ndef f(x): return x @ x\njedax.minimize(f, [1., 2.], workers=2)\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    told = [line for line in done.stderr.splitlines() if "workers: expected processes that start" in line]
    assert len(told) == 1  # what the processes print comes before or after it
    assert "__main__" in told[0]


ONE_DIES = """
import multiprocessing, os
def sphere(x): return float(x @ x)
if multiprocessing.current_process().name != "MainProcess":
    try:
        os.mkdir(__file__ + ".first")
    except FileExistsError:
        pass
    else:
        os._exit(1)
"""


def test_other_processes_end_where_one_does_not_start(monkeypatch, tmp_path):
    (tmp_path / "one_dies.py").write_text(ONE_DIES)
    monkeypatch.syspath_prepend(tmp_path)
    fun = importlib.import_module("one_dies").sphere
    with pytest.raises(jedax.JedaxError, match=r"^workers: expected processes that start"):
        jedax.minimize(fun, bounds=BOX, workers=3)
    wait_until(lambda: not multiprocessing.active_children(), 60)


def test_a_function_like_map_that_loses_results():
    message = r"^workers: expected 8 results for as many solutions, got 7; give a function like map"
    with pytest.raises(jedax.JedaxError, match=message):
        jedax.minimize(sphere, bounds=BOX, population=8, workers=lambda fun, xs: list(map(fun, xs))[:-1])


def test_functions_may_change_what_they_are_given():
    def changing(x):
        x -= 1
        return float(x @ x)

    def limit(x):
        x[:] = 7
        return -1.0

    def taking(design):
        return (design.pop("a") - 0.5) ** 2 + design.pop("b") ** 2

    plain = jedax.minimize(lambda x: float((x - 1) @ (x - 1)), x0=[3.0, 3.0], evaluations=200)
    changed = jedax.minimize(changing, x0=[3.0, 3.0], evaluations=200, constraints=limit)
    assert changed.fun == pytest.approx(plain.fun, abs=0.1)
    np.testing.assert_allclose(changed.x, 1, atol=0.3)
    found = jedax.minimize(taking, space={"a": (-1.0, 1.0), "b": (-1.0, 1.0)}, evaluations=200)
    assert set(found.parameters) == {"a", "b"}


def test_failures_before_the_first_descriptors():
    calls = []

    def failing(x):
        calls.append(x)
        if len(calls) <= 3:
            raise ValueError("not here")
        return float(x @ x)

    with pytest.warns(UserWarning, match="the first evaluation failed with ValueError: not here"):
        found = jedax.minimize(failing, bounds=([-1] * 3, [1] * 3), descriptors=lambda x: x[:2], evaluations=100)
    assert "3 of" in found.message
    assert len(found.descriptors) == 2


def test_a_scalar_start_and_the_number_of_parameters():
    assert jedax.minimize(lambda x: float((x[0] - 1) ** 2), 3.0, evaluations=100).x.shape == (1,)
    assert jedax.minimize(lambda x: float(x @ x), bounds=(-1, 1), num_params=2).nfev >= 4_000
    with pytest.raises(jedax.JedaxError, match=r"^minimise: expected none, since fun is minimised"):
        jedax.minimize(lambda x: 0.0, bounds=BOX, minimise=False)
