"""The command line: what it accepts, and the one sentence that bad input gets."""

import errno
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import yaml
from tests.commands import call
from tests.conftest import draw_nothing

import jedax
from jedax import _version
from jedax.cli.options import peek
from jedax.cli.run import _default_config, _parse, _print_outcome, _take_task
from jedax.methods.registry import methods
from jedax.store import files
from jedax.tasks.registry import entries

SIZES = ["--population", "4", "--pool", "2", "--cells", "16"]
TINY = ["--evaluations", "64", *SIZES]
BEGUN = ["--evaluations", "8", *SIZES]  # the initial batch alone, where only the settings of a run are looked at


@pytest.fixture(autouse=True)
def _without_figures(request, monkeypatch):
    """Runs draw nothing, which takes most of the time of a small one, but where a test looks at figures."""
    if request.function is not test_run_leaves_results_and_says_where:
        draw_nothing(monkeypatch)


def test_run_leaves_results_and_says_where(here, capsys):
    code, out, _ = call(capsys, "run", "maze-a", *TINY)
    assert code == 0
    assert "runs/maze-a-jedi-x-seed0" in out
    assert (here / "runs/maze-a-jedi-x-seed0/figures/best.png").stat().st_size > 10_000


def test_no_setting_of_a_method_hides_one_of_a_task():
    """`jedax run maze-a --steps 400` sets the steps of an episode."""
    assert _parse(["--steps", "400"], _default_config([], "maze-a"))["steps"] == 400
    hidden = {
        (method, name, field)
        for method, entry in methods().items()
        for name, task in entries().items()
        for field in set(type(entry.config).model_fields) & set(type(task.config()).model_fields)
    }
    assert not hidden


def test_options_may_have_underscores():
    for given in (["--num_params", "400"], ["--num-params=400"], ["--seed=3", "--num_params=400"]):
        assert peek(given, "--num-params") == "400"


def test_default_directory_is_a_free_one(here, capsys):
    for _ in range(2):
        assert call(capsys, "run", "arm", *TINY)[0] == 0
    assert sorted(p.name for p in (here / "runs").iterdir()) == ["arm-jedi-x-seed0", "arm-jedi-x-seed0-2"]


def test_a_default_directory_with_a_run_that_has_not_ended_is_told_of(here, capsys):
    said = {}
    for name, more in (("stopped", ("--max-seconds", "1e-9")), ("again", ()), ("ended", ("--seed", "1")), ("", ())):
        said[name] = call(capsys, "run", "arm", *TINY, *more)[1]
    hint = "runs/arm-jedi-x-seed0 has a run that has not ended; to continue that one: jedax run --resume runs/arm"
    assert hint not in said["stopped"] + said["ended"]
    assert hint in said["again"]
    assert said[""].count("has a run that has not ended") == 1  # the second one has ended


def test_default_directory_is_overwritten_where_that_is_asked_for(here, capsys):
    for seconds in "8", "9":
        assert call(capsys, "run", "arm", *TINY, "--overwrite", "--max-seconds", seconds)[0] == 0
    assert [p.name for p in (here / "runs").iterdir()] == ["arm-jedi-x-seed0"]
    assert read_config(here / "runs/arm-jedi-x-seed0")["run"]["max_seconds"] == 9


def read_config(folder):
    return yaml.safe_load((folder / "config.yaml").read_text())


def test_flags_reach_the_settings(here, capsys):
    words = ("--method jedi --hidden 4 3 --alpha=0.3 --no-border --activation tanh --es evosax:SNES "
             "--limits -0.5 -0.5 1.5 1.5 --replicas 2 --out r")  # fmt: skip
    code, _, err = call(capsys, "run", "--seed", "7", "maze-b", *BEGUN, *words.split())
    assert code == 0, err
    config = read_config(here / "r")
    assert config["task_config"]["hidden"] == [4, 3]
    assert config["task_config"]["limits"] == [[-0.5, -0.5], [1.5, 1.5]]
    assert config["task_config"]["border"] is False
    assert config["task_config"]["activation"] == "tanh"
    assert config["method_config"]["alpha"] == 0.3
    assert config["method_config"]["es"] == "evosax:SNES"
    assert config["run"]["seed"] == 7
    assert config["run"]["replicas"] == 2


