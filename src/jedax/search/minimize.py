"""`minimize`: the search for a function's minimum, called as scipy's optimisers are."""

from __future__ import annotations

import contextlib
import copy
import multiprocessing
import os
import pickle
import signal
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Literal

import numpy as np
from scipy.optimize import LinearConstraint, NonlinearConstraint, OptimizeResult

from jedax.errors import JedaxError, check_whole, fail, is_whole
from jedax.methods.base import Method, MethodConfig
from jedax.methods.registry import DEFAULT_METHOD, check_arguments
from jedax.search.interrupts import noted
from jedax.search.optimizer import Optimizer
from jedax.search.outside import lows_and_highs
from jedax.search.workers import functions
from jedax.search.workers.functions import Evaluated, Failure, Functions, Limits, Product
from jedax.space import Space
from jedax.space.parameters import number_of
from jedax.store.environment import num_cores

EVALUATIONS_PER_PARAMETER = 2_000
"""The default budget of `minimize` per parameter."""

_GOES_ON = -1  # status of the results that callbacks get
_HOPELESS = 100  # failed evaluations without a successful one, after which the search gives up
_DEATHS = 10  # of each worker process, without a result between them, after which the search gives up
_POLL_SECONDS = 0.5  # between looks at processes that are starting
_TOGETHER_SECONDS = 0.1  # results of quick evaluations are told together, which is faster, but not later than this

_Ended = list[tuple[list[Any], Evaluated | Failure]]  # solutions and their result


