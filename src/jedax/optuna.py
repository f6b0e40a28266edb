"""A sampler for Optuna, which searches a study with `jedax.Optimizer`; needs the extra `[optuna]`."""

from __future__ import annotations

import numbers
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from jedax.errors import check_whole, fail
from jedax.imports import require
from jedax.methods.base import Method, MethodConfig
from jedax.methods.registry import DEFAULT_METHOD, check_arguments, method_defaults, method_named
from jedax.search.optimizer import Optimizer
from jedax.search.outside import box_of
from jedax.space import Choice, Integer, Real, Space

require("optuna", "optuna", "jedax.optuna")

from optuna.distributions import (  # noqa: E402
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, RandomSampler  # noqa: E402
from optuna.samplers._base import _process_constraints_after_trial  # noqa: E402
from optuna.study import Study, StudyDirection  # noqa: E402
from optuna.trial import FrozenTrial, TrialState  # noqa: E402

_MOST_STEPS = 1e7  # from 0 to a bound, up to which Optuna takes low + k * step for the value of a step


class Sampler(BaseSampler):
    """Samples the parameters of a study's trials with `jedax.Optimizer`.

    Example:
        ```python
        study = optuna.create_study(sampler=jedax.optuna.Sampler(descriptors=["mass"], seed=0))
        study.optimize(objective, n_trials=1000)
        print(study.best_value, study.sampler.optimizer.repertoire.filled.sum())
        ```

    The search space is that of the first completed trials, which are sampled at random, unless `search_space` is given.
    Where ranges differ among trials, it grows to cover them all, and the search begins anew, with what is known.
    Parameters outside of it are sampled at random. Failed and pruned trials are failed evaluations; so are solutions
    out of the ranges of their trial, which gets random values for these parameters. All completed trials of the study
    count, whoever sampled them: those enqueued, of other samplers, of an earlier program, and of other processes on the
    same storage. Each process has a search of its own, which also learns from their trials. A sampler works for one
    study. Within `optuna.samplers.PartialFixedSampler` it searches the parameters that are free; that search is a new
    one, and learns from no earlier trial, and from no later one with other values of the fixed parameters.

    Args:
        descriptors: Names of the user attributes that describe how a trial's solution behaves: numbers that the
            objective sets with `trial.set_user_attr`. None: there are none.
        descriptor_bounds: `(lows, highs)` of the descriptors; "measure": from the first generation.
        search_space: The distribution of each parameter; None: that of the first completed trials.
        constraints_func: Returns a trial's constraints, above 0 where violated, as for Optuna's samplers.
            `trial.set_constraint` in the objective does the same.
        evaluations: Number of trials, where the method needs it; otherwise the search has no end of its own.
        seed: Random seed; None: another one each time. Processes with the same seed draw different solutions.
        noisy: Whether trials with equal parameters have different values. If not, and all parameters are whole numbers,
            categories or have a step, no trial repeats an earlier one until all solutions are known.
        method: As for `jedax.Optimizer`.
        **settings: Changes to the method's settings, such as `population=16`.

    Raises:
        JedaxError: An argument does not fit; later, from the objective: the study has several objectives, or is not
            that of the search, or a trial lacks a descriptor.
    """

    def __init__(
        self,
        descriptors: Sequence[str] | None = None,
        descriptor_bounds: tuple[Sequence[float], Sequence[float]] | Literal["measure"] = "measure",
        *,
        search_space: Mapping[str, BaseDistribution] | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        evaluations: int | None = None,
        seed: int | None = None,
        noisy: bool = False,
        method: str | MethodConfig | type[Method] = DEFAULT_METHOD,
        **settings: Any,
    ):
        if isinstance(descriptors, str) or not all(isinstance(name, str) for name in descriptors or ()):
            remedy = 'write ["speed"]'
            raise fail("descriptors", expected="a list of names", received=repr(descriptors), remedy=remedy)
        if not isinstance(search_space, Mapping | None):
            remedy = 'write {"x": optuna.distributions.FloatDistribution(0, 1)}'
            raise fail("search_space", expected="a dict of distributions", received=repr(search_space), remedy=remedy)
        self._seed = None if seed is None else check_whole("seed", seed, 0, 2**32 - 1)
        config = method if isinstance(method, MethodConfig) else method_defaults(method_named(method).name)
        check_arguments(settings, config, Sampler)
        if settings.get("samples_per_evaluation", config.samples_per_evaluation) != 1:
            remedy = "average in the objective"
            raise fail("samples_per_evaluation", expected="1, as a trial has one value", received="more", remedy=remedy)
        self._descriptors = tuple(descriptors or ())
        self._arguments = {
            "descriptor_bounds": descriptor_bounds if self._descriptors else None,
            "evaluations": evaluations,
            "method": method,
            "noisy": noisy,
            **settings,
        }
        self._search_space = None if search_space is None else dict(search_space)
        self._constraints_func = constraints_func
        self._begin()
        box = self._arguments["descriptor_bounds"]
        sizes = set(map(len, box_of(box) or ())) if box != "measure" else set()
        if sizes and sizes != {len(self._descriptors)}:
            expected = f"{len(self._descriptors)} lows and highs, one per descriptor"
            raise fail("descriptor_bounds", expected=expected, received=repr(box), remedy="change them")

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._study: tuple[str, StudyDirection] | None = None  # its name and direction
        self._space = None if self._search_space is None else _Parameters(self._search_space)
        self._search: _Search | None = None
        self._is_outdated = False  # whether another search must begin, as a trial has told
        self._random: RandomSampler | None = None
        self._asked: dict[int, dict[str, Any]] = {}  # by the number of the trial
        self._unused: list[dict[str, Any]] = []  # asked for trials that took other values
        self._fixed: dict[str, Any] | None = None  # parameters that the search does not sample; None: not known yet
        self._seen: set[int] = set()  # trials that the search has learnt
        self._first = 0  # the first trial that the search may learn
        self._has_first_trial = False  # that of the study
        self._constraints: tuple[str, ...] = ()  # their names, in the order in which the search is told their values

    @property
    def optimizer(self) -> Optimizer:
        """The search, with its `repertoire`; an error before it has begun.

        Its parameters are the study's; those with a step are the number of steps, categories are indices. Whole numbers
        of more than 32 bits are those before rounding.
        """
        if self._search is None:
            remedy = "run more trials"
            raise fail("optimizer", expected="a search that has begun", received="none", remedy=remedy)
        return self._search.optimizer

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the distributions of the parameters that the search samples."""
        with self._lock:
            self._check(study, trial)
            self._has_first_trial |= trial.number == 0
            if self._space is None:
                self._space = self._first_space(study)
            return {} if self._space is None else dict(self._space.distributions)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the parameters of a trial."""
        with self._lock:
            while True:
                known = {} if self._space is None else self._space.distributions
                free = {name: known[name] for name in search_space if name in known}
                if self._space is None or not free:
                    return {}
                search = None if self._is_outdated else self._search
                if search is None or search.space.distributions.keys() != free.keys():
                    search = self._search = self._new_search(study, trial, self._space, free)
                    self._is_outdated = False
                self._learn(study, search)
                if not self._is_outdated:
                    break
            [asked] = [self._unused.pop()] if self._unused else search.optimizer.ask(1)
            self._asked[trial.number] = asked
            return search.space.to_study(asked)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return a random value of a parameter that the search does not sample."""
        with self._lock:
            if self._random is None:
                self._random = RandomSampler(self._seed_at(trial))
            return self._random.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Give the result of a trial to the search."""
        if self._constraints_func is not None:
            _process_constraints_after_trial(self._constraints_func, study, trial, state)
            trial = study._storage.get_trial(trial._trial_id)
        with self._lock:
            if trial.number in self._asked:
                self._take(trial, state, values)

    def _take(self, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Give the result of a trial whose parameters the search sampled to the search, or leave it to `_learn`."""
        asked = self._asked.pop(trial.number)
        is_complete = state == TrialState.COMPLETE and values is not None
        if is_complete and (self._widen(trial) or self._has_new_constraints([trial])):
            self._is_outdated = True
        if self._search is None or self._is_outdated:
            return
        optimizer, space = self._search
        wanted = space.to_study(asked)
        used = space.to_search({**wanted, **trial.params})
        if used is None or used != space.to_search(wanted):  # `asked` may not be rounded yet
            if _could_take(trial, wanted):  # one that was enqueued
                self._unused.append(asked)
            else:
                optimizer.tell([asked], [np.nan])
            return
        if self._varies_fixed(trial):
            self._unused.append(asked)
            return
        self._seen.add(trial.number)
        if values is None or not is_complete:
            optimizer.tell([asked], [np.nan])
            return
        try:
            points = [self._point(trial)] if self._descriptors else None
        except ValueError:
            optimizer.tell([asked], [np.nan])
            raise
        optimizer.tell([asked], [values[0]], points, violations=self._violations([trial]))

    def reseed_rng(self) -> None:
        """Seed the random parameters again, as Optuna asks for before it starts threads."""
        if self._random is not None:
            self._random.reseed_rng()

    def __getstate__(self) -> dict[str, Any]:
        names = ("_descriptors", "_arguments", "_search_space", "_constraints_func", "_seed")
        return {name: vars(self)[name] for name in names}  # the rest follows from the study's trials

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def _check(self, study: Study, trial: FrozenTrial) -> None:
        """Raise an error for a study that the search cannot continue."""
        if len(study.directions) != 1:
            remedy = "optimise one of them, and make the others descriptors"
            raise fail("study", expected="one objective", received=len(study.directions), remedy=remedy)
        name, remedy = study.study_name, "make a new Sampler"
        if self._study not in (None, (name, study.direction)) or trial.number in self._seen:
            assert self._study is not None
            received = repr(name) if name != self._study[0] else "another one of that name"
            raise fail("study", expected=f"the study {self._study[0]!r}", received=received, remedy=remedy)
        self._study = name, study.direction

    def _first_space(self, study: Study) -> _Parameters | None:
        """Return the parameters that all completed trials have; None: there are none."""
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if not trials:
            return None
        first, *others = [trial.distributions for trial in trials]
        common = {name: known for name, known in first.items() if all(name in other for other in others)}
        for other in others:
            common = _covering(common, other)
        return _parameters(common)

    def _widen(self, trial: FrozenTrial) -> bool:
        """Let the ranges of the search space cover those of a completed trial; return whether that changes them."""
        if self._space is None or self._search_space is not None:
            return False
        known = self._space.distributions
        if not known.keys() <= trial.distributions.keys():
            return False
        wide = _covering(known, trial.distributions)
        if wide == known:
            return False
        self._space = _parameters(wide)
        return True

    def _new_search(
        self, study: Study, trial: FrozenTrial, whole: _Parameters, free: Mapping[str, BaseDistribution]
    ) -> _Search:
        """Return a search of the free parameters, all or a part of the whole, that begins with a trial."""
        is_part = free.keys() < whole.distributions.keys()
        space = _Parameters(free) if is_part else whole
        self._asked, self._unused, self._fixed = {}, [], None if is_part else {}
        self._seen, self._first = set(), trial.number if is_part else 0  # what is fixed now may have varied before
        optimizer = Optimizer(
            space=space.space,
            minimise=study.direction != StudyDirection.MAXIMIZE,
            seed=self._seed_at(trial),
            initial=None if self._has_first_trial else [],  # only one search of a study samples the middle
            **self._arguments,
        )
        self._has_first_trial = False
        return _Search(optimizer, space)

    def _seed_at(self, trial: FrozenTrial) -> int:
        """Return a seed that differs among processes, which never have the same trial."""
        entropy = None if self._seed is None else [self._seed, trial.number]
        return int(np.random.SeedSequence(entropy).generate_state(1)[0])

    def _learn(self, study: Study, search: _Search) -> None:
        """Add the completed trials that the search does not know, or note that another search must begin."""
        optimizer, space = search
        ended = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL))
        for trial in ended:
            if trial.number in self._asked:  # told by another process, or through another object of the study
                self._take(trial, trial.state, trial.values)
        complete = [one for one in ended if one.state == TrialState.COMPLETE and one.number >= self._first]
        new = [one for one in complete if one.number not in self._seen]
        self._is_outdated |= bool(sum(map(self._widen, new)))
        if self._is_outdated or self._fixed is None:  # values of fixed parameters are those of the first own trial
            return
        told, rows, points = [], [], []
        for trial in new:
            row = space.to_search(trial.params)
            has_all = all(name in trial.user_attrs for name in self._descriptors)
            if row is None or not has_all or trial.value is None or self._varies_fixed(trial):
                continue
            try:
                points.append(self._point(trial))
            except ValueError:
                self._seen.add(trial.number)  # the others are learnt the next time
                raise
            told.append(trial)
            rows.append(row)
        if self._has_new_constraints(told):
            self._is_outdated = True
            return
        if rows:
            values = [trial.value for trial in told]
            optimizer.add(rows, values, points if self._descriptors else None, violations=self._violations(told))
        self._seen.update(trial.number for trial in new)

    def _varies_fixed(self, trial: FrozenTrial) -> bool:
        """Return whether a trial has other values of the parameters that the search does not sample."""
        if self._space is None or self._search is None:
            return False
        names = self._space.distributions.keys() - self._search.space.distributions.keys()
        values = {name: trial.params[name] for name in names if name in trial.params}
        if self._fixed is None and "fixed_params" not in trial.system_attrs:  # not enqueued
            self._fixed = values
        return self._fixed is None or any(self._fixed.get(name, value) != value for name, value in values.items())

    def _point(self, trial: FrozenTrial) -> list[float]:
        """Return the descriptors of a trial."""
        point = []
        for name in self._descriptors:
            value = trial.user_attrs.get(name)
            if not isinstance(value, numbers.Real):
                raise fail(
                    f"user attribute {name!r} of trial {trial.number}",
                    expected="a number",
                    received="none" if value is None else repr(value),
                    remedy=f"call trial.set_user_attr({name!r}, ...) in the objective",
                )
            point.append(float(value))
        return point

    def _has_new_constraints(self, trials: Sequence[FrozenTrial]) -> bool:
        """Note the names of the trials' constraints; return whether the search was told its trials without some."""
        known = set(self._constraints)
        names = known.union(*(trial.constraints or {} for trial in trials))
        self._constraints = tuple(sorted(names))
        return bool(known) and names != known

    def _violations(self, trials: Sequence[FrozenTrial]) -> list[list[float]] | None:
        """Return the values of the constraints of each trial, 0 where a trial does not set one; None: none has any."""
        if not self._constraints:
            return None
        return [[float((trial.constraints or {}).get(name, 0)) for name in self._constraints] for trial in trials]


def _covering(
    known: Mapping[str, BaseDistribution], other: Mapping[str, BaseDistribution]
) -> dict[str, BaseDistribution]:
    """Return distributions that cover those of a trial, too; without those that are of another kind there."""
    found = {}
    for name, one in known.items():
        both = _hull(one, other[name])
        if both is not None:
            found[name] = both
            continue
        warnings.warn(
            f"{name}: expected a distribution like {one}, got {other[name]}; it is sampled at random from now on. Give "
            "search_space to Sampler to search it.",
            stacklevel=2,
        )
    return found


def _hull(one: BaseDistribution, other: BaseDistribution) -> BaseDistribution | None:
    """Return the distribution of the smallest range that covers two; None: they are of different kinds."""
    if one == other:
        return one
    for kind in (FloatDistribution, IntDistribution):
        if isinstance(one, kind) and isinstance(other, kind) and (one.log, one.step) == (other.log, other.step):
            steps = (other.low - one.low) / one.step if one.step is not None else 0
            if abs(steps - round(steps)) < 1e-8:
                return kind(min(one.low, other.low), max(one.high, other.high), log=one.log, step=one.step)  # type: ignore[arg-type]
    return None


def _parameters(distributions: Mapping[str, BaseDistribution]) -> _Parameters | None:
    """Return the parameters that have several values; None: there are none."""
    found = {name: known for name, known in distributions.items() if not known.single()}
    return _Parameters(found) if found else None


class _Parameters:
    """The parameters of a study, and the space of the search: whole numbers of steps, and indices of categories."""

    def __init__(self, distributions: Mapping[str, BaseDistribution]):
        for name, known in distributions.items():
            if not isinstance(known, FloatDistribution | IntDistribution | CategoricalDistribution):
                expected, remedy = "a float, int or categorical distribution", "write one of optuna.distributions"
                raise fail(name, expected=expected, received=repr(known), remedy=remedy)
        self.distributions = {name: known for name, known in distributions.items() if not known.single()}
        if not self.distributions:
            expected, remedy = "a parameter with several values", "add one, or leave search_space out"
            raise fail("search_space", expected=expected, received=repr(dict(distributions)), remedy=remedy)
        self.space = Space({name: _parameter(name, known) for name, known in self.distributions.items()})

    def to_study(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters of the search as the study has them."""
        return {name: _to_study(known, row[name]) for name, known in self.distributions.items()}

    def to_search(self, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return parameters of the study as the search has them; None: one is missing or out of its range."""
        row = {}
        for name, known in self.distributions.items():
            if name not in params:
                return None
            try:
                internal = known.to_internal_repr(params[name])
            except ValueError:  # another category, or no number
                return None
            if not known._contains(internal):
                return None
            row[name] = _to_search(known, params[name], internal)
        return row


def _could_take(trial: FrozenTrial, wanted: Mapping[str, Any]) -> bool:
    """Return whether all values lie within the ranges of a trial."""
    for name, value in wanted.items():
        own = trial.distributions.get(name)
        if own is not None and not own._contains(own.to_internal_repr(value)):
            return False
    return True


class _Search(NamedTuple):
    """A search of the parameters of a study.

    Attributes:
        optimizer: The search.
        space: The parameters that it samples.
    """

    optimizer: Optimizer
    space: _Parameters


def _steps(known: BaseDistribution) -> tuple[float, float, int] | None:
    """Return low, step and the number of steps of a distribution whose values are counted; None: they are not."""
    if isinstance(known, FloatDistribution) and known.step is not None:
        return known.low, known.step, round((known.high - known.low) / known.step)
    if isinstance(known, IntDistribution) and known.step != 1:
        return known.low, known.step, (known.high - known.low) // known.step
    return None


def _parameter(name: str, known: BaseDistribution) -> Real | Integer | Choice:
    if steps := _steps(known):
        size = max(abs(known.low), abs(known.high))  # type: ignore[attr-defined]
        if size >= (_MOST_STEPS * steps[1] if isinstance(known, FloatDistribution) else 2**53):
            expected = "steps that Optuna recognises: numbers below 1e7 steps, whole ones below 2^53"
            raise fail(name, expected=expected, received=known, remedy="leave step out")
        return _counted(0, steps[2])
    if isinstance(known, FloatDistribution):
        return Real(known.low, known.high, log=known.log)
    if isinstance(known, IntDistribution):
        return _counted(known.low, known.high, log=known.log)
    assert isinstance(known, CategoricalDistribution)
    return Choice(*range(len(known.choices)))


def _counted(low: int, high: int, *, log: bool = False) -> Real | Integer:
    """Return a parameter of whole numbers; `Real`, which `_to_study` rounds, where they need more than 32 bits."""
    return (Integer if max(-low, high) < 2**31 else Real)(low, high, log=log)


def _to_study(known: BaseDistribution, value: Any) -> Any:
    if isinstance(known, CategoricalDistribution):
        return known.choices[value]
    if steps := _steps(known):
        return min(steps[0] + steps[1] * round(value), known.high)  # type: ignore[attr-defined]
    if isinstance(known, IntDistribution):
        return min(max(round(value), known.low), known.high)
    return value


def _to_search(known: BaseDistribution, value: Any, internal: float) -> Any:
    if isinstance(known, CategoricalDistribution):
        return int(internal)
    if steps := _steps(known):
        return round((internal - steps[0]) / steps[1])
    return value
