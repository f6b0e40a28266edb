"""What every method can do by default: take further solutions, and draw them again."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.conftest import assert_same_bits
from tests.methods import own

import jedax
from jedax.methods.cma_me import CMAME, CMAMEConfig
from jedax.methods.jedi_x import POOL, SCOUTS, VARIATION, JEDiX, JediXConfig
from jedax.methods.map_elites import MapElites, MapElitesConfig
from jedax.types import Evaluation

METHODS = {
    MapElites: MapElitesConfig(offspring=8, cells=16),
    CMAME: CMAMEConfig(population=4, pool=2, cells=16),
    JEDiX: JediXConfig(population=4, pool=2, cells=16, scouts=2),
    own.Drift: own.Drift.Config(batch=8, cells=16),
}


@pytest.fixture(params=METHODS, ids=lambda method: method.__name__)
def search(request, arm):
    """A method and its state after the initial batch."""
    method = request.param(METHODS[request.param], arm)
    keys = jax.random.split(jax.random.key(0), method.num_initial)
    genotypes = jax.vmap(arm.init)(keys)
    return method, method.init(jax.random.key(1), genotypes, arm.evaluate_batch(keys[0], genotypes))


def test_insert(search):
    """Three solutions, of which one has failed; the rest of the state stays as it is."""
    method, state = search
    params = state.repertoire.best_genotype.shape[0]
    genotypes = jnp.full((3, params), jnp.array([[1.0], [2.0], [3.0]]))
    evaluation = Evaluation(jnp.array([100.0, 50.0, jnp.nan]), jnp.array([[0.3, 0.3], [0.3, 0.3], [0.6, 0.6]]))
    after = method.insert(state, genotypes, evaluation)
    before, now = state.repertoire, after.repertoire
    assert int(now.counts.sum()) == int(before.counts.sum()) + 2
    assert int(now.num_failed) == int(before.num_failed)
    cell = int(method.cells.assign(jnp.array([0.3, 0.3])))
    assert float(now.fitness[cell]) == 100 == float(now.best_fitness)
    assert now.genotypes[cell].tolist() == [1] * params
    assert int(now.improved_at[cell]) == int(method.evaluations(state))
    others = np.arange(16) != cell
    np.testing.assert_array_equal(now.fitness[others], before.fitness[others])
    assert_same_bits({**vars(after), "repertoire": 0}, {**vars(state), "repertoire": 0})


def test_again(search):
    """Solutions of another draw from the same distribution."""
    method, state = search
    genotypes, asked = method.ask(jax.random.key(2), state)
    others = method.again(jax.random.key(3), asked)
    assert others.shape == genotypes.shape
    assert len(np.unique(np.concatenate([genotypes, others]), axis=0)) == 2 * len(genotypes)
    if not isinstance(method, JEDiX):
        np.testing.assert_array_equal(others, method.ask(jax.random.key(3), asked)[0])


@pytest.mark.parametrize(("kind", "shares"), [(POOL, (0.0, 0.0)), (SCOUTS, (0.0, 1.0)), (VARIATION, (1.0, 0.0))])
def test_again_is_of_the_same_kind_in_jedi_x(arm, kind, shares):
    """Even where the next generation would be of another kind."""
    settings = METHODS[JEDiX].replace(variation_share=shares[0], scout_share=shares[1], patience=1)
    keys = jax.random.split(jax.random.key(0), 8)
    genotypes = jax.vmap(arm.init)(keys)
    method = JEDiX(settings, arm)
    state = method.init(jax.random.key(1), genotypes, arm.evaluate_batch(keys[0], genotypes))

    def after(state, generations):
        """Return the state with a pool that has waited for a number of generations."""
        waited = jnp.full_like(state.es.waited, generations)
        return dataclasses.replace(state, es=dataclasses.replace(state.es, waited=waited))

    _, asked = method.ask(jax.random.key(2), after(state, 1))
    assert int(asked.kind) == kind
    others = np.asarray(method.again(jax.random.key(3), after(asked, 0)))
    if kind == VARIATION:
        expected = method.vary(jax.random.key(3), asked)
    else:
        expected, _ = (method.es.pool if kind == POOL else method.es.scouts).ask(
            jax.random.key(3), asked.es.pool if kind == POOL else asked.es.scouts
        )
    np.testing.assert_allclose(others, expected, rtol=1e-5)


def test_few_evaluations():
    assert MapElites.few_evaluations(10, None, in_box=True) == {}
    expected = {(1, None): (8, "cma-es"), (10, None): (12, "cma-es"), (10, 31): (32, "cma-es")}
    expected |= {(300, None): (24, "cma-es"), (1000, None): (24, "lm-ma-es")}
    for given, (population, es) in expected.items():
        found = JEDiX.few_evaluations(*given)
        assert (found["population"], found["pool"], found["es"]) == (population, 1, es)
        assert found["exploration"] == 0.1
    found = JEDiX.few_evaluations(10, None, has_descriptors=False)
    assert (found["exploration"], found["rediscovery"]) == (0, 1)
    for num_params in (1, 2, 3, 300, 10**6):
        jedax.Optimizer(num_params, evaluations=10_000)
