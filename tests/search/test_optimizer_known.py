"""`Optimizer` where all parameters are whole numbers or options: no solution is evaluated twice."""

import math

import numpy as np
import optuna
import pytest

import jedax
import jedax.optuna

SMALL = {"a": jedax.Integer(0, 3), "b": ["p", "q", "r"]}  # 12 solutions
WIDE = {"kind": list("abcde"), "other": list("abcde"), "n": jedax.Integer(0, 7)}  # 200 solutions


def value(x):
    return float(sum((position + 1) * (ord(str(one)[0]) % 7) for position, one in enumerate(x.values())))


def key(x):
    return tuple(x.values())


def asked_until(optimizer, number, ask):
    """Tell results of solutions until a number of them was told; return the solutions."""
    told = []
    while len(told) < number and not optimizer.done:
        solutions = ask(optimizer)
        optimizer.tell(solutions, [value(x) for x in solutions])
        told += solutions
    return told


@pytest.mark.parametrize("ask", [lambda optimizer: optimizer.ask(), lambda optimizer: optimizer.ask(1)])
class TestKnown:
    def test_a_search_ends_when_all_solutions_are_known(self, ask):
        optimizer = jedax.Optimizer(space=SMALL, minimise=True)
        told = asked_until(optimizer, 1000, ask)
        assert len({key(x) for x in told}) == len(told) == optimizer.evaluations == 12
        assert optimizer.stop_reason == "All 12 solutions of the space are evaluated."
        assert optimizer.best.fitness == min(map(value, told))
        again = ask(optimizer)  # what is asked for then repeats known solutions
        optimizer.tell(again, [value(x) for x in again])

    def test_no_solution_is_asked_for_twice(self, ask):
        told = asked_until(jedax.Optimizer(space=WIDE, minimise=True, seed=3), 150, ask)
        assert len({key(x) for x in told}) == len(told) >= 150

    def test_noisy_solutions_are(self, ask):
        optimizer = jedax.Optimizer(space=SMALL, minimise=True, noisy=True)
        assert len(asked_until(optimizer, 40, ask)) >= 40
        optimizer = jedax.Optimizer(space=SMALL, minimise=True, samples_per_evaluation=2)
        while not optimizer.done and optimizer.evaluations < 80:
            solutions = ask(optimizer)
            optimizer.tell(solutions, [[value(x)] * 2 for x in solutions])
        assert optimizer.evaluations >= 80

    def test_added_solutions_are_known(self, ask):
        optimizer = jedax.Optimizer(space=SMALL, minimise=True)
        added = [{"a": a, "b": b} for a in range(4) for b in "pq"]
        optimizer.add(added, [value(x) for x in added])
        told = asked_until(optimizer, 1000, ask)
        assert {key(x) for x in told} == {(a, "r") for a in range(4)}
        assert len(told) == 4

    def test_a_loaded_search_knows_them_and_asks_the_same(self, ask, tmp_path):
        optimizer = jedax.Optimizer(space=WIDE, minimise=True, seed=1)
        told = asked_until(optimizer, 60, ask)
        optimizer.save(tmp_path / "saved")
        loaded = jedax.Optimizer.load(tmp_path / "saved")
        more = [asked_until(one, 60, ask) for one in (optimizer, loaded)]
        assert more[0] == more[1]
        assert len({key(x) for x in [*told, *more[1]]}) == len(told) + len(more[1])

    def test_failed_solutions_are_asked_for_again(self, ask):
        optimizer, counts = jedax.Optimizer(space=SMALL, minimise=True, evaluations=40), {}
        while not optimizer.done:
            solutions = ask(optimizer)
            for x in solutions:
                counts[key(x)] = counts.get(key(x), 0) + 1
            optimizer.tell(solutions, [math.nan if x["b"] == "p" else value(x) for x in solutions])
        failing = [number for (_, b), number in counts.items() if b == "p"]
        assert len(failing) == 4
        assert min(failing) > 1

    def test_with_descriptors_and_constraints(self, ask):
        optimizer = jedax.Optimizer(descriptor_bounds=([0], [3]), space=SMALL, minimise=True)
        told = []
        while not optimizer.done:
            solutions = ask(optimizer)
            told += map(key, solutions)
            optimizer.tell(
                solutions, [value(x) for x in solutions], [[x["a"]] for x in solutions],
                violations=[1.0 - x["a"] for x in solutions],
            )  # fmt: skip
        assert len(set(told)) == len(told) == 12
        assert optimizer.best.violation == 0
        assert optimizer.best.parameters["a"] >= 1
        assert optimizer.repertoire.filled.sum() >= 4


