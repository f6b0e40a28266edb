"""Run directories and CSV files become records; unfinished runs are left out, contradictions are refused."""

import numpy as np
import pytest
from tests.bench.synthetic import write_run

import jedax
from jedax import JedaxError
from jedax.bench.reading import read, read_csv


def refused(*paths):
    with pytest.raises(JedaxError) as caught:
        read(paths)
    return str(caught.value)


def test_a_run_directory_becomes_a_record_per_replica(tmp_path):
    curves = [[-300.0, -280, -130], [-310, -240, -120]]
    coverage = [[0.1, 0.2, 0.3], [0.2, 0.3, 0.4]]
    write_run(tmp_path / "run", curves, seed=7, reports=[64, 500, 1000], coverage=coverage, label="mine", budget=1024)
    records = read([tmp_path]).records
    assert [(r.label, r.method, r.task, r.seed, r.replica) for r in records] == [
        ("mine", "jedi", "maze-a", 7, 0), ("mine", "jedi", "maze-a", 8, 1),
    ]  # fmt: skip
    for replica, record in enumerate(records):
        np.testing.assert_array_equal(record.curve.index, [64, 500, 1000])
        np.testing.assert_array_equal(record.curve["max_fitness"], curves[replica])
        np.testing.assert_array_equal(record.curve["coverage"], coverage[replica])
        assert (record.budget, record.goal, record.source, record.stopped) == (1024, -250, tmp_path / "run", False)


def test_a_real_run_reads_as_it_ended(tmp_path, small, arm):
    out = tmp_path / "run"
    run = jedax.run(small, arm, evaluations=8 * 12, seed=3, replicas=2, report_every=4, out=out)
    records = read([tmp_path]).records
    assert [(r.label, r.task, r.seed, r.budget, r.goal) for r in records] == [
        ("jedi-uniform", "arm", 3, 96, arm.goal_fitness), ("jedi-uniform", "arm", 4, 96, arm.goal_fitness),
    ]  # fmt: skip
    assert [r.curve["max_fitness"].iloc[-1] for r in records] == run.summary["max_fitness"]
    assert [r.curve["coverage"].iloc[-1] for r in records] == run.summary["coverage"]


def test_names_of_tasks(tmp_path):
    maze = {"walls": [[0, 0.5, 0.7, 0.5]], "name": "mine"}
    write_run(tmp_path / "a", [-1.0], task="maze:mine", task_settings=maze)
    (tmp_path / "mine.yaml").write_text("walls: [[0, 0.5, 0.7, 0.5]]")
    write_run(tmp_path / "b", [-1.0], task=str(tmp_path / "mine.yaml"), seed=1)
    write_run(tmp_path / "c", [-1.0], task="custom:bump")
    (tmp_path / "mine.yaml").unlink()  # the settings have all of it
    records = read([tmp_path]).records
    assert [(r.task, r.seed, r.goal) for r in records] == [("bump", 0, None), ("mine", 0, -250), ("mine", 1, -250)]


def test_directories_may_overlap_and_hold_other_things(tmp_path):
    path = write_run(tmp_path / "bench" / "run", [-1.0])
    (tmp_path / "bench" / "notes.csv").write_text("day,weather\nmonday,fine\n")
    (tmp_path / "bench" / "binary.csv").write_bytes(b"\xff\xfe\x00")
    write_run(tmp_path / "bench" / ".hidden", [-1.0])
    assert len(read([tmp_path, tmp_path / "bench", path]).records) == 1


def test_unfinished_runs_are_left_out(tmp_path):
    write_run(tmp_path / "a", [-1.0])
    write_run(tmp_path / "b", [-1.0], status=None, seed=1)
    write_run(tmp_path / "c", [-1.0], status="time", seed=2)
    write_run(tmp_path / "d", [-1.0], status="goal", seed=3)
    write_run(tmp_path / "e", [-1.0], status="callback", seed=4)
    found = read([tmp_path])
    assert [(r.seed, r.stopped) for r in found.records] == [(0, False), (3, True), (4, True)]
    assert [(path.name, reason) for path, reason in found.left_out.items()] == [
        ("b", "no summary.json: it has not ended"),
        ("c", "its status is 'time'"),
    ]


def test_nothing_to_compare(tmp_path):
    assert refused(tmp_path) == f"directories: expected runs that have ended, got none in {tmp_path}; check the paths."
    write_run(tmp_path / "b", [-1.0], status="interrupted")
    assert "b (its status is 'interrupted')" in refused(tmp_path)
    assert "missing, which does not exist" in refused(tmp_path / "missing")


def test_other_budget(tmp_path):
    write_run(tmp_path / "a", [-1.0], budget=10_000)
    write_run(tmp_path / "b", [-1.0], budget=20_000, label="other")
    assert refused(tmp_path) == (
        f"maze-a: expected one budget, got 10,000 and 20,000 evaluations in {tmp_path / 'a'} and {tmp_path / 'b'}; "
        "compare them separately."
    )


