"""Problems, and one compiled loop, that the tests of the strategies share."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest


def sphere(x):
    """Minus the squared distance to zero."""
    return -jnp.sum(x**2, axis=-1)


def ellipsoid(x):
    """Minus an axis-parallel ellipsoid of condition 1e6."""
    return -jnp.sum(10.0 ** jnp.linspace(0, 6, x.shape[-1]) * x**2, axis=-1)


def mild_ellipsoid(x):
    """Minus an ellipsoid of condition 1e3."""
    return -jnp.sum(10.0 ** jnp.linspace(0, 3, x.shape[-1]) * x**2, axis=-1)


def slope(x):
    """A plane: there is always something better farther on."""
    return jnp.sum(x, axis=-1)


def flat(x):
    """The same for everybody."""
    return jnp.zeros(x.shape[:-1])


def failing(x):
    """Nothing but failures, of every kind."""
    kinds = jnp.asarray([jnp.nan, jnp.inf, -jnp.inf])
    return kinds[jnp.arange(x.shape[0]) % 3]


@partial(jax.jit, static_argnames=("strategy", "score", "generations"))
def search(key, strategy, score, mean, generations):
    """Run a strategy; return its last state, and per generation the best score and the mean."""
    init_key, loop_key = jax.random.split(key)

    def generation(state, generation_key):
        ask_key, tell_key = jax.random.split(generation_key)
        genotypes, state = strategy.ask(ask_key, state)
        scores = score(genotypes)
        state = strategy.tell(tell_key, state, genotypes, scores)
        return state, (scores.max(), strategy.mean(state))

    state, (best, means) = jax.lax.scan(
        generation, strategy.init(init_key, mean), jax.random.split(loop_key, generations)
    )
    return state, best, means


@pytest.fixture(scope="session")
def run_search():
    return search


@pytest.fixture(scope="session")
def problems():
    known = (sphere, ellipsoid, mild_ellipsoid, slope, flat, failing)
    return {problem.__name__: problem for problem in known}


@pytest.fixture(scope="session")
def ask():
    return jax.jit(lambda strategy, key, state: strategy.ask(key, state), static_argnums=0)


@pytest.fixture(scope="session")
def tell():
    """`tell(strategy, state, genotypes, scores)` with a key of its own."""

    def own_key(strategy, state, genotypes, scores):
        return strategy.tell(jax.random.key(99), state, genotypes, jnp.asarray(scores, jnp.float32))

    return jax.jit(own_key, static_argnums=0)
