"""Tasks by name."""

from importlib.metadata import EntryPoint

import jax
import numpy as np
import pytest
import yaml
from tests.tasks import own

import jedax
from jedax import cli
from jedax.errors import JedaxError
from jedax.tasks import AntMaze, Locomotion, Maze, PlanarArm, Rastrigin, Sphere, Task, make, names, registry
from jedax.tasks.control.settings import LocomotionConfig
from jedax.tasks.functions.settings import FunctionConfig
from jedax.tasks.maze.settings import MazeConfig
from jedax.tasks.registry import (
    entries,
    is_custom,
    is_task,
    name_of,
    settings_of,
    summaries,
    task_entry,
    task_of,
    title_of,
)

OWN = "tests.tasks.own"
WORK = "tests.search.workers.work"
CONTROL_TASKS = ("halfcheetah", "walker2d", "ant-maze", "hopper", "ant", "humanoid")


def test_names():
    assert names() == [
        "ant", "ant-maze", "arm", "halfcheetah", "hopper", "humanoid", "maze-a", "maze-b", "maze-c", "maze-quad-b",
        "rastrigin", "sphere", "walker2d",
    ]  # fmt: skip
    assert set(names()) == set(entries()) == set(summaries())
    assert next(iter(entries())) == "maze-a"


def test_robots_have_large_policies_and_small_budgets():
    assert {name for name, entry in entries().items() if entry.large_policies} == set(CONTROL_TASKS)
    budgets = {name: entry.small_budget for name, entry in entries().items() if entry.small_budget}
    assert budgets.keys() == set(CONTROL_TASKS)
    assert set(budgets.values()) == {4096, 8192}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("maze-a", Maze),
        ("sphere", Sphere),
        ("rastrigin", Rastrigin),
        ("arm", PlanarArm),
        ("ant-maze", AntMaze),
        *[(name, Locomotion) for name in sorted(set(CONTROL_TASKS) - {"ant-maze"})],
    ],
)
def test_make(name, kind):
    task = make(name)
    assert type(task) is kind
    assert task.name == name
    assert task.config == entries()[name].config()
    assert task == make(name)


@pytest.mark.parametrize("name", sorted(set(names()) - set(CONTROL_TASKS)))  # those have tests of their own
def test_every_task_can_be_evaluated(name):
    task = make(name)
    assert isinstance(task, Task)
    key = jax.random.key(0)
    genotype = task.init(key)
    assert genotype.shape == (task.num_params,)
    evaluation = jax.jit(task.evaluate)(key, genotype)
    assert evaluation.valid
    assert evaluation.fitness.shape == ()
    assert evaluation.descriptor.shape == (task.num_descriptors,)
    assert len(task.descriptor_names) == task.num_descriptors
    assert task.goal_fitness > task.qd_offset
    assert evaluation.fitness >= task.qd_offset
    assert entries()[name].summary.endswith(".")


def test_parameters_and_configs():
    assert make("maze-a", hidden=(16,)).num_params == 130
    assert make("maze-a", hidden=(16,)).config.walls == entries()["maze-a"].config().walls
    assert make("sphere", FunctionConfig(dimensions=7)).num_params == 7
    assert make("sphere", FunctionConfig(dimensions=7), dimensions=8).num_params == 8


def test_a_maze_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("walls: [[0, 0.5, 0.7, 0.5]]")
    task = make(str(path), steps=9)
    assert task == Maze(name="mine", walls=[(0, 0.5, 0.7, 0.5)], steps=9)
    assert task_entry(str(path)).config() == MazeConfig(name="mine", walls=[(0, 0.5, 0.7, 0.5)])


@pytest.mark.parametrize("word", [
    "maze-a", "m.yaml", "a/b.yml", "gym:HalfCheetah-v5", "gym:ALE/Pong-v5", "playground:CheetahRun", "mine.tasks:f",
])  # fmt: skip
def test_words_that_name_tasks(word):
    assert is_task(word)


