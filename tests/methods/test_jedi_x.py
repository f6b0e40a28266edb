"""JEDi-X by hand: what each kind of generation is and when it comes, where ES start and start anew; that it arrives."""

import dataclasses
import math
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.conftest import assert_same_bits, without_seconds
from tests.methods.point_mass import PointMass

import jedax
from jedax.errors import JedaxError
from jedax.es import make_strategy
from jedax.methods.jedi_x import POOL, SCOUTS, VARIATION, JEDiX, JediXConfig
from jedax.methods.jedi_x.restarting import Restarting
from jedax.search.outside import OutsideTask
from jedax.space import Choice, Integer, Space
from jedax.tasks.base import Task
from jedax.types import Evaluation

SMALL = JediXConfig(population=6, pool=3, cells=64, elites=4, patience=2, scouts=2, scout_patience=2, head_start=0)
BATCH = 18


@pytest.fixture(scope="module")
def search(arm):
    """The method and its state after an initial batch."""
    method = JEDiX(SMALL, arm)
    keys = jax.random.split(jax.random.key(0), BATCH)
    genotypes = jax.vmap(arm.init)(keys)
    return method, method.init(jax.random.key(1), genotypes, arm.evaluate_batch(keys[0], genotypes))


def evaluation_of(fitness):
    """Return evaluations with these fitnesses, all in one corner of the behaviour space."""
    return Evaluation(jnp.float32(fitness), jnp.full((len(fitness), 2), 0.01))


def of_kind(method, kind):
    """Return the method with nothing but generations of one kind."""
    shares = {POOL: (0.0, 0.0), SCOUTS: (0.0, 1.0), VARIATION: (1.0, 0.0)}
    varied, scouts = shares[kind]
    return with_settings(method, variation_share=varied, scout_share=scouts)


def all_waited(state):
    """Return the state in which the pool has spent all of its patience."""
    return changed(state, waited=jnp.full_like(state.es.waited, SMALL.patience))


def changed(state, **changes):
    """Return a state with other values, some of them of its ES."""
    of_es = {name: changes.pop(name) for name in list(changes) if hasattr(state.es, name)}
    return dataclasses.replace(state, es=dataclasses.replace(state.es, **of_es), **changes)


def with_settings(method, **changes):
    return dataclasses.replace(method, config=method.config.replace(**changes))


def elites(state):
    """Return the genotypes of filled cells."""
    return np.asarray(state.repertoire.genotypes)[np.asarray(state.repertoire.filled)]


def with_elites(state, *genotypes):
    """Return the state with these elites and no others."""
    repertoire, number = state.repertoire, len(genotypes)
    fitness = jnp.where(jnp.arange(len(repertoire.filled)) < number, 1.0, -jnp.inf)
    stored = repertoire.genotypes.at[:number].set(np.stack(genotypes))
    return dataclasses.replace(state, repertoire=dataclasses.replace(repertoire, fitness=fitness, genotypes=stored))


def means(states):
    """Return the means of ES, whose own parameters are distances from `origin` in units of `unit`."""
    return np.asarray(states.origin + states.unit[:, None] * states.inner.mean)


def one_of(states, number):
    return jax.tree.map(lambda leaf: leaf[number], states.inner)


def steps_of(states, number, genotypes):
    return (genotypes - states.origin[number]) / states.unit[number]


def is_fresh(states, number, spread):
    """Return whether an ES has just started, with a step size in the range of `steps`."""
    low, high = np.array(SMALL.step_range) * float(spread) * np.array([0.999, 1.001])
    return float(states.inner.sigma[number]) == 1 and low <= float(states.unit[number]) <= high


def test_begins_at_elites(search):
    _, state = search
    repertoire = state.repertoire
    fittest = int(np.argmax(jnp.where(repertoire.filled, repertoire.fitness, -jnp.inf)))
    np.testing.assert_array_equal(means(state.es.pool)[0], repertoire.genotypes[fittest])
    for start in np.vstack([means(state.es.pool), means(state.es.scouts)]):
        assert (elites(state) == start).all(axis=1).any()
    for states, number in ((state.es.pool, 3), (state.es.scouts, 2)):
        assert all(is_fresh(states, which, state.spread) for which in range(number))
        assert len(set(states.unit.tolist())) == number


def assert_sampled(genotypes, states, number):
    """Assert that `number` ES have each sampled its part of the batch, one after the other."""
    size = BATCH // number
    strategy = make_strategy("sep-cma-es", population=size, step_size=1.0, elite_ratio=0.5)
    keys = jax.random.split(jax.random.split(jax.random.key(5))[1], number)
    assert genotypes.shape[0] == BATCH
    for which in range(number):
        steps, _ = strategy.ask(keys[which], one_of(states, which))
        sampled = states.origin[which] + states.unit[which] * steps
        np.testing.assert_allclose(genotypes[size * which : size * (which + 1)], sampled, rtol=1e-5, atol=1e-6)


def test_a_generation_of_the_pool(search):
    method, state = search
    genotypes, after = method.ask(jax.random.key(5), state)
    assert int(after.kind) == POOL
    assert_sampled(genotypes, state.es.pool, 3)
    assert_same_bits(after.es.scouts, state.es.scouts)
    assert int(after.generation) == int(state.generation)


def test_a_generation_of_scouts(search):
    method, state = of_kind(search[0], SCOUTS), all_waited(search[1])
    genotypes, after = method.ask(jax.random.key(5), state)
    assert int(after.kind) == SCOUTS
    assert_sampled(genotypes, state.es.scouts, 2)
    assert_same_bits(after.es.pool, state.es.pool)


