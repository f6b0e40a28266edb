"""Settings of the methods: the paper's values, and what is refused."""

import jax
import pytest

from jedax.errors import JedaxError
from jedax.methods.base import spread_of
from jedax.methods.cma_me import CMAMEConfig
from jedax.methods.es import ESConfig
from jedax.methods.jedi import JEDi, JediConfig
from jedax.methods.map_elites import MapElitesConfig
from jedax.methods.pga_me import PGAMEConfig
from jedax.methods.registry import (
    ALIASES,
    DEFAULT_METHOD,
    check_settings,
    method_defaults,
    method_named,
    methods,
)
from jedax.store.config import defaults_for
from jedax.tasks import Maze, make
from jedax.tasks.registry import entries


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
            (
                {"alpha": 1.1},
                r"^alpha: expected 'decay' or less than or equal to 1, got 1\.1; change it, or leave it out",
            ),
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
                r"^gp_noise_bounds: expected a low bound below a high one, got \(2\.0, 1\.0\); swap",
            ),
            ({"gp_signal_bounds": (3, 2)}, r"^gp_signal_bounds: .*; swap"),
            (
                {"gp_length_scale_bounds": (0, 2)},
                r"^gp_length_scale_bounds\[0\]: expected greater than 0, got 0",
            ),
            (
                {"pool": 9, "cells": 8},
                r"^pool: expected at most one ES per cell \(8\), got 9; lower it, raise cells, or give descriptors",
            ),
            ({"cell_layout": "hex"}, r"^cell_layout: expected 'auto', 'cvt' or 'grid', got 'hex'"),
            ({"poll": 4}, r"^parameter: unknown name 'poll'; did you mean 'pool'"),
        ],
    )
    def test_refused(self, values, message):
        with pytest.raises(JedaxError, match=message):
            JediConfig.build(values)


CONTROL_TASKS = ("halfcheetah", "walker2d", "ant-maze")
SMALL_BUDGETS = {
    "halfcheetah": 4096, "walker2d": 8192, "ant-maze": 8192, "hopper": 8192, "ant": 4096, "humanoid": 4096,
}  # fmt: skip


class TestRegistry:
    def test_names(self):
        """The default comes first, then the methods that comparisons test others against."""
        assert list(methods())[:3] == [DEFAULT_METHOD, "jedi", "jedi-uniform"] == ["jedi-x", "jedi", "jedi-uniform"]
        assert sorted(methods())[:5] == ["cma-mae", "cma-me", "dns", "es", "es-restart"]
        assert sorted(methods())[-3:] == ["map-elites", "pga-me", "td3"]

    def test_an_earlier_name_is_an_alias(self):
        assert ALIASES == {"jedi-paper": "jedi"}
        assert method_named("jedi-paper") is method_named("jedi") is method_named(JEDi)

    @pytest.mark.parametrize("method", methods())
    def test_variants_are_the_same_class_with_other_defaults(self, method):
        entry = methods()[method]
        assert entry.name == method
        assert isinstance(entry.config, entry.method.Config)
        assert entry.method.name == method or method in entry.method.variants
        assert entry.summary.endswith(".")

    @pytest.mark.parametrize(
        ("config", "name"),
        [
            (JediConfig(), "jedi"),
            (JediConfig(alpha=0.3, pool=2), "jedi"),
            (JediConfig(targets="gp-ucb"), "jedi"),
            (JediConfig(targets="uniform", cells=64), "jedi-uniform"),
            (ESConfig(), "es"),
            (ESConfig(restart_tolerance=1e-3), "es-restart"),
            (ESConfig(restart_tolerance=1e-4), "es-restart"),
            (CMAMEConfig(ranker="rd"), "cma-me"),
            (CMAMEConfig(ranker="imp", threshold_min="task", learning_rate=0.01), "cma-mae"),
            (MapElitesConfig(), "map-elites"),
            (PGAMEConfig(), "pga-me"),
        ],
    )
    def test_settings_belong_to_the_method_with_the_nearest_defaults(self, config, name):
        assert method_named(config).name == name
        assert isinstance(method_named(config).method(config, Maze()), methods()[name].method)

    @pytest.mark.parametrize(
        ("method", "given", "owners"),
        [
            ("jedi-x", "alpha", "jedi, jedi-uniform"),
            ("jedi", "patience", "jedi-x"),
            ("es", "learning_rate", "cma-me, cma-mae"),
        ],
    )
    def test_settings_of_other_methods_name_their_owners(self, method, given, owners):
        message = rf"^setting: expected one that {method} has, got {given}, which belongs to {owners}; leave it out, or"
        with pytest.raises(JedaxError, match=message):
            check_settings(method, ["cells", given])
        check_settings(method, ["cells", "nobody_has_this"])


