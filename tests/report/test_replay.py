"""Replays: which solution is shown, and what the files hold."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

import jedax
from jedax import cli
from jedax.errors import JedaxError
from jedax.repertoire.cells import make_cells
from jedax.report import plots
from jedax.report.replay import in_cell, replay
from jedax.tasks import Maze
from jedax.tasks.motion import every


@pytest.fixture(scope="module")
def run(tmp_path_factory, without_figures):
    config = jedax.JediConfig(population=4, pool=2, generations=5, cells=64, gp_max_steps=5)
    maze = Maze(walls=[(0, 0.5, 0.7, 0.5)], steps=60)
    out = tmp_path_factory.mktemp("replay") / "run"
    return jedax.run(config, maze, evaluations=8 * 20, seed=4, replicas=2, out=out, gp_max_steps=3)


@pytest.fixture(scope="module")
def shown(run):
    return replay(run.path)


class TestMaze:
    def test_files(self, run, shown):
        assert [path.name for path in shown.files] == ["best.png", "best.gif", "best.npz"]
        assert {path.parent for path in shown.files} == {run.path / "replay"}
        assert shown.remarks == ()

    def test_numbers_are_the_path(self, run, shown):
        numbers = np.load(shown.files[2])
        positions, actions = numbers["positions"], numbers["actions"]
        np.testing.assert_allclose(positions[0], [0.15, 0.15])
        assert len(positions) == len(actions) + 1 <= 61
        assert np.linalg.norm(np.diff(positions, axis=0), axis=1).max() <= 0.025 + 1e-6
        missed = -60 - 100 * np.linalg.norm(positions[-1] - [0.9, 0.9])
        assert shown.fitness == run.best().fitness == pytest.approx(missed, abs=1e-3)
        np.testing.assert_allclose(positions[-2], run.best().descriptor, atol=1e-6)

    def test_pictures(self, shown):
        picture, film = (Image.open(path) for path in shown.files[:2])
        assert picture.width > 400
        assert film.n_frames == len(np.load(shown.files[2])["positions"])
        first = np.asarray(film.convert("RGB")).astype(int)
        film.seek(film.n_frames - 1)
        last = np.asarray(film.convert("RGB")).astype(int)
        assert (np.abs(first - last).sum(axis=-1) > 60).sum() > 50  # the robot has moved


class TestChoice:
    def test_a_seed(self, run):
        found = replay(run, seed=5)
        assert found.solution.fitness == run.best(1).fitness
        assert found.files[0].name == "best-seed5.png"

    def test_a_cell(self, run, tmp_path):
        stored = run.repertoire
        index = int(np.flatnonzero(np.isfinite(stored.fitness[0]))[-1])
        descriptor = tuple(float(number) for number in stored.descriptors[0, index])
        found = in_cell(run, 0, descriptor)
        np.testing.assert_array_equal(found.genotype, stored.genotypes[0, index])
        assert found.fitness == stored.fitness[0, index]
        shown = replay(run, seed=4, cell=descriptor, out=tmp_path)
        assert shown.solution.fitness == shown.fitness == found.fitness
        assert len(list(tmp_path.iterdir())) == 3

    def test_what_is_not_there(self, run):
        centroids = run.cells.centroids
        empty = tuple(float(number) for number in centroids[np.argmax(~np.isfinite(run.repertoire.fitness[0]))])
        with pytest.raises(
            JedaxError, match=r"^cell: expected a cell that holds a solution, got an empty one at .*; the"
        ):
            in_cell(run, 0, empty)
        with pytest.raises(JedaxError, match=r"^cell: expected 2 numbers, a descriptor of my-maze, got 0\.5; give"):
            replay(run, cell=(0.5,))
        with pytest.raises(JedaxError, match=r"^seed: expected one of this run's, 4 to 5, got 6; change it"):
            replay(run, seed=6)

    def test_the_nearest_is_the_nearest_in_the_unit_box(self):
        cells = make_cells(((0, 0), (1, 100)), 64)
        descriptors, fitness = np.zeros((1, 64, 2)), np.full((1, 64), -np.inf)
        for place in ((0.5, 40.0), (1.0, 1.0)):
            cell = int(cells.assign(np.array([place], np.float32))[0])
            descriptors[0, cell], fitness[0, cell] = place, 0.0
        stored = SimpleNamespace(fitness=fitness, descriptors=descriptors)
        run = SimpleNamespace(task=SimpleNamespace(num_descriptors=2), cells=cells, repertoire=stored)
        with pytest.raises(JedaxError, match=r"the nearest solution is at 0\.5 40"):
            in_cell(run, 0, (0.5, 0.0))

    def test_tasks_that_are_a_picture_or_nothing(self, tmp_path):
        arm, sphere = (
            jedax.run("jedi", name, evaluations=16, population=4, pool=2, generations=1, cells=16)
            for name in ("arm", "sphere")
        )
        with pytest.raises(JedaxError, match=r"^out: expected a folder, got none for a run without a directory"):
            replay(arm)
        assert [path.name for path in replay(arm, out=tmp_path).files] == ["best.png"]
        with pytest.raises(JedaxError, match=r"^replay: expected a task that draws its solutions, .*, got sphere; "):
            replay(sphere, out=tmp_path)


DRAWN = """
import jax
import jedax


