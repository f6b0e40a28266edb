"""When a rival overtakes or ends and a leader halves its step, by hand and beside a transcription in plain Python."""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jedax.es.race import Race

RULE = Race(trial=20, patience=10, refinements=1, share=0.5)
KEY = jax.random.key(0)
observe_leader = jax.jit(Race.observe_leader, static_argnums=0)
observe_rival = jax.jit(Race.observe_rival, static_argnums=0)


def led(rule, curve):
    """Return the state after generations of a leader with these fitnesses, and those after which it halves its step."""
    state, refined = rule.begin(), []
    for generation, fitness in enumerate(curve):
        state, refines = observe_leader(rule, state, jnp.full(4, jnp.float32(fitness)))
        refined += [generation + 1] * bool(refines)
    return state, refined


def challenged(rule, state, curve):
    """Return the state after generations of a rival, and the first at which it overtakes, halves its step and ends."""
    events = {}
    for generation, fitness in enumerate(curve):
        state, fate = observe_rival(rule, KEY, state, jnp.full(4, jnp.float32(fitness)))
        for name in ("overtakes", "refines", "ends"):
            if getattr(fate, name):
                events.setdefault(name, generation + 1)
        if fate.ends:
            break
    return state, events


def test_a_rival_without_hope_ends_at_its_first_comparison():
    leader, _ = led(RULE, [100.0] * 50)
    state, events = challenged(RULE, leader, [10.0 + 0.1 * g for g in range(30)])
    assert events == {"ends": 20}
    assert float(state.leader.level) == 100
    assert int(state.rival.age) == 0
    assert float(state.rival.level) == -math.inf


def test_a_rival_that_gains_fast_goes_on_although_it_is_behind():
    leader, _ = led(RULE, [100.0] * 50)
    curve = [7.0 * g for g in range(24)]
    state, events = challenged(RULE, leader, curve)
    assert events == {}  # its level is 69 after 20 generations, 37 more than after 10
    assert 80 < float(state.rival.level) < 100
    _, events = challenged(RULE, leader, [*curve, *[70.0] * 30])
    assert events == {"ends": 40}  # it gained less since generation 20 than half of what it lacks
    curve = [5.0 * g for g in range(23)]  # 49 after 20 generations, 26 more than after 10
    assert challenged(RULE, leader, curve)[1] == {}
    assert challenged(RULE, leader, [0.9 * fitness for fitness in curve])[1] == {"ends": 20}


def test_a_rival_above_the_leader_takes_its_place():
    leader, _ = led(RULE, [1.0 * g for g in range(50)])
    state, events = challenged(RULE, leader, [200.0] * 40)
    assert events == {"overtakes": 16, "ends": 16}  # not before its level is an average of 16 generations
    assert (int(state.leader.age), float(state.leader.level)) == (16, 200)
    assert int(state.rival.age) == 0


def test_a_rival_is_compared_with_what_the_leader_reached_with_steps_as_long():
    before = [*range(31), *[30.0] * 60]
    _, refined = led(RULE, before)
    before = before[: refined[0]]
    goal = float(led(RULE, before)[0].leader.level)
    leader, _ = led(RULE, [*before, *[100.0] * 60])
    level = float(leader.leader.level)
    assert level > 95
    np.testing.assert_allclose(leader.leader.reached, [goal, level])
    assert challenged(RULE, leader, [goal - 1] * 60)[1] == {"ends": 20}
    # It stagnates over generations 11 to 20, and does with half the step what the leader did.
    waiting, events = challenged(RULE, leader, [goal + 1] * 20)
    assert events == {"refines": 20}
    assert (int(waiting.rival.refined), float(waiting.rival.level)) == (1, pytest.approx(goal + 1))
    slow = [goal + 1 + 0.5 * g for g in range(60)]
    # In its generation 40 it is compared with what the leader reached with half the step.
    assert challenged(RULE, waiting, slow)[1] == {"ends": 20}
    overtaken, events = challenged(RULE, waiting, [1.2 * level] * 60)
    assert set(events) == {"overtakes", "ends"}
    assert float(overtaken.leader.level) > level
    assert int(overtaken.leader.refined) == 1
    np.testing.assert_allclose(overtaken.leader.reached, [goal + 1, overtaken.leader.level], rtol=1e-6)