class TestDefaultsOfMethods:
    def test_jedi(self):
        assert method_defaults("jedi", "maze-a") == method_defaults("jedi-paper", "maze-a") == JediConfig()
        assert method_defaults("jedi-uniform", "anything at all") == JediConfig(targets="uniform")
        config = JediConfig()
        assert (config.targets, config.alpha, config.gp) == ("pareto", "decay", "weighted")

    @pytest.mark.parametrize("method", ["jedi", "jedi-uniform"])
    @pytest.mark.parametrize(
        ("task", "alpha"), [("maze-a", 0.3), ("maze-b", 0.3), ("maze-c", 0.5), ("maze-quad-b", 0.7)]
    )
    def test_tuned(self, method, task, alpha):
        config = method_defaults(method, task, "tuned")
        assert config == method_defaults(method, task).replace(alpha=alpha)
        assert config.alpha == alpha

    @pytest.mark.parametrize("task", ["sphere", "arm", "", "mine.yaml"])
    def test_tuned_for_another_task(self, task):
        message = rf"^preset: expected a task .*maze-a, maze-b, maze-c, maze-quad-b.*got 'tuned' for '{task}'; choose"
        with pytest.raises(JedaxError, match=message):
            method_defaults("jedi", task, "tuned")

    def test_unknown_method_or_preset(self):
        with pytest.raises(JedaxError, match=r"^method: unknown name 'jeddi'; did you mean 'jedi'"):
            method_defaults("jeddi", "maze-a")
        with pytest.raises(JedaxError, match=r"^preset: unknown name 'tund'; did you mean 'tuned'\?$"):
            method_defaults("jedi", "maze-a", "tund")

    @pytest.mark.parametrize("method", methods())
    @pytest.mark.parametrize("task", entries())
    def test_every_method_has_defaults_for_every_task(self, method, task):
        assert type(method_defaults(method, task)) is type(methods()[method].config)

    @pytest.mark.parametrize("method", methods())
    def test_preset_for_a_cpu(self, method):
        assert defaults_for(method, "walker2d", "cpu")[0].batch == 64
        for task, budget in SMALL_BUDGETS.items():
            assert defaults_for(method, task, "cpu")[1] == budget
        assert defaults_for(method, "walker2d") == (method_defaults(method, "walker2d", large_policies=True), None)
        with pytest.raises(JedaxError, match=r"^preset: expected a task that it applies to .*'cpu' for 'maze-a'"):
            defaults_for(method, "maze-a", "cpu")

    @pytest.mark.parametrize("method", ["jedi", "jedi-uniform"])
    @pytest.mark.parametrize("task", CONTROL_TASKS)
    def test_ten_loops_fit_a_cpu(self, method, task):
        config, budget = defaults_for(method, task, "cpu")
        assert config.es == "lm-ma-es"
        assert (budget - config.batch) // config.batch >= 10 * config.generations

    @pytest.mark.parametrize(
        ("task", "alpha", "generations"), [("halfcheetah", 0.5, 100), ("walker2d", 0.3, 1000), ("ant-maze", 0.0, 1000)]
    )
    def test_control_tasks_are_the_papers(self, task, alpha, generations):
        config, _ = defaults_for("jedi", task, "tuned")
        assert (config.alpha, config.generations) == (alpha, generations)
        assert (config.population, config.pool, config.es) == (256, 4, "lm-ma-es")
        assert (config.step_size, config.elite_ratio, config.cells) == (0.05, 0.5, 1024)
        assert entries()[task].config().hidden == (256, 256)

    def test_jedi_x_has_one_es_for_large_policies(self):
        config, _ = defaults_for("jedi-x", "halfcheetah")
        assert (config.population, config.pool, config.patience, config.es) == (64, 1, 100, "lm-ma-es")
        assert (config.trial, config.scouts) == (96, 1)
        assert method_defaults("jedi-x", "maze-a").trial == 0
        spread = float(spread_of(jax.random.key(0), make("halfcheetah")))
        assert config.step_size is None
        assert config.first_step * spread == pytest.approx(0.03, rel=0.05)
        assert config.gradient_steps > 0

    @pytest.mark.parametrize("method", methods())
    def test_preset_for_large_policies_of_any_task(self, method):
        on_a_robot = method_defaults(method, large_policies=True)
        assert method_defaults(method, "maze-a", "large-policies") == on_a_robot
        assert method_defaults(method, "maze-a") != on_a_robot

    def test_preset_for_large_policies_where_evaluations_are_few(self):
        """These have growing populations, which a race has not."""
        config = method_defaults("jedi-x", "mine:f", "large-policies", few_evaluations_of=(70_000, False))
        assert (config.es, config.trial, config.growth, config.population) == ("lm-ma-es", 96, 1, 64)

    def test_presets(self):
        assert list(methods()["jedi"].presets) == ["decay", "tuned", "cpu", "large-policies"]
        assert method_defaults("jedi", "maze-c", "decay") == method_defaults("jedi", "maze-c")
