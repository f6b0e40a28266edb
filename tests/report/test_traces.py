"""What solutions do is what the search saw."""

import numpy as np
import pytest

import jedax
from jedax.report import traces as module
from jedax.report.traces import ARRIVED, COLLIDED, TIMED_OUT, can_trace, traces
from jedax.tasks import Maze, PlanarArm, make
from jedax.tasks.maze.settings import distance_to_wall


def test_paths_pass_the_descriptors_of_their_cells(maze_run):
    run = jedax.load(maze_run)
    fitness = np.asarray(run.repertoire.fitness[1], float)
    drawn = traces(run.task, np.asarray(run.repertoire.genotypes[1]), fitness, 5, 10**6)
    np.testing.assert_array_equal(drawn.cells, np.flatnonzero(np.isfinite(fitness)))
    assert drawn.every == 1
    for cell, line, end in zip(drawn.cells, drawn.lines, drawn.ends, strict=True):
        np.testing.assert_allclose(line[0], [0.15, 0.15])
        # The position before the last counted step; of a robot that stood still, the last one.
        assert np.abs(line[-2:] - run.repertoire.descriptors[1][cell]).max(axis=1).min() < 1e-5
        wall = min(distance_to_wall(tuple(line[-1].tolist()), wall) for wall in run.task.config.all_walls)
        assert (end == COLLIDED) == (wall <= 0.015 + 1e-5)
        distance = np.linalg.norm(line[-1] - run.task.config.target)
        assert fitness[cell] == pytest.approx(-250 - 100 * distance, abs=1e-3)
    assert COLLIDED in drawn.ends


def test_a_robot_that_arrives():
    """Straight on, to a target in front of it: 0.025 a step, 0.26 to its edge."""
    maze = Maze(start=(0.2, 0.5, 0.0), target=(0.51, 0.5), hidden=(1,))
    genotype = np.zeros((3, maze.num_params), np.float32)
    genotype[:, -2:] = 20  # both wheels at full speed, whatever is seen
    genotype[1, -2:] = 0  # stands still
    drawn = traces(maze, genotype, np.array([-11.0, -280.0, -np.inf]), 0, 1000)
    assert drawn.ends == (ARRIVED, TIMED_OUT)
    assert len(drawn.lines[0]) == 12
    np.testing.assert_allclose(drawn.lines[0][:, 0], 0.2 + 0.025 * np.arange(12), atol=1e-5)
    np.testing.assert_allclose(drawn.lines[1], [[0.2, 0.5]] * 2, atol=1e-6)


def test_arms_end_at_their_tips():
    genotypes = np.random.default_rng(0).uniform(-3, 3, (4, 3)).astype(np.float32)
    fitness = np.array([0, -np.inf, -1, -2])
    drawn = traces(PlanarArm(joints=3), genotypes, fitness, 0, 1000)
    assert drawn.cells.tolist() == [0, 2, 3]
    for cell, line in zip(drawn.cells, drawn.lines, strict=True):
        angles = np.cumsum(genotypes[cell].astype(float))
        expected = np.cumsum(np.exp(1j * angles)) / 3
        np.testing.assert_allclose(line[1:], np.stack([expected.real, expected.imag], axis=1), atol=1e-5)


def test_thinned_lines_keep_their_ends(maze_run, monkeypatch):
    run = jedax.load(maze_run)
    genotypes, fitness = np.asarray(run.repertoire.genotypes[0]), np.asarray(run.repertoire.fitness[0], float)
    whole = traces(run.task, genotypes, fitness, 4, 10**6)
    monkeypatch.setattr(module, "_BATCH", 16)
    total = sum(map(len, whole.lines))
    thin = traces(run.task, genotypes, fitness, 4, total // 2)
    assert thin.every in (2, 3)
    for full, line in zip(whole.lines, thin.lines, strict=False):
        np.testing.assert_array_equal(line[[0, -1]], full[[0, -1]])
    best = int(np.flatnonzero(whole.cells == np.argmax(fitness))[0])
    np.testing.assert_array_equal(thin.lines[best], whole.lines[best])
    few = traces(run.task, genotypes, fitness, 4, 40)
    assert 1 <= len(few.lines) < len(whole.lines)
    assert sum(map(len, few.lines)) <= max(40, len(whole.lines[best]))
    assert fitness[few.cells].min() >= np.sort(fitness[np.isfinite(fitness)])[-len(few.cells)]


def test_who_can_be_drawn():
    assert can_trace(make("maze-b"))
    assert not can_trace(make("sphere"))
    assert not can_trace(None)