def test_a_rival_that_stagnates_and_may_not_halve_its_step_ends():
    leader, refined = led(RULE, [2.0 * g for g in range(50)])
    assert refined == []
    steep, flat = [6.0 * g for g in range(20)], [60.0] * 30
    assert challenged(RULE, leader, steep)[1] == {}  # it would reach its goal by generation 40
    assert challenged(RULE, leader, [*steep, *flat])[1] == {"ends": 30}


def test_a_leader_that_gains_too_little_halves_its_step_once_and_goes_on():
    state, refined = led(RULE, [*range(31), *[30.0] * 60])
    assert refined == [70]  # its level is an average that still rises for some generations
    assert (int(state.leader.refined), float(RULE.rival_share(state))) == (1, 0.5)
    state, refined = led(RULE, [float(g) for g in range(90)])
    assert refined == []


def test_a_leader_that_stagnates_with_its_smallest_step_leaves_all_generations_to_rivals():
    curve = [*range(31), *[30.0] * 48]
    state, _ = led(RULE, curve)  # it halved its step after generation 70
    assert (bool(state.leader.done), float(RULE.rival_share(state))) == (False, 0.5)
    state, refined = led(RULE, [*curve, 30.0])
    assert refined == [70]
    assert (bool(state.leader.done), float(RULE.rival_share(state))) == (True, 1.0)
    assert not led(RULE, [*curve, 100.0])[0].leader.done
    overtaken, events = challenged(RULE, state, [200.0] * 40)
    assert events["overtakes"] == 16
    assert not overtaken.leader.done
    assert float(RULE.rival_share(overtaken)) == 0


def test_rivals_begin_when_the_leader_is_as_old_as_they_are_at_the_first_comparison():
    for age, share in ((0, 0.0), (19, 0.0), (20, 0.5)):
        assert float(RULE.rival_share(led(RULE, [float(g) for g in range(age)])[0])) == share


def test_a_rival_that_would_reach_its_goal_gets_most_of_the_generations():
    rule = Race(trial=20, patience=10, refinements=1, share=0.25)
    leader, _ = led(rule, [100.0 + g for g in range(50)])
    slow, steep = [6.0 + 3 * g for g in range(20)], [7.0 * g for g in range(24)]
    shares = [float(rule.rival_share(challenged(rule, leader, steep[:age])[0])) for age in (0, 19, 20, 24)]
    assert shares == [0.25, 0.25, 0.75, 0.75]
    for curve, age in ((slow, 20), ([*steep, *[70.0] * 30], 40)):
        state, events = challenged(rule, leader, curve)
        assert events == {"ends": age}
        assert float(rule.rival_share(state)) == 0.25
    # The share of a rival is never lowered.
    rule = Race(trial=20, patience=10, refinements=1, share=0.75)
    state, _ = challenged(rule, leader, steep)
    assert float(rule.rival_share(state)) == 0.75


def test_the_best_quarter_counts_and_failed_solutions_are_left_out():
    state, _ = led(RULE, [1.0])
    state, _ = observe_leader(RULE, state, jnp.array([jnp.nan, 3.0, -jnp.inf, 5.0]))
    assert float(state.leader.level) == 1.0 + (5.0 - 1.0) / 2
    state, _ = observe_leader(RULE, state, jnp.full(4, jnp.nan))
    assert (float(state.leader.level), int(state.leader.age)) == (3.0, 3)
    state, _ = observe_leader(RULE, RULE.begin(), jnp.array([1.0, 9.0, jnp.nan, 5.0, 2.0, 3.0, 7.0, 4.0]))
    assert float(state.leader.level) == 8.0  # the best two of eight: 9 and 7