@pytest.mark.parametrize(
    ("arguments", "targets", "alpha"),
    [
        (["--method", "jedi"], "pareto", "decay"),
        (["--method", "jedi-uniform", "--generations=5"], "uniform", "decay"),
        (["--method=jedi-paper", "--preset", "tuned"], "pareto", 0.3),
        (["--method", "jedi-uniform", "--preset", "tuned", "--alpha", "0.9"], "uniform", 0.9),
    ],
)
def test_methods_and_presets(here, capsys, arguments, targets, alpha):
    assert call(capsys, "run", "maze-a", *arguments, *BEGUN, "--out", "r")[0] == 0
    method = read_config(here / "r")["method_config"]
    assert (method["targets"], method["alpha"]) == (targets, alpha)


def test_the_first_line_says_which_method_searches(here, capsys):
    first, *_ = call(capsys, "run", "arm", *TINY)[1].splitlines()
    assert first == "jedi-x, the default method, searches arm with 64 evaluations"
    first, *_ = call(capsys, "run", "arm", *TINY, "--method", "jedi")[1].splitlines()
    assert first == "jedi searches arm with 64 evaluations"
    first, second, *_ = call(capsys, "run", "arm", *TINY, "--method", "jedi-paper")[1].splitlines()
    assert first == "the method jedi-paper is called jedi now"
    assert second == "jedi searches arm with 64 evaluations"


@pytest.mark.parametrize("budget", ["8_0", "8e1", "80.0"])
def test_whole_numbers_are_read_as_people_write_them(here, capsys, budget):
    code, _, err = call(capsys, "run", "arm", "--evaluations", budget, *SIZES, "--out", "r")
    assert code == 0, err
    assert read_config(here / "r")["run"]["evaluations"] == 80


@pytest.mark.parametrize("budget", ["80.5", "many", "inf", "nan"])
def test_other_numbers_are_refused(here, capsys, budget):
    code, _, err = call(capsys, "run", "arm", "--evaluations", budget, *SIZES)
    assert code == 2
    assert "--evaluations: expected a whole number" in err


def test_maze_file(here, capsys):
    (here / "mine.yaml").write_text("walls: [[0, 0.5, 0.7, 0.5]]\ntarget: [0.2, 0.8]\nevaluations: 64\n")
    code, _, err = call(capsys, "run", "mine.yaml", *SIZES, "--out", "r")
    assert code == 0, err
    (here / "mine.yaml").unlink()  # all that is needed is in the run's directory by now
    assert read_config(here / "r")["task_config"]["walls"] == [[0, 0.5, 0.7, 0.5]]
    assert read_config(here / "r")["run"]["evaluations"] == 64
    assert call(capsys, "run", "--resume", "r")[0] == 0


def test_config_file(here, capsys):
    (here / "c.yaml").write_text("task: arm\ntask_config: {joints: 3}\nmethod: jedi\n"
                                 "method_config: {alpha: 0.2, population: 4, pool: 2, cells: 16}\n"
                                 "run: {evaluations: 8, seed: 8}\n")  # fmt: skip
    code, _, err = call(capsys, "run", "--config", "c.yaml", "--seed", "9", "--out", "r")
    assert code == 0, err
    config = read_config(here / "r")
    assert config["task_config"]["joints"] == 3
    assert config["method"] == "jedi"
    assert (config["method_config"]["targets"], config["method_config"]["alpha"]) == ("pareto", 0.2)
    assert config["run"]["seed"] == 9
    code, _, _ = call(capsys, "run", "--config", "r/config.yaml", "--out", "again")
    assert code == 0
    assert read_config(here / "again") == config


