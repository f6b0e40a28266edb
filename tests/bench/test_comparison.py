"""The comparison as data: who is the reference, who is tested, what places and intervals come out."""

import dataclasses
import json
import math

import numpy as np
import pytest
from tests.bench.synthetic import BASELINE, write_run

from jedax import JedaxError
from jedax.bench import statistics
from jedax.bench.comparison import compare, compare_records
from jedax.bench.reading import Records, read


@pytest.fixture
def bench(tmp_path):
    """Two versions of JEDi and two baselines on maze A, one of each on a task without a goal."""
    write_run(tmp_path / "tuned", [-120.0, -130, -110, -140], label="jedi tuned", method="jedi")
    write_run(tmp_path / "decay", [-119.0, -129, -109, -139, -260], label="jedi decay", method="jedi")
    write_run(tmp_path / "far", [-280.0, -290, -285, -282], label="far", method=BASELINE)
    write_run(tmp_path / "near", [-121.0, -131, -111, -141], label="near", method=BASELINE)
    write_run(tmp_path / "bump" / "jedi", [1.0, 2], task="custom:bump", budget=10_000)
    write_run(tmp_path / "bump" / "far", [3.0, 4], task="custom:bump", label="far", method=BASELINE)
    return tmp_path


def test_order_of_tasks_and_methods(bench):
    write_run(bench / "b", [-1.0, -2], task="maze-b", label="alpha=0.30", method=BASELINE)
    write_run(bench / "c", [-1.0, -2], task="maze-b", label="alpha=0.1", method=BASELINE)
    write_run(bench / "d", [-1.0, -2], task="maze-b", label="alpha=10", method=BASELINE)
    found = compare(bench)
    assert found.labels == ("jedi", "jedi decay", "jedi tuned", "alpha=0.1", "alpha=0.30", "alpha=10", "far", "near")
    assert [table.task for table in found.tables] == ["maze-a", "maze-b", "bump"]


def test_baselines_are_tested_against_the_better_jedi(bench):
    table = compare(bench).tables[0]
    assert table.reference == "jedi tuned"  # medians: -125 tuned, -129 decay
    assert (table.budget, table.goal) == (10_000, -250)
    tuned, decay, far, near = (table.entry(name) for name in ("jedi tuned", "jedi decay", "far", "near"))
    assert (tuned.median, decay.median, far.median, near.median) == (-125, -129, -283.5, -126)
    assert [entry.place for entry in (tuned, decay, far, near)] == [1, 0, 0, 2]
    assert (tuned.p, tuned.p_holm, tuned.effect) == (None, None, None)
    assert (decay.p, decay.p_holm, decay.effect) == (None, None, None)
    assert far.p == pytest.approx(2 / 70)  # 4 against 4, all below: 2 of 8!/(4! 4!) ways
    assert far.p_holm == pytest.approx(4 / 70)
    assert far.effect == 0
    assert (near.p, near.p_holm) == pytest.approx((48 / 70, 48 / 70))  # U = 6: 24 of 70 ways are as low
    assert near.effect == 6 / 16
    assert [entry.similar for entry in (tuned, decay, far, near)] == [False, False, False, True]
    # near = (-118, ...): U counts 6 of its 16 pairs as its own, so the reference is above in the other 10.
    assert table.verdict == (
        "maze-a: jedi tuned is above far (above in 16 of 16 pairs of seeds); not distinguishable from near (above in "
        "10 of 16 pairs of seeds)."
    )


def test_seeds_intervals_and_success(bench):
    table = compare(bench).tables[0]
    decay, far = table.entry("jedi decay"), table.entry("far")
    assert decay.seeds == (0, 1, 2, 3, 4)
    assert decay.final == (-119, -129, -109, -139, -260)
    assert decay.interval == statistics.median_interval(decay.final)
    assert (decay.successes, far.successes) == (4, 0)
    assert decay.success_interval == pytest.approx((0.3755, 0.9638), abs=1e-4)
    assert decay.median_coverage == 0.25


@pytest.mark.parametrize(("seeds", "kind"), [
    (1, None), (2, "range"), (3, "range"), (4, "range"), (5, "95 % bootstrap"),
])  # fmt: skip
def test_an_interval_of_fewer_than_five_seeds_is_a_range(tmp_path, seeds, kind):
    values = [-120.0 - seed for seed in range(seeds)]
    write_run(tmp_path / "a", values)
    (entry,) = compare(tmp_path).tables[0].entries
    assert entry.interval_kind == kind
    assert entry.interval == (None if kind is None else (min(values), max(values)))


def test_a_chosen_reference_is_the_one_for_all(bench):
    found = compare(bench, reference="near")
    table, bump = found.tables
    assert table.reference == "near"
    assert all((entry.p is None) == (entry.label == "near") for entry in table.entries)
    p_values = [entry.p for entry in table.entries]
    assert [entry.p_holm for entry in table.entries] == statistics.holm(p_values)
    assert bump.reference is None
    assert found.notes[0] == "No p-values on bump: the reference near has no results there."


