"""JEDi-X by hand: what each kind of generation is and when it comes, where ES start and start anew; that it arrives."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.conftest import assert_same_bits

import jedax
from jedax.algorithms.jedi_x import JEDiX
from jedax.config.methods import JediXConfig
from jedax.es import make_strategy
from jedax.tasks.base import Task
from jedax.types import Evaluation

SMALL = JediXConfig(population=6, pool=3, cells=64, elites=4, patience=2)
BATCH = 18


@pytest.fixture(scope="module")
def search(arm):
    """The method and its state after an initial batch."""
    algorithm = JEDiX.build(SMALL, arm)
    keys = jax.random.split(jax.random.key(0), BATCH)
    genotypes = jax.vmap(arm.init)(keys)
    return algorithm, algorithm.init(jax.random.key(1), genotypes, arm.evaluate_batch(keys[0], genotypes))


def evaluation_of(fitness):
    """Return evaluations with these fitnesses, all in one corner of the behaviour space."""
    return Evaluation(jnp.float32(fitness), jnp.full((len(fitness), 2), 0.01))


def with_share(algorithm, share):
    """Return the method with a constant share of varied generations."""
    return dataclasses.replace(algorithm, config=algorithm.config.replace(variation_share=share))


def test_a_generation_of_the_es(search):
    algorithm, state = search
    genotypes, after = algorithm.ask(jax.random.key(5), state)
    assert genotypes.shape == (BATCH, state.repertoire.genotypes.shape[1])
    assert not after.varies
    strategy = make_strategy("sep-cma-es", population=6, step_size=0.05, elite_ratio=0.5)
    keys = jax.random.split(jax.random.split(jax.random.key(5), 4)[1], 3)
    for number in range(3):
        own = jax.tree.map(lambda leaf, n=number: leaf[n], state.pool)
        sampled, own = strategy.ask(keys[number], own)
        np.testing.assert_allclose(genotypes[6 * number : 6 * number + 6], sampled, rtol=1e-5, atol=1e-6)
    assert int(after.generation) == int(state.generation)


def test_a_generation_of_varied_elites(search):
    algorithm, state = search
    genotypes, after = with_share(algorithm, 1.0).ask(jax.random.key(5), state)
    assert genotypes.shape == (BATCH, state.repertoire.genotypes.shape[1])
    assert after.varies
    low, high = np.float64(SMALL.variation) * float(state.spread)
    filled = np.asarray(state.repertoire.genotypes)[np.asarray(state.repertoire.filled)]
    # No offspring lies nearer to all elites, or farther from the nearest, than its scale allows.
    distance = np.linalg.norm(np.asarray(genotypes)[:, None] - filled, axis=-1).min(axis=1)
    assert (distance < high * np.sqrt(genotypes.shape[1]) * 2).all()
    assert (distance > low * 0.1).all()


def test_varied_elites_are_added_and_teach_the_es_nothing(search):
    algorithm, state = search
    genotypes, state = with_share(algorithm, 1.0).ask(jax.random.key(5), state)
    after, _ = algorithm.tell(jax.random.key(6), state, genotypes, evaluation_of(np.full(BATCH, 100.0)))
    assert_same_bits(after.pool, state.pool)
    assert (after.waited.tolist(), after.best.tolist()) == ([0, 0, 0], [-np.inf] * 3)
    assert int(after.num_varied) == 1 == int(after.generation)
    assert float(after.repertoire.best_fitness) == 100
    assert int(after.repertoire.counts.sum()) == 2 * BATCH


@pytest.mark.parametrize(
    ("waited", "share", "expected"),
    [
        ([0, 0, 0], "waiting", 0.0),
        ([1, 0, 0], "waiting", 1 / 6),
        ([1, 0, 1], "waiting", 1 / 3),
        ([1, 0, 1], 0.25, 0.25),
    ],
)
def test_the_longer_the_es_wait_the_likelier_variation_is(search, waited, share, expected):
    """Of a patience of 2 each; 2,000 draws tell a share to about 1 %."""
    algorithm, state = search
    algorithm, state = with_share(algorithm, share), dataclasses.replace(state, waited=jnp.array(waited))
    assert float(algorithm.variation_share(state)) == pytest.approx(expected)
    keys = jax.random.split(jax.random.key(0), 2000)
    varies = jax.lax.map(lambda key: algorithm.ask(key, state)[1].varies, keys)
    assert float(varies.mean()) == pytest.approx(expected, abs=0.03)


def test_every_es_learns_its_own_fitness(search):
    algorithm, state = search
    genotypes, state = algorithm.ask(jax.random.key(5), state)
    fitness = np.random.default_rng(0).normal(size=BATCH)
    after, _ = algorithm.tell(jax.random.key(6), state, genotypes, evaluation_of(fitness))
    for number in range(3):
        mine = slice(6 * number, 6 * number + 6)
        own = jax.tree.map(lambda leaf, n=number: leaf[n], state.pool)
        own = algorithm.pool.strategy.tell(jax.random.key(9), own, genotypes[mine], jnp.float32(fitness[mine]))
        np.testing.assert_allclose(after.pool.mean[number], own.mean, rtol=1e-5, atol=1e-6)
        known = float(state.repertoire.best_fitness) if number == 0 else -np.inf
        assert float(after.best[number]) == pytest.approx(max(fitness[mine].max(), known))
    assert int(after.num_restarts) == 0
    assert int(after.repertoire.counts.sum()) == 2 * BATCH


@pytest.mark.parametrize(("level", "waits"), [(100.0, [0, 0, 0]), (-100.0, [1, 0, 1])])
def test_starts_anew_after_waiting_in_vain(search, level, waits):
    """Three generations: the first ES gets better each time, the others do not, so after `patience` = 2 they restart.

    Above all that is known the first goes on; where better is known its own gains do not count.
    """
    algorithm, state = with_share(search[0], 0.0), search[1]
    waited = []
    for generation in range(3):
        genotypes, state = algorithm.ask(jax.random.key(generation), state)
        fitness = np.full(BATCH, level)
        fitness[:6] += generation
        before, (state, _) = state, algorithm.tell(jax.random.key(7), state, genotypes, evaluation_of(fitness))
        waited.append(state.waited.tolist())
    assert [first for first, *_ in waited] == waits
    assert [rest for _, *rest in waited] == [[0, 0], [1, 1], [0, 0]]
    leads = waits == [0, 0, 0]
    assert int(state.num_restarts) == (2 if leads else 3)
    assert state.best[1:].tolist() == [-np.inf, -np.inf]
    assert float(state.best[0]) == pytest.approx(102 if leads else float(state.repertoire.best_fitness))
    fittest = np.argsort(-np.asarray(jnp.where(state.repertoire.filled, state.repertoire.fitness, -jnp.inf)))[:4]
    starts = np.asarray(state.repertoire.genotypes)[fittest]
    for number in (1, 2):
        assert any(np.array_equal(state.pool.mean[number], start) for start in starts)
        assert float(state.pool.sigma[number]) == pytest.approx(0.05)
    assert not any(np.array_equal(state.pool.mean[0], start) for start in starts)
    assert float(before.pool.sigma[1]) != pytest.approx(0.05)


def test_elites_to_start_at(search):
    algorithm, state = search
    repertoire = state.repertoire
    fittest = np.argsort(-np.asarray(jnp.where(repertoire.filled, repertoire.fitness, -jnp.inf)))[:4]
    seen = set()
    for number in range(30):
        chosen = np.asarray(algorithm.choose_elites(jax.random.key(number), repertoire))
        places = [next(p for p, c in enumerate(fittest) if np.array_equal(repertoire.genotypes[c], g)) for g in chosen]
        assert places[0] == 0
        seen |= set(places[1:])
    assert seen == {0, 1, 2, 3}


def test_fewer_cells_filled_than_elites(search):
    algorithm, state = search
    genotypes = state.repertoire.genotypes[:BATCH]
    one = algorithm.init(jax.random.key(1), genotypes + 0.5, evaluation_of(np.arange(BATCH)))
    np.testing.assert_array_equal(one.pool.mean, np.tile(np.asarray(genotypes[-1] + 0.5), (3, 1)))
    none = algorithm.init(jax.random.key(1), genotypes + 0.5, evaluation_of(np.full(BATCH, np.nan)))
    np.testing.assert_array_equal(none.pool.mean, np.tile(np.asarray(genotypes[0] + 0.5), (3, 1)))


class Wide(Task):
    """Random genotypes are normal with standard deviation 3, or all alike."""

    name, num_params, descriptor_bounds, qd_offset = "wide", 400, ((0.0, 0.0), (1.0, 1.0)), 0.0
    scale = 3.0

    def init(self, key):
        return 5 + self.scale * jax.random.normal(key, (400,))

    def evaluate(self, key, genotype):
        return Evaluation(genotype.sum(), jax.nn.sigmoid(genotype[:2]))


class Alike(Wide):
    scale = 0.0


@pytest.mark.parametrize(("task", "expected"), [(Wide(), 3.0), (Alike(), 1.0)])
def test_the_unit_of_variation_is_the_spread_of_random_genotypes(task, expected):
    algorithm = JEDiX.build(SMALL, task)
    genotypes = jnp.zeros((BATCH, 400))
    state = algorithm.init(jax.random.key(1), genotypes, evaluation_of(np.zeros(BATCH)))
    assert float(state.spread) == pytest.approx(expected, rel=0.02)


def test_bounds_the_wrong_way_round():
    with pytest.raises(jedax.JedaxError, match=r"variation: expected a low bound under a high one, got \(2.0, 1.0\)"):
        SMALL.replace(variation=(2.0, 1.0))


def test_a_share_that_is_none():
    with pytest.raises(jedax.JedaxError, match="variation_share"):
        SMALL.replace(variation_share=1.5)


def test_goes_on_with_the_same_bits(arm, tmp_path, without_figures):
    whole = jedax.run(SMALL, arm, evaluations=BATCH * 20, out=tmp_path / "whole")
    jedax.run(SMALL, arm, evaluations=BATCH * 20, max_seconds=1e-9, report_every=3, out=tmp_path / "part")
    went_on = jedax.resume(tmp_path / "part", max_seconds=600)
    np.testing.assert_array_equal(went_on.repertoire.fitness, whole.repertoire.fitness)
    for name in ("num_restarts", "num_varied"):
        assert went_on.rows[-1][name] == whole.rows[-1][name] > 0


@dataclasses.dataclass(frozen=True)
class Barrier(Task):
    """A climb to 1 in the wrong corner; the way to 2 in the other first leads down."""

    name: str = "barrier"
    num_params: int = 20
    descriptor_bounds: tuple = ((0.0, 0.0), (1.0, 1.0))
    qd_offset: float = -10.0

    def init(self, key):
        return jax.random.normal(key, (20,))

    def evaluate(self, key, genotype):
        place = jax.nn.sigmoid(genotype[:2])
        wrong = 1 - jnp.linalg.norm(place - 0.05)
        right = 2 - 20 * jnp.linalg.norm(place - 0.95)
        return Evaluation(jnp.maximum(wrong, right) - 0.01 * (genotype[2:] ** 2).sum(), place)


def test_gets_where_es_with_restarts_do_not():
    settings = {"evaluations": 60_000, "replicas": 4}
    es = jedax.run("es-restart", Barrier(), population=64, **settings)
    ours = jedax.run("jedi-x", Barrier(), **settings)
    assert min(row["max_fitness"] for row in ours.rows[-4:]) > 1.9
    assert np.median([row["max_fitness"] for row in es.rows[-4:]]) < 1