def test_config_file_of_a_run_with_start_genotypes(here, capsys):
    """They are no setting; those beside the file count, unless the task is another one."""
    start = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    config = jedax.JediConfig(population=4, pool=2, cells=16)
    run = jedax.run(config, jedax.tasks.make("arm", joints=4), evaluations=8, start_genotypes=start, out="r")
    assert call(capsys, "run", "--config", "r/config.yaml", "--out", "again")[0] == 0
    again = jedax.load("again")
    np.testing.assert_array_equal(again.repertoire.genotypes, run.repertoire.genotypes)
    np.testing.assert_array_equal(np.load("again/start_genotypes.npy"), start)
    assert call(capsys, "run", "--config", "r/config.yaml", "--joints", "5", "--out", "longer")[0] == 0
    assert not (here / "longer" / "start_genotypes.npy").exists()


def test_descriptors_that_lie_outside_are_remarked_on(here, capsys):
    (here / "wide.py").write_text(
        "import jax\nimport jedax\n\n\nclass Wide(jedax.tasks.Task):\n    name, num_params = 'wide', 2\n"
        "    descriptor_bounds = ((-2.0, 0.0), (2.0, 3.0))\n\n"
        "    def init(self, key):\n        return jax.random.normal(key, (2,))\n\n"
        "    def evaluate(self, key, genotype):\n"
        "        return jedax.Evaluation(fitness=-genotype @ genotype, descriptor=genotype - 50)\n"
    )
    code, out, err = call(capsys, "run", "wide:Wide", *TINY)
    assert code == 0, err
    assert "64 of 64 descriptors lay outside the task's descriptor_bounds (lows, highs)" in out
    assert "outside" not in call(capsys, "run", "arm", *TINY)[1]


@pytest.mark.parametrize(("seed", "samples", "said"), [(7, 1, True), (7, 8, False), (None, 1, False)])
def test_a_fitness_of_one_seed_is_remarked_on(capsys, seed, samples, said):
    summary = {"max_fitness": 2.5, "evaluations": 64, "evaluations_per_second": 8.0, "wall_seconds": 9.0}
    summary |= {"status": "finished", "num_failed": 0, "num_outside": 0, "failures": {}}
    found = SimpleNamespace(
        summary=summary,
        has_solution=True,
        best=lambda: SimpleNamespace(fitness=2.5, parameters=None),
        task=SimpleNamespace(sample_seed=lambda sample: seed),
        config=SimpleNamespace(method_config=SimpleNamespace(samples_per_evaluation=samples)),
    )
    _print_outcome(found, Path("r"))
    out = capsys.readouterr().out
    remark = "each fitness is that of one evaluation, from seed 7; for other seeds: jedax reevaluate r\n"
    assert (remark in out) == said
    assert ("one evaluation" in out) == said


def test_a_run_without_a_solution_says_so(here, capsys):
    code, out, err = call(capsys, "run", "tests.failing:Failing", *TINY, "--out", "r")
    assert code == 1, err
    assert "All evaluations failed, so there is no solution: " in err
    assert "\nno solution after 64 evaluations" in out
    assert "inf" not in out
    assert "All evaluations failed" in (here / "r" / "log.txt").read_text()


def test_a_run_whose_time_was_over_goes_on(here, capsys):
    long = ["--evaluations", "200000", *SIZES]
    code, out, err = call(capsys, "run", "arm", *long, "--out", "my run", "--max-seconds", "1e-6")
    assert code == 0, err
    resume = re.search(r"Continue for as long again with: (.*), or add another --max-seconds", out).group(1)
    assert shlex.split(resume) == ["jedax", "run", "--resume", "my run"]
    assert call(capsys, "run", "--resume", "my run", "--max-seconds", "0")[0] == 2
    before = json.loads((here / "my run" / "summary.json").read_text())["evaluations"]
    assert call(capsys, "run", "--resume", "my run")[0] == 0
    after = json.loads((here / "my run" / "summary.json").read_text())["evaluations"]
    assert before < after < 2000
    code, out, err = call(capsys, "run", "--resume", "my run", "--max-seconds", "100000")
    assert code == 0, err
    assert "stopped" not in out
    assert read_config(here / "my run")["run"]["max_seconds"] == 1e-6


