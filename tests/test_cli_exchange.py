"""`jedax ask`, `tell`, `exchange` and `best`: searches that other programs evaluate."""

import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest
import yaml
from tests.commands import call

import jedax

PROBLEM = {
    "space": {"width": [0, 10], "teeth": {"low": 8, "high": 60, "integer": True}, "metal": ["steel", "brass"]},
    "descriptor_bounds": [[0], [10]],
    "evaluations": 120,
    "minimise": True,
    "settings": {"population": 4, "pool": 2, "scouts": 2, "cells": 16},
}
BOX = {"bounds": [[-1, -1], [1, 1]], "evaluations": 64, "minimise": True}


def make(here, capsys, problem=PROBLEM, *options):
    (here / "problem.yaml").write_text(yaml.safe_dump(problem))
    return ask(capsys, "--new", "problem.yaml", *options)


def ask(capsys, *options):
    code, out, err = call(capsys, "ask", "d", *options)
    assert code == 0, err
    return json.loads(out)


def tell(here, capsys, results):
    (here / "results.json").write_text(results if isinstance(results, str) else json.dumps(results))
    return call(capsys, "tell", "d", "results.json")


def best(capsys):
    code, out, err = call(capsys, "best", "d")
    assert code == 0, err
    return json.loads(out)


def value(x):
    return (x["width"] - 3) ** 2 + abs(x["teeth"] - 20) + (x["metal"] == "brass")


def test_a_search_from_beginning_to_end(here, capsys):
    asked = make(here, capsys)
    assert [one["id"] for one in asked] == list(range(8))
    assert ask(capsys) == asked  # until they are told
    count = 0
    while asked:
        results = [{"id": one["id"], "fitness": value(one["x"]), "descriptors": [one["x"]["width"]]} for one in asked]
        code, out, err = tell(here, capsys, results)
        assert code == 0, err
        count += len(asked)
        assert json.loads(out)["evaluations"] == count
        asked = ask(capsys)
    found = best(capsys)
    assert found["evaluations"] == 120
    assert found["generations"] == 15
    assert found["stop"] == "The budget of 120 evaluations is spent."
    assert found["best"]["fitness"] == pytest.approx(value(found["best"]["x"]))
    assert found["best"]["fitness"] < 3
    assert yaml.safe_load((here / "d" / "problem.yaml").read_text()) == PROBLEM


class Partner:
    """Standard input of `jedax exchange`: the answer to each line that it has printed; no more where that is None."""

    def __init__(self, capsys, answer):
        self.capsys, self.answer, self.lines = capsys, answer, []

    def readline(self):
        out = self.capsys.readouterr().out
        assert out.count("\n") == 1
        self.lines.append(json.loads(out))
        found = self.answer(self.lines)
        return "" if found is None else found if isinstance(found, str) else json.dumps(found) + "\n"


def exchange(capsys, monkeypatch, answer, *options):
    """Return all lines that the command prints, and what it says on stderr."""
    partner = Partner(capsys, answer)
    monkeypatch.setattr("sys.stdin", partner)
    code, out, err = call(capsys, "exchange", "d", *options)
    assert code == 0, err
    return [*partner.lines, *map(json.loads, out.splitlines())], err


def evaluated(solutions):
    return [{"id": one["id"], "fitness": sum(x**2 for x in one["x"])} for one in solutions]


def test_an_exchange_is_the_search_of_ask_and_tell(here, capsys, monkeypatch):
    (here / "problem.yaml").write_text(yaml.safe_dump(BOX))
    lines, err = exchange(capsys, monkeypatch, lambda lines: evaluated(lines[-1]), "--new", "problem.yaml")
    assert lines[-1] == []
    assert "The budget of 64 evaluations is spent." in err
    assert sum(map(len, lines)) == 64
    optimizer = jedax.Optimizer(bounds=BOX["bounds"], evaluations=64, minimise=True)
    while not optimizer.done:
        x = optimizer.ask()
        optimizer.tell(x, np.square(x).sum(axis=1))
    assert best(capsys)["best"]["x"] == optimizer.best.genotype.tolist()
    assert exchange(capsys, monkeypatch, None)[0] == [[]]  # it was saved


