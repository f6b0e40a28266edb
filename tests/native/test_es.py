"""Native generations of LM-MA-ES against those of JAX."""

import dataclasses
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from tests.conftest import assert_same_bits

from jedax.es.lm_ma_es import LMMAES
from jedax.native import core
from jedax.native import es as native
from jedax.native.random import native_keys
from jedax.variation import iso_line

pytestmark = pytest.mark.skipif(not native.KERNEL.available, reason=str(native.KERNEL.status))
KEY = jax.random.key(3)
LIBRARY = core.load()[0]
SETS = LIBRARY.jedax_instruction_sets().decode().split(",") if LIBRARY else []
ask = jax.jit(lambda strategy, key, state: strategy.ask(key, state), static_argnums=0)


def state_of(strategy, n, generation, seed=0):
    rng = np.random.default_rng(seed)
    state = strategy.init(KEY, jnp.asarray(rng.normal(size=n), jnp.float32))
    directions = jnp.asarray(2 * rng.normal(size=state.directions.shape), jnp.float32)
    return dataclasses.replace(state, directions=directions, generation=jnp.int32(generation))


@pytest.mark.parametrize(
    ("n", "population", "generation"), [(5000, 40, 50), (1003, 13, 5), (37, 16, 3), (2, 3, 20), (1, 4, 9), (300, 7, 0)]
)
def test_a_generation_is_that_of_jax(n, population, generation):
    strategy = LMMAES(population=population)
    state = state_of(strategy, n, generation)
    expected = ask(strategy, KEY, state)[0]
    genotypes = ask(strategy, native_keys(KEY), state)[0]
    np.testing.assert_allclose(genotypes, expected, rtol=1e-5, atol=1e-5)
    without = ask(strategy, native_keys(KEY), dataclasses.replace(state, directions=0 * state.directions))[0]
    assert (generation > 0 and n > 1) == bool((genotypes != without).any())


def test_directions_that_change_nothing_are_left_out():
    """Later directions are shorter, as in a search: the last ones are below a float's precision."""
    strategy = LMMAES(population=20)
    state = state_of(strategy, 4000, 60)
    shorter = 2.0 ** -jnp.arange(len(state.directions))
    state = dataclasses.replace(state, directions=shorter[:, None] * state.directions)
    expected = ask(strategy, KEY, state)[0]
    genotypes = ask(strategy, native_keys(KEY), state)[0]
    np.testing.assert_allclose(genotypes, expected, rtol=1e-5, atol=1e-6)
    shares = np.square(state.directions).sum(axis=1) * strategy.learning_rates(4000).c_d
    used = int((shares >= 2.0**-24).sum())
    assert 4 < used < len(shares) - 4
    fewer = dataclasses.replace(state, directions=state.directions.at[used:].set(0))
    assert_same_bits(ask(strategy, native_keys(KEY), fewer)[0], genotypes)


def test_normals_in_the_tails():
    """Without directions a generation is mean + sigma z; its numbers are quantiles of the uniform ones."""
    strategy = LMMAES(population=32, step_size=1.0)
    n = 40_000
    state = strategy.init(KEY, jnp.zeros(n))
    z = np.asarray(ask(strategy, native_keys(KEY), state)[0])
    keys = jax.vmap(lambda member: jax.random.fold_in(KEY, member))(jnp.arange(32))
    uniform = jax.jit(jax.vmap(lambda key: jax.random.uniform(key, (n,), minval=np.nextafter(np.float32(-1), 0))))(keys)
    expected = np.sqrt(2) * scipy.special.erfinv(np.asarray(uniform, float))
    assert np.abs(expected).max() > 4.5
    np.testing.assert_allclose(z, expected, rtol=3e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 5000), (1, 1), (0, 4), (700, 1500)])
def test_normals_are_those_of_jax(shape):
    found = jax.jit(native.normal, static_argnums=1)(native_keys(KEY), shape)
    np.testing.assert_allclose(found, jax.random.normal(KEY, shape), rtol=3e-5, atol=1e-6)


def test_normals_of_several_keys():
    keys = jax.random.split(KEY, 3)
    found = jax.jit(jax.vmap(lambda key: native.normal(key, (2, 2500))))(native_keys(keys))
    expected = [jax.random.normal(key, (2, 2500)) for key in keys]
    np.testing.assert_allclose(found, expected, rtol=3e-5, atol=1e-6)


def test_variation_of_large_genotypes_is_that_of_jax():
    parents, partners = jnp.linspace(-1, 1, 2 * native.LARGE).reshape(2, 16, -1)
    apart = jnp.arange(16)[:, None] % 2 == 0
    vary = jax.jit(iso_line)
    expected = vary(KEY, parents, partners, 0.1, 0.5, apart)
    found = vary(native_keys(KEY), parents, partners, 0.1, 0.5, apart)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SETS)
def test_instruction_sets(name):
    strategy = LMMAES(population=18)
    state = state_of(strategy, 2100, 30)
    expected = ask(strategy, KEY, state)[0]
    LIBRARY.jedax_use_instruction_set(name.encode())
    try:
        genotypes = ask(strategy, native_keys(KEY), state)[0]
    finally:
        LIBRARY.jedax_use_instruction_set(native.KERNEL.status.instruction_set.encode())
    np.testing.assert_allclose(genotypes, expected, rtol=1e-5, atol=1e-5)


def test_a_member_does_not_depend_on_the_others():
    state = state_of(LMMAES(population=40), 5000, 50)
    whole = ask(LMMAES(population=40), native_keys(KEY), state)[0]
    fewer = ask(LMMAES(population=17), native_keys(KEY), state)[0]
    assert_same_bits(whole[:17], fewer)


def test_several_strategies_at_once():
    strategy = LMMAES(population=9)
    keys = native_keys(jax.random.split(KEY, 3))
    states = [state_of(strategy, 130, 4 * seed, seed) for seed in range(3)]
    together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    found = jax.jit(jax.vmap(strategy.ask))(keys, together)
    for i, state in enumerate(states):
        one = jax.tree.map(lambda leaf, i=i: leaf[i], found)
        alone = ask(strategy, keys[i], state)
        np.testing.assert_allclose(one[0], alone[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("n", "population"), [(5000, 40), (3, 5)])
def test_the_weighted_sum(n, population):
    rng = np.random.default_rng(0)
    weights = np.where(rng.random(population) < 0.5, rng.random(population), 0)
    genotypes, mean = rng.normal(size=(population, n)), rng.normal(size=n)
    genotypes[weights == 0] = np.nan
    found = jax.jit(native.recombine)(*(jnp.asarray(part, jnp.float32) for part in (weights, genotypes, mean)))
    expected = weights[weights > 0] @ (genotypes[weights > 0] - mean)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


WITHOUT_MEMORY = """
import resource
import jax, jax.numpy as jnp
from jedax.native import es
from jedax.native.random import native_keys
assert es.KERNEL.available
n = 1 << 22  # a thread needs 64 bytes for each parameter
zeros = jnp.zeros(n), jnp.float32(1), jnp.zeros((1, n)), jnp.zeros((1, 1)), jnp.zeros(1)
arrays = native_keys(jax.random.key(0)), *zeros
sample = jax.jit(es.sample, static_argnums=6).lower(*arrays, 2).compile()
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (128 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
jax.block_until_ready(sample(*arrays))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory are those of Linux")
def test_without_memory_it_is_an_error():
    done = subprocess.run([sys.executable, "-c", WITHOUT_MEMORY], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("RESOURCE_EXHAUSTED: no memory for native code")