def test_start_from_a_file(here, capsys):
    np.save("g.npy", np.zeros((2, 10), np.float32))
    code, out, err = call(capsys, "run", "arm", *TINY, "--start-from", "g.npy", "--out", "r")
    assert code == 0, err
    assert "best fitness 0.00" in out or "best fitness -0.00" in out


def test_start_from_an_earlier_run(here, capsys):
    """From its fittest elites, as many as the batch has."""
    assert call(capsys, "run", "arm", *TINY, "--cells", "64", "--out", "first")[0] == 0
    first = jedax.load("first")
    code, _, err = call(capsys, "run", "arm", *TINY, "--start-from", "first", "--out", "second")
    assert code == 0, err
    given = np.load("second/start_genotypes.npy")
    np.testing.assert_array_equal(given, [elite.genotype for elite in first.elites()[: len(given)]])
    again = jedax.run("map-elites", "arm", start_genotypes=first, evaluations=16, offspring=8, out="third")
    np.testing.assert_array_equal(np.load("third/start_genotypes.npy"), given[:8])
    assert again.best().fitness >= first.best().fitness
    jedax.run("map-elites", "arm", start_from=here / "first", evaluations=16, offspring=8, out="fourth")
    np.testing.assert_array_equal(np.load("fourth/start_genotypes.npy"), given[:8])


def test_existing_directory_is_refused_unless_overwritten(here, capsys):
    assert call(capsys, "run", "arm", *TINY, "--out", "r")[0] == 0
    before = {p: p.read_bytes() for p in (here / "r").rglob("*") if p.is_file()}
    code, _, err = call(capsys, "run", "arm", *TINY, "--out", "r")
    assert code == 2
    assert "--resume r" in err
    assert "--overwrite" in err
    assert {p: p.read_bytes() for p in (here / "r").rglob("*") if p.is_file()} == before
    assert call(capsys, "run", "arm", *TINY, "--out", "r", "--overwrite", "--seed", "1")[0] == 0
    assert read_config(here / "r")["run"]["seed"] == 1


def test_overwrite_spares_the_old_run_until_all_is_checked(here, capsys):
    assert call(capsys, "run", "arm", *TINY, "--out", "r")[0] == 0
    before = {path: path.read_bytes() for path in (here / "r").rglob("*") if path.is_file()}
    arguments = ["--population", "15", "--es", "evosax:Open_ES", "--evaluations", "64"]
    code, _, err = call(capsys, "run", "arm", *arguments, "--out", "r", "--overwrite")
    assert code == 2
    assert "population" in err
    assert {path: path.read_bytes() for path in (here / "r").rglob("*") if path.is_file()} == before
    assert call(capsys, "run", "arm", *arguments, "--out", "new")[0] == 2
    assert not (here / "new").exists()


def test_config_of_no_task(here, capsys):
    (here / "c.yaml").write_text("method_config: {population: 4, pool: 2, cells: 16}\nrun: {evaluations: 64}\n")
    assert call(capsys, "run", "arm", "--config", "c.yaml", "--out", "r")[0] == 0
    assert (read_config(here / "r")["task"], read_config(here / "r")["method"]) == ("arm", "jedi-x")
    code, _, error = call(capsys, "run", "--config", "c.yaml", "--out", "other")
    assert code == 2
    assert "expected settings with the key 'task'" in error


@pytest.mark.parametrize("text", ["method: es", "task:\nmethod: es", "task: arm\ntask_config: {joints: 3}\nmethod: es"])
def test_the_budget_is_that_of_the_task_that_is_run(here, capsys, text):
    (here / "c.yaml").write_text(text + "\nmethod_config: {population: 8}\n")
    assert call(capsys, "run", "maze-c", "--config", "c.yaml", "--max-seconds", "0.01", "--out", "r")[0] == 0
    config = read_config(here / "r")
    assert (config["task"], config["task_config"]["name"]) == ("maze-c", "maze-c")
    assert (config["method"], config["run"]["evaluations"]) == ("es", 2_000_000)


def test_a_flags_value_is_not_taken_for_the_task(here, capsys):
    assert call(capsys, "run", "--out", "sphere", "arm", *TINY)[0] == 0
    assert read_config(here / "sphere")["task"] == "arm"