def test_variation_in_all_directions(search):
    """No offspring lies nearer to all elites, or farther from the nearest, than its scale allows."""
    method, state = with_settings(of_kind(search[0], VARIATION), line_share=0.0), search[1]
    genotypes, after = method.ask(jax.random.key(5), state)
    assert int(after.kind) == VARIATION
    low, high = np.float64(SMALL.variation) * float(state.spread)
    distance = np.linalg.norm(np.asarray(genotypes)[:, None] - elites(state), axis=-1).min(axis=1)
    assert (distance < high * np.sqrt(genotypes.shape[1]) * 2).all()
    assert (distance > low * 0.1).all()


def test_variation_along_lines(search):
    """Every offspring lies within its noise of a line through two elites."""
    method, state = with_settings(of_kind(search[0], VARIATION), line_share=1.0, intermediate_share=0.0), search[1]
    genotypes, _ = method.ask(jax.random.key(5), state)
    known = np.float64(elites(state))
    noise = SMALL.line[0] * float(state.spread) * np.sqrt(known.shape[1])

    def from_lines(genotype):
        ways = (known[None] - known[:, None])[~np.eye(len(known), dtype=bool)].reshape(len(known), -1, known.shape[1])
        ways /= np.linalg.norm(ways, axis=-1, keepdims=True)
        off = (genotype - known)[:, None]
        return np.linalg.norm(off - (off * ways).sum(axis=-1, keepdims=True) * ways, axis=-1).min()

    assert max(map(from_lines, np.asarray(genotypes))) < 2 * noise
    moved = np.linalg.norm(np.asarray(genotypes)[:, None] - known, axis=-1).min(axis=1)
    assert np.median(moved) > 5 * noise


def test_the_shares_of_lines_and_intermediate_steps(search):
    """Of two elites that share half of their parameters: what leaves those alone recombines, on their line or not."""
    shares = {"line_share": 0.6, "intermediate_share": 0.3}
    method, state = with_settings(search[0], line=(1e-6, 0.5), **shares), search[1]
    first, second = elites(state)[:2]
    alike = np.arange(len(first)) < len(first) // 2
    second = np.where(alike, first, second)
    state = with_elites(state, first, second)
    assert int(state.repertoire.filled.sum()) == 2
    keys = jax.random.split(jax.random.key(0), 100)
    off = np.asarray(jax.vmap(method.vary, (0, None))(keys, state)).reshape(-1, len(first)) - first
    recombined = (np.abs(off[:, alike]) < 1e-3).all(axis=1)
    way = (second - first) / np.linalg.norm(second - first)
    on_line = np.linalg.norm(off - (off @ way)[:, None] * way, axis=1) < 1e-3
    # 1,800 draws: standard errors of 0.012. Who has itself for a partner stays where it is, which is on the line.
    itself = recombined & (np.minimum(np.abs(off), np.abs(off - (second - first))) < 1e-3).all(axis=1)
    assert recombined.mean() == pytest.approx(0.6, abs=0.05)
    assert itself.mean() == pytest.approx(0.3, abs=0.05)
    assert (recombined & ~on_line).mean() == pytest.approx(0.6 * 0.3 / 2, abs=0.03)
    assert (recombined & on_line & ~itself).mean() == pytest.approx(0.6 * 0.7 / 2, abs=0.04)


def test_every_offspring_has_a_scale_of_its_own(search):
    """Of one elite that is its own partner: what is not recombined differs from it by noise of a log-uniform scale."""
    method, state = with_settings(search[0], line=(1e-6, 0.5), line_share=0.4), search[1]
    elite = elites(state)[0]
    state = with_elites(state, elite)
    keys = jax.random.split(jax.random.key(0), 100)
    off = np.asarray(jax.vmap(method.vary, (0, None))(keys, state)) - elite
    scale = np.sqrt(np.square(off).mean(axis=-1)) / float(state.spread)
    around = scale > 1e-3
    assert around.mean() == pytest.approx(0.6, abs=0.05)
    low, high = np.log(SMALL.variation)
    logs = [np.log(own[which]) for own, which in zip(scale, around, strict=True)]
    # With 4 parameters a root mean square is 6 % low, and its logarithm has a standard deviation of 0.4.
    assert np.median(np.concatenate(logs)) == pytest.approx((low + high) / 2, abs=0.25)
    within = np.mean([own.std(ddof=1) for own in logs])
    assert within == pytest.approx(np.hypot((high - low) / np.sqrt(12), 0.4), abs=0.15)


def test_varied_elites_are_added_and_teach_the_es_nothing(search):
    method, state = of_kind(search[0], VARIATION), search[1]
    genotypes, state = method.ask(jax.random.key(5), state)
    after, _ = method.tell(jax.random.key(6), state, genotypes, evaluation_of(np.full(BATCH, 100.0)))
    assert_same_bits((after.es.pool, after.es.scouts), (state.es.pool, state.es.scouts))
    assert (after.es.waited.tolist(), after.es.idle.tolist()) == ([0, 0, 0], [0, 0])
    assert after.es.best.tolist() == [-np.inf] * 3
    assert (int(after.num_varied), int(after.num_scouted), int(after.generation)) == (1, 0, 1)
    assert float(after.repertoire.best_fitness) == 100
    assert int(after.repertoire.counts.sum()) == 2 * BATCH


