"""PPO on the steps of a population, against NumPy, against closed forms, and on a problem whose answer is known."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.rl.reference import Adam
from tests.rl.reference import Net as Reference
from tests.rl.test_td3 import Net, random_steps

from jedax import networks
from jedax.errors import JedaxError
from jedax.rl import PPO

POLICY = (3, 6, 2)
VALUE = Reference((3, 64, 64, 1), tanh=False, smooth=True)


def learner(**settings):
    return PPO(Net(POLICY), POLICY[0], **{"steps": 3, "batch": 16} | settings)


def chained(steps):
    """Return the steps with the next observation of each that of the step after it."""
    following = jnp.concatenate([steps.observations[:, 1:], steps.next_observations[:, -1:]], axis=1)
    return replace(steps, next_observations=following)


def started(ppo, seed=0):
    keys = jax.random.split(jax.random.key(seed))
    actor = networks.init(keys[1], POLICY) + 0.05
    return ppo.init(keys[0], actor), actor


train = jax.jit(lambda ppo, key, state, actor, steps: ppo.train(key, state, actor, steps), static_argnums=0)


class TestAdvantages:
    @pytest.mark.parametrize("trace", [0.0, 0.6, 1.0])
    def test_sum_discounted_errors_until_the_episode_ends(self, trace):
        ppo = learner(trace=trace, discount=0.9)
        critic = started(ppo)[0].critic
        steps, length = chained(random_steps((5, 7))), [7, 3, 1, 0, 6]
        ends = np.zeros((5, 7), bool)
        ends[1, 2] = ends[2, 0] = True  # these two fall, the others are cut off
        valid = np.arange(7) < np.array(length)[:, None]
        steps = replace(steps, terminal=jnp.asarray(ends), valid=jnp.asarray(valid))
        found, returns = ppo.advantages(critic, steps)
        values, following = (np.asarray(ppo.values(critic, o)) for o in (steps.observations, steps.next_observations))
        for one in range(5):
            for first in range(length[one]):
                total = 0.0
                for step in range(first, length[one]):
                    after = 0.0 if ends[one, step] else following[one, step]
                    error = float(steps.rewards[one, step]) + 0.9 * after - values[one, step]
                    total += (0.9 * trace) ** (step - first) * error
                assert found[one, first] == pytest.approx(total, rel=1e-4, abs=1e-5)
                assert returns[one, first] == pytest.approx(total + values[one, first], rel=1e-4, abs=1e-5)

    def test_they_do_not_go_on_into_the_next_episode_of_a_solution(self):
        ppo = learner()
        critic = started(ppo)[0].critic
        first, second = (chained(random_steps((4, 5), seed)) for seed in (1, 2))
        both = jax.tree.map(lambda *leaves: jnp.concatenate(leaves, axis=1), first, second)
        both = replace(both, terminal=jnp.zeros_like(both.terminal))
        found, _ = ppo.advantages(critic, both)
        for part, steps in ((found[:, :5], first), (found[:, 5:], second)):
            alone = replace(steps, terminal=jnp.zeros_like(steps.terminal))
            np.testing.assert_allclose(part, ppo.advantages(critic, alone)[0], atol=1e-5)

    def test_the_value_network_is_that_of_numpy(self):
        ppo = learner(mean=(0.5, -1.0, 2.0), std=(2.0, 0.5, 1.0))
        critic, seen = started(ppo)[0].critic, np.random.default_rng(1).normal(size=(9, 3))
        values = (seen - np.array(ppo.mean)) / np.array(ppo.std)
        values, _ = VALUE.forward(np.asarray(critic, float), values)
        np.testing.assert_allclose(ppo.values(critic, jnp.asarray(seen, jnp.float32)), values[:, 0], atol=1e-5)


class Constant:
    """Policies whose two actions are their parameters."""

    def actions(self, genotype, observations):
        return jnp.broadcast_to(genotype, (len(observations), 2))


class TestSurrogate:
    def test_its_slope_at_the_mean_is_the_policy_gradient(self):
        ppo = learner()
        actor, steps, std = started(ppo)[1], random_steps((16,), seed=3), jnp.array([0.3, 0.5])
        before = ppo.policy.actions(actor, steps.observations)
        actions = before + std * jax.random.normal(jax.random.key(5), before.shape)

        def log_probability(actor):
            mean = ppo.policy.actions(actor, steps.observations)
            return jax.scipy.stats.norm.logpdf(actions, mean, std).sum(axis=-1)

        expected = -(steps.rewards @ jax.jacobian(log_probability)(actor)) / 16
        slope, change = jax.grad(ppo.surrogate, has_aux=True)(
            actor, steps.observations, actions, before, steps.rewards, std
        )
        np.testing.assert_allclose(slope, expected, atol=1e-5)
        assert change == pytest.approx(0, abs=1e-5)

    @pytest.mark.parametrize("after", [-0.3, -0.05, 0.0, 0.02, 0.05, 0.3])
    @pytest.mark.parametrize("advantage", [-2.0, 1.0])
    def test_it_does_not_go_on_beyond_the_clip(self, after, advantage):
        ppo = replace(learner(clip=0.2), policy=Constant())
        actions, std = jnp.array([[0.5, 0.0]]), jnp.array([0.5, 0.2])
        arguments = jnp.zeros((1, 3)), actions, jnp.zeros((1, 2)), jnp.array([advantage]), std
        (loss, change), slope = jax.value_and_grad(ppo.surrogate, has_aux=True)(jnp.array([after, 0.0]), *arguments)
        ratio = np.exp((0.5**2 - (0.5 - after) ** 2) / (2 * 0.5**2))
        assert change == pytest.approx(abs(ratio - 1), abs=1e-5)
        assert loss == pytest.approx(-min(ratio * advantage, np.clip(ratio, 0.8, 1.2) * advantage), rel=1e-5)
        is_beyond = ratio > 1.2 if advantage > 0 else ratio < 0.8
        assert slope[0] == pytest.approx(0 if is_beyond else -ratio * advantage * (0.5 - after) / 0.5**2, rel=1e-4)


class TestTrain:
    @pytest.mark.parametrize("stop", [10.0, 0.01])
    def test_updates_are_those_of_numpy(self, stop):
        ppo = learner(stop=stop, actor_rate=1e-2)
        state, actor = started(ppo)
        steps = random_steps((4, 10), seed=7)
        steps = replace(steps, valid=jnp.asarray(np.arange(10) < np.array([10, 4, 7, 2])[:, None]))
        key = jax.random.key(3)
        moved, learnt = train(ppo, key, state, actor, steps)

        valid, rewards = np.asarray(steps.valid), np.asarray(steps.rewards, float)
        scale = np.sqrt(np.mean(rewards[valid] ** 2))
        advantages, returns = ppo.advantages(state.critic, replace(steps, rewards=jnp.asarray(0.01 * rewards / scale)))
        advantages = np.asarray((advantages - advantages[valid].mean()) / advantages[valid].std(), float)
        policy, value = Reference(POLICY, tanh=True), VALUE
        genotype, critic = np.asarray(actor, float), np.asarray(state.critic, float)
        of_actor, of_critic = Adam(ppo.actor_rate, len(genotype)), Adam(ppo.critic_rate, len(critic))
        drawn = np.flatnonzero(valid)[np.asarray(jax.random.randint(key, (3, 16), 0, valid.sum()))]
        seen, acted = (np.asarray(x, float).reshape(40, -1)[drawn] for x in (steps.observations, steps.actions))
        before = np.stack([policy.forward(genotype, each)[0] for each in seen])
        std, goes_on, updates = np.sqrt(np.mean((acted - before) ** 2, axis=(0, 1))) + 0.1, True, 0
        for turn, places in enumerate(drawn):
            after, kept = policy.forward(genotype, seen[turn])
            exponent = (((acted[turn] - before[turn]) / std) ** 2 - ((acted[turn] - after) / std) ** 2).sum(axis=1) / 2
            ratio, advantage = np.exp(np.clip(exponent, -10, 10)), advantages.ravel()[places]
            counts = np.where(advantage > 0, ratio <= 1.2, ratio >= 0.8) * ratio * advantage
            slope = policy.backward(genotype, kept, after, -counts[:, None] * (acted[turn] - after) / std**2 / 16)[0]
            goes_on = goes_on and np.abs(ratio - 1).mean() < stop
            updates += goes_on
            genotype = of_actor.step(genotype, slope) if goes_on else genotype
            values, kept = value.forward(critic, seen[turn])
            error = values[:, 0] - np.asarray(returns).ravel()[places]
            critic = of_critic.step(critic, value.backward(critic, kept, values, 2 * error[:, None] / 16)[0])
        assert updates == (3 if stop == 10.0 else 1)
        np.testing.assert_allclose(moved, genotype, atol=2e-4)
        np.testing.assert_allclose(learnt.critic, critic, atol=2e-4)
        assert learnt.scale == pytest.approx(scale, rel=1e-5)

    def test_steps_that_are_not_valid_or_not_finite_do_not_count(self):
        ppo = learner()
        state, actor = started(ppo)
        steps = random_steps((4, 10), seed=7)
        steps = replace(steps, valid=steps.valid.at[1].set(False).at[3, 5:].set(False))
        found = train(ppo, jax.random.key(0), state, actor, steps)
        spoilt = replace(
            steps,
            rewards=steps.rewards.at[1].set(1e6).at[3, 7].set(jnp.nan),
            observations=steps.observations.at[3, 6].set(jnp.inf),
            valid=steps.valid.at[3, 6:8].set(True),
        )
        again = train(ppo, jax.random.key(0), state, actor, spoilt)
        jax.tree.map(np.testing.assert_array_equal, found, again)
        assert not np.array_equal(found[0], actor)

    def test_a_slower_pace_is_a_smaller_rate_of_the_policy(self):
        ppo, slow = learner(actor_rate=1e-2), learner(actor_rate=2e-3)
        state, actor = started(ppo)
        steps = random_steps((4, 10), seed=7)
        paced, expected = (
            each.train(jax.random.key(0), state, actor, steps, pace) for each, pace in ((ppo, 0.2), (slow, 1.0))
        )
        np.testing.assert_allclose(paced[0], expected[0], atol=1e-6)
        np.testing.assert_allclose(paced[1].critic, expected[1].critic, atol=1e-6)
        assert not np.allclose(paced[0], actor, atol=1e-3)

    def test_without_steps_nothing_changes(self):
        ppo = learner()
        state, actor = started(ppo)
        steps = random_steps((4, 10), seed=7)
        found = train(ppo, jax.random.key(0), state, actor, replace(steps, valid=jnp.zeros_like(steps.valid)))
        jax.tree.map(np.testing.assert_array_equal, found, (actor, state))

    def test_it_finds_the_best_action_of_every_state(self):
        sizes = (2, 16, 1)
        ppo = PPO(Net(sizes), 2, steps=16, batch=128, actor_rate=3e-3)
        actor = networks.init(jax.random.key(1), sizes)
        state, initial = ppo.init(jax.random.key(0), actor), actor

        def best(observations):
            return 0.5 * jnp.tanh(observations[..., :1])

        @jax.jit
        def generation(key, actor, state):
            noise_key, seen_key, train_key = jax.random.split(key, 3)
            members = actor + 0.05 * jax.random.normal(noise_key, (32, actor.size))
            seen = jax.random.normal(seen_key, (32, 20, 2))
            actions = jax.vmap(ppo.policy.actions)(members, seen)
            steps = random_steps((32, 20), observation=2, action=1)
            rewards = -jnp.square(actions - best(seen))[..., 0]
            always = jnp.ones((32, 20), bool)
            steps = replace(steps, observations=seen, actions=actions, rewards=rewards, terminal=always, valid=always)
            return ppo.train(train_key, state, actor, steps)

        def error(actor):
            seen = jax.random.normal(jax.random.key(9), (500, 2))
            return float(jnp.square(ppo.policy.actions(actor, seen) - best(seen)).mean())

        for key in jax.random.split(jax.random.key(2), 100):
            actor, state = generation(key, actor, state)
        assert error(initial) > 0.3
        assert error(actor) < 0.03


def test_a_discount_of_1_would_leave_no_rewards():
    with pytest.raises(JedaxError, match=r"^discount: expected 0 to below 1, got 1.0"):
        learner(discount=1.0)