def minimize(
    fun: Callable[[Any], Any],
    x0: Any = None,
    *,
    bounds: Any = None,
    space: Space | Mapping[str, Any] | None = None,
    sigma0: Any = None,
    constraints: Any = None,
    descriptors: Callable[[Any], Any] | None = None,
    descriptor_bounds: tuple[Sequence[float], Sequence[float]] | Literal["measure"] | None = None,
    evaluations: int | None = None,
    target: float | None = None,
    max_seconds: float | None = None,
    workers: int | Callable[..., Any] = 1,
    evaluation_timeout: float | None = None,
    seed: int = 0,
    method: str | MethodConfig | type[Method] = DEFAULT_METHOD,
    callback: Callable[[OptimizeResult], Any] | None = None,
    vectorised: bool = False,
    **settings: Any,
) -> OptimizeResult:
    """Return the minimum of a function, searched without derivatives, as scipy's result object.

    Example:
        ```python
        result = jedax.minimize(rosenbrock, bounds=([-5] * 10, [10] * 10), workers=4)
        print(result.x, result.fun)
        ```

    A call of a function that raises an exception, also `sys.exit`, or whose numbers are not finite, is a failed
    evaluation: it does not count towards the budget, and another solution takes its place. So is one that returns
    something else than numbers, or more or fewer of them than before, once an evaluation has succeeded. The first call
    compiles for some seconds; later processes read what it has compiled.

    Args:
        fun: The function of one solution: an array `(parameters,)`, or a dict where `space` names the parameters. It
            returns a number; with `descriptor_bounds` and without `descriptors`, a number and the descriptors.
        x0: A solution to start from, a dict where `space` names the parameters. One of `x0`, `bounds` and `space` is
            needed.
        bounds: `(lows, highs)`, numbers or one per parameter; or, as in scipy, a list of tuples `(low, high)` or
            `scipy.optimize.Bounds`. No solution leaves the bounds.
        space: The parameters by name, see `jedax.Space`.
        sigma0: Standard deviation of random solutions around `x0`: one number, or one per parameter; default: 0.3 of
            the distance between the bounds, 1 for a parameter without two bounds.
        constraints: A function that returns numbers, above 0 where violated, below 0 by as much as there is to spare;
            scipy's `NonlinearConstraint` or `LinearConstraint`; or a list of them. Equalities hold within 1e-4.
        descriptors: A function that returns the numbers that describe how a solution behaves.
        descriptor_bounds: `(lows, highs)` of the descriptors; "measure": from the first generation, which is the
            default with `descriptors`.
        evaluations: Budget, rounded down to whole generations; default: 2,000 per parameter.
        target: The search stops as soon as a feasible solution has this value or a lower one.
        max_seconds: The search stops after this many seconds; evaluations in this process end first.
        workers: Number of processes, -1 for all cores; or a function like `map`, such as `pool.map`, which gets a
            generation at a time. Processes need functions that can be imported, from a module or a script with
            `if __name__ == "__main__":`. They evaluate asynchronously, so results depend on the timing.
        evaluation_timeout: Seconds after which an evaluation has failed, and its process is replaced. With a timeout,
            `workers=1` is a process, too.
        seed: Random seed, 0 to 2^32 - 1.
        method: As for `jedax.Optimizer`.
        callback: Called after every generation with the result so far, as in scipy; the search stops if it returns True
            or raises `StopIteration`.
        vectorised: Whether the functions take all solutions of a generation, `(n, parameters)` or a list of dicts, and
            return `(n,)`, `(n, constraints)` and `(n, d)`.
        **settings: Further arguments of `jedax.Optimizer`, and changes to the method's settings.

    Returns:
        `x` and `fun` of the best solution, `nfev` (evaluated solutions, failed ones included), `nit` (generations),
        `success`, `status` (0: the budget or `max_seconds` is spent, or the target is reached; 1: spent, but no
        solution is feasible; 2: stopped by Ctrl-C; 99: by the callback; -1, in callbacks: the search goes on),
        `message`, `violation` (sum of the violated constraints; 0: feasible), `parameters` (by name; None without
        `space`), `descriptors`, and `optimizer`, with its `repertoire`.

    Raises:
        JedaxError: An argument does not fit, a function returns something else than numbers before any evaluation has
            succeeded, worker processes do not start, or die ten times each without a result in between, or no
            evaluation succeeded (the search gives up after 100).
    """
    for name, given in (("fun", fun), ("descriptors", descriptors), ("callback", callback)):
        if not (callable(given) or (given is None and name != "fun")):
            raise fail(name, expected="a function", received=repr(given), remedy="change it")
    space = space if space is None or isinstance(space, Space) else Space(space)
    bounds = None if bounds is None else lows_and_highs("bounds", bounds)
    if bounds is None and space is None and (isinstance(x0, Mapping) or _resembles_bounds(x0)):
        remedy = f"write {'space' if isinstance(x0, Mapping) else 'bounds'}=... if these are bounds"
        raise fail("x0", expected="one number per parameter", received=repr(x0), remedy=remedy)
    if descriptors is not None and descriptor_bounds is None:
        descriptor_bounds = "measure"
    if "minimise" in settings:
        remedy = "return minus the value to maximise it"
        raise fail("minimise", expected="none, since fun is minimised", received=settings["minimise"], remedy=remedy)
    check_arguments(settings, method, minimize, Optimizer)
    if evaluations is None:
        given = settings.get("num_params")
        number = _num_values(x0, bounds, space) if given is None else check_whole("num_params", given, 1, 2**31 - 1)
        evaluations = EVALUATIONS_PER_PARAMETER * number
    optimizer = Optimizer(
        descriptor_bounds=descriptor_bounds,
        evaluations=evaluations,
        space=space,
        bounds=bounds,
        x0=x0,
        sigma0=sigma0,
        method=method,
        seed=seed,
        minimise=True,
        **settings,
    )
    if optimizer.config.samples_per_evaluation != 1:
        remedy = "average within fun, or use jedax.Optimizer"
        raise fail("samples_per_evaluation", expected="1", received="more", remedy=remedy)
    target = None if target is None else number_of("target", "", target, finite=False)
    max_seconds = None if max_seconds is None else number_of("max_seconds", "", max_seconds, finite=False)
    if evaluation_timeout is not None:
        evaluation_timeout = number_of("evaluation_timeout", "", evaluation_timeout)
        if evaluation_timeout <= 0:
            raise fail(
                "evaluation_timeout", expected="seconds above 0", received=evaluation_timeout, remedy="change it"
            )
    limits = tuple(_constraint(one, space) for one in _listed(constraints))
    has_pairs = descriptor_bounds is not None and descriptors is None
    problem = Functions(fun, limits, descriptors, has_pairs, bool(vectorised))
    until = None if max_seconds is None else time.monotonic() + max_seconds
    return _Search(optimizer, int(evaluations), space, problem, target, until).run(
        workers, evaluation_timeout, callback
    )


