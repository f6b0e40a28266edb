"""TD3 against NumPy, against closed forms, and on problems whose answer is known."""

import functools
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tests.rl.reference import Adam, Learner

from jedax import networks as policy
from jedax.rl import TD3, ReplayBuffer, TwinCritic
from jedax.types import Transitions


@dataclass(frozen=True)
class Net:
    """Policies from three numbers to two, unless told otherwise."""

    sizes: tuple = (3, 6, 2)

    def actions(self, genotype, observations):
        return policy.forward(policy.layers(genotype, self.sizes), observations, "relu")


def learner(hidden=(16,), sizes=(3, 6, 2), **settings):
    return TD3(Net(sizes), TwinCritic(sizes[0], sizes[-1], hidden), **{"batch": 12} | settings)


def random_steps(shape, seed=0, observation=3, action=2):
    rng = np.random.default_rng(seed)
    return Transitions(
        observations=jnp.asarray(rng.normal(size=(*shape, observation)), jnp.float32),
        actions=jnp.asarray(rng.uniform(-1, 1, (*shape, action)), jnp.float32),
        rewards=jnp.asarray(rng.normal(size=shape), jnp.float32),
        next_observations=jnp.asarray(rng.normal(size=(*shape, observation)), jnp.float32),
        terminal=jnp.asarray(rng.random(shape) < 0.3),
        valid=jnp.ones(shape, bool),
    )


def buffer_of(steps):
    """A buffer that holds these steps and no others."""
    size, observation, action = steps.rewards.size, steps.observations.shape[-1], steps.actions.shape[-1]
    return ReplayBuffer.empty(size, observation, action).add(steps)


update = jax.jit(lambda td3, *args: td3.update(*args), static_argnums=0)
train = jax.jit(lambda td3, key, state, buffer, steps: td3.train(key, state, buffer, steps), static_argnums=(0, 4))
improve = jax.jit(
    lambda td3, key, state, buffer, parents, steps, rate: td3.improve(key, state, buffer, parents, steps, rate),
    static_argnums=(0, 5, 6),
)


@functools.partial(jax.jit, static_argnums=0)
def started(td3, seed=0):
    keys = jax.random.split(jax.random.key(seed))
    return td3.init(keys[0], policy.init(keys[1], td3.policy.sizes) + 0.05)


class TestAgainstNumPy:
    CASES = (
        {"hidden": (16,)},
        {"hidden": (7, 5), "policy_delay": 3, "soft_update": 0.3, "discount": 0.7},
        {"hidden": (4,), "policy_delay": 1, "critic_rate": 1e-2, "actor_rate": 3e-3},
    )

    @pytest.mark.parametrize("case", CASES)
    def test_updates(self, case):
        td3 = learner(**case)
        state = started(td3)
        model = Learner(td3.policy.sizes, td3.critic.sizes, state.critic, state.actor, td3)
        for turn in range(4):
            batches = random_steps((td3.policy_delay, td3.batch), seed=turn)
            noise = 0.3 * np.random.default_rng(turn).normal(size=batches.actions.shape)
            state = update(td3, state, batches, jnp.asarray(noise, jnp.float32))
            for number in range(td3.policy_delay):
                batch = {name: np.asarray(value, float)[number] for name, value in vars(batches).items()}
                model.iterate(batch, noise[number])
        tight = {"rtol": 1e-4, "atol": 2e-5}
        np.testing.assert_allclose(state.critic, model.critics, **tight)
        np.testing.assert_allclose(state.target_critic, model.target_critics, **tight)
        np.testing.assert_allclose(state.actor, model.actor, **tight)
        np.testing.assert_allclose(state.target_actor, model.target_actor, **tight)
        np.testing.assert_allclose(state.loss, model.loss, rtol=1e-4)
        moved = np.abs(np.asarray(state.critic) - np.asarray(started(td3).critic)).max()
        assert moved > 100 * tight["atol"]  # so that the comparison means something

    def test_target_values_take_the_lower_network_and_stop_at_the_end(self):
        td3 = learner()
        state = started(td3)
        steps = random_steps((5, 8))
        noise = jnp.zeros((5, 8, 2))
        got = td3.target_values(state, steps, noise)
        flat = steps.next_observations.reshape(-1, 3)
        both = td3.critic.values(state.target_critic, flat, td3.policy.actions(state.target_actor, flat))
        lower = np.asarray(both).min(axis=0).reshape(5, 8)
        expected = np.asarray(steps.rewards) + 0.99 * np.where(steps.terminal, 0, lower)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
        ended = replace(steps, terminal=jnp.ones((5, 8), bool))
        np.testing.assert_array_equal(td3.target_values(state, ended, noise), steps.rewards)

    def test_smoothed_actions_stay_in_range(self):
        td3 = learner()
        state, steps = started(td3), random_steps((1, 8))
        far, at_the_border = (td3.target_values(state, steps, jnp.full((1, 8, 2), by)) for by in (50.0, 2.0))
        np.testing.assert_array_equal(far, at_the_border)