def test_the_first_rival_is_bold_and_half_of_the_later_ones():
    rule = Race(20, 10, 2, 0.5, has_bold=True)
    assert (bool(rule.begin().leader.bold), bool(rule.begin().rival.bold)) == (False, True)
    state, scores = led(rule, [100.0] * 50)[0], jnp.full(4, 10.0)
    for _ in range(19):
        state, _ = observe_rival(rule, KEY, state, scores)
    keys = jax.random.split(jax.random.key(0), 4000)
    after, fate = jax.vmap(lambda key: rule.observe_rival(key, state, scores))(keys)
    assert fate.ends.all()
    assert np.mean(after.rival.bold) == pytest.approx(0.5, abs=0.04)


def test_without_bold_es_no_rival_is_bold():
    assert not RULE.begin().rival.bold
    state = led(RULE, [100.0] * 50)[0]
    for key in jax.random.split(jax.random.key(0), 8):
        after = state
        for _ in range(20):
            after, fate = observe_rival(RULE, key, after, jnp.full(4, 10.0))
        assert fate.ends
        assert not after.rival.bold


def test_a_bold_rival_makes_a_bold_leader():
    rule = Race(20, 10, 1, 0.5, has_bold=True)
    state, events = challenged(rule, led(rule, [1.0] * 50)[0], [200.0] * 40)
    assert events["overtakes"] == 16
    assert bool(state.leader.bold)
    assert not led(rule, [1.0] * 50)[0].leader.bold


class TestFailures:
    """Generations all of whose solutions fail."""

    FAILED = [-math.inf] * 60

    def test_a_rival_ends(self):
        leader, _ = led(RULE, [100.0] * 50)
        assert challenged(RULE, leader, self.FAILED)[1] == {"ends": 10}
        leader, _ = led(RULE, self.FAILED[:9])
        assert challenged(replace(RULE, patience=1000), leader, self.FAILED)[1] == {"ends": 20}

    def test_a_leader_leaves_all_generations_to_rivals(self):
        state, refined = led(RULE, self.FAILED)
        assert (refined, float(RULE.rival_share(state))) == ([10], 1)
        assert challenged(RULE, state, [5.0] * 30)[1] == {"overtakes": 16, "ends": 16}

    def test_in_the_heats(self):
        """One that fails loses; one that fails at first has the prospect of its level."""
        rule = replace(RULE, starts=4)
        state, _ = led(rule, self.FAILED[:20])
        state, events = challenged(rule, state, self.FAILED[:10] + [-500.0] * 10)
        assert events == {"overtakes": 20, "ends": 20}
        assert float(state.leader.prospect) == -500
        state, events = challenged(rule, state, self.FAILED)
        assert events == {"ends": 20}
        assert challenged(rule, state, [0.0] * 20)[1] == {"overtakes": 20, "ends": 20}


def test_of_the_heats_the_best_prospect_leads():
    rule = Race(trial=20, patience=10, refinements=1, share=0.25, has_bold=True, starts=3)
    state, _ = led(rule, [30.0 + 0.5 * g for g in range(19)])
    assert float(rule.rival_share(state)) == 0
    state, _ = led(rule, [30.0 + 0.5 * g for g in range(20)])
    assert float(rule.rival_share(state)) == 1
    # It has the higher level throughout, and stagnates after 10 generations: it neither ends before 20 nor wins.
    state, events = challenged(rule, state, [38.0] * 30)
    assert events == {"ends": 20}
    assert (float(rule.rival_share(state)), int(state.leader.age)) == (1, 20)
    # The last one has little more than half of the leader's level, but gains fast.
    curve = [*[0.0] * 10, *[7.0 * g for g in range(10)]]
    lower, events = challenged(rule, state, curve)
    assert events == {"overtakes": 20, "ends": 20}
    assert float(lower.leader.level) < 0.75 * float(state.leader.level)
    assert float(rule.rival_share(lower)) == 0.25
    state, events = challenged(rule, state, [0.6 * fitness for fitness in curve])
    assert events == {"ends": 20}
    # Then a higher level overtakes at once.
    assert challenged(rule, state, [200.0] * 30)[1] == {"overtakes": 16, "ends": 16}


