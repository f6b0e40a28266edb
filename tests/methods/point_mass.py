"""A cheap control task: push a mass on a plane to a place and make it stay there."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jedax import networks as policy
from jedax.tasks import Task
from jedax.types import Evaluation, Transitions

GOAL = jnp.array([0.6, -0.4])


@dataclass(frozen=True)
class PointMass(Task):
    """Position and velocity in, push out; each step costs the distance to the goal and some effort.

    Fitness: the sum of the rewards. Descriptor: where the mass was on average in the first half of the episode.
    """

    hidden: tuple = (16, 16)
    steps: int = 40
    with_descriptor: bool = True

    name = "point-mass"
    descriptor_bounds = ((-1.0, -1.0), (1.0, 1.0))
    qd_offset = -100.0
    observation_size = 4
    action_size = 2

    @property
    def sizes(self):
        return (4, *self.hidden, 2)

    @property
    def num_params(self):
        return policy.num_params(self.sizes)

    def init(self, key):
        return policy.init(key, self.sizes)

    def actions(self, genotype, observations):
        return policy.forward(policy.layers(genotype, self.sizes), observations, "tanh")

    def evaluate(self, key, genotype):
        evaluation = self._roll(genotype)
        return Evaluation(evaluation.fitness, evaluation.descriptor)

    def evaluate_with_transitions(self, key, genotypes):
        return jax.vmap(self._roll)(genotypes)

    def _roll(self, genotype):
        def step(state, _):
            push = self.actions(genotype, state[None])[0]
            velocity = 0.9 * state[2:] + 0.05 * push
            after = jnp.concatenate([jnp.clip(state[:2] + velocity, -1, 1), velocity])
            reward = -jnp.abs(after[:2] - GOAL).sum() - 0.1 * jnp.square(push).sum()
            return after, (state, push, reward, after)

        _, (before, pushes, rewards, after) = jax.lax.scan(step, jnp.zeros(4), length=self.steps)
        never, always = jnp.zeros(self.steps, bool), jnp.ones(self.steps, bool)
        descriptor = before[: self.steps // 2, :2].mean(axis=0)
        return Evaluation(rewards.sum(), descriptor, Transitions(before, pushes, rewards, after, never, always))
