"""The sampler for Optuna."""

import pickle
import threading

import numpy as np
import pytest

import jedax

optuna = pytest.importorskip("optuna")
from optuna.trial import TrialState  # noqa: E402

from jedax.optuna import Sampler  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)


def sphere(trial):
    return sum((trial.suggest_float(f"x{i}", -5, 5) - i) ** 2 for i in range(3))


def study_with(direction="minimize", study_name=None, storage=None, **arguments):
    sampler = Sampler(**{"seed": 0, **arguments})
    return optuna.create_study(
        sampler=sampler, direction=direction, study_name=study_name, storage=storage, load_if_exists=True
    )


def test_sphere_converges_and_seeds_repeat():
    one, other = study_with(), study_with()
    for study in (one, other):
        study.optimize(sphere, n_trials=400)
    assert one.best_value < 1e-3
    assert one.best_params == other.best_params
    assert one.sampler.optimizer.best.fitness <= one.best_value * 1.01
    assert one.sampler.optimizer.evaluations == 399  # all but the first, which was drawn at random
    assert not one.sampler.optimizer.asked


def test_many_short_programs_go_on():
    """Each begins where the best trials are, with steps as long as these are spread."""
    storage = optuna.storages.InMemoryStorage()
    for seed in range(8):
        study = study_with(study_name="short", storage=storage, seed=seed)
        study.optimize(sphere, n_trials=20)
    assert study.best_value < 1e-2


def test_maximise():
    study = study_with("maximize")
    study.optimize(lambda trial: -sphere(trial), n_trials=300)
    assert study.best_value > -1e-2


def test_all_kinds_of_parameters():
    def objective(trial):
        rate = trial.suggest_float("rate", 1e-6, 1.0, log=True)
        layers = trial.suggest_int("layers", 1, 64, log=True)
        width = trial.suggest_int("width", 10, 101, step=7)
        share = trial.suggest_float("share", 0.1, 0.9, step=0.1)
        kind = trial.suggest_categorical("kind", ["a", None, 3.5, True])
        assert trial.suggest_float("fixed", 2, 2) == 2
        error = abs(np.log10(rate) + 3) + abs(layers - 8) + abs(width - 45) / 7 + abs(share - 0.4) * 10
        return error + 3 * (kind is not None)

    study = study_with()
    study.optimize(objective, n_trials=600)
    best = study.best_params
    assert (best["layers"], best["width"], best["kind"]) == (8, 45, None)
    assert best["share"] == pytest.approx(0.4)
    assert best["rate"] == pytest.approx(1e-3, rel=0.1)
    assert study.sampler.optimizer.evaluations == 599


def test_more_values_than_32_bits_hold():
    def objective(trial):
        count = trial.suggest_int("count", 0, 2**40)
        even = trial.suggest_int("even", -(2**40), 2**40, step=2)
        size = trial.suggest_int("size", 1, 2**40, log=True)
        assert all(isinstance(value, int) for value in (count, even, size))
        assert even % 2 == 0
        return abs(count / 2**40 - 0.5) + abs(even / 2**40) + abs(np.log2(size) - 20) / 40

    study = study_with()
    study.optimize(objective, n_trials=400)
    assert study.best_value < 0.05
    assert study.sampler.optimizer.evaluations == 399
    assert not study.sampler._unused


@pytest.mark.parametrize(
    ("low", "high", "step"), [(0, 1, 1e-10), (273.15, 373.15, 1e-6), (1.6e9, 1.7e9, 0.1), (0, 3 * 2**58, 3)]
)
def test_more_steps_than_optuna_tells_apart(low, high, step):
    """Optuna would refuse the value of a step and draw another one."""
    kind = optuna.distributions.IntDistribution if step == 3 else optuna.distributions.FloatDistribution
    with pytest.raises(jedax.JedaxError, match=r"x: expected steps that Optuna recognises.*; leave step out"):
        Sampler(search_space={"x": kind(low, high, step=step)})


@pytest.mark.parametrize(
    ("low", "high", "step"), [(0, 1, 1e-6), (-9e6, 9e6, 1.0), (273.15, 373.15, 1e-4), (0, 3 * 2**48, 3)]
)
def test_fine_steps_are_told_apart(low, high, step):
    def objective(trial):
        suggest = trial.suggest_int if step == 3 else trial.suggest_float
        return abs(suggest("x", low, high, step=step) - (0.3 * low + 0.7 * high)) / (high - low)

    study = study_with()
    study.optimize(objective, n_trials=60)
    sampler = study.sampler
    assert sampler.optimizer.num_failed == 0
    assert sampler.optimizer.evaluations == 59
    known = study.trials[0].distributions["x"]
    best = known.low + known.step * sampler.optimizer.best.parameters["x"]
    assert best == pytest.approx(study.best_params["x"], rel=1e-6)