def test_a_word_after_an_option_is_not_taken_for_the_task():
    assert _take_task(["--resume", "r", "--engine", "ray", "--address", "head:6379"]) is None
    words = ["--descriptor", "mine:f", "gym:Hopper-v5", "--seed", "3"]
    assert _take_task(words) == "gym:Hopper-v5"
    assert words == ["--descriptor", "mine:f", "--seed", "3"]


def test_a_value_that_is_given_counts_even_if_it_is_the_default():
    assert _parse(["--devices", "1", "--replicas=1"], _default_config([], "arm")) == {"devices": 1, "replicas": 1}


def test_config_of_another_task_keeps_the_method(here, capsys):
    settings = "task: arm\nmethod: jedi\nmethod_config: {alpha: 0.2, population: 4, pool: 2, cells: 16}\n"
    (here / "c.yaml").write_text(settings + "run: {evaluations: 8, seed: 8}\n")
    assert call(capsys, "run", "sphere", "--config", "c.yaml", "--dimensions", "4", "--out", "r")[0] == 0
    config = read_config(here / "r")
    assert (config["task"], config["task_config"]["dimensions"]) == ("sphere", 4)
    assert (config["method_config"]["alpha"], config["method_config"]["population"]) == (0.2, 4)
    assert (config["run"]["evaluations"], config["run"]["seed"]) == (8, 8)


def test_overwrite_spares_what_no_run_wrote(here, capsys):
    (here / "r").mkdir()
    (here / "r" / "thesis.tex").write_text("years of work")
    code, _, err = call(capsys, "run", "arm", *TINY, "--out", "r", "--overwrite")
    assert code == 2
    assert "thesis.tex" in err
    assert (here / "r" / "thesis.tex").read_text() == "years of work"


