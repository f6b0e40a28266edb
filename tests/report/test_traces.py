"""Lines of solutions are what the search saw."""

import numpy as np
import pytest

import jedax
from jedax.report.episodes import lines_of, packed_lines
from jedax.tasks import Maze, PlanarArm, make
from jedax.tasks.maze import drawing as mazes
from jedax.tasks.maze.drawing import ARRIVED, COLLIDED, TIMED_OUT
from jedax.tasks.maze.settings import distance_to_wall


def test_paths_pass_the_descriptors_of_their_cells(maze_run):
    run = jedax.load(maze_run)
    fitness = np.asarray(run.repertoire.fitness[1], float)
    lines, every = lines_of(run.task.drawing, np.asarray(run.repertoire.genotypes[1]), fitness, 5, 10**6)
    assert sorted(lines) == np.flatnonzero(np.isfinite(fitness)).tolist()
    assert every == 1
    for cell, (line, ending, _) in lines.items():
        np.testing.assert_allclose(line[0], [0.15, 0.15])
        # The position before the last counted step; of a robot that stood still, the last one.
        assert np.abs(line[-2:] - run.repertoire.descriptors[1][cell]).max(axis=1).min() < 1e-5
        wall = min(distance_to_wall(tuple(line[-1].tolist()), wall) for wall in run.task.config.all_walls)
        assert (ending == COLLIDED) == (wall <= 0.015 + 1e-5)
        distance = np.linalg.norm(line[-1] - run.task.config.target)
        assert fitness[cell] == pytest.approx(-250 - 100 * distance, abs=1e-3)
    assert COLLIDED in {line.caption for line in lines.values()}


def test_a_robot_that_arrives():
    """Straight on, to a target in front of it: 0.025 a step, 0.26 to its edge."""
    maze = Maze(start=(0.2, 0.5, 0.0), target=(0.51, 0.5), hidden=(1,))
    genotype = np.zeros((3, maze.num_params), np.float32)
    genotype[:, -2:] = 20  # both wheels at full speed, whatever is seen
    genotype[1, -2:] = 0  # stands still
    lines, _ = lines_of(maze.drawing, genotype, np.array([-11.0, -280.0, -np.inf]), 0, 1000)
    assert [line.caption for line in lines.values()] == [ARRIVED, TIMED_OUT]
    assert len(lines[0].points) == 12
    np.testing.assert_allclose(lines[0].points[:, 0], 0.2 + 0.025 * np.arange(12), atol=1e-5)
    np.testing.assert_allclose(lines[1].points, [[0.2, 0.5]] * 2, atol=1e-6)
    packed = packed_lines(lines)
    assert packed["ends"] == [0, 1]
    assert [ending["mark"] for ending in packed["endings"]] == ["star", "dot"]


def test_arms_end_at_their_tips():
    genotypes = np.random.default_rng(0).uniform(-3, 3, (4, 3)).astype(np.float32)
    fitness = np.array([0, -np.inf, -1, -2])
    lines, _ = lines_of(PlanarArm(joints=3).drawing, genotypes, fitness, 0, 1000)
    assert list(lines) == [0, 2, 3]
    for cell, (line, _, _) in lines.items():
        angles = np.cumsum(genotypes[cell].astype(float))
        expected = np.cumsum(np.exp(1j * angles)) / 3
        np.testing.assert_allclose(line[1:], np.stack([expected.real, expected.imag], axis=1), atol=1e-5)


def test_thinned_lines_keep_their_ends(maze_run, monkeypatch):
    run = jedax.load(maze_run)
    genotypes, fitness = np.asarray(run.repertoire.genotypes[0]), np.asarray(run.repertoire.fitness[0], float)
    whole, _ = lines_of(run.task.drawing, genotypes, fitness, 4, 10**6)
    monkeypatch.setattr(mazes, "_BATCH", 16)
    total = sum(len(line.points) for line in whole.values())
    thin, every = lines_of(run.task.drawing, genotypes, fitness, 4, total // 2)
    assert every in (2, 3)
    for cell, line in thin.items():
        np.testing.assert_array_equal(line.points[[0, -1]], whole[cell].points[[0, -1]])
    best = next(iter(thin))
    assert best == np.argmax(fitness)
    np.testing.assert_array_equal(thin[best].points, whole[best].points)
    few, _ = lines_of(run.task.drawing, genotypes, fitness, 4, 40)
    assert 1 <= len(few) < len(whole)
    assert sum(len(line.points) for line in few.values()) <= max(40, len(whole[best].points))
    assert fitness[list(few)].min() >= np.sort(fitness[np.isfinite(fitness)])[-len(few)]


def test_tasks_without_lines_and_cells_without_solutions():
    assert lines_of(make("sphere").drawing, np.zeros((2, 20)), np.zeros(2), 0, 9) == ({}, 1)
    assert lines_of(make("arm").drawing, np.zeros((2, 10)), np.full(2, -np.inf), 0, 9) == ({}, 1)
