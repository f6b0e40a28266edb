"""CSV files of other programs: what is read, and what is refused with the line that is wrong."""

import numpy as np
import pytest
from tests.bench.synthetic import write_run

from jedax import JedaxError
from jedax.bench.foreign import read_csv
from jedax.bench.reading import read

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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a CSV file"),
        ("a,b\n", "expected the columns method, task, seed, evaluations, max_fitness, coverage, got no method"),
        ("method,task,seed\n", "got no evaluations, max_fitness, coverage"),
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
