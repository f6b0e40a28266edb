"""Grids: those of the paper hold what its tables say, and one's own are read from a command."""

import pytest

from jedax import JedaxError
from jedax.bench.grids import GRIDS, Entry, grid_named, parse_entry, slug

MAZES = ("maze-a", "maze-b", "maze-c", "maze-quad-b")


def test_paper_mazes():
    grid = grid_named("paper-mazes")
    assert grid.tasks == MAZES
    assert (grid.seeds, grid.evaluations) == (10, None)
    labels = [entry.label for entry in grid.entries]
    assert labels == ["jedi tuned", "jedi decay", "jedi-uniform", "es", "es-restart", "map-elites", "cma-me imp",
                      "cma-me opt", "cma-mae", "pga-me"]  # fmt: skip
    assert grid_named("paper-mazes-quick").entries == grid.entries


def test_hyperparameters_of_the_paper_for_mazes():
    entries = {entry.label: entry for entry in GRIDS["paper-mazes"].entries}
    for task, alpha in zip(MAZES, (0.3, 0.3, 0.5, 0.7), strict=True):
        assert entries["jedi tuned"].config(task).alpha == alpha
    for label in entries:
        assert entries[label].config("maze-a").batch == 64
        assert entries[label].config("maze-a").cells == 1024
    for label in ("jedi-uniform", "cma-me imp", "cma-me opt", "cma-mae"):
        config = entries[label].config("maze-a")
        assert (config.population, config.pool, config.es) == (16, 4, "sep-cma-es")
        assert (config.step_size, config.elite_ratio) == (0.05, 0.5)
    assert entries["es"].config("maze-a").population == 64
    assert entries["es"].config("maze-a").restart_tolerance is None
    assert entries["es-restart"].config("maze-a").restart_tolerance > 0
    assert (entries["map-elites"].config("maze-a").iso_sigma, entries["map-elites"].config("maze-a").line_sigma) == (
        0.2,
        0,
    )
    assert entries["cma-mae"].config("maze-a").learning_rate == 0.1


def test_hyperparameters_of_the_paper_for_control():
    entries = {entry.label: entry for entry in GRIDS["paper-control"].entries}
    alphas = {"halfcheetah": (0.5, 100), "walker2d": (0.3, 1000), "ant-maze": (0.0, 1000)}
    for task, (alpha, generations) in alphas.items():
        config = entries["jedi tuned"].config(task)
        assert (config.alpha, config.generations) == (alpha, generations)
        assert (config.population, config.pool, config.es) == (256, 4, "lm-ma-es")
    assert entries["es"].config("walker2d").batch == 256
    config = entries["map-elites"].config("walker2d")
    assert (config.batch, config.iso_sigma, config.line_sigma) == (1024, 0.005, 0.05)


@pytest.mark.parametrize(
    ("name", "parameter", "values"),
    [
        ("ablation-alpha", "alpha", [0, 0.1, 0.3, 0.5, 0.7, 0.9, 1, "decay"]),
        ("ablation-generations", "generations", [10, 50, 100, 200]),
        ("ablation-pool", "pool", [1, 4, 16]),
        ("ablation-learning-rate", "learning_rate", [1, 0.1, 0.01, 0.001, 0]),
    ],
)
def test_ablations_vary_one_parameter(name, parameter, values):
    configs = [entry.config("maze-b") for entry in GRIDS[name].entries]
    assert [getattr(config, parameter) for config in configs] == values
    assert len({str(config.replace(**{parameter: values[0]})) for config in configs}) == 1


def test_ablation_of_targets():
    configs = {entry.label: entry.config("maze-b") for entry in GRIDS["ablation-targets"].entries}
    assert [(c.targets, c.gp) for c in configs.values()] == [
        ("uniform", "weighted"), ("pareto", "standard"), ("pareto", "weighted"),
    ]  # fmt: skip


def test_every_entry_of_every_grid_is_valid_on_every_task():
    for grid in GRIDS.values():
        for entry in grid.entries:
            for task in grid.tasks:
                assert entry.config(task).cells == 1024


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("jedi", Entry("jedi", "jedi")),
        ("jedi,tuned", Entry("jedi tuned", "jedi", "tuned")),
        ("cma-me, opt, step-size=0.1", Entry("cma-me opt step-size=0.1", "cma-me", "opt", {"step_size": "0.1"})),
        (
            "jedi-x,step_range=[0.1, 0.5],pool=1",
            Entry("jedi-x step_range=[0.1, 0.5] pool=1", "jedi-x", None, {"step_range": [0.1, 0.5], "pool": "1"}),
        ),
        (
            "es-restart,restart_tolerance=null",
            Entry("es-restart restart_tolerance=null", "es-restart", None, {"restart_tolerance": None}),
        ),
    ],
)
def test_methods_as_a_command_names_them(text, entry):
    assert parse_entry(text) == entry


def test_parameters_become_numbers():
    config = parse_entry("jedi,alpha=0.25,pool=2,targets=pareto").config("maze-a")
    assert (config.alpha, config.pool, config.targets) == (0.25, 2, "pareto")
    assert parse_entry("jedi-x,step_range=[0.1,0.5]").config("maze-a").step_range == (0.1, 0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jeddi", "method: unknown name 'jeddi'; did you mean 'jedi"),
        ("jedi,tund", "preset: unknown name 'tund'; did you mean 'tuned'"),
        ("jedi,tuned,decay", "methods: expected one preset"),
        ("jedi,alfa=1", "jedi alfa=1: setting: unknown name 'alfa'; did you mean 'alpha'"),
        ("jedi,alpha=2", "alpha: expected"),
        (
            "map-elites,alpha=0.5",
            "map-elites alpha=0.5: setting: expected one that map-elites has, got alpha, which belongs to",
        ),
    ],
)
def test_bad_methods(text, message):
    with pytest.raises(JedaxError, match=message):
        parse_entry(text).config("maze-a")


def test_unknown_grid():
    with pytest.raises(JedaxError, match="preset: unknown name 'paper-maze'; did you mean 'paper-mazes'"):
        grid_named("paper-maze")


@pytest.mark.parametrize(
    ("name", "path"),
    [("cma-me opt", "cma-me-opt"), ("a/b\\c", "a-b-c"), ("alpha=0.3", "alpha=0.3"), ("..", "unnamed"),
     ("<script>", "script")],
)  # fmt: skip
def test_names_as_paths(name, path):
    assert slug(name) == path
