"""Engines on the command line: benches as commands for a job array, and `--collect`."""

import shlex

import pytest
from tests.commands import call

GRID = ["bench", "arm", "--methods", "map-elites,cells=16,offspring=8", "map-elites,cells=32,offspring=8",
        "--seeds", "2", "--evaluations", "80"]  # fmt: skip
FIRST, SECOND = "arm/map-elites-cells=16-offspring=8", "arm/map-elites-cells=32-offspring=8"


def test_a_bench_as_commands_that_are_gathered(here, capsys):
    code, out, _ = call(capsys, *GRID, "--out", "all of it", "--print-trials", "--no-figures")
    assert code == 0
    commands = [shlex.split(line) for line in out.splitlines()]
    common = ["jedax", *GRID, "--no-figures", "--out", "all of it", "--trials"]
    assert commands == [[*common, FIRST], [*common, SECOND]]
    assert list(here.iterdir()) == []

    elsewhere = [*commands[0][1:], "--out", "job"]  # the last of two counts
    assert call(capsys, *elsewhere)[0] == 0
    assert sorted(path.parent.name for path in here.rglob("seeds-0-1")) == [FIRST.partition("/")[2]]
    code, out, _ = call(capsys, *GRID, "--out", "all of it", "--collect", "job")
    assert code == 1
    assert out == (
        "1 run gathered, 0 were there; compare them with: jedax compare 'all of it'\n"
        f"missing: all of it/{SECOND}/seeds-0-1\n"
    )
    (here / "job" / SECOND).mkdir(exist_ok=True)
    (here / "job" / SECOND / "seeds-0-1.error.txt").write_text("RuntimeError")
    code, out, _ = call(capsys, *GRID, "--out", "all of it", "--collect", "job")
    assert out.endswith(f"failed: all of it/{SECOND}/seeds-0-1\n")
    code, out, _ = call(capsys, *GRID, "--out", "all of it", "--print-trials")
    assert [shlex.split(line)[-1] for line in out.splitlines()] == [SECOND]
    code, out, err = call(capsys, *commands[1][1:])
    assert (code, out.split(",")[0]) == (0, "1 run done"), err
    assert call(capsys, *GRID, "--out", "all of it", "--collect", "all of it")[0] == 0
    code, out, _ = call(capsys, "bench", "--out", "copy", "--collect", "all of it", "job")
    assert (code, out.split(";")[0]) == (0, "2 runs gathered, 0 were there")


def test_a_bench_of_the_paper_as_commands(here, capsys):
    code, out, _ = call(capsys, "bench", "--preset", "ablation-alpha", "--print-trials", "--trials", "maze-b/alpha=0.3")
    assert code == 0
    assert out == "jedax bench --preset ablation-alpha --out runs/bench-ablation-alpha --trials maze-b/alpha=0.3\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*GRID, "--engine", "rya"], "engine: unknown name 'rya'; did you mean 'ray'?"),
        ([*GRID, "--address", "auto"], "address: expected an engine of several machines, got the engine local;"),
        ([*GRID, "--engine", "ray", "--address", "ray://a:1"], "address: expected host:port, or auto on a node"),
        ([*GRID, "--trials", "arm/map-elite"], "trials: unknown name 'arm/map-elite'; did you mean"),
        ([*GRID, "--joints", "4"], "--joints: expected an option of jedax bench (see --help), got a setting"),
        ([*GRID, "--alpha=0.3"], "write it after the method's name: --methods jedi,alpha=VALUE."),
        (["bench", "--collect", "a"], "collect: expected --out, got none; name the directory to copy to"),
        (
            ["bench", "--collect", "a", "--out", "b"],
            "collect: expected directories with runs of a bench, got none below",
        ),
        (["run", "arm", "--method", "es", "--engine", "ray"], "engine: expected a task outside JAX, such as gym:Half"),
        (["run", "arm", "--method", "es", "--address", "auto"], "address: expected an engine of several machines"),
        (["run", "--resume", "r", "--engine", "local", "--seed", "3"], "resume: expected only --devices"),
    ],
    ids=lambda value: " ".join(value[-2:]) if type(value) is list else "",
)
def test_bad_input_gets_one_sentence_and_writes_nothing(here, capsys, arguments, message):
    code, out, err = call(capsys, *arguments)
    assert code == 2
    assert out.count("\n") <= (arguments[0] == "run")  # the method and the budget
    assert err.startswith("jedax: ")
    assert message in err
    assert err.count("\n") == 1
    assert list(here.iterdir()) == []


def test_help_tells_of_engines(capsys):
    out = call(capsys, "bench", "--help")[1]
    for flag in (
        "--engine",
        "--address",
        "--cpus-per-trial",
        "--gpus-per-trial",
        "--print-trials",
        "--collect",
        "--trials",
    ):
        assert flag in out
