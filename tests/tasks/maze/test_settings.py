"""Settings of a maze: what geometry is refused, in which words; maze files."""

import math

import pytest
import yaml

from jedax.errors import JedaxError
from jedax.tasks import Maze
from jedax.tasks.maze.settings import MazeConfig, distance_to_wall, load_maze_file
from jedax.tasks.registry import entries

MAZES = [name for name in entries() if name.startswith("maze-")]


def refused(*words, build=MazeConfig.build, **values):
    """Assert that settings are refused with an error that has the words in that order."""
    with pytest.raises(JedaxError) as caught:
        build(values)
    message, at = str(caught.value), 0
    for word in words:
        assert word in message[at:], f"{word!r} not in {message!r}"
        at = message.index(word, at) + len(word)
    assert message.endswith((".", "?"))


class TestGeometry:
    def test_defaults_are_the_papers(self):
        config = MazeConfig()
        assert config.limits == ((0, 0), (1, 1))
        assert config.start == (0.15, 0.15, math.pi / 2)
        assert (config.robot_radius, config.target_radius) == (0.015, 0.05)
        assert (config.wheel_speed, config.laser_range) == (0.025, 0.2)
        assert config.laser_angles == (-math.pi / 4, 0, math.pi / 4)
        assert (config.steps, config.distance_weight) == (250, 100)
        assert (config.hidden, config.activation, config.laser_out_of_range) == ((8,), "relu", "range")

    def test_all_walls(self):
        inner = (0.0, 0.5, 0.7, 0.5)
        config = MazeConfig(walls=[inner], limits=((-1, 0), (1, 2)))
        sides = [((-1, 0), (1, 0)), ((-1, 0), (-1, 2)), ((-1, 2), (1, 2)), ((1, 0), (1, 2))]
        assert config.all_walls[0] == inner
        assert {frozenset([wall[:2], wall[2:]]) for wall in config.all_walls[1:]} == set(map(frozenset, sides))
        assert len(config.all_walls) == 5
        assert config.replace(border=False).all_walls == (inner,)

    def test_quad_b_is_maze_b_mirrored(self):
        def inner(name):
            return {frozenset([(a, b), (c, d)]) for a, b, c, d in entries()[name].config().walls}

        expected = {
            frozenset((x * sx, y * sy) for x, y in wall) for wall in inner("maze-b") for sx in (1, -1) for sy in (1, -1)
        }
        assert inner("maze-quad-b") == expected

    @pytest.mark.parametrize(
        ("point", "distance"),
        [((0, 1), 1), ((2, -3), 3), ((-3, 4), 5), ((7, 4), 5), ((3, 0), 0), ((4, 0), 0), ((4, 1e-3), 1e-3)],
    )
    def test_distance_to_wall(self, point, distance):
        assert distance_to_wall(point, (0, 0, 4, 0)) == pytest.approx(distance)
        assert distance_to_wall(point[::-1], (0, 4, 0, 0)) == pytest.approx(distance)