def test_behaviours_fill_a_repertoire():
    def objective(trial):
        value = sphere(trial)
        trial.set_user_attr("speed", trial.params["x0"])
        trial.set_user_attr("mass", trial.params["x1"])
        return value

    study = study_with(descriptors=["speed", "mass"], descriptor_bounds=([-5, -5], [5, 5]), cells=100)
    study.optimize(objective, n_trials=300)
    repertoire = study.sampler.optimizer.repertoire
    assert repertoire.filled.sum() > 20
    speeds = repertoire.descriptors[repertoire.filled][:, 0]
    assert speeds.max() - speeds.min() > 4


def test_a_missing_behaviour_is_said():
    study = study_with(descriptors=["speed"])
    with pytest.raises(jedax.JedaxError, match=r"user attribute 'speed' of trial 1: expected a number, got none"):
        study.optimize(sphere, n_trials=20)
    assert study.trials[1].state == TrialState.COMPLETE


def test_pruned_and_failed_trials_are_failures():
    def objective(trial):
        value = sphere(trial)
        if trial.params["x0"] > 2:
            trial.report(value, 1)
            raise optuna.TrialPruned
        if trial.params["x1"] < -2:
            raise RuntimeError
        return np.nan if trial.params["x2"] < -3 else value

    study = study_with()
    study.optimize(objective, n_trials=300, catch=(RuntimeError,))
    assert study.best_value < 0.1
    states = [trial.state for trial in study.trials]
    states = states[states.index(TrialState.COMPLETE) :]  # the search begins after the first completed trial
    failures = states.count(TrialState.FAIL) + states.count(TrialState.PRUNED)
    assert study.sampler.optimizer.num_failed == failures > 5


def test_constraints_by_function_and_by_trial():
    def objective(trial):
        value = sphere(trial)
        trial.set_user_attr("excess", 1 - trial.params["x0"])
        return value

    study = study_with(constraints_func=lambda trial: [trial.user_attrs["excess"]])
    study.optimize(objective, n_trials=400)
    assert study.best_params["x0"] >= 1
    assert study.best_value == pytest.approx(1, abs=0.1)

    def same(trial):
        value = sphere(trial)
        trial.set_constraint("x0", 1 - trial.params["x0"])
        return value

    study = study_with()
    study.optimize(same, n_trials=400)
    assert study.sampler.optimizer.best.fitness == pytest.approx(1, abs=0.1)
    assert study.sampler.optimizer.best.violation == 0


def test_constraints_that_some_trials_do_not_set_are_satisfied_there():
    def objective(trial):
        value = sphere(trial)
        trial.set_constraint("z", 1 - trial.params["x0"])
        if trial.params["x1"] > 2:
            trial.set_constraint("a", trial.params["x1"] - 2)
        return value

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0))
    study.optimize(objective, n_trials=10)
    study.sampler = Sampler(seed=0)
    study.optimize(objective, n_trials=200)
    best = study.sampler.optimizer.best
    assert best.violation == 0
    assert best.parameters["x0"] >= 1
    assert best.parameters["x1"] <= 2

    def another(trial):
        value = sphere(trial)
        trial.set_constraint("late", 1.5 - trial.params["x0"])
        return value

    study.optimize(another, n_trials=150)
    best = study.sampler.optimizer.best
    assert best.violation == 0
    assert best.parameters["x0"] >= 1
    assert study.sampler.optimizer._steps.penalty.number == 3


def test_a_constraint_that_depends_on_a_branch():
    """A new name, also one of another process, begins a new search, which learns from all trials."""

    def objective(trial):
        kind, x = trial.suggest_categorical("kind", ["p", "q"]), trial.suggest_float("x", 0, 1)
        trial.set_constraint(f"{kind}-limit", (0.5 if kind == "p" else 0.2) - x)
        return x

    study = optuna.create_study(sampler=Sampler(seed=0))
    study.optimize(objective, n_trials=60)
    other = optuna.create_study(sampler=Sampler(seed=0))
    for trial in study.trials:
        other.add_trial(trial)
    for found in (study, other):
        before = found.best_value
        found.optimize(objective, n_trials=1)
        assert found.sampler.optimizer.best.fitness <= before
        found.optimize(objective, n_trials=40)
        assert found.best_params["kind"] == "q"
        assert 0.2 <= found.best_value < 0.25
        assert found.sampler.optimizer.best.violation == 0