def test_other_task_settings(tmp_path):
    write_run(tmp_path / "a", [-1.0])
    write_run(tmp_path / "b", [-1.0], label="other", task_settings={"steps": 100})
    assert refused(tmp_path) == (
        f"maze-a: expected one task with the same settings, got steps 250 and 100 in {tmp_path / 'a'} and "
        f"{tmp_path / 'b'}; compare them separately."
    )


@pytest.mark.parametrize(
    ("change", "labels"),
    [
        ({"settings": {"alpha": 0.3}}, ["jedi alpha=0.3", "jedi alpha=decay"]),
        (
            {"method": "jedi-uniform", "label": "jedi"},
            ["jedi method=jedi targets=pareto", "jedi method=jedi-uniform targets=uniform"],
        ),
        ({"run": {"stop_fitness": -5.0}}, ["jedi stop_fitness=-5.0", "jedi stop_fitness=None"]),
    ],
)
def test_other_method_settings_under_one_name(tmp_path, change, labels):
    write_run(tmp_path / "a", [-1.0])
    write_run(tmp_path / "b", [-1.0], **change)
    write_run(tmp_path / "c", [-1.0], task="maze-b")
    assert [(r.task, r.label) for r in read([tmp_path]).records] == [
        *(("maze-a", label) for label in labels), ("maze-b", "jedi"),
    ]  # fmt: skip


def test_other_method_settings_on_another_task(tmp_path):
    write_run(tmp_path / "a", [-1.0])
    write_run(tmp_path / "b", [-1.0], task="maze-b", settings={"alpha": 0.3})
    assert len(read([tmp_path]).records) == 2


def test_one_seed_twice(tmp_path):
    write_run(tmp_path / "a", [-1.0, -2.0, -3.0])
    write_run(tmp_path / "b", [-1.0], seed=2)
    assert refused(tmp_path) == (
        f"seed 2 of jedi on maze-a: expected one result, got two in {tmp_path / 'a'} and {tmp_path / 'b'}; "
        "name the directories to compare, or remove one of the two."
    )


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("summary.json", "{", "summary.json: expected the outcome of a run"),
        ("summary.json", "[]", "summary.json: expected the outcome of a run"),
        ("config.yaml", "task: maze-q\nmethod: jedi", "unknown name 'maze-q'"),
        ("metrics.csv", "evaluations,replica\n1,0\n", "expected the metrics of a run, got no max_fitness"),
        (
            "metrics.csv",
            "evaluations,replica,max_fitness\n1,0,-1\n",
            "expected reports of 2 replicas, as in config.yaml, got none of replica 1",
        ),
        ("metrics.csv", "evaluations,replica,max_fitness\n2,0,-1\n2,0,-1\n1,1,0\n", "numbers that rise"),
        ("metrics.csv", "evaluations,replica,max_fitness\n1,0,-1\n2,0,-2\n1,1,0\n", "never falls, got -2 after -1"),
        ("metrics.csv", "evaluations,replica,max_fitness\n1,0,nan\n1,1,0\n", "never falls, got nan"),
        ("metrics.csv", "evaluations,replica,max_fitness\n1,0,x\n1,1,0\n", "expected numbers under"),
    ],
)
def test_damaged_files_are_named(tmp_path, name, text, message):
    path = write_run(tmp_path / "a", [-1.0, -2.0])
    (path / name).write_text(text)
    said = refused(tmp_path)
    assert message in said
    assert str(path / name) in said


def test_metrics_without_coverage(tmp_path):
    path = write_run(tmp_path / "a", [-1.0])
    (path / "metrics.csv").write_text("evaluations,replica,max_fitness\n1,0,-inf\n9,0,-3\n")
    (record,) = read([tmp_path]).records
    np.testing.assert_array_equal(record.curve["max_fitness"], [-np.inf, -3])
    assert np.isnan(record.curve["coverage"]).all()


HEAD = "method,task,seed,evaluations,max_fitness,coverage\n"
ROWS = "PGA-ME,maze-a,0,64,-320.5,0.01\nPGA-ME,maze-a,0,2e4,-291.2,0.22\n"


