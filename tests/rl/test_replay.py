"""The replay buffer against a deque."""

import dataclasses
from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jedax.rl import ReplayBuffer
from jedax.types import Transitions

add = jax.jit(lambda buffer, transitions: buffer.add(transitions))
sample = jax.jit(lambda buffer, key: buffer.sample(key, (40, 50)))


def steps(first, valid):
    """A batch of steps, numbered from `first`, whose every field tells its number."""
    valid = np.asarray(valid)
    number = first + np.arange(valid.size).reshape(valid.shape)
    return Transitions(
        observations=jnp.asarray(np.stack([number, number + 0.25, -number], axis=-1), jnp.float32),
        actions=jnp.asarray(np.stack([number / 1000, -number / 1000], axis=-1), jnp.float32),
        rewards=jnp.asarray(10.0 * number, jnp.float32),
        next_observations=jnp.asarray(np.stack([number + 1, number + 1.25, -number - 1], axis=-1), jnp.float32),
        terminal=jnp.asarray(number % 3 == 0),
        valid=jnp.asarray(valid),
    )


def numbers_held(buffer):
    """The numbers of the steps in a buffer, oldest first."""
    oldest = int(buffer.position) - int(buffer.count)
    rows = np.asarray(buffer.rows)[(oldest + np.arange(int(buffer.count))) % buffer.capacity]
    return rows[:, 0].tolist()


masks = st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=6)


class TestRing:
    @pytest.mark.parametrize("capacity", [1, 4, 6, 7, 40])
    @settings(max_examples=40, deadline=None)
    @given(masks=masks)
    def test_like_a_deque(self, capacity, masks):
        buffer, model = ReplayBuffer.empty(capacity, 3, 2), deque(maxlen=capacity)
        for turn, mask in enumerate(masks):
            buffer = add(buffer, steps(6 * turn, np.reshape(mask, (2, 3))))
            model.extend(float(6 * turn + i) for i in np.flatnonzero(mask))
            assert int(buffer.count) == len(model)
            assert numbers_held(buffer) == list(model)

    def test_replicas_do_not_mix(self):
        masks = np.random.default_rng(0).random((3, 2, 3)) < 0.5
        empty = jax.vmap(lambda _: ReplayBuffer.empty(4, 3, 2))(jnp.arange(3))
        batches = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[steps(6 * i, masks[i]) for i in range(3)])
        together = jax.jit(jax.vmap(ReplayBuffer.add))(empty, batches)
        for i in range(3):
            alone = add(ReplayBuffer.empty(4, 3, 2), steps(6 * i, masks[i]))
            assert numbers_held(jax.tree.map(lambda leaf, i=i: leaf[i], together)) == numbers_held(alone)

    @pytest.mark.parametrize("field", ["observations", "actions", "rewards", "next_observations"])
    def test_numbers_that_are_not_finite_stay_out(self, field):
        batch = steps(1, np.ones((2, 3), bool))
        spoilt = getattr(batch, field).reshape(6, -1).at[2, 0].set(jnp.nan).at[4, -1].set(jnp.inf)
        spoilt = spoilt.reshape(getattr(batch, field).shape)
        buffer = add(ReplayBuffer.empty(40, 3, 2), dataclasses.replace(batch, **{field: spoilt}))
        assert numbers_held(buffer) == [1, 2, 4, 6]

    def test_adding_keeps_its_memory_and_does_not_recompile(self):
        scan = jax.jit(
            lambda buffer, batch: jax.lax.scan(lambda b, _: (b.add(batch), None), buffer, length=5)[0],
            donate_argnums=0,
        )
        buffer, batch = ReplayBuffer.empty(40, 3, 2), steps(0, np.ones((2, 3), bool))
        where = buffer.rows.unsafe_buffer_pointer()
        buffer = scan(scan(buffer, batch), batch)
        assert buffer.rows.unsafe_buffer_pointer() == where
        assert scan._cache_size() == 1
        assert int(buffer.count) == 40


class TestSample:
    def test_each_held_step_alike_and_whole(self):
        mask = np.array([1, 1, 0, 1, 1, 1], bool).reshape(2, 3)
        buffer = add(add(ReplayBuffer.empty(8, 3, 2), steps(0, mask)), steps(6, mask))  # 10 valid steps: 2 are gone
        drawn = jax.tree.map(np.asarray, sample(buffer, jax.random.key(0)))
        number = drawn.observations[..., 0]
        held, count = np.unique(number, return_counts=True)
        assert held.tolist() == [3, 4, 5, 6, 7, 9, 10, 11]
        expected = number.size / 8
        assert ((count - expected) ** 2 / expected).sum() < 24.3  # chi-squared, 7 degrees of freedom, p = 0.001
        np.testing.assert_array_equal(drawn.observations, np.stack([number, number + 0.25, -number], axis=-1))
        np.testing.assert_allclose(drawn.actions, np.stack([number, -number], axis=-1) / 1000, rtol=1e-6)
        np.testing.assert_array_equal(drawn.rewards, 10 * number)
        following = np.stack([number + 1, number + 1.25, -number - 1], axis=-1)
        np.testing.assert_array_equal(drawn.next_observations, following)
        np.testing.assert_array_equal(drawn.terminal, number % 3 == 0)
        assert drawn.terminal.dtype == bool
        assert drawn.valid.shape == (40, 50)
        assert drawn.valid.all()

    def test_rows_that_hold_nothing_are_not_drawn(self):
        buffer = add(ReplayBuffer.empty(40, 3, 2), steps(1, np.ones((2, 3), bool)))
        assert np.unique(sample(buffer, jax.random.key(0)).observations[..., 0]).tolist() == [1, 2, 3, 4, 5, 6]

    def test_an_empty_buffer_says_so(self):
        drawn = sample(ReplayBuffer.empty(8, 3, 2), jax.random.key(0))
        assert not drawn.valid.any()
        assert (drawn.observations == 0).all()