def test_a_trial_that_cannot_be_learnt_costs_no_other():
    def objective(trial):
        value = sphere(trial)
        trial.set_user_attr("m", "bad" if trial.number == 7 else np.float32(trial.params["x0"]))
        return value

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0))
    study.optimize(objective, n_trials=10)
    study.sampler = Sampler(["m"], ([-5], [5]), seed=0)
    with pytest.raises(jedax.JedaxError, match="user attribute 'm' of trial 7: expected a number, got 'bad'"):
        study.optimize(objective, n_trials=1)
    study.optimize(objective, n_trials=1)
    assert study.sampler.optimizer.best.fitness <= min(t.value for t in study.trials[:10] if t.number != 7)


def test_enqueued_trials_and_those_of_others_are_known():
    study = study_with()
    study.optimize(sphere, n_trials=5)
    study.enqueue_trial({"x0": 0, "x1": 1, "x2": 2})
    study.enqueue_trial({"x0": 0.5})  # the others are sampled
    study.optimize(sphere, n_trials=40)
    assert study.sampler.optimizer.best.fitness == 0
    assert len(study.sampler._unused) + len(study.sampler.optimizer.asked) <= 1
    later = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    later.optimize(sphere, n_trials=30)
    best = later.best_value
    later.sampler = Sampler(seed=0)
    later.optimize(sphere, n_trials=20)
    assert later.sampler.optimizer.best.fitness <= best
    assert len(later.sampler._seen) == 50


def test_solutions_out_of_the_ranges_of_a_trial_have_failed():
    def objective(trial):
        width = trial.suggest_float("width", 0, 1)
        hole = trial.suggest_float("hole", 0, width + 0.2)
        return (width - 0.3) ** 2 + (hole - 0.45) ** 2

    study = study_with()
    study.optimize(objective, n_trials=150)
    assert study.best_value < 1e-4
    assert len({trial.params["width"] for trial in study.trials}) == 150
    assert study.sampler.optimizer.num_failed > 0
    assert not study.sampler.optimizer.asked


def test_threads():
    threads = set()

    def objective(trial):
        threads.add(threading.get_ident())
        return sphere(trial)

    study = study_with()
    study.optimize(objective, n_trials=300, n_jobs=2)
    assert len(threads) == 2
    assert study.best_value < 0.1
    assert len(study.trials) == 300
    assert len(study.sampler._seen) >= 298  # the last ones are learnt before the next trial


def test_two_samplers_on_one_storage(tmp_path):
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(tmp_path / "journal")))
    one, other = (study_with(study_name="s", storage=storage) for _ in range(2))
    for _ in range(60):
        one.optimize(sphere, n_trials=1)
        other.optimize(sphere, n_trials=1)
    values = [tuple(trial.params.values()) for trial in one.trials]
    assert len(set(values)) == 120
    told = min(trial.value for trial in one.trials[:100])  # the last ones may be of generations that are still open
    for study in (one, other):
        assert len(study.sampler._seen) >= 118
        assert study.sampler.optimizer.best.fitness <= told


def test_one_search_of_a_study_begins_in_the_middle():
    study = study_with()
    study.optimize(sphere, n_trials=3)
    middle = {f"x{i}": 0.0 for i in range(3)}
    assert study.trials[1].params == middle
    study.sampler = Sampler(seed=1)  # as a later program would continue
    study.optimize(sphere, n_trials=20)
    assert [trial.params for trial in study.trials].count(middle) == 1
    space = study.trials[0].distributions
    given = study_with(search_space=space)
    given.optimize(sphere, n_trials=1)
    assert given.trials[0].params == middle


def test_parameters_that_some_trials_lack():
    def objective(trial):
        value = sphere(trial)
        if trial.number % 2:
            return value + trial.suggest_float("extra", 0, 1)
        return value

    study = study_with()
    study.optimize(objective, n_trials=60)
    assert study.sampler.optimizer.evaluations == 59


