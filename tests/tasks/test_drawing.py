"""Tasks of the user's own are drawn, replayed and described as ours are."""

import json
from dataclasses import dataclass

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest

import jedax
from jedax.report import plots
from jedax.report.replay import replay
from jedax.report.run_data import head_of, how_to_read, run_data
from jedax.tasks.drawing import (
    FEET,
    Episodes,
    Recording,
    Scene,
    TaskDrawing,
    Trace,
    draw_or_explain,
    draw_parameters,
    frame,
)
from jedax.tasks.motion import acting


class KiteDrawing(TaskDrawing):
    solution = "kite"
    wanted = "a kite that flies high"
    map_text = "Each cell is a place in the sky."

    def outcome(self, fitness, *, reached):
        return f"flies {'high' if reached else 'low'}"

    def draw_space(self, ax):
        ax.axhline(0.5, label="horizon")

    def draw_solution(self, ax, genotype, seed):
        ax.plot(*genotype, "d", label=f"kite of seed {seed}")
        return True

    def scene(self):
        return Scene(limits=np.array([(0, 0), (2, 2)]), walls=np.array([(0, 0.5, 2, 0.5)]), note="Windy.")

    def traces(self, genotypes, seed):
        return [Trace(np.stack([np.zeros(2), genotype]), "A string", "cross") for genotype in genotypes]

    def episodes(self):
        def act(genotypes):
            rewards = jax.numpy.repeat(genotypes[:, :1], 3, axis=1)
            return rewards, jax.numpy.full(len(genotypes), 2), rewards[..., None] > 0

        return Episodes(FEET, 4, acting(act, 4), ("tail",))


@dataclass(frozen=True)
class Kite(jedax.tasks.Task):
    drawing_class = KiteDrawing
    name = "kite"
    num_params = 2
    descriptor_bounds = ((0.0, 0.0), (1.0, 1.0))
    goal_fitness = 5.0

    def init(self, key):
        return jax.random.uniform(key, (2,))

    def evaluate(self, key, genotype):
        return jedax.Evaluation(fitness=2 * genotype[0], descriptor=genotype)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("kite") / "run"
    return jedax.run("map-elites", Kite(), evaluations=64, offspring=16, cells=16, seed=3, out=out)


def labels(ax):
    return {line.get_label() for line in ax.lines}


def test_figures(run):
    figure, (left, right) = plt.subplots(1, 2)
    plots.best(left, run)
    plots.layer(right, run)
    assert "kite of seed 3" in labels(left)
    assert "horizon" in labels(right)
    plt.close(figure)


def test_replay(run, tmp_path):
    assert [path.name for path in replay(run, out=tmp_path).files] == ["best.png"]


def test_a_page(run):
    found = jedax.load(run.path, Kite())
    data = run_data(found, trace_seconds=60)
    assert json.loads(json.dumps(data["scene"]))["walls"] == [[0, 0.5, 2, 0.5]]
    assert (data["scene"]["note"], data["scene"]["start"]) == ("Windy.", None)
    (replica,) = data["replicas"]
    filled = np.flatnonzero(np.isfinite(run.repertoire.fitness[0])).tolist()
    assert sorted(replica["traces"]["cells"]) == filled
    assert replica["traces"]["endings"] == [{"caption": "A string", "mark": "cross"}]
    assert sorted(replica["episodes"]["cells"]) == filled
    assert set(replica["episodes"]["lengths"]) == {2}
    assert replica["episodes"]["departs"] == []
    assert data["episodes"]["feet"] == ("tail",)
    assert data["replay"] == f"jedax replay {run.path}"
    lead = head_of(found)["lead"]
    assert lead.startswith("Wanted: a kite that flies high. After 64 evaluations (solutions that were tried), the ")
    assert "the best kite flies low." in lead
    assert how_to_read(found).startswith("Each cell is a place in the sky.")


def test_a_task_that_says_nothing():
    class Plain(Kite):
        drawing_class = "jedax.tasks.drawing:TaskDrawing"

    drawing = Plain().drawing
    assert (type(drawing), drawing.can_replay) == (TaskDrawing, False)
    assert drawing.replay(np.zeros(2), 0.0, 0) is None
    assert drawing.scene() is drawing.traces(np.zeros((1, 2)), 0) is drawing.episodes() is None


def test_a_replay_of_its_own():
    class Own(TaskDrawing):
        def replay(self, genotype, fitness, seed):
            return Recording(plt.figure(), fitness)

    assert Own(Kite()).can_replay


def test_an_error_is_shown_with_its_place():
    figure, ax = plt.subplots()
    assert draw_or_explain(ax, lambda ax: 1 / 0) is True
    assert ax.texts[0].get_text().startswith("drawing raised\nZeroDivisionError: division by zero\n(test_drawing.py, ")
    plt.close(figure)


SPRING = jedax.Space(
    {
        "wire": (0.0, 2.0),
        "rate": jedax.Real(1e-4, 1.0, log=True),
        "free": jedax.Real(),
        "turns": jedax.Integer(2, 12),
        "metal": ["steel", None, True],
    }
)


def test_parameters_are_drawn_by_name_between_their_bounds_in_the_units_of_the_user():
    values = {"wire": 0.5, "rate": 1e-2, "free": 3.25, "turns": 7, "metal": None}
    _, ax = plt.subplots()
    draw_parameters(ax, SPRING, SPRING.genotypes(values))
    texts = [text.get_text() for text in ax.texts]
    assert [label.get_text() for label in ax.get_yticklabels()] == list(values)
    assert {"0.5", "0.01", "3.25", "7", "None", "0.0001", "12", "of steel, None, True"} <= set(texts)
    places = {float(line.get_ydata()[0]): float(line.get_xdata()[0]) for line in ax.lines}
    assert places == pytest.approx({0: 0.25, 1: 0.5, 3: 0.5})
    plt.close()


def test_of_many_parameters_the_first_are_drawn():
    _, ax = plt.subplots()
    draw_parameters(ax, jedax.Space({f"p{n}": (0, 1) for n in range(100)}), np.full(100, 0.5))
    assert len(ax.get_yticklabels()) == 20
    assert "and 80 more" in [text.get_text() for text in ax.texts]
    plt.close()


def test_a_function_with_a_space_is_replayed_as_its_parameters():
    class Spring(jedax.tasks.Task):
        name = "spring"
        num_params, space, descriptor_bounds = SPRING.num_params, SPRING, ((0.0,), (1.0,))

        def init(self, key):
            return SPRING.draw(key)

        def evaluate(self, key, genotype):
            return jedax.Evaluation(fitness=genotype[0], descriptor=genotype[:1])

    drawing = Spring().drawing
    recording = drawing.replay(SPRING.draw(jax.random.key(0)), 0.5, seed=0)
    labels = [label.get_text() for label in recording.figure.axes[0].get_yticklabels()]
    assert drawing.can_replay
    assert labels == list(SPRING.names)
    plt.close("all")


def test_axes_of_a_space():
    figure, (one, two) = plt.subplots(1, 2, figsize=(13, 5))
    frame(one, ((-1.0,), (1.0,)), ("$x$ of $y$",))
    assert one.get_xlabel() == r"\$x\$ of \$y\$"  # dollars are no math
    np.testing.assert_array_equal(one.get_xticks(), [-1, -0.5, 0, 0.5, 1])  # more would touch each other
    frame(two, ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)), ("price ($)", "rent ($)", "z"))
    assert (two.get_xlabel(), two.get_ylabel()) == (r"price (\$)", r"rent (\$) (first two of 3 descriptors)")
    plt.close(figure)
