"""Methods and tasks from outside the package in a bench: as objects, and by `module:Class`."""

import sys

import jax.numpy as jnp
import numpy as np
from tests.commands import call

import jedax
from jedax.bench.bench import bench
from jedax.bench.comparison import compare
from jedax.bench.grids import Entry, Grid
from jedax.methods.map_elites import MapElites, MapElitesConfig
from jedax.tasks import TaskConfig
from jedax.tasks.base import ConfiguredTask, Task
from jedax.types import Evaluation

SMALL = {"cells": 16, "offspring": 8}


def test_objects(tmp_path):
    class Valley(Task):
        """A task that only this test can make."""

        name, num_params, descriptor_bounds, default_evaluations = "valley", 2, ((-1.0, -1.0), (1.0, 1.0)), 40

        def init(self, key):
            return jnp.zeros(2)

        def evaluate(self, key, genotype):
            return Evaluation(-jnp.square(genotype).sum(), jnp.clip(genotype, -1, 1))

    class MineConfig(MapElitesConfig):
        """Settings with a pair, which files keep as a list."""

        pair: tuple[float, float] = (0.05, 20.0)

    class Mine(MapElites):
        """A method that only this test can make."""

        Config = MineConfig

    entries = (Entry("settings", MapElitesConfig(**SMALL)), Entry("class", Mine, None, SMALL))
    grid = Grid("", (Valley(), jedax.tasks.make("arm", joints=4)), entries, seeds=2)
    outcome = bench(grid, tmp_path, only=["valley/settings", "valley/class"])
    assert (outcome.done, outcome.failed) == (2, ())
    assert bench(grid, tmp_path, only=["valley/class"]).before == 2
    outcome = bench(jedax.bench.grids.Grid("", grid.tasks[1:], entries[:1], 1, 40), tmp_path)
    assert (outcome.done, outcome.failed) == (1, ())
    arm, valley = compare(tmp_path).tables
    assert (arm.task, valley.task, valley.budget) == ("arm", "valley", 40)
    assert {entry.label: entry.method.partition(":")[0] for entry in valley.entries} == {
        "settings": "map-elites", "class": "custom",
    }  # fmt: skip
    finals = [entry.final for entry in valley.entries]
    np.testing.assert_array_equal(*finals)
    assert jedax.load(tmp_path / "arm/settings/seeds-0-0").config.task_config.joints == 4


def test_a_task_with_settings_that_nobody_can_name(tmp_path):
    class Valley(ConfiguredTask):
        """A task that only this test can make."""

        Config = TaskConfig
        name, num_params, descriptor_bounds = "valley", 2, ((-1.0, -1.0), (1.0, 1.0))

        def init(self, key):
            return jnp.zeros(2)

        def evaluate(self, key, genotype):
            return Evaluation(-jnp.square(genotype).sum(), jnp.clip(genotype, -1, 1))

    grid = Grid("", (Valley(),), (Entry("settings", MapElitesConfig(**SMALL)),), 1, 40)
    assert bench(grid, tmp_path).done == 1
    assert bench(grid, tmp_path).before == 1


def test_a_class_by_name(here, capsys, monkeypatch):
    (here / "mine.py").write_text(
        "from jedax.methods.map_elites import MapElites\n\n\nclass Mine(MapElites):\n    pass\n"
    )
    monkeypatch.setattr(sys, "path", [str(here), *sys.path])
    arguments = ["bench", "arm", "--methods", "mine:Mine,offspring=8,cells=16", "map-elites,offspring=8,cells=16",
                 "--seeds", "2", "--evaluations", "80", "--out", "b"]  # fmt: skip
    code, out, err = call(capsys, *arguments)
    assert (code, out.split(",")[0]) == (0, "2 runs done"), err
    first, second = compare(here / "b", reference="map-elites offspring=8 cells=16").tables[0].entries
    assert (second.label, second.method) == ("mine:Mine offspring=8 cells=16", "mine:Mine")
    assert second.final == first.final
    assert (second.p, second.effect) == (1, 0.5)
