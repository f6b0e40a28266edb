"""Observations shifted and scaled by their statistics over episodes of random policies (setting `normalise`)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jedax import networks
from jedax.errors import JedaxError
from jedax.methods.registry import method_defaults
from jedax.tasks import make

KEY = jax.random.key(0)
SETTINGS = {"hidden": (8, 8), "steps": 12}


@pytest.fixture(scope="module", params=["native", "brax"])
def task(request):
    return make("halfcheetah", normalise=True, physics=request.param, **SETTINGS).settled()


@pytest.fixture(scope="module")
def genotypes(task):
    return jax.vmap(task.init)(jax.random.split(jax.random.key(1), 5))


def raw(task):
    return type(task)(task.config.replace(normalise=False))


def folded(task, genotype):
    """The same policy as one that takes observations as they are."""
    mean, std = np.array(task.config.observation_mean), np.array(task.config.observation_std)
    first, *rest = networks.layers(genotype, task.layer_sizes)
    kernel = first[0] / std[:, None]
    layers = [(kernel, first[1] - (mean / std) @ first[0]), *rest]
    return jnp.concatenate([part.ravel() for kernel_and_bias in layers for part in kernel_and_bias])


def test_statistics_are_those_of_random_policies(task):
    policies = jax.vmap(task.init)(jax.random.split(jax.random.key(0), 64))
    # Compiled as `settled` compiles it, since robots magnify the rounding of another program.
    steps = jax.jit(raw(task).evaluate_with_transitions)(KEY, policies).transitions
    seen = np.asarray(steps.observations)[np.asarray(steps.valid)]
    assert (np.abs(np.array(task.config.observation_mean) - seen.mean(axis=0)) < 1e-3 * seen.std(axis=0)).all()
    np.testing.assert_allclose(task.config.observation_std, seen.std(axis=0), rtol=1e-3)
    assert task.settled() is task


def test_a_policy_is_one_whose_first_layer_has_the_normalisation(task, genotypes):
    found = task.evaluate_batch(KEY, genotypes)
    expected = raw(task).evaluate_batch(KEY, jax.vmap(lambda genotype: folded(task, genotype))(genotypes))
    np.testing.assert_allclose(found.fitness, expected.fitness, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found.descriptor, expected.descriptor, atol=1e-6)
    assert np.abs(found.fitness - raw(task).evaluate_batch(KEY, genotypes).fitness).max() > 0.1


def test_steps_have_observations_as_they_are(task, genotypes):
    steps = task.evaluate_with_transitions(KEY, genotypes).transitions
    start = task.start_state().obs
    np.testing.assert_allclose(steps.observations[:, 0], np.tile(start, (5, 1)), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(steps.observations[:, 1:], steps.next_observations[:, :-1])
    acted = jax.vmap(task.actions)(genotypes, steps.observations)
    np.testing.assert_allclose(acted, steps.actions, rtol=1e-3, atol=1e-3)


def test_statistics_are_needed(genotypes):
    with pytest.raises(JedaxError, match=r"observation_mean: expected 17 numbers, .*got 0; take those"):
        make("halfcheetah", normalise=True, **SETTINGS).evaluate_batch(KEY, genotypes)
    with pytest.raises(JedaxError, match="observation_std: expected as many numbers above 0"):
        make("halfcheetah", normalise=True, observation_mean=(0.0,), observation_std=(0.0,))


def test_a_run_keeps_its_statistics(tmp_path, undrawn):
    import jedax

    settings = {"normalise": True, **SETTINGS}
    run = jedax.run(
        "map-elites", make("halfcheetah", **settings), evaluations=16, offspring=8, cells=16, out=tmp_path / "r"
    )
    kept = jedax.load(run.path).config.task_config
    assert len(kept.observation_mean) == len(kept.observation_std) == 17


def test_a_critic_sees_observations_as_policies_do(task):
    config = method_defaults("td3", "halfcheetah").replace(critic_hidden=(3,))
    critic = config.make_td3(task, "td3").critic
    np.testing.assert_allclose(critic.mean, task.config.observation_mean, rtol=1e-6)
    np.testing.assert_allclose(critic.std, task.config.observation_std, rtol=1e-6)
    raw = type(task)(task.config.replace(normalise=False))
    assert config.make_td3(raw, "td3").critic.mean == ()