def written(tmp_path, text):
    path = tmp_path / "foreign.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_rows_become_records(tmp_path):
    path = written(tmp_path, HEAD + ROWS + "es,unknown,3,7,1,\nes,maze-b,3,7,1,\n")
    records = {(r.label, r.task, r.seed): r for r in read([tmp_path]).records}
    assert list(records) == [("PGA-ME", "maze-a", 0), ("es", "maze-b", 3), ("es", "unknown", 3)]
    record = records["PGA-ME", "maze-a", 0]
    np.testing.assert_array_equal(record.curve.index, [64, 20_000])
    np.testing.assert_array_equal(record.curve[["max_fitness", "coverage"]], [[-320.5, 0.01], [-291.2, 0.22]])
    assert (record.method, record.goal, record.budget, record.replica, record.source) == (
        "PGA-ME", -250, None, None, path,
    )  # fmt: skip
    assert np.isnan(records["es", "unknown", 3].curve["coverage"]).all()
    assert records["es", "unknown", 3].goal is None


def test_other_columns_and_orders_are_fine(tmp_path):
    text = (
        "\ufeffseed,notes,evaluations,coverage,max_fitness,task,method\n1,x,20,,-2, arm , es \n1,y,10,0.5,-3,arm,es\n"
    )
    (record,) = read_csv(written(tmp_path, text))
    np.testing.assert_array_equal(record.curve.index, [10, 20])
    np.testing.assert_array_equal(record.curve["max_fitness"], [-3, -2])
    assert (record.label, record.task, record.seed) == ("es", "arm", 1)


def test_the_column_of_coverage_may_be_missing(tmp_path):
    (record,) = read_csv(
        written(tmp_path, "method,task,seed,evaluations,max_fitness\nes,arm,0,10,-3\nes,arm,0,20,-2\n")
    )
    np.testing.assert_array_equal(record.curve[["max_fitness", "coverage"]], [[-3, np.nan], [-2, np.nan]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a CSV file"),
        ("a,b\n", "expected the columns method, task, seed, evaluations, max_fitness, got no method"),
        ("method,task,seed\n", "got no evaluations, max_fitness; add"),
        (HEAD, "expected rows under the header, got none"),
        (HEAD + ROWS + "es,arm,0,10,abc,0.1\n", "line 4: max_fitness: expected a finite number, got 'abc'"),
        (HEAD + "es,arm,0,10,nan,0.1\n", "line 2: max_fitness: expected a finite number, got 'nan'"),
        (HEAD + "es,arm,0,10,-inf,0.1\n", "line 2: max_fitness: expected a finite number, got '-inf'"),
        (HEAD + "es,arm,0,10,,0.1\n", "line 2: max_fitness: expected a finite number, got ''"),
        (HEAD + "es,arm,0,1.5,1,0.1\n", "line 2: evaluations: expected a whole number from 0, got '1.5'"),
        (HEAD + "es,arm,-1,15,1,0.1\n", "line 2: seed: expected a whole number from 0, got '-1'"),
        (HEAD + "es,arm,0,15,1,35\n", "line 2: coverage: expected a share from 0 to 1, got '35'"),
        (HEAD + ",arm,0,15,1,0.1\n", "line 2: method: expected a name, got ''"),
        (HEAD + "es,arm\n", "line 2: seed: expected a whole number from 0, got ''"),
        (HEAD + ROWS + ROWS, "line 4: expected one row for each method, task, seed and number of evaluations, got "
                             "a second"),
        (HEAD + "\n" + "es,arm,0,x,1,0.1\n", "line 3: evaluations: expected a whole number from 0, got 'x'"),
        (HEAD + "es,arm,0,10,-1,0.1\nes,arm,0,20,-2,0.1\n", "es on arm, seed 0: max_fitness: expected the best so "
                                                             "far, which never falls, got -2 after -1"),
        (HEAD + 'es,arm,0,10,"-1,0.1\n', "expected a CSV file"),
        (HEAD + "es,arm,0,10,-1,0.1,7\n", "expected a CSV file"),
    ],
)  # fmt: skip
def test_bad_files(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(JedaxError) as caught:
        read([path])
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_not_text(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"\xff\xfe\x00\xff")
    with pytest.raises(JedaxError, match="expected a CSV file"):
        read([path])


def test_a_run_and_a_file_under_one_name(tmp_path):
    path = written(tmp_path, HEAD + "jedi,maze-a,5,10,-1,0.1\n")
    write_run(tmp_path / "a", [-1.0])
    with pytest.raises(JedaxError) as caught:
        read([tmp_path])
    assert "jedi on maze-a: expected one method with the same settings, got a run and a CSV file" in str(caught.value)
    assert str(path) in str(caught.value)
    assert str(tmp_path / "a") in str(caught.value)


def test_two_files_may_share_a_method(tmp_path):
    written(tmp_path, HEAD + ROWS)
    (tmp_path / "more.csv").write_text(HEAD + ROWS.replace(",0,", ",1,"))
    assert [r.seed for r in read([tmp_path]).records] == [0, 1]
    (tmp_path / "again.csv").write_text(HEAD + ROWS)
    with pytest.raises(JedaxError, match=r"seed 0 of PGA-ME on maze-a: expected one result, got two in .*again\.csv"):
        read([tmp_path])