class Drawn(jedax.tasks.Task):
    name, num_params, descriptor_bounds = "drawn", 2, ((-1.0, -1.0), (1.0, 1.0))

    def init(self, key):
        return jax.random.uniform(key, (2,))

    def evaluate(self, key, genotype):
        return jedax.Evaluation(fitness=-genotype @ genotype, descriptor=genotype)

    def draw(self, ax, genotype):
        ax.plot([0, float(genotype[0])], [0, float(genotype[1])], label="mine")
"""


class TestTasksThatDraw:
    @pytest.fixture
    def drawn(self, here):
        (here / "drawn_task.py").write_text(DRAWN)
        cli.main(["run", "drawn_task:Drawn", "--method", "map-elites", "--evaluations", "64", "--cells", "16",
                  "--out", "r"])  # fmt: skip
        return jedax.load("r", trust=True)

    def test_best_and_replay(self, drawn, tmp_path):
        figure, ax = plt.subplots()
        plots.best(ax, drawn)
        assert [line.get_label() for line in ax.lines] == ["mine"]
        np.testing.assert_allclose(ax.lines[0].get_xdata(), [0, drawn.best().genotype[0]], atol=1e-6)
        plt.close(figure)
        found = replay("r")
        assert [path.name for path in found.files] == ["best.png"]
        assert (tmp_path / "r" / "replay" / "best.png").stat().st_size > 5_000

    def test_an_error_is_shown_and_costs_nothing(self, drawn, monkeypatch):
        def fail(self, ax, genotype):
            raise ZeroDivisionError("no picture")

        monkeypatch.setattr(type(drawn.task), "draw", fail)
        figure, ax = plt.subplots()
        plots.best(ax, drawn)
        assert "drawing raised\nZeroDivisionError: no picture\n(test_replay.py, line " in ax.texts[0].get_text()
        plt.close(figure)


def test_command(run, tmp_path, capsys):
    cli.main(["replay", "--out", str(tmp_path), str(run.path)])  # the directory can follow options
    out = capsys.readouterr().out
    assert f"fitness {run.best().fitness:.5g}, recorded descriptor" in out
    assert str(tmp_path / "best.gif") in out
    for arguments, message in [
        ([], "jedax replay: expected one directory, got none"),
        ([str(run.path), "--cell", "0.5"], "cell: expected 2 numbers"),
        ([str(run.path), "--seed", "6"], "seed: expected one of this run's"),
        (["nowhere"], "run directory: expected a directory with a config.yaml"),
    ]:
        with pytest.raises(SystemExit, match="2"):
            cli.main(["replay", *arguments])
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(("length", "most", "frames"), [(1, 5, [0]), (4, 9, [0, 1, 2, 3]), (9, 3, [0, 4, 8])])
def test_every(length, most, frames):
    assert every(length, most).tolist() == frames
