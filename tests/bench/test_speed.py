"""What `jedax doctor --speed` measures and prints; never how fast."""

import json
import math

import jax.numpy as jnp
import numpy as np
import pytest

from jedax.bench import speed
from jedax.bench.speed import Speed
from jedax.cli import main


def check(figures, part, names=()):
    for figure in figures:
        assert figure.part == part
        assert 0 < figure.per_second < math.inf
        assert set(names) <= set(figure.others)
        assert all(math.isfinite(ratio) and ratio > 0 for ratio in figure.ratios.values())
    return [figure.what for figure in figures]


def test_ratios():
    assert Speed("es", "x", 6.0, "generations", {"slow": 2.0, "fast": 12.0}).ratios == {"slow": 3.0, "fast": 0.5}


def test_time_in_loop_counts_one_turn():
    turns = []

    def body(turn, state):
        turns.append(turn)  # while tracing: once
        return state + 1

    took = speed.time_in_loop(body, jnp.zeros(()), 0.0, turns=7)
    assert took > 0
    assert len(turns) == 1


def test_simulator():
    found = [speed.simulator("maze-a", 8, 0.0)]
    assert check(found, "simulator", ["JAX alone"]) == ["maze-a, batch 8"]


def test_repertoire():
    found = [speed.repertoire(64, 0.0, batch=16, params=3)]
    assert check(found, "repertoire", ["pyribs"]) == ["add 16 to 64 cells, 3 parameters"]


def test_es():
    check([speed.es(5, 0.0, population=6)], "es", ["NumPy", "cma"])


def test_nothing_beside():
    assert speed.es(5, 0.0, population=6, compare=False).others == {}


def test_runs():
    found = list(speed.runs("map-elites", 640, 2, offspring=32, cells=64))
    assert check(found, "run")[1] == "map-elites, maze-a, 2 seeds of 1,000 in one program"


def test_numpy_gp_finds_the_optimum():
    """Of data drawn from a process of known hyperparameters."""
    random = np.random.default_rng(0)
    x = random.uniform(size=(200, 2))
    counts = np.full(200, 4)
    covariance = np.exp(-0.5 * np.square(x[:, None] - x).sum(axis=-1) / 0.3**2) + 0.2**2 / 4 * np.eye(200)
    fitness = np.linalg.cholesky(covariance) @ random.standard_normal(200)
    logs = speed.numpy_gp_fit(x, fitness, counts)()
    assert np.exp(logs[1]) == pytest.approx(0.3, rel=0.25)
    assert np.exp(logs[2]) * fitness.std() == pytest.approx(0.2, rel=0.25)


def test_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(speed.PARTS, "es", lambda seconds: [speed.es(5, seconds, population=6)])
    main(["doctor", "--speed", "--only", "es", "--seconds", "0", "--json", str(tmp_path / "out.json")])
    printed = capsys.readouterr().out
    assert "sep-cma-es, 5 parameters, population 6" in printed
    stored = json.loads((tmp_path / "out.json").read_text())
    assert stored["machine"]["packages"]["jax"]
    (row,) = stored["figures"]
    assert row["ratios"]["cma"] == pytest.approx(row["per_second"] / row["others"]["cma"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--speed", "--only", "sound"], "unknown name 'sound'"),
        (["--speed", "--seconds", "-1"], "seconds: expected 0 to 3600, got -1"),
        (["--growth"], "growth: expected --speed beside it"),
        (["maze-a"], "run directory: expected a directory with a config.yaml, got maze-a"),
        (["maze-a", "--speed"], "speed: expected no directories beside it, got maze-a"),
    ],
)
def test_mistakes(arguments, said, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["doctor", *arguments])
    assert stop.value.code == 2
    assert said in capsys.readouterr().err