class TestAdam:
    def test_optax_is_the_published_one(self):
        ours, point = Adam(3e-3, 5), np.linspace(-1, 2, 5)
        optimizer = optax.adam(3e-3)
        theirs, moments = jnp.asarray(point, jnp.float32), None
        moments = optimizer.init(theirs)
        for number in range(50):
            slope = np.cos(point * number) + point
            step, moments = optimizer.update(jnp.asarray(slope, jnp.float32), moments)
            theirs, point = optax.apply_updates(theirs, step), ours.step(point, slope)
        np.testing.assert_allclose(theirs, point, rtol=1e-4, atol=1e-5)


def chain(steps_per_state=64):
    """Three states in a row, each seen with many actions; what is earned depends on both.

    From state 0 to 1 to 2; state 2 leads back to 0, or ends, according to `terminal`.
    """
    rng = np.random.default_rng(0)
    state = np.repeat([0, 1, 2], steps_per_state)
    action = rng.uniform(-1, 1, len(state))
    return state, action, np.array([1.0, -0.5, 2.0])[state] + 0.5 * action


class TestKnownValues:
    """With the actor held still and no noise, the critic must learn the value of that actor's policy."""

    @pytest.mark.parametrize("ends", [True, False])
    def test_critic_of_a_chain_of_states(self, ends):
        state, action, reward = chain()
        following = (state + 1) % 3
        one_hot = np.eye(3)
        steps = Transitions(
            observations=jnp.asarray(one_hot[state], jnp.float32),
            actions=jnp.asarray(action[:, None], jnp.float32),
            rewards=jnp.asarray(reward, jnp.float32),
            next_observations=jnp.asarray(one_hot[following], jnp.float32),
            terminal=jnp.asarray(ends & (state == 2)),
            valid=jnp.ones(len(state), bool),
        )
        td3 = learner(
            (16,), (3, 1), discount=0.8, target_noise=0.0, actor_rate=0.0, critic_rate=3e-3, soft_update=0.02, batch=64
        )
        actor = jnp.array([0.4, -0.8, 1.2, 0.1])  # a linear layer: one weight per state, and a bias
        learnt = train(td3, jax.random.key(1), td3.init(jax.random.key(0), actor), buffer_of(steps), 8000)

        chosen = np.tanh(np.array([0.4, -0.8, 1.2]) + 0.1)
        moves = np.eye(3)[[1, 2, 0]] * np.array([1, 1, 0 if ends else 1])[:, None]
        earned = np.array([1.0, -0.5, 2.0]) + 0.5 * chosen
        value = np.linalg.solve(np.eye(3) - 0.8 * moves, earned)  # Bellman
        actions = np.linspace(-1, 1, 9)
        for number in range(3):
            seen = jnp.tile(jnp.asarray(one_hot[number], jnp.float32), (9, 1))
            expected = np.array([1.0, -0.5, 2.0])[number] + 0.5 * actions + 0.8 * moves[number] @ value
            got = td3.critic.values(learnt.critic, seen, jnp.asarray(actions[:, None], jnp.float32))
            np.testing.assert_allclose(got, np.stack([expected, expected]), atol=0.08)
        np.testing.assert_array_equal(learnt.actor, actor)

    def test_greedy_actor_finds_the_best_action(self):
        rng = np.random.default_rng(0)
        seen, action = rng.uniform(-1, 1, (3000, 1)), rng.uniform(-1, 1, (3000, 1))
        steps = Transitions(
            observations=jnp.asarray(seen, jnp.float32),
            actions=jnp.asarray(action, jnp.float32),
            rewards=jnp.asarray(-((action - 0.6 * seen) ** 2)[:, 0], jnp.float32),
            next_observations=jnp.asarray(seen, jnp.float32),
            terminal=jnp.ones(3000, bool),
            valid=jnp.ones(3000, bool),
        )
        td3 = learner((32, 32), (1, 8, 1), actor_rate=3e-3, critic_rate=3e-3, batch=64)
        learnt = train(td3, jax.random.key(1), started(td3), buffer_of(steps), 4000)
        at = jnp.linspace(-1, 1, 21)[:, None]
        np.testing.assert_allclose(td3.policy.actions(learnt.actor, at), 0.6 * at, atol=0.12)