def transcribed(rule, generations):
    """The rule in plain Python; each generation is the place of an ES and the fitness of its population."""

    def fresh():
        return {"age": 0, "level": -math.inf, "halfway": -math.inf, "lately": -math.inf, "reached": [-math.inf]}

    racers, found, heats = {"leader": fresh(), "rival": fresh()}, [], rule.starts - 1
    marks = [rule.trial // 2, *(rule.trial * 2**n for n in range(20))]
    for place, scores in generations:
        es, leader = racers[place], racers["leader"]
        es["age"] += 1
        mean = float(np.mean(np.sort(scores)[-2:]))
        es["first"] = es.get("first", mean)
        es["level"] = mean if es["age"] == 1 else es["level"] + (mean - es["level"]) / min(es["age"], 16)
        es["reached"][-1] = es["level"]
        stagnates = False
        if es["age"] % rule.patience == 0:
            stagnates = es["level"] - es["lately"] <= 0.05 * (es["level"] - es["first"])
            es["lately"] = es["level"]
        halvings, events = len(es["reached"]) - 1, []
        if es["age"] in marks and es["age"] >= rule.trial:
            es["hope"] = es["level"] + 2 * (es["level"] - es["halfway"])
        if place == "leader":
            if stagnates and halvings < rule.refinements:
                es["reached"].append(-math.inf)
                events.append("refines")
            elif stagnates:
                events.append("done")
        elif heats:
            if es["age"] == rule.trial:
                heats -= 1
                racers["rival"] = fresh()
                events.append("ends")
                if es["hope"] > leader.get("hope", -math.inf):
                    racers["leader"] = es
                    events.insert(0, "overtakes")
        else:
            goal = leader["reached"][halvings]
            overtakes = es["level"] > leader["level"] and es["age"] >= 16
            may_halve = es["level"] >= goal and halvings < len(leader["reached"]) - 1
            if overtakes:
                racers["leader"] = es
                events.append("overtakes")
            is_behind = es["age"] in marks and es["age"] >= rule.trial and es["hope"] < goal
            if overtakes or is_behind or (stagnates and not may_halve):
                racers["rival"] = fresh()
                events.append("ends")
            elif stagnates:
                es["reached"].append(-math.inf)
                events.append("follows")
        if es["age"] in marks:
            es["halfway"] = es["level"]
        found.append(events)
    return found


@pytest.mark.parametrize(
    "rule", [Race(4, 6, 1, 0.5), Race(20, 15, 2, 0.5), Race(9, 5, 0, 0.5), Race(12, 8, 1, 0.5, starts=12)]
)
def test_agrees_with_a_transcription(rule):
    random = np.random.default_rng(0)
    middle, drift = {"leader": 0.0, "rival": -20.0}, {"leader": 1.0, "rival": 1.0}
    state, found, generations = rule.begin(), [], []
    for number in range(2500):
        place = "rival" if number > 40 and random.random() < 0.4 else "leader"
        scores = (middle[place] + random.normal(size=8)).astype(np.float32)
        generations.append((place, scores))
        if place == "leader":
            state, refines = observe_leader(rule, state, jnp.asarray(scores))
            found.append(["refines"] * bool(refines) + ["done"] * bool(state.leader.done))
            drift["leader"] += 0.5 * bool(refines)
        else:
            state, fate = observe_rival(rule, KEY, state, jnp.asarray(scores))
            found.append(
                [name for name in ("overtakes", "ends") if getattr(fate, name)] + ["follows"] * bool(fate.refines)
            )
            drift["rival"] += 0.5 * bool(fate.refines)
            if fate.overtakes:
                middle["leader"], drift["leader"] = middle["rival"], drift["rival"]
            if fate.ends:
                middle["rival"], drift["rival"] = middle["leader"] - random.uniform(5, 25), random.uniform(0.3, 2.0)
        middle[place] += drift[place]
        drift[place] *= 0.95
    assert found == transcribed(rule, generations)
    for event in ("overtakes", "ends", "done", *["refines", "follows"] * (rule.refinements > 0)):
        assert sum(event in events for events in found) > 1, event