def test_an_exchange_survives_mistakes_and_its_end(here, capsys, monkeypatch):
    (here / "problem.yaml").write_text(yaml.safe_dump(BOX))

    def answer(lines):
        first = evaluated(lines[0])
        return ["none\n", [{"id": 99, "fitness": 1.0}], "[]", first + first, first, None][len(lines) - 1]

    lines, _ = exchange(capsys, monkeypatch, answer, "--new", "problem.yaml")
    errors = [one["error"] for one in lines[1:-1]]
    for error, message in zip(errors, ("expected JSON", "got 99", "a list of results", "0 twice"), strict=True):
        assert message in error
    found = best(capsys)
    assert found["evaluations"] == len(lines[0])
    assert found["open"] == [one["id"] for one in lines[-1]]
    assert ask(capsys) == lines[-1]


def test_lines_of_an_exchange_that_are_no_text(here, capsys, monkeypatch):
    (here / "problem.yaml").write_text(yaml.safe_dump(BOX))
    lines = b'\xff\xfe[\n\n[{"id": 0, "fitness": 1.0}]\n'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines), encoding="utf-8"))
    code, out, err = call(capsys, "exchange", "d", "--new", "problem.yaml", "-n", "1")
    assert code == 0, err
    first, error, second = map(json.loads, out.splitlines())
    assert "expected JSON" in error["error"]
    assert [first[0]["id"], second[0]["id"]] == [0, 1]


def test_an_exchange_with_workers(here, capsys, monkeypatch):
    """As many solutions as are evaluated at once, then a new one for each result."""
    (here / "problem.yaml").write_text(yaml.safe_dump(BOX))

    def answer(lines):
        return evaluated(lines[0][1:]) if len(lines) == 1 else None

    lines, _ = exchange(capsys, monkeypatch, answer, "--new", "problem.yaml", "-n", "3")
    assert [[one["id"] for one in line] for line in lines] == [[0, 1, 2], [3, 4]]


def test_any_number_failures_and_solutions_nobody_asked_for(here, capsys, monkeypatch):
    make(here, capsys, BOX, "-n", "3")
    assert [one["id"] for one in ask(capsys, "-n", "2")] == [3, 4]
    monkeypatch.setattr(sys, "stdin", io.StringIO('[{"id": 4, "fitness": 2}, {"id": 0, "failed": true}]'))
    code, out, _ = call(capsys, "tell", "d", "-")
    assert code == 0
    assert json.loads(out) == {"evaluations": 1, "failed": 1, "generations": 0, "open": [1, 2, 3], "stop": None}
    results = [{"x": [0.5, 0.25], "fitness": 0.125}, {"id": 2, "fitness": None}, {"id": 1, "fitness": 4}]
    assert tell(here, capsys, results)[0] == 0
    found = best(capsys)
    assert found["best"] == {"x": [0.5, 0.25], "fitness": 0.125, "descriptors": None, "violation": 0}
    assert (found["evaluations"], found["failed"], found["generations"]) == (3, 2, 0)
    more = ask(capsys)
    assert tell(here, capsys, [{"id": one["id"], "fitness": 1.0} for one in more])[0] == 0
    assert best(capsys)["best"] == {"x": [0.5, 0.25], "fitness": 0.125, "descriptors": None, "violation": 0}


def test_constraints(here, capsys):
    asked = make(here, capsys, BOX)
    results = [{"id": one["id"], "fitness": 1.0, "violations": [1.0, -2.0]} for one in asked[:-1]]
    assert tell(here, capsys, [*results, {"id": asked[-1]["id"], "failed": True}])[0] == 0
    [last, *_] = ask(capsys)
    assert tell(here, capsys, {"id": last["id"], "fitness": 1.0, "violations": [3.0, 0.5]})[0] == 0
    found = best(capsys)["best"]
    assert found["fitness"] is None
    assert found["violation"] == pytest.approx(1)