class _Search:
    """A search for a minimum, its best solution, and what failed."""

    def __init__(
        self,
        optimizer: Optimizer,
        budget: int,
        space: Space | None,
        problem: Functions,
        target: float | None,
        until: float | None,
    ):
        self.optimizer, self.budget, self.problem = optimizer, budget, problem
        self.target, self.until = target, until
        self.space = space if space is not None and space.is_named else None
        self.best = (np.inf, np.inf)  # violation and value
        self.found: dict[str, Any] = {"x": None, "fun": np.nan, "violation": np.nan, "descriptors": None}
        self.num_evaluated, self.num_failed, self.first_failure = 0, 0, Failure("")
        self.failed_in_a_row, self.has_warned = 0, False
        self.widths: tuple[int | None, ...] | None = None  # of the first results

    def run(self, workers: Any, timeout: float | None, callback: Any) -> OptimizeResult:
        """Search until the budget is spent, the target is reached, or the time, the callback or Ctrl-C stops it."""
        generations, status = 0, 0
        with _evaluator(self.problem, workers, timeout) as evaluator, noted() as caught:
            try:
                while self._ask(evaluator):
                    evaluator.wait(self.until)
                    self._tell(evaluator)
                    if caught:
                        raise KeyboardInterrupt
                    if callback is not None and self.optimizer.generations > generations:
                        generations = self.optimizer.generations
                        if self._asks_to_stop(callback):
                            status = 99
                            break
                    if self._stop_reason():
                        break
            except KeyboardInterrupt:
                status = 2
                self._tell(evaluator)
            if evaluator.num_running:
                evaluator.cancel()
        if self.num_failed == self.num_evaluated and status != 2:
            raise self._nothing()
        return self._result(status)

    def _stop_reason(self) -> str:
        """Return why the search stops before its budget is spent; empty if it goes on."""
        if self.target is not None and self.best <= (0.0, self.target):
            return f"The target {self.target:g} is reached."
        return "The seconds have passed." if self.until is not None and time.monotonic() >= self.until else ""

    def _ask(self, evaluator: _Direct | _Processes) -> bool:
        """Ask for as many solutions as can be evaluated; return whether any are being evaluated."""
        optimizer, free = self.optimizer, evaluator.free
        if not optimizer.done:
            if free is None:
                if evaluator.num_running == 0:
                    evaluator.submit(list(optimizer.ask()))
            else:
                room = self.budget - optimizer.evaluations - evaluator.num_running
                if min(free, room) > 0:
                    evaluator.submit(list(optimizer.ask(min(free, room))))
        return evaluator.num_running > 0

    def _tell(self, evaluator: _Direct | _Processes) -> None:
        """Give the results of evaluations that have ended to the optimizer."""
        ended, evaluator.ended = evaluator.ended, []
        for xs, result in _joined(ended):
            self.num_evaluated += len(xs)
            if isinstance(result, Evaluated) and self.widths not in (None, result.widths):
                expected, remedy = "as many descriptors and constraints as before", "return the same ones each time"
                received = f"{result.widths[0]} and {result.widths[1]}"
                result = Failure(str(fail("fun", expected=expected, received=received, remedy=remedy)))
            if isinstance(result, Failure):
                if result.is_mistake and self.widths is None:
                    raise JedaxError(result.reason)
                self._note_failures(result, len(xs))
                self.optimizer.tell(xs, np.full(len(xs), np.nan))
            else:
                self.widths = result.widths
                lost: dict[str, Any] = {"fun": ~np.isfinite(result.fitness)}
                if result.descriptors is not None:
                    lost["descriptors"] = ~np.isfinite(result.descriptors).all(axis=1)
                if result.violations is not None:
                    lost["constraints"] = np.isnan(result.violations).any(axis=1)
                failed = np.any(list(lost.values()), axis=0)
                if not failed.all():
                    self.failed_in_a_row = 0
                if failed.any():
                    name = next(name for name, rows in lost.items() if rows.any())
                    self._note_failures(Failure(f"a result of {name} that is not finite"), int(failed.sum()))
                self._note_best(xs, result, failed)
                self.optimizer.tell(xs, result.fitness, result.descriptors, violations=result.violations, failed=failed)
            if self.num_failed == self.num_evaluated >= _HOPELESS:
                raise self._nothing()

    def _note_failures(self, failure: Failure, number: int) -> None:
        if failure.trace and self.num_evaluated == number:
            warnings.warn(
                f"the first evaluation failed with {failure.reason}; the search goes on, and gives up after "
                f"{_HOPELESS} without a successful one.",
                stacklevel=5,
            )
        self.first_failure = self.first_failure if self.num_failed else failure
        self.num_failed += number
        self.failed_in_a_row += number
        if self.failed_in_a_row >= _HOPELESS and self.num_failed < self.num_evaluated and not self.has_warned:
            self.has_warned = True
            warnings.warn(f"the last {self.failed_in_a_row} evaluations failed; the search goes on.", stacklevel=5)

    def _note_best(self, xs: list[Any], result: Evaluated, failed: np.ndarray) -> None:
        for number, (x, value) in enumerate(zip(xs, result.fitness.tolist(), strict=True)):
            violation = 0.0 if result.violations is None else float(np.maximum(result.violations[number], 0).sum())
            if not failed[number] and (violation, value) < self.best:
                self.best = violation, value
                behaviour = None if result.descriptors is None else result.descriptors[number]
                self.found = {"x": x, "fun": value, "violation": violation, "descriptors": behaviour}

    def _nothing(self) -> Exception:
        error = fail(
            "evaluations",
            expected="one that succeeds",
            received=f"{self.num_failed} that failed, first with {self.first_failure.reason}"
            if self.num_failed
            else "none that has ended",
            remedy="correct that, or start from an x0 or within bounds where all functions have values",
        )
        if self.first_failure.trace:
            error.add_note(f"The first failure:\n{self.first_failure.trace}")
        return error

    def _asks_to_stop(self, callback: Any) -> bool:
        try:
            return bool(callback(self._result(_GOES_ON)))
        except StopIteration:
            return True

    def _result(self, status: int) -> OptimizeResult:
        found = {name: copy.copy(value) for name, value in self.found.items()}  # the caller may change it
        parameters = None
        if self.space is not None and found["x"] is not None:
            parameters = found["x"]
            found["x"] = self.space.rows([parameters])[0]
        is_feasible = found["violation"] == 0
        status = status or int(not is_feasible)
        stops = {2: "Stopped by Ctrl-C.", 99: "Stopped by the callback.", _GOES_ON: "The search goes on."}
        reason = self._stop_reason() or self.optimizer.stop_reason
        message = stops.get(status) or reason or "The budget is spent."
        if not is_feasible and found["x"] is not None:
            message += " No solution was feasible."
        if self.num_failed:
            message += f" {self.num_failed:,} of {self.num_evaluated:,} evaluations failed, first with: "
            message += f"{textwrap.shorten(self.first_failure.reason, 200, placeholder=' ...').rstrip('.')}."
        return OptimizeResult(
            **found, parameters=parameters, nfev=self.num_evaluated, nit=self.optimizer.generations,
            success=status == 0, status=status, message=message, optimizer=self.optimizer,
        )  # fmt: skip


