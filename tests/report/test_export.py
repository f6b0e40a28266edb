"""Policies exported to ONNX and to NumPy act as the run's own do."""

import dataclasses
import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
import pytest

import jedax
from jedax import cli
from jedax.cli.results import export as export_command
from jedax.errors import JedaxError
from jedax.networks import ACTIVATIONS
from jedax.report.export import _as_onnx, export
from jedax.report.replay import replay
from jedax.tasks import make


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jedax.report.figures.write_figures", lambda run, folder: [])
        jedax.run("map-elites", make("maze-a", steps=20), evaluations=256, out=path)
    return path


def imported(path):
    spec = importlib.util.spec_from_file_location("policy", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def through_onnx(file, observations):
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return session.run(["action"], {"observation": observations})[0]


def test_the_command(directory, here, capsys):
    cli.main(["export", str(directory), "--onnx", "policy.onnx", "--numpy", "policy.py"])
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == [
        "policy.onnx", "policy.py", "policy.npz"
    ]  # fmt: skip
    act = jedax.load(directory).policy()
    observations = np.random.default_rng(0).uniform(-1, 1, (7, 5)).astype(np.float32)
    expected = np.stack([act(row) for row in observations])
    np.testing.assert_allclose(through_onnx("policy.onnx", observations), expected, atol=1e-6)
    module = imported(here / "policy.py")
    (here / "policy.npz").unlink()  # read once, not at each call
    np.testing.assert_allclose(module.act(observations), expected, atol=1e-6)
    np.testing.assert_allclose(module.act(list(map(float, observations[0]))), expected[0], atol=1e-6)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation(activation, tmp_path):
    task = make("maze-a", hidden=(6, 4), activation=activation)
    genotype = 2 * task.init(jax.random.key(1))
    layers = [tuple(map(np.asarray, layer)) for layer in task.layers(genotype)]
    (tmp_path / "policy.onnx").write_bytes(_as_onnx(layers, activation, "test"))
    observations = np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32)
    expected = task.actions(genotype, jnp.asarray(observations))
    np.testing.assert_allclose(through_onnx(str(tmp_path / "policy.onnx"), observations), expected, atol=2e-6)


def test_what_has_no_policy(tmp_path, without_figures):
    run = jedax.run("map-elites", "sphere", evaluations=128, out=tmp_path / "run")
    with pytest.raises(JedaxError, match=r"^export: expected a task whose solutions are policies, got sphere"):
        export(run, numpy=tmp_path / "policy.py")
    with pytest.raises(JedaxError, match=r"^jedax export: expected --onnx FILE, --numpy FILE or both"):
        export_command([str(tmp_path / "run")])


def test_a_name_is_no_code(directory, tmp_path):
    name = 'a""" + str(1 / 0) + """ C:\\users {0}'
    run = dataclasses.replace(jedax.load(directory), task=make("maze-a", steps=20, name=name))
    script, _ = export(run, numpy=tmp_path / 'my "policy".py')
    module = imported(script)
    assert name in module.__doc__
    np.testing.assert_allclose(module.act(np.zeros(5)), run.policy()(np.zeros(5)), atol=1e-6)
    with pytest.raises(JedaxError, match=r"^numpy: expected a Python file"):
        export(run, numpy=tmp_path / "policy.npz")


def test_no_solution(directory, tmp_path):
    run = jedax.load(directory)
    nothing = dataclasses.replace(run.repertoire, best_fitness=np.full(1, -np.inf, np.float32))
    run = dataclasses.replace(run, repertoire=nothing)
    with pytest.raises(JedaxError, match=r"^best: expected an evaluation that succeeded, got none"):
        export(run, numpy=tmp_path / "policy.py")
    with pytest.raises(JedaxError, match=r"^best: expected an evaluation that succeeded"):
        replay(run, out=tmp_path)
    assert not list(tmp_path.iterdir())