def test_samples_are_lists(here, capsys):
    problem = {**PROBLEM, "settings": {**PROBLEM["settings"], "samples_per_evaluation": 2}}
    asked = make(here, capsys, problem)
    results = [{"id": one["id"], "fitness": [1, 3], "descriptors": [[1], [2]]} for one in asked[1:]]
    assert tell(here, capsys, [{"id": 0, "failed": True}])[0] == 0
    code, _, err = tell(here, capsys, results)
    assert code == 0, err


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ("[{", "results.json: expected JSON, got a mistake"),
        ("3", "expected a list of results, got int"),
        ("[]", "expected a list of results, got none"),
        ("[3]", "result 0: expected a mapping, got int"),
        ('[{"id": 0, "fitnes": 1}]', "result 0: unknown name 'fitnes'; did you mean 'fitness'"),
        ('[{"fitness": 1}]', 'result 0: expected either "id" or "x", got neither'),
        ('[{"id": 99, "fitness": 1, "descriptors": [1]}]', "id: expected one of those asked for and not told yet"),
        ('[{"id": "0", "fitness": 1, "descriptors": [1]}]', "id: expected one of those"),
        ('[{"id": 0, "failed": true}, {"id": 0, "failed": true}]', "id: expected one result per solution, got 0 twice"),
        ('[{"id": 0, "failed": "yes"}]', "result 0: expected true or false"),
        ('[{"id": 0, "descriptors": [1]}]', 'id 0: expected "fitness", got none'),
        ('[{"id": 0, "fitness": 1}]', 'id 0: expected "descriptors", got none'),
        ('[{"id": 0, "fitness": 1, "descriptors": [1, 2]}]', "descriptors: expected shape"),
        ('[{"id": 0, "fitness": "high", "descriptors": [1]}]', "id 0: expected numbers as \"fitness\", got 'high'"),
        ('[{"id": 0, "fitness": 1, "descriptors": [[1], 2]}]', 'id 0: expected numbers as "descriptors"'),
        (
            '[{"id": 0, "fitness": 1, "descriptors": [1], "violations": [1]},'
            ' {"id": 1, "fitness": 1, "descriptors": [1], "violations": [1, 2]}]',
            'id 1: expected "violations" as long as that of others, got [1, 2]',
        ),
        ('[{"id": 0, "fitness": 1, "descriptors": [1], "violations": [NaN]}]', "violations: expected numbers"),
        ('[{"x": {"width": 3}, "fitness": 1, "descriptors": [1]}]', "metal: expected a value"),
        (
            '[{"x": {"width": 30, "teeth": 9, "metal": "steel"}, "fitness": 1, "descriptors": [1]}]',
            "width: expected a finite number from 0.0 to 10.0",
        ),
        ('[{"x": {"width": 3, "teeth": 9, "metal": "gold"}, "fitness": 1, "descriptors": [1]}]', "metal: "),
        (
            '[{"id": 0, "fitness": 1, "descriptors": [1], "violations": [1]},'
            ' {"id": 1, "fitness": 1, "descriptors": [1]}]',
            'id 1: expected "violations", got none',
        ),
    ],
)
def test_results_that_are_refused_change_nothing(here, capsys, results, message):
    make(here, capsys)
    before = (here / "d" / "search.safetensors").read_bytes()
    code, out, err = tell(here, capsys, results)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert (here / "d" / "search.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        ({"bound": 3}, "unknown name 'bound'; did you mean 'bounds'"),
        ([1], "problem.yaml: expected a mapping, got list"),
        ({**BOX, "bounds": [[1, 1], [-1, -1]]}, "low below high"),
        ({**BOX, "bounds": [[1, 1, 1]]}, "bounds: expected (lows, highs), or a list of tuples (low, high)"),
        ({**BOX, "minimise": "false"}, "minimise: expected True or False, got 'false'"),
        ({**BOX, "descriptor_bounds": "measured"}, "descriptor_bounds: expected (lows, highs), 'measure' or None"),
        ({**BOX, "bounds": "wide"}, "bounds: expected"),
        ({**BOX, "x0": [5, 5]}, "start"),
        ({**BOX, "evaluations": 1}, "evaluations: expected at least"),
        ({**BOX, "settings": {"out": "/tmp/x"}}, "settings: expected settings of the method, got out"),
        ({**BOX, "settings": {"popultion": 3}}, "popultion"),
        ({"space": {"metal": 3}}, "metal: expected"),
        ({"evaluations": 100}, "num_params: expected the number"),
    ],
)
def test_problems_that_are_refused(here, capsys, problem, message):
    (here / "problem.yaml").write_text(yaml.safe_dump(problem))
    code, _, err = call(capsys, "ask", "d", "--new", "problem.yaml")
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert not (here / "d" / "search.safetensors").exists()