class TestRefused:
    """Every message names the argument, what was expected, what came, and what to do."""

    def test_a_wall_without_length(self):
        refused(
            "walls[1]: expected two ends at least 1e-06 apart",
            "got (0.5, 0.5, 0.5, 0.5); remove this wall",
            walls=[(0, 0.4, 1, 0.4), (0.5, 0.5, 0.5, 0.5)],
        )

    @pytest.mark.parametrize("wall", [(0.8, 0.8, 0.8, 0.8 + 1e-9), (0, 0, 1e-30, 0), (9e5, 0.5, 9e5 + 0.01, 0.5)])
    def test_a_wall_without_length_in_32_bits(self, wall):
        refused("walls[0]: expected two ends at least", walls=[wall])

    def test_start_touching_a_wall(self):
        refused(
            "start: expected", "radius 0.015", "got (0.15, 0.15) on the wall", "; move", walls=[(0.1, 0.16, 1, 0.16)]
        )
        refused("start: expected", "got (0.01, 0.5) on the wall (0.0, 0.0, 0.0, 1.0); move", start=(0.01, 0.5, 0))
        assert MazeConfig(start=(0.01, 0.5, 0), border=False).start == (0.01, 0.5, 0)

    def test_exactly_at_the_radius_touches(self):
        refused("start: expected", start=(0.5, 0.25, 0), robot_radius=0.25)
        assert MazeConfig(start=(0.5, 0.2501, 0), robot_radius=0.25).robot_radius == 0.25

    @pytest.mark.parametrize("target", [(1.5, 0.5), (0.5, -0.1)])
    def test_target_outside(self, target):
        within = "target: expected a point within the limits ((0.0, 0.0), (1.0, 1.0)), got"
        refused(within, str(target[0]), "; move it", target=target)

    def test_start_outside(self):
        refused("start: expected a point within the limits", "got (3.0, 0.5); move it inside", start=(3, 0.5, 0))

    @pytest.mark.parametrize("limits", [((1, 1), (0, 0)), ((0, 1), (1, 0)), ((0, 0), (0, 1))])
    def test_limits_swapped(self, limits):
        refused("limits: expected a lower left corner below and left of", "got ((", "; swap or change", limits=limits)

    @pytest.mark.parametrize(
        ("walls", "words"),
        [
            ([(0, 0.5, 1)], ("walls[0]: expected 4 values, got 3; give all of them.",)),
            ([(0, 0.5, 1, 0.5), (0, 0.5, 1, 0.5, 1)], ("walls[1]: expected", "a length of at most 4", "got (0, 0.5")),
            ((0, 0.5, 1, 0.5), ("walls[0]: expected a valid tuple, got 0",)),
            ([(0, 0.5, 1, math.nan)], ("walls[0][3]: expected a finite number, got nan",)),
            ([(0, 0.5, math.inf, 0.5)], ("walls[0][2]: expected a finite number, got inf",)),
            ([(0, "left", 1, 0.5)], ("walls[0][1]: expected a valid number", "got 'left'")),
            (None, ("walls: expected a valid tuple, got None",)),
        ],
    )
    def test_walls_of_another_shape(self, walls, words):
        refused(*words, walls=walls)

    @pytest.mark.parametrize(
        ("values", "words"),
        [
            ({"steps": 0}, ("steps: expected greater than or equal to 1, got 0; change it, or leave it out",)),
            ({"steps": 2.5}, ("steps: expected a valid integer", "got 2.5; change it, or leave it out")),
            ({"activation": "rlu"}, ("activation: expected 'relu'", "got 'rlu'; change it, or leave it out")),
            ({"hidden": (8, 0)}, ("hidden[1]: expected greater than or equal to 1, got 0",)),
            ({"laser_angles": ()}, ("laser_angles: expected", "a length of at least 1", "got ()")),
            ({"laser_out_of_range": "-1"}, ("laser_out_of_range: expected 'range' or 'minus-one', got '-1'",)),
            ({"wheel_noise": -0.1}, ("wheel_noise: expected greater than or equal to 0, got -0.1",)),
            ({"robot_radius": 0}, ("robot_radius: expected greater than 0, got 0",)),
            ({"laser_range": math.inf}, ("laser_range: expected a finite number, got inf",)),
            ({"wheel_speed": math.nan}, ("wheel_speed: expected a finite number, got nan",)),
            ({"target": (1e7, 0)}, ("target[0]: expected less than or equal to 1000000, got 10000000.0",)),
            ({"name": ""}, ("name: expected a length of at least 1, got ''",)),
            ({"start": (0.5, 0.5)}, ("start: expected 3 values, got 2",)),
            ({"wals": []}, ("parameter: unknown name 'wals'; did you mean 'walls'?",)),
            ({"lazer_range": 1}, ("unknown name 'lazer_range'; did you mean 'laser_range'",)),
        ],
    )
    def test_other_values(self, values, words):
        refused(*words, **values)

    def test_the_task_says_the_same(self):
        refused("target: expected a point within the limits", build=lambda values: Maze(**values), target=(2, 2))


