"""Tasks by name."""

import jax
import pytest

import jedax.tasks
from jedax.errors import JedaxError
from jedax.methods.registry import CONTROL_TASKS
from jedax.tasks import AntMaze, Locomotion, Maze, PlanarArm, Rastrigin, Sphere, Task, make, names
from jedax.tasks.functions.settings import FunctionConfig
from jedax.tasks.maze.settings import MazeConfig
from jedax.tasks.registry import TASKS, is_maze_file, task_entry


def test_names():
    assert names() == [
        "ant", "ant-maze", "arm", "halfcheetah", "hopper", "humanoid", "maze-a", "maze-b", "maze-c", "maze-quad-b",
        "rastrigin", "sphere", "walker2d",
    ]  # fmt: skip
    assert set(names()) == set(TASKS)


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
    assert task.config == TASKS[name].config()
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
    assert TASKS[name].summary.endswith(".")


def test_parameters_and_configs():
    assert make("maze-a", hidden=(16,)).num_params == 130
    assert make("maze-a", hidden=(16,)).config.walls == TASKS["maze-a"].config().walls
    assert make("sphere", FunctionConfig(dimensions=7)).num_params == 7
    assert make("sphere", FunctionConfig(dimensions=7), dimensions=8).num_params == 8


def test_a_maze_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("walls: [[0, 0.5, 0.7, 0.5]]")
    task = make(str(path), steps=9)
    assert task == Maze(name="mine", walls=[(0, 0.5, 0.7, 0.5)], steps=9)
    assert task_entry(str(path)).config() == MazeConfig(name="mine", walls=[(0, 0.5, 0.7, 0.5)])


@pytest.mark.parametrize(("name", "answer"), [("m.yaml", True), ("a/b.yml", True), ("maze-a", False), ("yaml", False)])
def test_is_maze_file(name, answer):
    assert is_maze_file(name) == answer


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("maze_a", r"^task: unknown name 'maze_a'; did you mean 'maze-a'"),
        ("shpere", r"^task: unknown name 'shpere'; did you mean 'sphere'"),
        ("zzz", r"^task: unknown name 'zzz'; choose one of ant, ant-maze, arm, .*walker2d\.$"),
        (
            "nofile.yaml",
            r"^nofile\.yaml: expected a readable maze file, got No such file or directory; check",
        ),
    ],
)
def test_unknown_names(name, message):
    with pytest.raises(JedaxError, match=message):
        make(name)


def test_parameters_that_do_not_fit():
    with pytest.raises(JedaxError, match=r"unknown name 'hiden'; did you mean 'hidden'\?$"):
        make("maze-a", hiden=(8,))
    with pytest.raises(JedaxError, match=r"^config of Sphere: expected a FunctionConfig, got MazeConfig"):
        make("sphere", MazeConfig())


def test_the_name_is_a_parameter_too():
    assert make("maze-a", name="mine").name == "mine"


def test_names_of_the_package():
    for name in jedax.tasks.__all__:
        assert getattr(jedax.tasks, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Labyrinth'"):
        _ = jedax.tasks.Labyrinth