def _joined(ended: _Ended) -> _Ended:
    """Return results of single solutions as one of several, unless some failed or their shapes differ."""
    results = [result for _, result in ended if isinstance(result, Evaluated)]
    if len(results) < len(ended) or len({result.widths for result in results}) != 1:
        return ended
    fitness, *others = zip(*results, strict=True)
    descriptors, violations = (None if parts[0] is None else np.concatenate(parts) for parts in others)
    return [([x for xs, _ in ended for x in xs], Evaluated(np.concatenate(fitness), descriptors, violations))]


class _Direct:
    """Evaluates a generation at a time in this process, or with a function like `map`.

    Attributes:
        free: How many more solutions can be evaluated now; None: a whole generation, once no other is.
        ended: Evaluations that have ended, and were not told yet.
    """

    free = None

    def __init__(self, problem: Functions, mapper: Callable[..., Any] = map):
        self._problem, self._mapper, self.num_running = problem, mapper, 0
        self._results: Iterator[tuple[list[Any], Evaluated | Failure]] = iter(())
        self.ended: _Ended = []

    def submit(self, xs: list[Any]) -> None:
        """Begin to evaluate solutions; none is being evaluated."""
        self._results, self.num_running = self._evaluated(xs), len(xs)

    def _evaluated(self, xs: list[Any]) -> Iterator[tuple[list[Any], Evaluated | Failure]]:
        if self._problem.vectorised:
            yield xs, self._problem(xs if isinstance(xs[0], Mapping) else np.array(xs))
        else:
            results = iter(self._mapper(self._problem, xs))
            for number, x in enumerate(xs):
                try:
                    yield [x], next(results)
                except StopIteration:
                    expected, received = f"{len(xs)} results for as many solutions", f"{number}"
                    remedy = "give a function like map, such as pool.map"
                    raise fail("workers", expected=expected, received=received, remedy=remedy) from None

    def wait(self, until: float | None) -> None:
        """Evaluate until all evaluations have ended, or, if they take longer, one or several."""
        began = time.monotonic()
        for xs, result in self._results:
            self.ended.append((xs, result))
            self.num_running -= len(xs)
            if time.monotonic() - began > _TOGETHER_SECONDS and self.num_running:
                break

    def cancel(self) -> None:
        """Forget what is being evaluated."""