@pytest.mark.parametrize("word", ["yaml", "custom:bump", "--out", "C:", "gym:", "mine.py:f", "maze_a", "0.5"])
def test_words_that_name_no_task(word):
    assert not is_task(word)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("maze_a", r"^task: unknown name 'maze_a'; did you mean 'maze-a'"),
        ("shpere", r"^task: unknown name 'shpere'; did you mean 'sphere'"),
        ("zzz", r"^task: unknown name 'zzz'; choose one of ant, ant-maze, arm, .*walker2d\.$"),
        ("nofile.yaml", r"^nofile\.yaml: expected a readable maze file, got No such file or directory; check"),
        ("maze:a", r"^task: expected the name of a task or a maze file, got 'maze:a', which stands for a maze made in"),
    ],
)
def test_unknown_names(name, message):
    with pytest.raises(JedaxError, match=message):
        make(name)


def test_parameters_that_do_not_fit():
    with pytest.raises(JedaxError, match=r"unknown name 'hiden'; did you mean 'hidden'\?$"):
        make("maze-a", hiden=(8,))
    with pytest.raises(JedaxError, match=r"^descriptor: expected 'feet-contact' or 'speed-height', got 'final-xy'"):
        make("hopper", descriptor="final-xy")
    with pytest.raises(JedaxError, match=r"^config of Sphere: expected a FunctionConfig, got MazeConfig"):
        make("sphere", MazeConfig())


def test_the_name_is_a_parameter_too():
    assert make("maze-a", name="mine").name == "mine"