def test_unknown_reference(bench):
    with pytest.raises(JedaxError, match=r"reference: unknown name 'jedi tund'; did you mean 'jedi tuned'"):
        compare(bench, reference="jedi tund")


def test_without_jedi_there_are_no_p_values(tmp_path):
    write_run(tmp_path / "a", [-120.0, -130], label="a", method=BASELINE)
    write_run(tmp_path / "b", [-121.0, -131], label="b", method=BASELINE)
    found = compare(tmp_path)
    assert found.tables[0].reference is None
    assert all(entry.p is None and entry.effect is None for entry in found.tables[0].entries)
    assert found.notes == ("No p-values on maze-a: no JEDi there, and no reference was chosen.",)


def test_a_task_without_goal(bench):
    table = compare(bench, fitness=[3.5]).tables[1]
    assert (table.task, table.goal) == ("bump", None)
    jedi, far = table.entries
    assert (far.successes, far.success_interval) == (None, None)
    assert (far.place, jedi.place) == (1, 2)
    assert [(r.fitness, r.evaluations, r.count, r.median) for r in far.reached] == [
        (3.5, (math.inf, 10_000), 1, math.inf)
    ]
    assert [r.count for r in jedi.reached] == [0]


def test_evaluations_to_the_goal_are_those_that_the_run_recorded(bench):
    path = bench / "decay" / "summary.json"
    summary = json.loads(path.read_text())
    summary |= {"reached_goal": [True] * 4 + [False], "goal_evaluations": [3, 720, 999, 10_001, None]}
    path.write_text(json.dumps(summary))
    goal, other = compare(bench, fitness=[-251]).tables[0].entry("jedi decay").reached
    assert goal.evaluations == (3, 720, 999, math.inf, math.inf)
    assert other.evaluations == (1000, 1000, 1000, 1000, math.inf)


def test_evaluations_to_reach_the_goal_and_more(bench):
    found = compare(bench, fitness=[-115, -250, -400])
    entry = found.tables[0].entry("jedi decay")
    assert [r.fitness for r in entry.reached] == [-250, -400, -115]
    goal, any_, best = entry.reached
    assert goal.evaluations == (1000, 1000, 1000, 1000, math.inf)
    assert (goal.count, goal.median) == (4, 1000)
    assert any_.evaluations == (1000,) * 5
    assert best.evaluations == (math.inf, math.inf, 1000, math.inf, math.inf)
    assert best.median == math.inf


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_fitness_to_reach_is_a_number(bench, bad):
    with pytest.raises(JedaxError, match="fitness: expected finite numbers"):
        compare(bench, fitness=[bad])


def test_one_seed(tmp_path):
    write_run(tmp_path / "a", [-120.0, -130, -125])
    write_run(tmp_path / "b", [-121.0], label="b", method=BASELINE)
    found = compare(tmp_path)
    entry = found.tables[0].entry("b")
    assert (entry.p, entry.p_holm, entry.effect, entry.interval) == (None, None, None, None)
    assert found.notes == (
        "The methods have unequal numbers of seeds on maze-a (1 to 3).",
        "maze-a: a single seed of b; no interval and no p-value with it.",
    )


@pytest.mark.parametrize(("seeds", "said"), [(3, True), (4, False)])
def test_seeds_too_few_to_show_anything(tmp_path, seeds, said):
    """Two samples of three that do not overlap have p = 2 / 20, of four 2 / 70."""
    for label, first in (("jedi", -120.0), ("b", -140.0)):
        values = [first - seed for seed in range(seeds)]
        write_run(tmp_path / label, values, label=label, **({"method": BASELINE} if label == "b" else {}))
    found = compare(tmp_path)
    assert (found.notes == ("maze-a: with so few seeds no p-value can be below 0.1; run more.",)) == said
    assert (found.tables[0].entry("b").p > 0.05) == said


def test_one_label_alone(tmp_path):
    write_run(tmp_path / "a", [-120.0, -130, -125])
    found = compare(str(tmp_path))
    (entry,) = found.tables[0].entries
    assert (found.labels, found.tables[0].reference, entry.place, entry.p) == (("jedi",), "jedi", 1, None)
    assert found.notes == ()


def test_equal_medians_share_a_place(tmp_path):
    for name, values in {"a": [1.0, 3], "b": [2.0, 2], "c": [1.0, 1], "d": [0.0, 0]}.items():
        write_run(tmp_path / name, values, task="custom:t", label=name, method=BASELINE)
    assert [entry.place for entry in compare(tmp_path).tables[0].entries] == [1, 1, 2, 0]