class TestFiles:
    @pytest.fixture
    def write(self, tmp_path):
        def write(text, name="mine.yaml"):
            path = tmp_path / name
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            return path

        return write

    @pytest.mark.parametrize("name", MAZES)
    def test_round_trip(self, write, name):
        config = entries()[name].config()
        assert config.name == name
        assert load_maze_file(write(yaml.safe_dump(config.model_dump(mode="json")))) == config

    def test_round_trip_of_every_setting(self, write):
        config = MazeConfig(
            name="Irrgärten", walls=[(-1, 0.1, 1 / 3, 0.1)], limits=((-2, -2), (2, 1e3)), border=False,
            start=(0, 0.5, -3), target=(1, 1), target_radius=0.1, steps=7, distance_weight=0,
            robot_radius=1e-3, wheel_speed=0.5, wheel_noise=1e-7, laser_angles=(0.1,), laser_range=3,
            laser_out_of_range="minus-one", laser_noise=0.2, hidden=(4, 3), activation="gelu", evaluations=99,
        )  # fmt: skip
        assert all(getattr(config, name) != field.get_default() for name, field in MazeConfig.model_fields.items())
        assert load_maze_file(write(yaml.safe_dump(config.model_dump(mode="json"), allow_unicode=True))) == config

    def test_by_hand(self, write):
        config = load_maze_file(write("walls: [[0, .25, 0.75, 1/4]]".replace("1/4", "25e-2") + "\ntarget: [1, 1]\n"))
        assert config == MazeConfig(name="mine", walls=[(0, 0.25, 0.75, 0.25)], target=(1, 1))

    def test_no_inner_walls(self, write):
        assert load_maze_file(str(write("walls: []", "open.yml"))) == MazeConfig(name="open")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (
                "walls: []\nlazer_range: 1",
                ("mine.yaml: parameter: unknown name 'lazer_range'; did you mean 'laser_range'",),
            ),
            ("target: [1, 1]\nsteps: 3", ("mine.yaml: expected the key 'walls', got only ['steps', 'target']; add",)),
            ("walls: []\ntarget: [", ("mine.yaml: expected YAML, got a syntax error in line", "; correct the file.")),
            ("walls: []\nsteps: 0", ("mine.yaml: steps: expected greater", "got 0; change it, or leave it out")),
            (
                "walls: [[0, 0.5, 1, 0.5]]\nstart: [0.5, 0.5, 0]",
                ("mine.yaml: start: expected", "on the wall", "; move"),
            ),
            ("walls: [[0, 0.5, 1]]", ("mine.yaml: walls[0]: expected 4 values, got 3",)),
            ("walls:", ("mine.yaml: walls: expected a valid tuple, got None",)),
            ("- 1\n- 2", ("mine.yaml: expected keys and values such as", "got list; see")),
            ("", ("mine.yaml: expected keys and values", "got NoneType")),
            ("walls", ("mine.yaml: expected keys and values", "got str")),
            ("1: 2\nwalls: []", ("mine.yaml: expected keys and values",)),
            ("walls: !!python/object/apply:os.getcwd []", ("mine.yaml: expected YAML, got a syntax error in line 1",)),
            (b"\xff\xfe\x00walls", ("mine.yaml: expected a readable maze file, got", "; check the path")),
        ],
    )
    def test_refused(self, write, text, words):
        path = write(text)
        refused(*words, build=lambda _: load_maze_file(path))

    def test_no_such_file(self, tmp_path):
        path = tmp_path / "none.yaml"
        refused(f"{path}: expected a readable maze file, got No such file or directory; check the path.",
                build=lambda _: load_maze_file(path))  # fmt: skip
        refused("expected a readable maze file", build=lambda _: load_maze_file(tmp_path))