@pytest.mark.parametrize(
    ("waited", "varied", "expected"),
    [
        ([0, 0, 0], "waiting", (1, 0, 0)),
        ([1, 0, 0], "waiting", (5 / 6 * (1 - 0.4 / 6), 5 / 6 * 0.4 / 6, 1 / 6)),
        ([1, 1, 2], "waiting", (1 / 3 * (1 - 0.4 * 2 / 3), 1 / 3 * 0.4 * 2 / 3, 2 / 3)),
        ([2, 2, 2], "waiting", (0, 0, 1)),
        ([1, 1, 1], 0.25, (0.75 * 0.8, 0.75 * 0.2, 0.25)),
    ],
)
def test_the_longer_the_es_wait_the_likelier_exploration_is(search, waited, varied, expected):
    """Of a patience of 2 each; 4,000 draws tell a share to about 1 %."""
    method = with_settings(search[0], variation_share=varied, scout_share=0.4)
    state = changed(search[1], waited=jnp.array(waited))
    np.testing.assert_allclose(method.shares(state), expected, atol=1e-6)
    keys = jax.random.split(jax.random.key(0), 4000)
    kinds = np.asarray(jax.vmap(method.choose_kind, (0, None))(keys, state))
    np.testing.assert_allclose(np.bincount(kinds, minlength=3) / 4000, expected, atol=0.03)


@pytest.mark.parametrize(
    ("generation", "waited", "expected"),
    [
        (0, [0, 0, 0], (0.5, 0, 0.5)),
        (20, [0, 0, 0], (1 - 0.5 * np.exp(-2), 0, 0.5 * np.exp(-2))),
        (20, [1, 0, 0], (5 / 6 * (1 - 0.4 / 6), 5 / 6 * 0.4 / 6, 1 / 6)),  # the pool waits for longer than that
    ],
)
def test_variation_has_a_head_start(search, generation, waited, expected):
    method = with_settings(search[0], head_start=10, exploration=0.5, scout_share=0.4)
    state = changed(search[1], waited=jnp.array(waited), generation=jnp.int32(generation))
    np.testing.assert_allclose(method.shares(state), expected, atol=1e-6)


def test_every_es_learns_its_own_fitness(search):
    method, state = search
    genotypes, state = method.ask(jax.random.key(5), state)
    fitness = np.random.default_rng(0).normal(size=BATCH)
    after, _ = method.tell(jax.random.key(6), state, genotypes, evaluation_of(fitness))
    for number in range(3):
        mine = slice(6 * number, 6 * number + 6)
        steps, scores = steps_of(state.es.pool, number, genotypes[mine]), jnp.float32(fitness[mine])
        own = method.es.pool.strategy.strategy.tell(jax.random.key(9), one_of(state.es.pool, number), steps, scores)
        np.testing.assert_allclose(after.es.pool.inner.mean[number], own.mean, rtol=1e-5, atol=1e-6)
        known = float(state.repertoire.best_fitness) if number == 0 else -np.inf
        assert float(after.es.best[number]) == pytest.approx(max(fitness[mine].max(), known))
    assert int(after.es.num_restarts) == 0
    assert int(after.repertoire.counts.sum()) == 2 * BATCH
    assert_same_bits(after.es.scouts, state.es.scouts)


@pytest.mark.parametrize(("level", "waits"), [(100.0, [0, 0, 0]), (-100.0, [1, 0, 1])])
def test_starts_anew_after_waiting_in_vain(search, level, waits):
    """Three generations: the first ES gets better each time, the others do not, so after `patience` = 2 they restart.

    Above all that is known the first goes on; where better is known its own gains do not count.
    """
    method, state = of_kind(search[0], POOL), search[1]
    waited = []
    for generation in range(3):
        genotypes, state = method.ask(jax.random.key(generation), state)
        fitness = np.full(BATCH, level)
        fitness[:6] += generation
        before, (state, _) = state, method.tell(jax.random.key(7), state, genotypes, evaluation_of(fitness))
        waited.append(state.es.waited.tolist())
    assert [first for first, *_ in waited] == waits
    assert [rest for _, *rest in waited] == [[0, 0], [1, 1], [0, 0]]
    leads = waits == [0, 0, 0]
    assert int(state.es.num_restarts) == (2 if leads else 3)
    assert state.es.best[1:].tolist() == [-np.inf, -np.inf]
    assert float(state.es.best[0]) == pytest.approx(102 if leads else float(state.repertoire.best_fitness))
    fittest = np.argsort(-np.asarray(jnp.where(state.repertoire.filled, state.repertoire.fitness, -jnp.inf)))[:4]
    starts = np.asarray(state.repertoire.genotypes)[fittest]
    for number in (1, 2):
        assert any(np.array_equal(means(state.es.pool)[number], start) for start in starts)
        assert is_fresh(state.es.pool, number, state.spread)
    assert not any(np.array_equal(means(state.es.pool)[0], start) for start in starts)
    assert not is_fresh(before.es.pool, 1, state.spread)


@pytest.mark.parametrize(
    ("has_constraints", "exploration", "waits"), [(False, 0.1, 2), (True, 0.1, 10), (True, 1.0, 2)]
)
def test_waits_longer_with_constraints(search, has_constraints, exploration, waits):
    """Nothing is ever better: all ES restart after `patience` = 2 generations, with scores after five times 2."""
    method, state = with_settings(of_kind(search[0], POOL), exploration=exploration), search[1]
    tell, fitness = jax.jit(method.tell), jnp.full(BATCH, -100.0)
    evaluation = evaluation_of(fitness)
    evaluation = dataclasses.replace(evaluation, score=fitness) if has_constraints else evaluation
    genotypes, state = method.ask(jax.random.key(0), changed(state, best=jnp.zeros(3)))
    restarts = []
    for generation in range(waits):
        state, _ = tell(jax.random.key(generation), state, genotypes, evaluation)
        restarts.append(int(state.es.num_restarts))
    assert restarts == [0] * (waits - 1) + [3]