class _Process:
    """A worker process, and the solution that it evaluates.

    It is a pool of its own, since the death of a process ends all evaluations of its pool.

    Attributes:
        x: The solution.
        began: `time.monotonic()` at which its evaluation began; infinite: the process is still starting.
    """

    def __init__(self, problem: Functions):
        # Spawned, because a process that has used JAX must not be forked.
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, context, initializer=functions.begin, initargs=(problem,))
        self.ready = self._pool.submit(functions.is_ready)
        self.x, self.began = None, np.inf

    def submit(self, x: Any) -> Future:
        """Begin to evaluate a solution."""
        self.x, self.began = x, np.inf
        self.note_begin()
        return self._pool.submit(functions.evaluate, x)

    def note_begin(self) -> None:
        """Note when the evaluation began, if the process has started since."""
        if self.began == np.inf and self.ready.done():
            self.began = time.monotonic()

    def close(self) -> None:
        """End the process, which evaluates nothing."""
        self._pool.shutdown()

    def kill(self) -> None:
        """End the process, whatever it evaluates, and the programs that it has started."""
        for process in list((getattr(self._pool, "_processes", None) or {}).values()):
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it has no group of its own yet
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
        self._pool.shutdown(wait=False, cancel_futures=True)


class _Processes:
    """Evaluates in worker processes, one solution each at a time, at most `timeout` seconds long."""

    def __init__(self, problem: Functions, size: int, timeout: float):
        self._problem, self._size, self._timeout = problem, size, timeout
        self._idle = [_Process(problem) for _ in range(size)]
        self._running: dict[Future, _Process] = {}
        self.ended: _Ended = []
        self._deaths = 0  # in a row, without a result between them
        try:
            for process in self._idle:
                process.ready.result()
        except BaseException as error:
            self.cancel()
            if not isinstance(error, BrokenProcessPool):
                raise
            remedy = 'call minimize under `if __name__ == "__main__":`, and define the functions in a file'
            received = "processes that end at once"
            raise fail("workers", expected="processes that start", received=received, remedy=remedy) from None

    @property
    def free(self) -> int:
        return len(self._idle)

    @property
    def num_running(self) -> int:
        return len(self._running)

    def submit(self, xs: list[Any]) -> None:
        for x in xs:
            process = self._idle.pop()
            try:
                future = process.submit(x)
            except BrokenProcessPool:  # the process has died since the last result
                process = _Process(self._problem)
                future = process.submit(x)
            self._running[future] = process

    def wait(self, until: float | None) -> None:
        """Wait until an evaluation has ended, or for a while, at most until `time.monotonic()` is `until`."""
        ends = [] if until is None else [until]
        if self._timeout < np.inf:
            soon = time.monotonic() + _POLL_SECONDS
            ends += [min(process.began, soon) + self._timeout for process in self._running.values()]
        seconds = max(0.0, min(ends) - time.monotonic()) if ends else None
        for future in wait(self._running, seconds, FIRST_COMPLETED).done:
            process = self._running.pop(future)
            if isinstance(future.exception(), BrokenProcessPool):
                self._replace(process, "the end of its worker process")
                self._deaths += 1
            else:
                self.ended.append(([process.x], future.result()))
                self._idle.append(process)
                self._deaths = 0
        for future, process in list(self._running.items()):
            process.note_begin()
            if time.monotonic() >= process.began + self._timeout:
                del self._running[future]
                self._replace(process, f"no result after {self._timeout:g} s")
        if self._deaths >= _DEATHS * self._size:
            received = f"{self._deaths} that ended their process, without a result between them"
            raise fail("fun", expected="evaluations that return", received=received, remedy="correct fun")

    def _replace(self, process: _Process, reason: str) -> None:
        """Start another process for one whose evaluation has failed."""
        process.kill()
        self.ended.append(([process.x], Failure(reason)))
        self._idle.append(_Process(self._problem))

    def cancel(self) -> None:
        """End the processes, whatever they evaluate."""
        for process in (*self._idle, *self._running.values()):
            process.kill()
        self._running.clear()

    def close(self) -> None:
        for process in self._idle:
            process.close()