@pytest.mark.filterwarnings("ignore:PartialFixedSampler is experimental")
def test_parameters_that_optuna_holds_fixed():
    study = study_with()
    study.optimize(sphere, n_trials=40)
    sampler = study.sampler
    study.sampler = optuna.samplers.PartialFixedSampler({"x1": 3.0}, sampler)
    study.optimize(sphere, n_trials=200)
    fixed = study.trials[40:]
    assert {trial.params["x1"] for trial in fixed} == {3.0}
    # The search has the two free parameters, and no trial with another value of the third one.
    assert min(trial.value for trial in fixed) == pytest.approx(4, abs=1e-2)
    found = [(elite.fitness, elite.parameters) for elite in sampler.optimizer.elites()]
    assert all(set(parameters) == {"x0", "x2"} for _, parameters in found)
    assert found[0][0] == pytest.approx(min(trial.value for trial in fixed))
    assert sampler.optimizer.evaluations == 200
    # Without it all three are searched again, and all trials count.
    study.sampler = sampler
    study.optimize(sphere, n_trials=200)
    assert study.best_value < 0.1
    assert set(sampler.optimizer.elites()[0].parameters) == {"x0", "x1", "x2"}
    assert sampler.optimizer.best.fitness == pytest.approx(study.best_value)


def test_declared_space_searches_from_the_first_trial():
    space = {f"x{i}": optuna.distributions.FloatDistribution(-5, 5) for i in range(3)}
    study = study_with(search_space=space)
    study.optimize(sphere, n_trials=10)
    assert study.sampler.optimizer.evaluations == 10


def test_ranges_that_depend_on_another_parameter():
    """The first trial has a range without the optimum with most seeds."""

    def objective(trial):
        low = trial.suggest_float("low", 0, 1)
        return (low - 0.1) ** 2 + (trial.suggest_float("high", low, 1) - 0.2) ** 2

    for seed in range(4):
        study = study_with(seed=seed)
        study.optimize(objective, n_trials=150)
        assert study.best_value < 1e-3


def test_a_range_that_is_widened_later():
    study = study_with()
    for high in (1, 2):
        study.optimize(lambda trial, high=high: (trial.suggest_float("y", 0, high) - 1.7) ** 2, n_trials=60)
    assert study.best_value < 1e-3
    study.optimize(lambda trial: trial.suggest_float("y", 0, 3), n_trials=1)
    assert study.sampler.optimizer.evaluations > 0  # that before another one begins


def test_a_parameter_of_two_kinds_is_sampled_at_random():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1, step=0.1 if trial.number < 5 else 0.25)
        return x + trial.suggest_float("y", 0, 1) + trial.suggest_int("z", 0, 2 * (1 + trial.number % 2), step=2)

    study = study_with()
    with pytest.warns(UserWarning, match=r"x: expected a distribution like FloatDistribution.*step=0.1"):
        study.optimize(objective, n_trials=40)
    assert set(study.sampler.optimizer.best.parameters) == {"y", "z"}
    assert max(trial.params["z"] for trial in study.trials) == 4


def test_a_later_program_searches_the_parameters_that_all_trials_have():
    study = study_with()
    study.optimize(sphere, n_trials=3)
    study.sampler = Sampler()
    wide = {"x0": optuna.distributions.FloatDistribution(0, 9)}
    study.add_trial(optuna.create_trial(params={"x0": 0.5}, distributions=wide, value=3.0))
    study.optimize(sphere, n_trials=1)
    assert set(study.sampler.optimizer.task.space.names) == {"x0"}
    space = {f"x{i}": optuna.distributions.FloatDistribution(-5, 5) for i in range(3)}
    study.sampler = Sampler(search_space=space)
    study.optimize(sphere, n_trials=5)
    assert set(study.sampler.optimizer.task.space.names) == set(space)


def test_trials_told_through_another_object_of_the_study(tmp_path):
    """A server asks, a worker tells."""
    storage = optuna.storages.InMemoryStorage()
    space = {f"x{i}": optuna.distributions.FloatDistribution(-5, 5) for i in range(3)}
    server = study_with(study_name="s", storage=storage)
    worker = optuna.load_study(study_name="s", storage=storage)
    for number in range(120):
        trial = server.ask(space)
        state = TrialState.FAIL if number % 10 == 5 else None
        value = None if state else sum((trial.params[f"x{i}"] - i) ** 2 for i in range(3))
        worker.tell(trial.number, value, state=state)
    server.ask(space)
    optimizer = server.sampler.optimizer
    assert optimizer.evaluations == 107  # without the first one, which was random, and those that failed
    assert optimizer.num_failed == 12
    assert len(optimizer.asked) == 1
    assert server.best_value < 0.3


def test_another_study_of_the_same_name():
    sampler = Sampler(seed=0)
    study = optuna.create_study(study_name="s", sampler=sampler)
    study.optimize(sphere, n_trials=10)
    for direction in ("minimize", "maximize"):
        other = optuna.create_study(study_name="s", direction=direction, sampler=sampler)
        with pytest.raises(jedax.JedaxError, match=r"study: expected the study 's', got another one of that name"):
            other.optimize(sphere, n_trials=10)
    study.optimize(sphere, n_trials=10)