def test_scouts_learn_their_own_fitness_and_start_anew_where_nothing_is_gained(search):
    """Two scouts: the first improves its cell each time, the other finds nothing. The patience is 2."""
    method, state = of_kind(search[0], SCOUTS), all_waited(search[1])
    idle, before = [], state
    for generation in range(2):
        genotypes, state = method.ask(jax.random.key(generation), state)
        fitness = np.random.default_rng(generation).normal(size=BATCH) - 1000
        fitness[:9] = np.arange(9) + 10 * generation + 10
        asked, (state, _) = state, method.tell(jax.random.key(7), state, genotypes, evaluation_of(fitness))
        idle.append(state.es.idle.tolist())
        if generation == 0:
            for number in range(2):
                mine = slice(9 * number, 9 * number + 9)
                steps, scores = steps_of(asked.es.scouts, number, genotypes[mine]), jnp.float32(fitness[mine])
                own = method.es.scouts.strategy.strategy.tell(
                    jax.random.key(9), one_of(asked.es.scouts, number), steps, scores
                )
                np.testing.assert_allclose(state.es.scouts.inner.mean[number], own.mean, rtol=1e-5, atol=1e-6)
    assert idle == [[0, 1], [0, 0]]
    assert (elites(state) == means(state.es.scouts)[1]).all(axis=1).any()
    assert is_fresh(state.es.scouts, 1, state.spread)
    assert not is_fresh(state.es.scouts, 0, state.spread)
    assert_same_bits(state.es.pool, before.es.pool)
    assert (int(state.num_scouted), int(state.num_varied)) == (2, 0)


def test_elites_to_start_at(search):
    method, state = search
    repertoire = state.repertoire
    fittest = np.argsort(-np.asarray(jnp.where(repertoire.filled, repertoire.fitness, -jnp.inf)))[:4]
    seen = set()
    for number in range(30):
        chosen = np.asarray(method.es.choose_elites(jax.random.key(number), repertoire))
        places = [next(p for p, c in enumerate(fittest) if np.array_equal(repertoire.genotypes[c], g)) for g in chosen]
        assert places[0] == 0
        seen |= set(places[1:])
    assert seen == {0, 1, 2, 3}


def test_fewer_cells_filled_than_elites(search):
    method, state = search
    genotypes = state.repertoire.genotypes[:BATCH]
    one = method.init(jax.random.key(1), genotypes + 0.5, evaluation_of(np.arange(BATCH)))
    np.testing.assert_array_equal(means(one.es.pool), np.tile(np.asarray(genotypes[-1] + 0.5), (3, 1)))
    none = method.init(jax.random.key(1), genotypes + 0.5, evaluation_of(np.full(BATCH, np.nan)))
    np.testing.assert_array_equal(means(none.es.pool), np.tile(np.asarray(genotypes[0] + 0.5), (3, 1)))
    np.testing.assert_array_equal(means(none.es.scouts), np.tile(np.asarray(genotypes[0] + 0.5), (2, 1)))


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
    method = JEDiX(SMALL, task)
    genotypes = jnp.zeros((BATCH, 400))
    state = method.init(jax.random.key(1), genotypes, evaluation_of(np.zeros(BATCH)))
    assert float(state.spread) == pytest.approx(expected, rel=0.02)


def test_step_sizes_are_log_uniform_in_units_of_the_spread(search):
    """Kolmogorov and Smirnov, of 2,000 step sizes; `step_size` sets all of them instead."""
    method = search[0]
    units = np.asarray(method.config.units(jax.random.key(0), 2000, jnp.float32(7.0)))
    low, high = np.log(SMALL.step_range)
    assert stats.kstest(np.log(units / 7), stats.uniform(low, high - low).cdf).pvalue > 1e-4
    fixed = with_settings(method, step_size=0.05).config.units(jax.random.key(0), 5, jnp.float32(7.0))
    np.testing.assert_allclose(fixed, 0.05)


def test_bounds_the_wrong_way_round():
    with pytest.raises(jedax.JedaxError, match=r"variation: expected a low bound below a high one, got \(2.0, 1.0\)"):
        SMALL.replace(variation=(2.0, 1.0))


@pytest.mark.parametrize(
    "wrong", [{"variation_share": 1.5}, {"scout_share": -0.1}, {"line_share": 2}, {"intermediate_share": -1}]
)
def test_a_share_that_is_none(wrong):
    with pytest.raises(jedax.JedaxError, match=next(iter(wrong))):
        SMALL.replace(**wrong)


def test_scouts_have_populations_that_their_es_can_have(search):
    """Open-ES needs even ones."""
    pytest.importorskip("evosax")
    config = SMALL.replace(es="evosax:Open_ES", population=12, pool=1, scouts=4)
    assert config.num_scouts == 3
    assert JEDiX(config, search[0].problem).es.scouts.strategy.population == 4


@pytest.mark.parametrize("patience", [10**6, 2**31 - 1])
def test_a_patience_that_never_ends_restarts_nothing(patience):
    """Also times the growth of a population."""
    optimizer = jedax.Optimizer(2, es="cma-es", growth=8, patience=patience, evaluations=10**5, seed=1)
    for _ in range(12):
        asked = optimizer.ask()
        optimizer.tell(asked, np.cos(7 * asked).sum(axis=1))
    assert int(optimizer._steps.state.es.num_restarts[0]) == 0


