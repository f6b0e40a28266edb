"""Settings of the methods: the paper's values, and what is refused."""

import pytest

from jedax.errors import JedaxError
from jedax.methods.jedi import JediConfig
from jedax.methods.registry import CONTROL_TASKS, METHODS, default_method, method_defaults, preset_budget
from jedax.tasks.registry import TASKS


class TestJediConfig:
    def test_defaults_are_the_papers(self):
        config = JediConfig()
        assert (config.population, config.pool, config.batch) == (16, 4, 64)
        assert (config.es, config.step_size, config.elite_ratio) == ("sep-cma-es", 0.05, 0.5)
        assert (config.alpha, config.alpha_start, config.alpha_end) == ("decay", 0.8, 0)
        assert (config.cells, config.gp) == (1024, "weighted")

    def test_batch(self):
        assert JediConfig(population=5, pool=7).batch == 35

    @pytest.mark.parametrize("alpha", ["decay", 0, 0.3, 1])
    def test_alpha(self, alpha):
        assert JediConfig.build({"alpha": alpha}).alpha == alpha

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"alpha": 1.1}, r"^alpha: expected 'decay' or less than or equal to 1, got 1\.1; leave it out"),
            ({"alpha": "deacy"}, r"^alpha: expected 'decay' or .*, got 'deacy'"),
            ({"population": 1}, r"^population: expected greater than or equal to 2, got 1"),
            ({"elite_ratio": 0}, r"^elite_ratio: expected greater than 0, got 0"),
            ({"step_size": 0}, r"^step_size: expected greater than 0"),
            (
                {"targets": "paerto"},
                r"^targets: expected 'pareto', 'uniform', 'gp-ucb' or 'gp-bucb', got 'paerto'",
            ),
            ({"es": "sep-cmaes"}, r"^es: unknown name 'sep-cmaes'; did you mean 'sep-cma-es'"),
            (
                {"gp_noise_bounds": (2, 1)},
                r"^gp_noise_bounds: expected a low bound under a high one, got \(2\.0, 1\.0\); swap",
            ),
            ({"gp_signal_bounds": (3, 2)}, r"^gp_signal_bounds: .*; swap"),
            (
                {"gp_length_scale_bounds": (0, 2)},
                r"^gp_length_scale_bounds\[0\]: expected greater than 0, got 0",
            ),
            (
                {"pool": 9, "cells": 8},
                r"^pool: expected at most one ES per cell \(8\), got 9; lower it or raise cells",
            ),
            ({"cell_layout": "hex"}, r"^cell_layout: expected 'auto', 'cvt' or 'grid', got 'hex'"),
            ({"poll": 4}, r"^parameter: unknown name 'poll'; did you mean 'pool'"),
        ],
    )
    def test_refused(self, values, message):
        with pytest.raises(JedaxError, match=message):
            JediConfig.build(values)


class TestDefaultMethod:
    def test_is_jedi_x(self):
        assert default_method() == default_method(["population", "patience", "nonsense"], "cpu") == "jedi-x"

    @pytest.mark.parametrize("parameter", ["alpha", "generations", "targets", "gp_refit"])
    def test_parameters_that_jedi_alone_has_mean_jedi(self, parameter):
        assert default_method(["population", parameter]) == "jedi"

    @pytest.mark.parametrize("preset", ["tuned", "decay"])
    def test_presets_that_jedi_alone_has_mean_jedi(self, preset):
        assert default_method(preset=preset) == "jedi"


class TestDefaultsOfMethods:
    def test_jedi(self):
        assert method_defaults("jedi", "maze-a") == JediConfig()
        assert method_defaults("jedi", "anything at all").targets == "uniform"

    def test_to_the_letter_of_the_paper(self):
        config = method_defaults("jedi-paper", "maze-a")
        assert config == JediConfig(targets="pareto")
        assert (config.alpha, config.gp) == ("decay", "weighted")

    @pytest.mark.parametrize("method", ["jedi", "jedi-paper"])
    @pytest.mark.parametrize(
        ("task", "alpha"), [("maze-a", 0.3), ("maze-b", 0.3), ("maze-c", 0.5), ("maze-quad-b", 0.7)]
    )
    def test_tuned(self, method, task, alpha):
        config = method_defaults(method, task, "tuned")
        assert config == method_defaults(method, task).replace(alpha=alpha)
        assert config.alpha == alpha

    @pytest.mark.parametrize("task", ["sphere", "arm", "", "mine.yaml"])
    def test_tuned_for_another_task(self, task):
        message = rf"^preset: expected a task .*maze-a, maze-b, maze-c, maze-quad-b.*got 'tuned' for '{task}'; take"
        with pytest.raises(JedaxError, match=message):
            method_defaults("jedi", task, "tuned")

    def test_unknown_method_or_preset(self):
        with pytest.raises(JedaxError, match=r"^method: unknown name 'jeddi'; did you mean 'jedi'"):
            method_defaults("jeddi", "maze-a")
        with pytest.raises(JedaxError, match=r"^preset: unknown name 'tund'; did you mean 'tuned'\?$"):
            method_defaults("jedi", "maze-a", "tund")

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("task", TASKS)
    def test_every_method_has_defaults_for_every_task(self, method, task):
        assert type(method_defaults(method, task)) is type(METHODS[method].config)
        assert METHODS[method].summary.endswith(".")

    @pytest.mark.parametrize("method", METHODS)
    def test_preset_for_a_cpu(self, method):
        config = method_defaults(method, "walker2d", "cpu")
        assert config.batch == 64
        assert preset_budget(method, "walker2d", "cpu") == 8192
        assert preset_budget(method, "walker2d", None) is None
        assert preset_budget("jedi", "walker2d", "decay") is None
        with pytest.raises(JedaxError, match=r"^preset: expected a task that it is for \(half.*'cpu' for 'maze-a'"):
            method_defaults(method, "maze-a", "cpu")

    @pytest.mark.parametrize("method", ["jedi", "jedi-paper"])
    @pytest.mark.parametrize("task", CONTROL_TASKS)
    def test_ten_loops_fit_a_cpu(self, method, task):
        config = method_defaults(method, task, "cpu")
        assert config.es == "lm-ma-es"
        assert (preset_budget(method, task, "cpu") - config.batch) // config.batch >= 10 * config.generations

    @pytest.mark.parametrize(
        ("task", "alpha", "generations"), [("halfcheetah", 0.5, 100), ("walker2d", 0.3, 1000), ("ant-maze", 0.0, 1000)]
    )
    def test_control_tasks_are_the_papers(self, task, alpha, generations):
        config = method_defaults("jedi-paper", task, "tuned")
        assert (config.alpha, config.generations) == (alpha, generations)
        assert (config.population, config.pool, config.es) == (256, 4, "lm-ma-es")
        assert (config.step_size, config.elite_ratio, config.cells) == (0.05, 0.5, 1024)
        assert TASKS[task].config().hidden == (256, 256)

    def test_presets(self):
        assert list(METHODS["jedi"].presets) == ["decay", "tuned", "cpu"]
        assert method_defaults("jedi", "maze-c", "decay") == method_defaults("jedi", "maze-c")