def test_names_of_the_package():
    for name in jedax.tasks.__all__:
        assert getattr(jedax.tasks, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Labyrinth'"):
        _ = jedax.tasks.Labyrinth


NAMES = [
    (Maze(walls=[(0, 0.5, 0.7, 0.5)]), "maze:my-maze", "my-maze"),
    (make("maze-b", steps=9), "maze-b", "maze-b"),
    (Maze(name="sphere"), "maze:sphere", "sphere"),
    (Maze(name="gym:x"), "maze:gym:x", "gym:x"),
    (Sphere(dimensions=3), "sphere", "sphere"),
    (Sphere(own.Wide()), "custom:sphere", "sphere"),
    (Locomotion(name="hopper"), "hopper", "hopper"),
    (make(f"{WORK}:sphere"), f"{WORK}:sphere", f"{WORK}:sphere"),
    (own.Bump(), f"{OWN}:Bump", f"{OWN}:Bump"),
    (own.BUMP, f"{OWN}:BUMP", f"{OWN}:BUMP"),
    (own.Weighted(), f"{OWN}:Weighted", f"{OWN}:Weighted"),
    (own.Weighted(weight=3.0), "custom:bump", "bump"),
    (own.Peak(size=7), f"{OWN}:Peak", f"{OWN}:Peak"),
    (own.WideSphere(width=2.0), f"{OWN}:WideSphere", f"{OWN}:WideSphere"),
]


@pytest.mark.parametrize(("task", "name", "title"), NAMES, ids=[name for _, name, _ in NAMES])
def test_a_task_is_kept_by_a_name_and_its_settings(task, name, title):
    assert name_of(task) == name
    assert title_of(name, getattr(task, "config", None)) == title
    if is_custom(name):
        with pytest.raises(JedaxError, match=rf"^task: expected the task object {title}, got none; pass it as task="):
            task_of(name, None)
        assert task_of(name, None, task) is task
    else:
        config = getattr(task, "config", None) or task_entry(name).config()
        assert settings_of(name, config.model_dump(mode="json")) == config
        again = task_of(name, config)
        assert type(again) is type(task)
        assert again == task or type(task) is own.Bump
        assert name_of(again) == name


def test_state_of_an_object_cannot_be_kept():
    task = own.Bump()
    task.size = 3
    assert name_of(task) == "custom:bump"

    class Local(own.Peak):
        pass

    assert name_of(Local()) == "custom:peak"


def test_another_task_than_that_of_the_settings():
    with pytest.raises(JedaxError, match=r"^task: expected the sphere of the settings, got Rastrigin"):
        task_of("sphere", FunctionConfig(), Rastrigin(dimensions=3))


def test_settings_of_a_maze_file_that_is_gone(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("name: other\nwalls: [[0, 0.5, 0.7, 0.5]]\nsteps: 9")
    name = str(file)
    assert settings_of(name, {"hidden": [4]}).steps == 9
    whole = settings_of(name, {}).model_dump(mode="json")
    assert (title_of(name), title_of(name, settings_of(name, {}))) == ("mine", "other")
    file.unlink()
    assert settings_of(name, whole).name == "other"
    with pytest.raises(JedaxError, match="expected a readable maze file"):
        settings_of(name, {"hidden": [4]})


def test_settings_of_objects():
    assert settings_of(f"{OWN}:Peak", {"size": 5}) == own.Peak.Config(size=5)
    assert settings_of(f"{OWN}:PEAK", {}) == own.Peak.Config(size=4)
    assert make(f"{OWN}:PEAK", height=2.0) == own.Peak(size=4, height=2.0)
    assert make(f"{OWN}:TRAP") == own.TRAP
    assert make(f"{OWN}:BUMP") is own.BUMP
    assert make(f"{OWN}:ENTRY") == own.Peak()
    assert task_entry(f"{OWN}:ENTRY").small_budget == 128
    with pytest.raises(JedaxError, match=r"here: task_config: expected none for a task defined in Python"):
        settings_of("custom:bump", {"size": 3}, "here")
    with pytest.raises(JedaxError, match=r"here: parameter: unknown name 'sise'; did you mean 'size'\?"):
        settings_of(f"{OWN}:Peak", {"sise": 3}, "here")


def test_settings_without_a_budget_are_refused():
    with pytest.raises(
        JedaxError, match=r"Lacking\.Config: expected settings with the field evaluations, .*TaskConfig"
    ):

        class Lacking(own.Peak):
            Config = LocomotionConfig.__base__


@pytest.fixture
def registered(monkeypatch):
    """Entry points of another package."""
    points = {
        "peak": "Peak",
        "bump-2": "BUMP",
        "simulated": "simulate",
        "large": "ENTRY",
        "maze-a": "Peak",
        "bad": "no",
    }
    found = {name: EntryPoint(name, f"{OWN}:{value}", registry.GROUP) for name, value in points.items()}
    monkeypatch.setattr(registry, "entry_points", lambda group: found)


def test_entry_points(registered):
    assert {"peak", "bump-2", "simulated", "large"} < set(names())
    assert summaries()["peak"] == "tests.tasks.own:Peak, of another package."
    assert is_task("peak")
    assert make("peak", size=5) == own.Peak(size=5)
    assert make("bump-2") is own.BUMP
    assert make("simulated").num_params == 3
    assert task_entry("large").large_policies
    assert type(make("maze-a")) is Maze
    assert title_of("peak", None) == "peak"
    with pytest.raises(JedaxError, match=f"task: expected 'no' in {OWN}, got none"):
        make("bad")
    with pytest.raises(JedaxError, match="unknown name 'peek'; did you mean 'peak'"):
        make("peek")


@pytest.mark.parametrize("name", [f"{OWN}:Peak", "peak"])
def test_a_class_with_settings_on_the_command_line(name, tmp_path, registered, capsys, without_figures):
    out = tmp_path / "run"
    options = ["--size", "5", "--height", "2", "--method", "map-elites", "--offspring", "16", "--cells", "16"]
    cli.main(["run", name, *options, "--replicas", "2", "--out", str(out)])
    assert "after 64 evaluations" in capsys.readouterr().out
    settings = yaml.safe_load((out / "config.yaml").read_text())
    assert settings["task"] == name
    assert settings["task_config"] == {"evaluations": 64, "size": 5, "height": 2.0}
    run = jedax.load(out, trust=True)
    assert run.task == own.Peak(size=5, height=2.0)
    same = jedax.run("map-elites", own.Peak(size=5, height=2.0), replicas=2, offspring=16, cells=16)
    np.testing.assert_array_equal(run.repertoire.fitness, same.repertoire.fitness)
    cli.main(["run", "--config", str(out / "config.yaml"), "--size", "4", "--out", str(tmp_path / "other")])
    assert jedax.load(tmp_path / "other", trust=True).task == own.Peak(size=4, height=2.0)


def test_a_run_on_an_object_is_resumed_by_its_name(tmp_path, without_figures):
    class Killed(Exception):
        pass

    def kill(report):
        if report.evaluations >= 32:
            raise Killed

    out, how = tmp_path / "run", {"offspring": 16, "cells": 16}
    with pytest.raises(Killed):
        jedax.run("map-elites", own.BUMP, out=out, report_every=1, checkpoint_seconds=0, callbacks=[kill], **how)
    found = jedax.resume(out)
    assert found.config.task == f"{OWN}:BUMP"
    whole = jedax.run("map-elites", f"{OWN}:BUMP", report_every=1, **how)
    np.testing.assert_array_equal(found.repertoire.fitness, whole.repertoire.fitness)