@pytest.mark.parametrize(("population", "scouts", "number"), [(6, 4, 3), (6, 18, 9), (6, 2, 2), (2, 4, 3), (7, 2, 1)])
def test_scouts_share_a_generation_equally(search, population, scouts, number):
    method = JEDiX(SMALL.replace(population=population, scouts=scouts), search[0].problem)
    assert method.config.num_scouts == number
    assert number * method.es.scouts.strategy.population == 3 * population


def test_goes_on_with_the_same_bits(arm, tmp_path, without_figures):
    whole = jedax.run(SMALL, arm, evaluations=BATCH * 40, out=tmp_path / "whole")
    jedax.run(SMALL, arm, evaluations=BATCH * 40, max_seconds=1e-9, report_every=3, out=tmp_path / "part")
    went_on = jedax.resume(tmp_path / "part", max_seconds=600)
    np.testing.assert_array_equal(went_on.repertoire.fitness, whole.repertoire.fitness)
    for name in ("num_restarts", "num_scouted", "num_varied"):
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
    """All seeds cross the valley and are on the peak's slope, far above the 1 of the wrong corner."""
    settings = {"evaluations": 60_000, "replicas": 4}
    es = jedax.run("es-restart", Barrier(), population=64, **settings)
    ours = jedax.run("jedi-x", Barrier(), **settings)
    assert min(row["max_fitness"] for row in ours.rows[-4:]) > 1.5
    assert np.median([row["max_fitness"] for row in es.rows[-4:]]) < 1


@pytest.mark.parametrize(("restart_step", "expected"), [(None, 2.0), (3.0, 3.0)])
def test_large_populations_start_anywhere_and_small_ones_from_the_fittest(arm, restart_step, expected):
    """Large ones start with the step of restarts, as in BIPOP; small ones with a step drawn from `steps`."""
    settings = SMALL.replace(es="cma-es", growth=4, first_step=2.0, restart_step=restart_step, step_range=(0.01, 0.1))
    method = JEDiX(settings, arm)
    genotypes = jax.vmap(arm.init)(jax.random.split(jax.random.key(0), BATCH))
    state = method.init(jax.random.key(1), genotypes, arm.evaluate_batch(jax.random.key(2), genotypes))
    keys = jax.random.split(jax.random.key(3))
    starts, units = method.es.choose_starts(*keys, jnp.array([True, False, True]), state.repertoire, state.spread)
    is_elite = [bool((elites(state) == start).all(axis=1).any()) for start in np.asarray(starts)]
    assert is_elite == [False, True, False]
    assert not np.array_equal(starts[0], starts[2])
    np.testing.assert_allclose(units[::2], expected * state.spread, rtol=1e-6)
    assert 0.01 <= float(units[1] / state.spread) <= 0.1


RACE = {"pool": 1, "scouts": 1, "trial": 4, "patience": 2, "refinements": 1, "exploration": 0.0, "population": 6}


def begun(task, **changes):
    """Return the method with a race and its state after an initial batch."""
    method = JEDiX(SMALL.replace(**(RACE | changes)), task)
    genotypes = jax.vmap(task.init)(jax.random.split(jax.random.key(0), 6))
    return method, method.init(jax.random.key(1), genotypes, task.evaluate_batch(jax.random.key(2), genotypes))


def test_a_converged_population_is_recognised_by_the_solutions_with_common_whole_numbers():
    """Each row: coordinates of a whole number from 0 to 3, of two options, and of a real number."""
    space = Space(a=Integer(0, 3), b=Choice("p", "q"), x=(0, 1))
    restarting = Restarting(SMALL, OutsideTask(4, ((0.0,), (1.0,)), space))
    near, other = [0.3, 0.9, 0.1, 0.5], [[0.2, 0.9, 0.1, 0.5], [0.3, 0.1, 0.9, 0.5]]
    same_values = [0.45, 0.6, 0.3, 0.6]
    population = jnp.array([[near, *other, same_values], [near, *other, [0.8, 0.9, 0.1, 0.5]]])
    scores = jnp.array([[3.0, 1.0, jnp.nan, 2.0], [3.0, 1.0, 0.0, 2.0]])
    found, compared = restarting.without_margin(population, scores)
    settled = [3 / 8, 1, 0, 0.5]
    np.testing.assert_allclose(found[0], [settled, settled, settled, [3 / 8, 1, 0, 0.6]], rtol=1e-6)
    np.testing.assert_array_equal(compared[0], [3, -np.inf, -np.inf, 2])
    np.testing.assert_array_equal(compared[1], scores[1])  # fewer than half are like the fittest
    expected = [settled, [1 / 8, 1, 0, 0.5], [3 / 8, 0, 1, 0.5], [7 / 8, 1, 0, 0.5]]
    np.testing.assert_allclose(found[1], expected, rtol=1e-6)


def test_a_budget_that_the_heats_would_take_is_said(arm):
    method = begun(arm, trial=10, starts=6)[0]
    assert method.hints(10) == method.hints(120) == begun(arm, trial=10)[0].hints(60) == []
    assert "take 50 of 50 generations" in method.hints(50)[0]
    assert "take 60 of 119 generations" in method.hints(119)[0]