BAD = [
    (["run", "maze-z"], "task: unknown name 'maze-z'; did you mean 'maze-"),
    (["run"], "task: expected the name of a task, got none"),
    (["run", "drone.py"], "got drone.py, where there is no file; check the path"),
    (["jump"], "command: unknown name 'jump'"),
    (["run", "maze-a", "--method", "jedy"], "method: unknown name 'jedy'; did you mean 'jedi'"),
    (["run", "maze-a", "--preset", "best"], "preset: unknown name 'best'"),
    (
        ["run", "maze-a", "--preset", "opt"],
        "preset: expected one that jedi-x has, got 'opt', which belongs to cma-me; leave",
    ),
    (
        ["run", "maze-a", "--method=jedi-x", "--alpha=0.3"],
        "setting: expected one that jedi-x has, got --alpha, which belongs to jedi, jedi-uniform; leave it out",
    ),
    (
        ["run", "maze-a", "--method", "jedi", "--scout-patience", "5", "--alpha", "0.3"],
        "setting: expected one that jedi has, got --scout-patience, which belongs to jedi-x; leave it out, or",
    ),
    (["run", "maze-a", "--learning-rate", "1"], "got --learning-rate, which belongs to cma-me, cma-mae; leave"),
    (
        ["run", "arm", "--preset", "tuned"],
        "preset: expected one that jedi-x has, got 'tuned', which belongs to jedi, j",
    ),
    (
        ["run", "arm", "--method", "jedi", "--preset", "tuned"],
        "preset: expected a task that it applies to (maze-a, maz",
    ),
    (["run", "maze-a", "--method", "mine:Mine"], "method: expected a module mine that can be imported"),
    (["run", "maze-a", "--method", "math:sin"], "method: expected a name, settings such as a JediConfig, or a class"),
    (["run", "maze-a", "--es", "sep-cmaes"], "unknown name 'sep-cmaes'; did you mean 'sep-cma-es'"),
    (["run", "maze-a", "--es", "evosax:SNESS"], "unknown name 'evosax:SNESS'; did you mean 'evosax:SNES'"),
    (
        ["run", "maze-a", "--population", "1"],
        "population: expected greater than or equal to 2, got 1; change it, or leave it out to get the default.",
    ),
    (
        ["run", "maze-a", "--method", "jedi", "--alpha", "1.5"],
        "alpha: expected 'decay' or less than or equal to 1, got",
    ),
    (["run", "maze-a", "--evaluations", "127"], "evaluations: expected at least one generation of 128"),
    (
        ["run", "maze-a", "--evaluations", "3000000000"],
        "evaluations: expected less than or equal to 2147483647",
    ),
    (
        ["run", "maze-a", "--method", "jedi", "--pool", "2000"],
        "pool: expected at most one ES per cell (1024), got 2000",
    ),
    (
        ["run", "maze-a", "--method=jedi", "--gp-noise-bounds", "3", "1"],
        "gp_noise_bounds: expected a low bound below a",
    ),
    (
        ["run", "maze-a", "--start", "0.3", "0.25", "0"],
        "start: expected a point more than the robot's radius",
    ),
    (
        ["run", "maze-a", "--cells", "1000", "--cell-layout", "grid"],
        "cells: expected k^2 with a whole number k",
    ),
    (
        ["run", "maze-a", "--start-from", "none.npy"],
        "start_from: expected a .npy file of genotypes, got none.npy",
    ),
    (["run", "nowhere.yaml"], "nowhere.yaml: expected a readable maze file"),
    (["run", "zero.yaml"], "zero.yaml: walls[0]: expected two ends at least 1e-06 apart"),
    (["run", "key.yaml"], "key.yaml: parameter: unknown name 'wals'; did you mean 'walls'"),
    (["run", "--resume", "nothing-here"], "run directory: expected a directory with a config.yaml"),
    (
        ["run", "arm", "--resume", "nothing-here"],
        "resume: expected only --devices, --engine, --address, --max-seconds, --track and --trust",
    ),
    (["run", "--config", "nowhere.yml", "--seed", "1"], "config: expected a readable file"),
    (["tasks", "maze-a"], "tasks: expected no more words after it, got 'maze-a'"),
    (["methods", "bogus"], "methods: expected no more words after it, got 'bogus'"),
    (["run", "arm", "--start-from", "two.npz"], "start_from: expected a .npy file of genotypes, got two.npz"),
    (
        ["run", "arm", "--start-from", "many.npy"],
        "start_from: expected at most 128 rows of 10 numbers, got float64 of shape (129, 10)",
    ),
    (
        ["run", "arm", "--out", "zero.yaml/sub", *TINY],
        "zero.yaml/sub: expected a directory that can be written, got Not a directory; choose",
    ),
]


@pytest.mark.parametrize(
    ("arguments", "message"), BAD, ids=lambda value: " ".join(value) if type(value) is list else ""
)
def test_bad_input_gets_one_sentence_and_writes_nothing(here, capsys, arguments, message):
    (here / "zero.yaml").write_text("walls: [[0.5, 0.5, 0.5, 0.5]]\n")
    (here / "key.yaml").write_text("wals: []\nwalls: []\n")
    np.savez(here / "two.npz", a=np.zeros(10), b=np.zeros(10))
    np.save(here / "many.npy", np.zeros((129, 10)))
    code, out, err = call(capsys, *arguments)
    assert code == 2
    assert out == "" or re.fullmatch(r"jedi(-x, the default method,)? searches .* evaluations\n", out)
    assert err.startswith("jedax: ")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(os.listdir(here)) == ["key.yaml", "many.npy", "two.npz", "zero.yaml"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--populaton", "8"], ["Unrecognized options: --populaton, 8", "Perhaps you meant:", "--population INT"]),
        (["--population", "many"], ["Error parsing --population", "'many'"]),
        (["--method", "jedi", "--targets", "best"], ["--targets", "best", "gp-bucb"]),
        (["--method", "jedi", "--alpha="], ["--alpha", "decay"]),
        (["--seed"], ["Missing value for argument '--seed'"]),
        (["extra"], ["Unrecognized options: extra"]),
        (["--out", "sphere", "extra"], ["Unrecognized options: extra"]),
    ],
)
def test_mistakes_that_tyro_finds(here, capsys, arguments, words):
    code, out, err = call(capsys, "run", "maze-a", *arguments)
    assert (code, out) == (2, "")
    assert [word for word in words if word not in err] == []
    assert "jedax run maze-a --help" in err
    assert os.listdir(here) == []


