"""When ES of a race end and halve their steps, by hand and beside a transcription in plain Python."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jedax.es.race import Race

RULE = Race(size=2, trial=20, patience=10, refinements=1)
observe = jax.jit(Race.observe, static_argnums=0)


def run(rule, curves):
    """Return what each generation brings: which ES end, and which halve their steps; populations of equal fitness."""
    state, found = rule.begin(), []
    for fitness in curves:
        state, ends, refines = observe(rule, state, jnp.tile(jnp.float32(fitness)[:, None], (1, 4)))
        found.append((np.flatnonzero(ends).tolist(), np.flatnonzero(refines).tolist()))
    return state, found


def test_the_lower_one_ends_at_the_first_comparison():
    _, found = run(RULE, [(g, 2.0 * g) for g in range(20)])
    assert found == [([], [])] * 19 + [([0], [])]


def test_a_younger_one_must_be_as_good_as_the_best_was_at_its_age():
    slow, fast = [1.0 * g for g in range(60)], [2.0 * g for g in range(60)]
    state, found = run(RULE, [*zip(slow[:20], fast[:20], strict=True), *zip(slow, fast[20:], strict=False)])
    assert [generation for generation, (ends, _) in enumerate(found) if ends] == [19, 39]
    assert found[39] == ([0], [])
    again = [*zip(slow[:20], fast[:20], strict=True), *zip(fast, fast[20:], strict=False)]
    assert [generation for generation, (ends, _) in enumerate(run(RULE, again)[1]) if ends] == [19]
    assert int(state.leader) == 1


def test_a_younger_one_that_is_better_ends_the_older():
    slow, fast = [1.0 * g for g in range(60)], [4.0 * g for g in range(60)]
    _, found = run(RULE, [*[(1.0 * g, 0.0) for g in range(20)], *zip(slow[20:], fast, strict=False)])
    ended = [(generation, ends) for generation, (ends, _) in enumerate(found) if ends]
    assert ended[0] == (19, [1])
    generation, ends = ended[1]
    assert ends == [0]
    assert 20 + 15 <= generation < 40  # not before its level is an average of 16 generations


def test_one_that_stagnates_halves_its_step_once_and_then_ends():
    _, found = run(RULE, [(1.0, 1.0 * g) for g in range(19)])
    assert [(g, refines) for g, (_, refines) in enumerate(found) if refines] == [(10, [0])]
    _, found = run(Race(1, 100, 10, 1), [(1.0,)] * 30)
    assert [(g, *what) for g, what in enumerate(found) if what[0] or what[1]] == [(10, [], [0]), (20, [0], [])]


def test_the_best_one_that_has_ended_is_still_the_measure():
    good, bad = [2.0 * g for g in range(25)], [1.0 * g for g in range(25)]
    rule = Race(1, 20, 5, 0)
    state = rule.begin()
    for value in [*good, *[0.0] * 60]:
        state, ends, _ = observe(rule, state, jnp.full((1, 4), value))
        if ends.any():
            break
    assert int(state.leader) == 1
    ended = []
    for generation, value in enumerate(bad):
        state, ends, _ = observe(rule, state, jnp.full((1, 4), value))
        ended += [generation] * bool(ends.any())
    assert ended == [19]


def test_the_best_quarter_counts_and_failed_solutions_are_left_out():
    state, _ = run(RULE, [(1.0, 2.0)])
    scores = jnp.array([[jnp.nan, 3.0, -jnp.inf, 5.0], [jnp.nan] * 4])
    state, _, _ = observe(RULE, state, scores)
    np.testing.assert_allclose(state.level, [1.0 + (5.0 - 1.0) / 2, 2.0], rtol=1e-6)
    scores = jnp.array([[1.0, 9.0, jnp.nan, 5.0, 2.0, 3.0, 7.0, 4.0]] * 2)  # the best two of eight: 9 and 7
    state, _, _ = observe(RULE, RULE.begin(), scores)
    np.testing.assert_allclose(state.level, 8.0, rtol=1e-6)


def test_one_that_starts_from_known_solutions_is_as_old_as_the_best():
    state, _ = run(RULE, [(3.0 * g, 1.0 * g) for g in range(30)])
    assert state.age.tolist() == [30, 10]
    state = RULE.descend(state, jnp.array([False, True]))
    assert state.age.tolist() == [30, 30]
    np.testing.assert_array_equal(state.marks[1], state.record)
    ended = []
    for g in range(30, 45):
        state, ends, _ = observe(RULE, state, jnp.float32([[3.0 * g] * 4, [2.0 * g] * 4]))
        ended += [(g + 1, np.flatnonzero(ends).tolist())] if ends.any() else []
    assert ended == [(40, [1])]  # twice the age of the first comparison
    state = RULE.descend(state, jnp.array([False, True]))
    for g in range(16):
        assert int(state.leader) == 0
        state, ends, _ = observe(RULE, state, jnp.float32([[140.0 + g] * 4, [500.0] * 4]))
        assert ends.tolist() == [g == 15, False]  # overtaken by one that is no older, once its level is an average
    assert int(state.leader) == 1


def transcribed(rule, scores):
    """The rule in plain Python, one ES after the other."""
    fresh = {"age": 0, "level": 0.0, "top": -math.inf, "waited": 0, "refined": 0, "marks": {}}
    members = [dict(fresh, marks={}) for _ in range(rule.size)]
    record, record_level, leader, found = {}, -math.inf, None, []
    for generation in scores:
        due = {}
        for i, es in enumerate(members):
            es["age"] += 1
            mean = float(np.mean(np.sort(generation[i])[-2:]))
            es["level"] = mean if es["age"] == 1 else es["level"] + (mean - es["level"]) / min(es["age"], 16)
            es["waited"] = 0 if es["level"] > es["top"] else es["waited"] + 1
            es["top"] = max(es["top"], es["level"])
            if es["age"] % rule.trial == 0 and math.log2(es["age"] / rule.trial).is_integer():
                due[i] = es["age"]
                es["marks"][es["age"]] = es["level"]
        ready = [i for i in range(rule.size) if members[i]["age"] >= 16]
        first = max(ready, key=lambda i: members[i]["level"], default=None)
        leads = first is not None and members[first]["level"] > record_level
        before = leader
        if leads:
            leader, record_level = first, members[first]["level"]
        if leader is not None:
            record = dict(members[leader]["marks"])
        ends, refines = [], []
        for i, es in enumerate(members):
            behind = i in due and es["level"] < record.get(due[i], -math.inf)
            behind |= leader != before and es["age"] >= members[first]["age"] and es["age"] > rule.trial
            stagnates = es["waited"] >= rule.patience
            if (behind and i != leader) or (stagnates and es["refined"] >= rule.refinements):
                ends.append(i)
            elif stagnates:
                refines.append(i)
        for i in refines:
            members[i].update(waited=0, refined=members[i]["refined"] + 1)
        for i in ends:
            members[i] = dict(fresh, marks={})
            leader = None if leader == i else leader
        found.append((ends, refines))
    return found


@pytest.mark.parametrize("rule", [Race(2, 4, 6, 1), Race(3, 17, 9, 2), Race(1, 5, 3, 0)])
def test_agrees_with_a_transcription(rule):
    random = np.random.default_rng(0)
    state, drift, found, scores = rule.begin(), random.normal(size=rule.size), [], []
    middle = random.normal(size=rule.size)
    for _ in range(400):
        scores.append((middle[:, None] + random.normal(size=(rule.size, 8))).astype(np.float32))
        state, ends, refines = observe(rule, state, jnp.asarray(scores[-1]))
        found.append((np.flatnonzero(ends).tolist(), np.flatnonzero(refines).tolist()))
        for i in found[-1][0]:
            middle[i], drift[i] = random.normal(), abs(random.normal())
        middle, drift = middle + drift, 0.97 * drift
    assert found == transcribed(rule, scores)
    kinds = [len(ends) for ends, _ in found]
    assert sum(kinds) > 3
    assert rule.refinements == 0 or any(refines for _, refines in found)