def test_a_leader_of_a_race_halves_its_step_and_goes_on_from_its_mean(arm):
    method, state = begun(arm, scout_share=0.0)
    for generation in range(4):  # gains are looked at after two and four generations
        genotypes, asked = method.ask(jax.random.key(generation), state)
        before, (state, _) = state, method.tell(jax.random.key(7), asked, genotypes, evaluation_of(np.ones(6)))
        assert int(asked.kind) == POOL
    steps = steps_of(asked.es.pool, 0, genotypes)
    learnt = method.es.pool.strategy.strategy.tell(jax.random.key(9), one_of(asked.es.pool, 0), steps, jnp.ones(6))
    centre = asked.es.pool.origin[0] + asked.es.pool.unit[0] * learnt.mean
    np.testing.assert_allclose(means(state.es.pool)[0], centre, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state.es.pool.unit, before.es.pool.unit / 2, rtol=1e-6)
    assert float(one_of(state.es.pool, 0).sigma) == 1
    assert int(state.es.race.leader.refined) == 1
    assert int(state.es.race.num_rivals) == 0


def test_a_rival_of_a_race_is_a_scout_that_takes_the_place_of_the_es(arm):
    method, state = begun(arm)
    ask, tell = jax.jit(method.ask), jax.jit(method.tell)  # else each generation compiles its branches anew
    first = float(method.config.first_step * state.spread)
    assert float(state.es.scouts.unit[0]) == pytest.approx(first)
    assert not (elites(state) == means(state.es.scouts)[0]).all(axis=1).any()  # it starts from a random genotype
    kinds, overtaken = [], False
    for generation in range(80):
        genotypes, asked = ask(jax.random.key(generation), state)
        kinds.append(int(asked.kind))
        fitness = 0.01 * generation if kinds[-1] == POOL else 9.0 + generation  # neither stagnates
        before, (state, _) = state, tell(jax.random.key(7), asked, genotypes, evaluation_of(np.full(6, fitness)))
        if int(state.es.race.num_rivals):
            overtaken = True
            break
    assert overtaken
    assert set(kinds[:4]) == {POOL}
    assert 0.2 < np.mean(np.array(kinds[4:]) == SCOUTS) < 0.8
    assert kinds.count(SCOUTS) == 16  # generations over which a level is averaged
    steps = steps_of(asked.es.scouts, 0, genotypes)
    learnt = method.es.scouts.strategy.strategy.tell(jax.random.key(9), one_of(asked.es.scouts, 0), steps, jnp.ones(6))
    np.testing.assert_allclose(one_of(state.es.pool, 0).mean, learnt.mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(state.es.pool.origin, before.es.scouts.origin)
    assert not np.array_equal(state.es.scouts.origin, before.es.scouts.origin)
    assert {"leader_level", "rival_age"} <= set(method.metrics(state))
    assert "leader_level" not in JEDiX(SMALL, arm).metrics(begun(arm, trial=0)[1])
    assert "rival" in dict(method.glossary())
    assert "rival" not in dict(JEDiX(SMALL, arm).glossary())


def test_a_rival_of_a_race_that_stagnates_at_its_goal_goes_on_from_its_mean_with_half_the_step(arm):
    method, state = begun(arm)
    leader = dataclasses.replace(
        state.es.race.leader, level=jnp.float32(20), reached=jnp.float32([5, 20]), refined=jnp.int32(1)
    )
    rival = dataclasses.replace(state.es.race.rival, age=jnp.int32(5), level=jnp.float32(6), lately=jnp.float32(6))
    race = dataclasses.replace(state.es.race, leader=leader, rival=rival)
    state = changed(state, race=race, kind=jnp.int32(SCOUTS))
    genotypes = method.again(jax.random.key(4), state)
    after, _ = method.tell(jax.random.key(7), state, genotypes, evaluation_of(np.full(6, 6.0)))
    learnt = method.es.scouts.strategy.strategy.tell(
        jax.random.key(9), one_of(state.es.scouts, 0), steps_of(state.es.scouts, 0, genotypes), jnp.full(6, 6.0)
    )
    centre = state.es.scouts.origin[0] + state.es.scouts.unit[0] * learnt.mean
    np.testing.assert_allclose(means(after.es.scouts)[0], centre, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(after.es.scouts.unit, state.es.scouts.unit / 2, rtol=1e-6)
    assert int(after.es.race.rival.refined) == 1
    assert int(after.es.race.num_rivals) == 0
    assert_same_bits(after.es.pool, state.es.pool)


def test_the_next_rival_starts_at_a_random_solution_with_the_step_of_its_kind(arm):
    method, state = begun(arm, bold_step=0.7)
    tell = jax.jit(method.tell)
    leader = dataclasses.replace(
        state.es.race.leader, age=jnp.int32(30), level=jnp.float32(120), reached=jnp.array([120.0, -jnp.inf])
    )
    rival = dataclasses.replace(leader, age=jnp.int32(3), level=jnp.float32(5), halfway=jnp.float32(5))
    state = changed(state, race=dataclasses.replace(state.es.race, leader=leader, rival=rival), kind=jnp.int32(SCOUTS))
    genotypes = method.again(jax.random.key(4), state)
    found, starts = set(), []
    for seed in range(12):
        after, _ = tell(jax.random.key(seed), state, genotypes, evaluation_of(np.full(6, 5.0)))
        assert int(after.es.race.num_rivals) == 1
        bold = bool(after.es.race.rival.bold)
        step = 0.7 if bold else method.config.first_step
        assert float(after.es.scouts.unit[0]) == pytest.approx(float(step * state.spread))
        found.add(bold)
        starts.append(np.asarray(means(after.es.scouts)))
    assert found == {False, True}
    assert len(np.unique(starts, axis=0)) == 12
    known = means(state.es.pool), means(state.es.scouts)
    assert not any(np.allclose(start, mean) for start in starts for mean in known)


def test_the_first_rival_of_a_race_is_bold(arm):
    method, state = begun(arm, bold_step=0.7)
    assert float(state.es.scouts.unit[0]) == pytest.approx(float(0.7 * state.spread))
    assert float(state.es.pool.unit[0]) == pytest.approx(float(method.config.first_step * state.spread))
    assert (bool(state.es.race.leader.bold), bool(state.es.race.rival.bold)) == (False, True)
    assert (int(method.metrics(state)["leader_bold"]), int(method.metrics(state)["rival_bold"])) == (0, 1)


def test_the_means_of_a_race_become_no_longer_than_allowed(arm):
    method, state = begun(arm, longest=0.5)
    free, _ = begun(arm)
    ask, tell, tell_free = jax.jit(method.ask), jax.jit(method.tell), jax.jit(free.tell)
    longest = 0.5 * float(state.spread) * math.sqrt(arm.num_params)
    places = {POOL: "pool", SCOUTS: "scouts"}
    told, scaled = set(), 0
    for generation in range(30):
        genotypes, asked = ask(jax.random.key(generation), state)
        evaluation = evaluation_of(generation + np.arange(6.0))
        state, _ = tell(jax.random.key(7), asked, genotypes, evaluation)
        without, _ = tell_free(jax.random.key(7), asked, genotypes, evaluation)
        place = places[int(asked.kind)]
        (mean,), (expected,) = means(getattr(state.es, place)), means(getattr(without.es, place))
        length = np.linalg.norm(expected)
        told, scaled = told | {place}, scaled + bool(length > longest)
        np.testing.assert_allclose(mean, expected * min(1, longest / length), rtol=1e-4, atol=1e-6)
        assert one_of(getattr(state.es, place), 0).sigma == one_of(getattr(without.es, place), 0).sigma
    assert told == {"pool", "scouts"}
    assert scaled > 0


@pytest.mark.parametrize("changes", [{"pool": 2}, {"scouts": 2}, {"growth": 2}])
def test_a_race_has_one_es_and_one_rival(changes):
    for wrong in ({"exploration": 1.0}, {"variation_share": 0.5}):
        with pytest.raises(JedaxError, match="trial: expected 0 unless exploration is below 1 and variation_share"):
            SMALL.replace(**(RACE | wrong))
    with pytest.raises(JedaxError, match="trial: expected 0 unless pool, scouts and growth are 1"):
        SMALL.replace(**(RACE | changes))


def test_a_race_goes_on_where_fitness_has_float64():
    """Evaluations outside JAX are told in float64."""
    optimizer = jedax.Optimizer(
        num_params=3, descriptor_bounds=([-1], [1]), evaluations=96, es="lm-ma-es", population=8, pool=1, scouts=1,
        growth=1, trial=1, head_start=0.0, exploration=0.0,
    )  # fmt: skip
    while not optimizer.done:
        genotypes = optimizer.ask()
        optimizer.tell(genotypes, -np.square(genotypes - 0.5).sum(axis=1), genotypes[:, :1])
    assert optimizer.best.fitness > -1


@pytest.fixture(scope="module")
def task():
    return PointMass(steps=20)


@pytest.fixture(scope="module")
def with_steps(task):
    """The method with PPO in its race, its `ask` and `tell`, and its state after an initial batch."""
    method = JEDiX(SMALL.replace(**RACE, gradient_steps=2, gradient_rate=0.01), task)
    genotypes = jax.vmap(task.init)(jax.random.split(jax.random.key(0), 6))
    evaluation = task.evaluate_with_transitions(jax.random.key(2), genotypes)
    state = jax.jit(method.init)(jax.random.key(1), genotypes, evaluation)
    return method, jax.jit(method.ask), jax.jit(method.tell), state


class TestPolicyGradientsOfARace:
    """PPO also moves the means of the ES of a race where genotypes are policies (`jedax.rl.ppo`)."""

    def test_it_adds_its_step_to_that_of_the_es_and_learns_of_each_apart(self, task, with_steps):
        method, ask, tell, state = with_steps
        es_alone = JEDiX(method.config.replace(gradient_steps=0), task)
        alone, moved = jax.jit(es_alone.tell), set()
        assert method.needs_transitions
        assert not es_alone.needs_transitions
        for generation in range(40):
            genotypes, asked = ask(jax.random.key(generation), state)
            place, number = {POOL: ("pool", 0), SCOUTS: ("scouts", 1)}[int(asked.kind)]
            evaluation = task.evaluate_with_transitions(jax.random.key(3), genotypes)
            after, _ = tell(jax.random.key(7), asked, genotypes, evaluation)
            if int(after.es.race.num_rivals) or int(after.es.race.leader.refined):
                break
            by_es, _ = alone(jax.random.key(7), changed(asked, learners=(None, None)), genotypes, evaluation)
            key, before = jax.random.split(jax.random.key(7), 5)[0], means(getattr(asked.es, place))[0]
            actor, learnt = method.es.ppo.train(key, asked.es.learners[number], before, evaluation.transitions)
            expected = means(getattr(by_es.es, place))[0] + actor - before
            np.testing.assert_allclose(means(getattr(after.es, place))[0], expected, atol=1e-3)
            assert np.abs(actor - before).max() > 0.01
            np.testing.assert_allclose(after.es.learners[number].critic, learnt.critic, atol=1e-3)
            jax.tree.map(np.testing.assert_array_equal, after.es.learners[1 - number], asked.es.learners[1 - number])
            state, moved = after, moved | {place}
        assert moved == {"pool", "scouts"}

    def test_its_rate_falls_with_the_step(self, task, with_steps):
        several, _, _, state = with_steps
        method = JEDiX(
            several.config.replace(gradient_steps=1), task
        )  # where the second update goes depends on the first
        tell = jax.jit(method.tell)
        before = means(state.es.pool)[0]
        state = dataclasses.replace(state, kind=jnp.int32(POOL))
        genotypes = method.again(jax.random.key(4), state)
        evaluation = task.evaluate_with_transitions(jax.random.key(3), genotypes)
        alone = jax.jit(JEDiX(method.config.replace(gradient_steps=0), task).tell)
        key = jax.random.split(jax.random.key(7), 5)[0]
        lengths = []
        for share in (1.0, 0.25):
            pool = state.es.pool._replace(unit=share * state.es.pool.unit)
            now = changed(state, pool=pool)
            after, _ = tell(jax.random.key(7), now, genotypes, evaluation)
            by_es, _ = alone(jax.random.key(7), changed(now, learners=(None, None)), genotypes, evaluation)
            actor, _ = method.es.ppo.train(key, state.es.learners[0], before, evaluation.transitions, share)
            moved = means(after.es.pool)[0] - means(by_es.es.pool)[0]
            np.testing.assert_allclose(moved, actor - before, atol=1e-3)
            lengths.append(np.linalg.norm(moved))
        assert lengths[1] == pytest.approx(lengths[0] / 4, rel=0.2)

    def test_what_it_knows_of_a_rival_goes_with_the_rival(self, task, with_steps):
        method, _, tell, state = with_steps
        low = jnp.float32(-1e6)
        racer = dataclasses.replace(state.es.race.leader, age=jnp.int32(30), level=low)
        rival = dataclasses.replace(racer, level=jnp.float32(0.0))
        state = changed(
            state, kind=jnp.int32(SCOUTS), race=dataclasses.replace(state.es.race, leader=racer, rival=rival)
        )
        genotypes = method.again(jax.random.key(4), state)
        after, _ = tell(
            jax.random.key(7), state, genotypes, task.evaluate_with_transitions(jax.random.key(3), genotypes)
        )
        assert int(after.es.race.num_rivals) == 1
        leader, fresh = after.es.learners
        for known in state.es.learners:
            assert not np.array_equal(leader.critic, known.critic)
            assert not np.array_equal(fresh.critic, known.critic)
        assert float(leader.scale) > 0
        assert float(fresh.scale) == 0

    def test_a_bold_es_moves_alone_and_its_mean_may_have_any_length(self, task, with_steps):
        method, _, _, state = with_steps
        config, bold = method.config.replace(longest=0.1, bold_step=1.0), jnp.bool_(True)
        race = dataclasses.replace(state.es.race, leader=dataclasses.replace(state.es.race.leader, bold=bold))
        state = dataclasses.replace(state, kind=jnp.int32(POOL))
        genotypes = method.again(jax.random.key(4), state)
        evaluation = task.evaluate_with_transitions(jax.random.key(3), genotypes)
        alone = changed(state, learners=(None, None))
        by_es, _ = JEDiX(SMALL.replace(**RACE), task).tell(jax.random.key(7), alone, genotypes, evaluation)
        tell = jax.jit(JEDiX(config, task).tell)
        after, _ = tell(jax.random.key(7), changed(state, race=race), genotypes, evaluation)
        np.testing.assert_allclose(means(after.es.pool), means(by_es.es.pool), rtol=1e-5, atol=1e-6)
        jax.tree.map(np.testing.assert_array_equal, after.es.learners, state.es.learners)
        guided, _ = tell(jax.random.key(7), state, genotypes, evaluation)
        assert np.linalg.norm(means(guided.es.pool)) < 0.5 * np.linalg.norm(means(by_es.es.pool))

    def test_without_steps_the_es_moves_alone(self, arm, task, with_steps):
        assert JEDiX(SMALL.replace(**RACE, gradient_steps=2), arm).es.ppo is None  # genotypes are no policies
        assert not JEDiX(SMALL.replace(gradient_steps=2), task).needs_transitions  # there is no race
        method, _, _, state = with_steps
        genotypes = method.again(jax.random.key(4), state)
        with pytest.raises(JedaxError, match="evaluation: expected transitions"):
            method.tell(jax.random.key(7), state, genotypes, task.evaluate_batch(jax.random.key(3), genotypes))

    def test_a_search_with_it_gets_further(self):
        settings = {"es": "lm-ma-es", "population": 16, "pool": 1, "scouts": 1, "trial": 50, "exploration": 0.0}
        ends = {}
        for steps in (0, 16):
            config = JediXConfig(**settings, gradient_steps=steps, gradient_rate=1e-3)
            runs = jedax.run(config, PointMass(), evaluations=1_600, replicas=3, seed=0)
            ends[steps] = [runs.best(replica).fitness for replica in range(3)]
        assert min(ends[16]) > max(ends[0])

    def test_what_it_knows_is_in_checkpoints(self, tmp_path):
        config = SMALL.replace(**RACE | {"exploration": 0.2}, gradient_steps=2)
        settings = {"task": PointMass(steps=20), "evaluations": 600, "seed": 3, "report_every": 5}
        whole = jedax.run(config, **settings)

        def stop(report):
            if report.evaluations >= 300:
                signal.raise_signal(signal.SIGINT)

        with pytest.raises(jedax.Interrupted):
            jedax.run(config, **settings, out=tmp_path / "run", callbacks=[stop])
        resumed = jedax.resume(tmp_path / "run", task=settings["task"])
        assert_same_bits(resumed.repertoire, whole.repertoire)
        assert without_seconds(resumed.rows) == without_seconds(whole.rows)