def test_full_disk_is_said_and_spares_the_last_checkpoint(here, capsys, monkeypatch):
    whole = files.write_atomic

    def full(path, data):
        if "000000000064" in str(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        whole(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_atomic", full)
        code, _, err = call(capsys, "run", "arm", *TINY, "--out", "r", "--checkpoint-seconds", "0")
    assert code == 2
    assert "No space left on device" in err
    assert "jedax run --resume r" in err
    code, out, _ = call(capsys, "run", "--resume", "r")
    assert code == 0
    assert "64 evaluations" in out


def test_tasks_and_methods_are_listed(capsys):
    out = call(capsys, "tasks")[1]
    for name in ("maze-a", "maze-b", "maze-c", "maze-quad-b", "sphere", "rastrigin", "arm"):
        assert f"\n{name} " in f"\n{out}"
    out = call(capsys, "methods")[1]
    for name in ("jedi-x", "jedi", "jedi-uniform", "es", "es-restart", "map-elites", "cma-me", "cma-mae"):
        assert f"\n{name} " in f"\n{out}"
    for preset in ("decay (default)", "tuned", "imp (default)", "opt", "rnd"):
        assert f"--preset {preset}: " in out
    assert "jedi-paper is now jedi" in out


def test_doctor_tells_of_the_machine(capsys):
    from jedax import native

    out = call(capsys, "doctor")[1]
    assert f"jedax               {_version.__version__}\n" in out
    assert f"jax version         {jax.__version__}\n" in out
    for kernel, status in native.status().items():
        assert f"{f'native {kernel}':<20}{status}\n" in out


def test_version_and_help(capsys):
    assert call(capsys, "--version")[1] == f"jedax {_version.__version__}\n"
    assert "jedax run maze-a" in call(capsys, "--help")[1]
    assert call(capsys)[1] == call(capsys, "--help")[1]
    out = call(capsys, "run", "maze-quad-b", "--help")[1]
    options = ["--method", "--preset", "--evaluations", "--seed", "--replicas", "--out", "--overwrite", "--resume",
               "--stop-fitness", "--max-seconds"]  # fmt: skip
    assert [name for name in options if name not in out] == []
    assert "2000000" in out
    assert "--help-all" in out
    assert "--laser-range" not in out
    code, out, _ = call(capsys, "run", "maze-quad-b", "--method", "jedi", "--help-all")
    assert code == 0
    for option in (*options, "--laser-range", "--alpha", "--checkpoint-seconds", "--track", "--es"):
        assert option in out
    assert "--patience" not in out


def test_a_reader_that_has_read_enough():
    """Such as `jedax tasks | head -1`: no error, and the code that the shell expects."""
    command = [sys.executable, "-m", "jedax", "tasks"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_reevaluate(here, capsys):
    assert call(capsys, "run", "arm", *TINY, "--out", "r")[0] == 0
    code, out, err = call(capsys, "reevaluate", "r", "--samples", "8")
    assert code == 0, err
    assert "arm, jedi-x: 2 new samples of every elite" in out
    assert "nothing in this task is random, so two samples are enough, and they agree" in out
    assert "luck 0.000" in out
    assert (here / "r" / "reevaluated.png").stat().st_size > 10_000
    code, out, _ = call(capsys, "reevaluate", "--cells", "best", "r")
    assert code == 0
    assert "(2 evaluations)" in out
    assert "coverage" not in out
    for arguments, message in (
        (["r", "--samples", "many"], "Error parsing --samples"),
        (["nowhere"], "jedax: run directory: expected a directory with a config.yaml, got nowhere; check the path.\n"),
        ([], "jedax: jedax reevaluate: expected one directory, got none; name it, as in: jedax reevaluate DIR"),
    ):
        code, out, err = call(capsys, "reevaluate", *arguments)
        assert (code, out, message in err) == (2, "", True), err