def test_waiting_trials_with_some_of_the_parameters():
    study = study_with()
    study.optimize(sphere, n_trials=10)
    known = {"x1": optuna.distributions.FloatDistribution(-5, 5)}
    for _ in range(4):
        study.add_trial(optuna.create_trial(state=TrialState.WAITING, params={"x1": 4.5}, distributions=known))
    study.optimize(sphere, n_trials=20)
    assert [trial.params["x1"] for trial in study.trials].count(4.5) == 4
    assert study.sampler.optimizer.num_failed == 0


@pytest.mark.filterwarnings("ignore:PartialFixedSampler is experimental")
def test_trials_with_other_values_of_a_fixed_parameter():
    def objective(trial):
        return 100 * (trial.suggest_float("x", 0, 1) - 0.9) ** 2 + (trial.suggest_float("y", 0, 1) - 0.3) ** 2

    study = study_with()
    study.optimize(objective, n_trials=3)
    sampler = study.sampler
    study.sampler = optuna.samplers.PartialFixedSampler({"x": 0.5}, sampler)
    study.enqueue_trial({"x": 0.9})  # before the fixed value is known
    study.optimize(objective, n_trials=5)
    study.enqueue_trial({"x": 0.9})
    study.enqueue_trial({"x": 0.9, "y": 0.3})
    study.optimize(objective, n_trials=30)
    assert study.best_value == 0
    assert sampler.optimizer.best.fitness >= 16
    assert sampler.optimizer.num_failed == 0


@pytest.mark.filterwarnings("ignore:`constraints_func`")
def test_constraints_that_are_truth_values_of_earlier_trials():
    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=0, constraints_func=lambda trial: (trial.params["x0"] > 0.5,))
    )
    study.optimize(sphere, n_trials=10)
    study.sampler = Sampler(seed=0)
    study.optimize(sphere, n_trials=10)
    assert study.sampler.optimizer.feasible


def test_values_outside_of_the_space_are_left_out():
    study = study_with()
    study.optimize(sphere, n_trials=5)
    study.optimize(lambda trial: trial.suggest_float("x0", 20, 30), n_trials=3)
    study.optimize(sphere, n_trials=5)
    assert len(study.trials) == 13


def test_studies_that_do_not_fit():
    several = optuna.create_study(directions=["minimize"] * 2, sampler=Sampler())
    with pytest.raises(jedax.JedaxError, match="study: expected one objective, got 2"):
        several.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 0), n_trials=1)
    study = study_with()
    study.optimize(sphere, n_trials=1)
    other = optuna.create_study(sampler=study.sampler)
    with pytest.raises(jedax.JedaxError, match="make a new Sampler"):
        other.optimize(sphere, n_trials=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"descriptors": "speed"}, "descriptors: expected a list of names"),
        ({"search_space": ["x"]}, r"search_space: expected a dict of distributions, got \['x'\]"),
        (
            {"search_space": {"x": optuna.distributions.FloatDistribution(1, 1)}},
            "search_space: expected a parameter with several values",
        ),
        ({"search_space": {"x": (0, 1)}}, r"x: expected a float, int or categorical distribution, got \(0, 1\)"),
        ({"samples_per_evaluation": 2}, "samples_per_evaluation: expected 1, as a trial has one value"),
        ({"seed": True}, "seed: expected a whole number from 0 to 4,294,967,295, got True"),
        ({"descriptors": ["a"], "descriptor_bounds": ([0, 0], [1, 1])}, "descriptor_bounds: expected 1 lows"),
        ({"populatoin": 3}, "population"),
        ({"seed": -1}, "seed: expected a whole number"),
        ({"method": "jedi-z"}, "jedi-x"),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    with pytest.raises(jedax.JedaxError, match=message):
        Sampler(**arguments)


def test_samplers_are_pickled_without_the_search():
    study = study_with()
    study.optimize(sphere, n_trials=20)
    study.sampler = pickle.loads(pickle.dumps(study.sampler))
    study.optimize(sphere, n_trials=20)
    assert len(study.sampler._seen) == 40


def test_pruners_that_divide_the_study():
    def objective(trial):
        value = sphere(trial)
        for step in range(3):
            trial.report(value / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    pruner = optuna.pruners.HyperbandPruner(max_resource=3)
    study = optuna.create_study(sampler=Sampler(seed=0, constraints_func=lambda trial: (-1.0,)), pruner=pruner)
    study.optimize(objective, n_trials=60)
    assert study.sampler.optimizer.num_failed > 0
    assert study.sampler.optimizer.evaluations > 10