@pytest.mark.parametrize(
    "problem",
    [
        "bounds: [[1e-3, 0], [1, 1e0]]\nx0: [1e-1, 0.5]\nsigma0: 1e-1\nevaluations: 1e2\n",
        "bounds: [[-1e1, 0], [1, 1]]\nsigma0: [1e-1, 0.2]\nx0: [0, 1e-1]\n",
        "space: {a: [1e-3, 1], b: {choices: [x, y]}}\nx0: {a: 1e-1, b: y}\n",
    ],
)
def test_numbers_that_yaml_takes_for_texts(here, capsys, problem):
    (here / "problem.yaml").write_text(problem)
    code, out, err = call(capsys, "ask", "d", "--new", "problem.yaml", "-n", "1")
    assert (code, err) == (0, "")
    first = json.loads(out)[0]["x"]
    assert first == ({"a": 0.1, "b": "y"} if "space" in problem else [0.1, 0.5] if "1e2" in problem else [0, 0.1])


def test_numbers_of_solutions_may_be_floats(here, capsys):
    make(here, capsys, BOX, "-n", "2")
    (here / "results.json").write_text('[{"id": 0.0, "fitness": 1.5}, {"id": 1.0, "failed": true}]')
    code, _, err = call(capsys, "tell", "d", "results.json")
    assert code == 0, err


def test_directories_that_are_refused(here, capsys):
    for command in (["ask", "d"], ["best", "d"], ["tell", "d", "results.json"]):
        (here / "results.json").write_text('[{"id": 1, "failed": true}]')
        code, _, err = call(capsys, *command)
        assert code == 2
        assert "d: expected a directory with a search, got none; begin one with: jedax ask d --new" in err
    make(here, capsys, BOX)
    for command, message in [
        (["ask", "d", "--new", "problem.yaml"], "--new: expected a directory without a search"),
        (["ask", "d", "-n", "0"], "-n: expected a whole number from 1"),
        (["ask"], "jedax ask: expected one directory"),
        (["tell", "d"], "jedax tell: expected a directory and a file of results"),
        (["tell", "d", "missing.json"], "missing.json: expected a JSON file, got No such file"),
        (["ask", "e", "--new", "missing.yaml"], "--new: expected a YAML file, got missing.yaml"),
    ]:
        code, _, err = call(capsys, *command)
        assert (code, message in err) == (2, True), err


def test_code_of_others_is_not_run(here, capsys):
    (here / "evil.py").write_text("open('ran', 'w').close()\n")
    (here / "problem.yaml").write_text(yaml.safe_dump({**BOX, "method": "evil:Method"}))
    code, _, err = call(capsys, "ask", "d", "--new", "problem.yaml")
    assert code == 2
    assert "add --trust" in err
    assert not (here / "ran").exists()


def test_two_programs_at_once_both_arrive(here, capsys):
    make(here, capsys, BOX, "-n", "4")
    began = [
        subprocess.Popen(
            [sys.executable, "-m", "jedax", "tell", "d", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for number, one in enumerate(began):
        one.stdin.write(json.dumps([{"id": 2 * number + k, "fitness": float(number)} for k in range(2)]))
        one.stdin.close()
    assert [one.wait(120) for one in began] == [0, 0]
    found = best(capsys)
    assert (found["evaluations"], found["open"]) == (4, [])


def test_help(capsys):
    for command, words in (
        ("ask", ("-n", "--new")),
        ("tell", ("violations",)),
        ("best", ("--trust",)),
        ("exchange", ("-n", "error")),
    ):
        code, out, _ = call(capsys, command, "--help")
        assert code == 0
        text = re.sub(r"\s+", " ", out)
        assert all(word in text for word in words)


def test_a_place_that_cannot_be_written_is_named_at_once(here, capsys):
    (here / "problem.yaml").write_text(yaml.safe_dump(PROBLEM))
    (here / "file").touch()
    for place in ("file/d", "/proc/d"):
        code, out, err = call(capsys, "ask", place, "--new", "problem.yaml")
        assert (code, out) == (2, "")
        assert f"{place}: expected a directory that can be written, got " in err