class TestTrain:
    def test_an_empty_buffer_teaches_nothing(self):
        td3 = learner()
        state = started(td3)
        after = train(td3, jax.random.key(1), state, ReplayBuffer.empty(10, 3, 2), 4)
        for new, old in zip(jax.tree.leaves(after), jax.tree.leaves(state), strict=True):
            np.testing.assert_array_equal(new, old)

    def test_noise_is_clipped(self):
        """Noise of any strength moves actions by the clip at most."""
        td3 = learner((16,), target_noise=1e6, target_noise_clip=0.0)
        calm = replace(td3, target_noise=0.0)
        buffer, state = buffer_of(random_steps((40,))), started(td3)
        got, expected = (train(one, jax.random.key(1), state, buffer, 4) for one in (td3, calm))
        np.testing.assert_array_equal(got.critic, expected.critic)
        rough = train(replace(td3, target_noise_clip=0.5), jax.random.key(1), state, buffer, 4)
        assert jnp.abs(rough.critic - expected.critic).max() > 1e-6

    def test_replicas_do_not_mix(self):
        td3 = learner()
        buffers = [buffer_of(random_steps((40,), seed)) for seed in range(3)]
        states, keys = [started(td3, seed) for seed in range(3)], jax.random.split(jax.random.key(0), 3)
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *zip(states, buffers, strict=True))
        together = jax.jit(jax.vmap(lambda key, pair: td3.train(key, *pair, 6)))(keys, stacked)
        for i in range(3):
            alone = train(td3, keys[i], states[i], buffers[i], 6)
            np.testing.assert_allclose(together.critic[i], alone.critic, atol=1e-5)
            np.testing.assert_allclose(together.target_actor[i], alone.target_actor, atol=1e-5)


class TestImprove:
    """The policy gradient variation."""

    def setup_method(self):
        self.td3 = learner((16,), batch=64)
        self.buffer = buffer_of(random_steps((500,)))
        self.state = train(self.td3, jax.random.key(5), started(self.td3), self.buffer, 200)
        keys = jax.random.split(jax.random.key(2), 10)
        self.parents = jax.vmap(lambda key: policy.init(key, self.td3.policy.sizes))(keys)

    def value(self, genotypes):
        """Mean value of what each policy does, over all that was seen."""
        seen = self.buffer.rows[:, :3]
        loss = jax.jit(jax.vmap(lambda genotype: self.td3.actor_loss(genotype, self.state.critic, seen)))
        return -np.asarray(loss(genotypes))

    def test_value_rises_for_every_parent(self):
        key = jax.random.key(3)
        ten = improve(self.td3, key, self.state, self.buffer, self.parents, 10, 1e-3)
        hundred = improve(self.td3, key, self.state, self.buffer, self.parents, 100, 1e-2)
        assert (self.value(ten) > self.value(self.parents)).all()
        assert (self.value(hundred) > self.value(ten)).all()
        assert np.abs(ten - self.parents).max() <= 10 * 1e-3 * 1.01  # Adam's steps are about as long as its rate

    def test_steps_are_those_of_a_fresh_adam_on_shared_minibatches(self):
        key = jax.random.key(4)
        got = improve(self.td3, key, self.state, self.buffer, self.parents[:3], 5, 1e-3)
        batches = np.asarray(self.buffer.sample(key, (5, 64)).observations, float)
        model = Learner(self.td3.policy.sizes, self.td3.critic.sizes, self.state.critic, self.parents[0], self.td3)
        for parent, offspring in zip(np.asarray(self.parents[:3], float), got, strict=True):
            adam, genotype = Adam(1e-3, len(parent)), parent
            for seen in batches:
                genotype = adam.step(genotype, model.actor_slope(genotype, seen))
            np.testing.assert_allclose(offspring, genotype, atol=3e-5)

    def test_parents_do_not_mix(self):
        key = jax.random.key(4)
        together = improve(self.td3, key, self.state, self.buffer, self.parents, 10, 1e-3)
        alone = improve(self.td3, key, self.state, self.buffer, self.parents[4:5], 10, 1e-3)
        np.testing.assert_allclose(together[4:5], alone, atol=1e-5)