def test_the_search_is_that_which_evaluates_them_again():
    """A search that is told known results again: the same new solutions in the same order."""
    repeating = jedax.Optimizer(space=WIDE, minimise=True, noisy=True, seed=2)
    firsts = dict.fromkeys(key(x) for x in asked_until(repeating, 400, lambda optimizer: optimizer.ask()))
    sparing = jedax.Optimizer(space=WIDE, minimise=True, seed=2)
    told = [key(x) for x in asked_until(sparing, len(firsts), lambda optimizer: optimizer.ask())]
    number = min(len(told), len(firsts))
    assert told[:number] == list(firsts)[:number]


def test_open_solutions_are_not_asked_for_again_unless_all_are_open():
    optimizer = jedax.Optimizer(space=WIDE, minimise=True)
    under_way = [key(x) for _ in range(20) for x in optimizer.ask(1)]
    assert len(set(under_way)) == 20
    optimizer = jedax.Optimizer(space={"a": list("pq"), "b": list("pq")}, minimise=True)
    assert len(optimizer.ask(10)) == 10


def test_a_file_with_damaged_results_is_refused(tmp_path):
    optimizer = jedax.Optimizer(space=WIDE, minimise=True)
    asked_until(optimizer, 20, lambda one: one.ask())
    known = optimizer._ledger.known
    for solution, result in known.items():
        known[solution] = result._replace(fitness=np.zeros(3))
    optimizer.save(tmp_path / "saved")
    with pytest.raises(jedax.JedaxError, match="expected solutions that fit the settings"):
        jedax.Optimizer.load(tmp_path / "saved")


def test_minimize_evaluates_each_solution_once():
    seen = []

    def fun(x):
        seen.append(key(x))
        return value(x)

    found = jedax.minimize(fun, space=SMALL, evaluations=500)
    assert len(set(seen)) == len(seen) == found.nfev == 12
    assert found.success
    assert found.message == "All 12 solutions of the space are evaluated."


def test_the_last_solutions_of_a_larger_space_are_found():
    """After a few hundred of 351, nearly all samples are known."""
    space = {"coils": jedax.Integer(1, 9), "metal": ["steel", "brass", "zinc"], "teeth": jedax.Integer(8, 20)}

    def cost(x):
        return (x["coils"] - 7) ** 2 + {"steel": 3, "brass": 1, "zinc": 2}[x["metal"]] + abs(x["teeth"] - 12)

    found = jedax.minimize(cost, space=space, evaluations=2000)
    assert found.fun == 1
    assert 351 <= found.nfev < 375  # another processor's search may repeat a generation near the end


def test_trials_of_a_study_do_not_repeat_until_all_are_known():
    study = optuna.create_study(sampler=jedax.optuna.Sampler(seed=0))
    study.enqueue_trial({"a": 2, "b": "q", "c": 0.5})

    def objective(trial):
        whole, option = trial.suggest_int("a", 0, 3), trial.suggest_categorical("b", ["p", "q"])
        return whole + (option == "p") + trial.suggest_float("c", 0, 0.5, step=0.5)

    study.optimize(objective, n_trials=20)
    params = [tuple(trial.params.values()) for trial in study.trials]
    assert len(set(params[:16])) == 16


def test_options_are_found_with_few_evaluations():
    """Eight of eight options in 150 of 65,536 solutions, which random ones and an ES alone do not find."""
    space, best = {f"x{i}": list("abcd") for i in range(8)}, "badcabdc"

    def fun(x):
        return sum(one != wanted for one, wanted in zip(x.values(), best, strict=True))

    ends = [jedax.minimize(fun, space=space, evaluations=150, seed=seed).fun for seed in range(5)]
    alone = [
        jedax.minimize(fun, space=space, evaluations=150, seed=seed, exploration=0, head_start=0).fun
        for seed in range(5)
    ]
    assert np.median(ends) == 0 < np.median(alone)


def test_lost_evaluations_of_former_generations_hold_nothing_up():
    optimizer = jedax.Optimizer(space=SMALL, minimise=True, seed=1)
    [lost] = optimizer.ask(1)  # never told
    while optimizer.generations == 0:
        solutions = [x for x in optimizer.ask(4) if x != lost]
        optimizer.tell(solutions, [value(x) for x in solutions])
    assert lost in optimizer.asked.values()
    while not optimizer.done:
        solutions = optimizer.ask()
        assert solutions
        optimizer.tell(solutions, [value(x) for x in solutions])
    assert optimizer.evaluations == 12