@contextlib.contextmanager
def _evaluator(problem: Functions, workers: Any, timeout: float | None) -> Iterator[_Direct | _Processes]:
    """Give the evaluator for the arguments `workers` and `evaluation_timeout`."""
    if timeout is not None and (problem.vectorised or callable(workers)):
        received = "one with " + ("vectorised=True" if problem.vectorised else "a function as workers")
        expected, remedy = "none without worker processes of jedax", "leave it out"
        raise fail("evaluation_timeout", expected=expected, received=received, remedy=remedy)
    if problem.vectorised and callable(workers):
        received, remedy = "a function with vectorised=True", "leave one of them out"
        raise fail("workers", expected="1 for functions of all solutions", received=received, remedy=remedy)
    if callable(workers):
        yield _Direct(problem, workers)
        return
    if not is_whole(workers) or not (workers == -1 or 1 <= workers < 2**15):
        expected = "a number of processes, -1 for all cores, or a function like map"
        raise fail("workers", expected=expected, received=repr(workers), remedy="change it")
    size = num_cores() if workers == -1 else int(workers)
    if problem.vectorised and size > 1:
        received, remedy = f"{workers} with vectorised=True", "leave one of them out"
        raise fail("workers", expected="1 for functions of all solutions", received=received, remedy=remedy)
    if size == 1 and timeout is None:
        yield _Direct(problem)
        return
    _check_importable(problem)
    processes = _Processes(problem, size, np.inf if timeout is None else timeout)
    try:
        yield processes
    except BaseException:
        processes.cancel()
        raise
    processes.close()


def _check_importable(problem: Functions) -> None:
    """Raise an error where worker processes cannot import the functions."""
    received = ""
    try:
        pickle.dumps(problem)
    except Exception as error:  # pickle passes on what objects raise
        received = f"{type(error).__name__}: {error}"
    main = sys.modules["__main__"]
    if not received and not (getattr(main, "__file__", None) or getattr(main, "__spec__", None)):
        given = [problem.fun, problem.descriptors, *problem.constraints]
        is_inner = any(getattr(one, "__module__", "") == "__main__" for one in given)
        received = "one of a notebook or a prompt" if is_inner else ""
    if received:
        remedy = "define the functions in a module (no lambdas), or use workers=1"
        raise fail("workers", expected="functions that processes can import", received=received, remedy=remedy)


def _listed(constraints: Any) -> Sequence[Any]:
    if constraints is None:
        return ()
    return constraints if isinstance(constraints, list | tuple) else [constraints]


def _constraint(given: Any, space: Space | None) -> Callable[[Any], Any]:
    """Return a function whose values are above 0 where a constraint is violated."""
    if isinstance(given, LinearConstraint):
        if space is not None and space.is_named:
            remedy = "give a function of the dict"
            raise fail("constraints", expected="no LinearConstraint with space", received="one", remedy=remedy)
        matrix: Any = given.A.toarray() if hasattr(given.A, "toarray") else given.A  # type: ignore[union-attr]
        return Limits(Product(np.asarray(matrix)), given.lb, given.ub)
    if isinstance(given, NonlinearConstraint):
        return Limits(given.fun, given.lb, given.ub)
    if isinstance(given, Mapping):
        remedy = 'write NonlinearConstraint(fun, 0, 0) for "eq", and NonlinearConstraint(fun, 0, inf) for "ineq"'
        raise fail("constraints", expected="no dict", received=repr(given), remedy=remedy)
    if not callable(given):
        expected = "a function, a NonlinearConstraint or a LinearConstraint"
        remedy = "return values above 0 where violated"
        raise fail("constraints", expected=expected, received=repr(given), remedy=remedy)
    return given


def _resembles_bounds(x0: Any) -> bool:
    """Return whether a point has several numbers per parameter, like the bounds that some searches take second."""
    parts = x0 if isinstance(x0, list | tuple) else ()
    nested = any(isinstance(part, list | tuple) or np.ndim(part) for part in parts)
    return nested or hasattr(x0, "lb") or getattr(x0, "ndim", 0) > 1


def _num_values(x0: Any, bounds: Any, space: Space | None) -> int:
    """Return the number of parameters."""
    if space is not None:
        return space.num_values
    if x0 is not None:
        return np.shape(x0)[-1] if np.ndim(x0) else 1
    if bounds is None:
        raise fail("x0", expected="x0, bounds or space, to know the parameters", received="none", remedy="give one")
    return max(np.size(part) for part in bounds)