def test_a_file_is_read_at_the_budget_of_the_runs(tmp_path):
    write_run(tmp_path / "a", [-120.0, -130])
    rows = ["pga,maze-a,0,5000,-200,", "pga,maze-a,0,20000,-100,", "pga,maze-a,1,4000,-300,", "pga,maze-a,1,9000,-260,"]
    (tmp_path / "x.csv").write_text("method,task,seed,evaluations,max_fitness,coverage\n" + "\n".join(rows) + "\n")
    found = compare(tmp_path, fitness=[-150])
    entry = found.tables[0].entry("pga")
    assert entry.final == (-200, -260)
    assert entry.reached[1].evaluations == (math.inf, math.inf)  # only after the budget
    assert math.isnan(entry.median_coverage)
    assert found.notes == (
        "maze-a: with so few seeds no p-value can be below 0.33; run more.",
        "maze-a: seeds of pga that end before the budget of 10,000 evaluations: 1, the first at 9,000; their last "
        "value stands for what they would have reached.",
    )


def test_runs_that_leave_much_of_their_budget(tmp_path):
    write_run(tmp_path / "a", [-1.0], reports=[600, 9900], budget=10_000)
    write_run(tmp_path / "b", [-1.0], reports=[100, 600], budget=10_000, label="wide")
    assert compare(tmp_path).notes[-1] == (
        "maze-a: seeds of wide that end before the budget of 10,000 evaluations: 1, the first at 600; their last value "
        "stands for what they would have reached."
    )


def test_files_alone_and_reports_only_after_the_budget(tmp_path):
    head = "method,task,seed,evaluations,max_fitness,coverage\n"
    (tmp_path / "x.csv").write_text(head + "jedi,maze-a,0,9000,-100,\npga,maze-a,0,10000,-100,\n")
    table = compare(tmp_path).tables[0]
    assert (table.budget, table.goal, table.reference) == (10_000, -250, "jedi")
    write_run(tmp_path / "a", [-120.0], budget=8000, reports=[100, 8000], label="run")
    with pytest.raises(JedaxError, match=r"seed 0 of jedi on maze-a: expected a report within the budget of 8,000"):
        compare(tmp_path)


def test_stopped_runs_are_noted(tmp_path):
    write_run(tmp_path / "a", [-120.0, -130], status="goal", run={"stop_fitness": -200.0}, budget=50_000)
    found = compare(tmp_path)
    assert found.tables[0].entry("jedi").final == (-120, -130)
    assert (
        "seeds of jedi that stopped at their stop_fitness or by a callback, before the budget was spent: 2;"
        in (found.notes[0])
    )


def test_curves_share_a_grid(tmp_path):
    write_run(tmp_path / "a", [[-300.0, -200, -150]], reports=[10, 20, 30], budget=40)
    write_run(tmp_path / "b", [[-290.0, -280]], reports=[15, 40], budget=40, seed=1)
    found = compare(tmp_path)
    curves = found.curves(found.tables[0], "jedi", "max_fitness")
    np.testing.assert_array_equal(curves.index, [15, 20, 30, 40])
    np.testing.assert_array_equal(curves.T, [[-300, -200, -150, -150], [-290, -290, -290, -280]])


@pytest.mark.parametrize(("method", "restarts", "said"), [
    ("es-restart", [0, 0, 0, 0], "never"), ("es-restart", [0, 1, 0, 0], ""), ("es", [0, 0, 0, 0], ""),
    ("es-restart", None, ""), ("cma-me", [0, 0, 0, 0], "never"), ("jedi-x", [0, 0, 0, 0], ""),
    ("es-restart", [0, 0, 0, 70], ""), ("es-restart", [0, 0, 0, 90], "mostly"), ("cma-me", [0, 0, 0, 350], "mostly"),
])  # fmt: skip
def test_restarts_that_never_came_or_came_all_the_time(tmp_path, method, restarts, said):
    write_run(tmp_path / "a", [-120.0, -130, -140, -150])
    write_run(tmp_path / "b", [-121.0, -131, -141, -151], method=method, restarts=restarts)
    expected = {
        "": (),
        "never": (f"maze-a: {method} never restarted in any of its runs: its restart_tolerance changed nothing.",),
        "mostly": (
            f"maze-a: {method} restarted in most generations; if differences in fitness are small on this task, lower "
            "its restart_tolerance.",
        ),
    }
    assert compare(tmp_path).notes == expected[said]


def test_restarts_of_a_method_from_outside_that_has_no_population(tmp_path):
    write_run(tmp_path / "a", [-120.0, -130], method="es-restart", restarts=[0, 900])
    records = read([tmp_path]).records
    outside = [dataclasses.replace(one, settings={"restart_tolerance": 0.1}) for one in records]
    assert not [note for note in compare_records(Records(tuple(outside), {})).notes if "restarted" in note]


def test_a_method_that_found_nothing_is_not_the_best(tmp_path):
    write_run(tmp_path / "a", [[-np.inf, -np.inf]] * 3, label="nothing", method="es")
    (entry,) = compare(tmp_path).tables[0].entries
    assert (entry.median, entry.place) == (-np.inf, 0)
