"""What all control tasks have in common: a policy, a robot, an episode, and what of it counts."""

from __future__ import annotations

import abc
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jedax import networks as policy
from jedax.errors import JedaxError, fail
from jedax.native import choose
from jedax.tasks.base import ConfiguredTask
from jedax.tasks.control.settings import ControlConfig
from jedax.types import Array, Bool, Evaluation, Float, Int, PRNGKeyArray, Transitions

# Policies that a CPU runs side by side: their weights are read anew in every step and should stay in its caches, and
# the simulation of a part ends with the last of its robots.
_PART = 32


class Tally(NamedTuple):
    """What an episode has come to so far.

    Attributes:
        fitness: Rewards of the steps that count: all up to and including the one that ends the episode.
        length: How many these are.
        alive: Whether the episode goes on.
        behaviour: `(d,)`, the sum of what was seen in these steps, or what was seen in the last of them.
    """

    fitness: Float[Array, ""]
    length: Int[Array, ""]
    alive: Bool[Array, ""]
    behaviour: Float[Array, " descriptor"]

    @classmethod
    def begin(cls, num_descriptors: int, alive: Bool[Array, ""] | bool = True) -> Tally:
        """Return the tally of an episode without steps."""
        return cls(jnp.float32(0), jnp.int32(0), jnp.asarray(alive), jnp.zeros(num_descriptors))

    def count(
        self,
        reward: Float[Array, ""],
        done: Bool[Array, ""],
        seen: Float[Array, " descriptor"],
        *,
        sums: bool,
    ) -> Tally:
        """Return the tally after one more step, which counts only where the episode was going on before it.

        Args:
            reward: What the step earned.
            done: Whether the episode ended with it.
            seen: What it says of the behaviour.
            sums: Whether behaviour is summed up over steps; else the last step's stays.
        """
        behaviour = self.behaviour + seen if sums else seen
        return Tally(
            fitness=self.fitness + jnp.where(self.alive, reward, 0),
            length=self.length + self.alive,
            alive=self.alive & ~done,
            behaviour=jnp.where(self.alive, behaviour, self.behaviour),
        )


class Episode(NamedTuple):
    """An episode while it goes on.

    Attributes:
        physics: Brax's state of the robot.
        observation: `(o,)`, what the policy sees next.
        tally: What counts.
    """

    physics: Any
    observation: Float[Array, " observation"]
    tally: Tally


class Trajectory(NamedTuple):
    """All steps of one episode; the robot is simulated to the end even if the episode ends before.

    Attributes:
        observations: `(steps, o)`, before each step.
        actions: `(steps, a)`, each in [-1, 1].
        rewards: `(steps,)`, what each step earned.
        next_observations: `(steps, o)`, after each step.
        done: `(steps,)`, whether the step ended the episode.
        q: `(steps, q)`, Brax's joint coordinates after each step.
        positions: `(steps, links, 3)`, of the robot's links after each step, in metres.
        rotations: `(steps, links, 4)`, quaternions of the links, real part first.
        length: Steps that count: up to and including the first that is done.
    """

    observations: Float[Array, "steps observation"]
    actions: Float[Array, "steps action"]
    rewards: Float[Array, " steps"]
    next_observations: Float[Array, "steps observation"]
    done: Bool[Array, " steps"]
    q: Float[Array, "steps q"]
    positions: Float[Array, "steps links 3"]
    rotations: Float[Array, "steps links 4"]
    length: Int[Array, ""]


class ControlTask(ConfiguredTask):
    """A robot that a multilayer perceptron controls (paper, section 5.1).

    Every episode begins in the same state, the one that Brax's `reset` draws from the setting `start_seed`, and
    nothing in it is random: a genotype always gets the same evaluation. With `random_resets` each episode begins in a
    state of its own, which `reset` draws from the evaluation's key. Steps after the one in which the robot
    falls or leaves its range ("done") count neither for the fitness nor for the descriptor.
    """

    config: Any
    config_class = ControlConfig
    sums_behaviour: bool

    @property
    @abc.abstractmethod
    def robot(self) -> str:
        """The robot's name in `jedax.tasks.control.simulator`."""

    @abc.abstractmethod
    def _seen(self, physics: Any) -> Float[Array, " descriptor"]:
        """Return what a state says of the behaviour."""

    def _earned(self, reward: Float[Array, ""], done: Bool[Array, ""], tally: Tally) -> Float[Array, ""]:
        """Return what a step is worth, given the steps before it."""
        return reward

    def _descriptor(self, tally: Tally) -> Float[Array, " descriptor"]:
        """Return the behaviour of an episode that has ended."""
        return tally.behaviour

    @property
    def is_noisy(self) -> bool:
        """Whether episodes begin in random states."""
        return self.config.random_resets

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Neurons of each layer of the policy, observation and action included."""
        return (self.observation_size, *self.config.hidden, self.action_size)  # type: ignore[return-value]

    @property
    def num_params(self) -> int:
        """Weights and biases of the policy."""
        return policy.num_params(self.layer_sizes)

    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Draw one random genotype: kernels LeCun-uniform, biases zero."""
        return policy.init(key, self.layer_sizes)

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        """Evaluate one genotype; `key` is used for random resets alone.

        A policy with weights that are not finite, or one that breaks the simulation, fails: its fitness is NaN.
        """
        self._check(genotype)
        layers = policy.layers(genotype, self.layer_sizes)
        finite = jnp.isfinite(genotype).all()
        episode = jax.lax.while_loop(
            lambda episode: episode.tally.alive & (episode.tally.length < self.config.steps),
            lambda episode: self._step(layers, episode)[0],
            self._begin(key, finite),
        )
        return self._evaluation(episode.tally, finite)

    def evaluate_batch(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Evaluate a batch: on a CPU in parts that its caches can hold, elsewhere all at once."""
        self._check_batch(genotypes)
        return _in_parts(self.evaluate, self._keys(key, len(genotypes)), genotypes)

    def evaluate_with_transitions(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Return fitness and descriptors as `evaluate_batch` does, and every step as well.

        Falling is terminal, the time limit is not. A policy that failed has no valid steps. Fitness is that of these
        very steps: up to rounding, which robots magnify, what `evaluate_batch` says.
        """
        self._check_batch(genotypes)

        def evaluate(key: PRNGKeyArray | None, genotype: Float[Array, " params"]) -> Evaluation:
            tally, steps = self._record(key, genotype)
            evaluation = self._evaluation(tally, jnp.isfinite(genotype).all())
            counts = jnp.arange(self.config.steps) < steps.length
            transitions = Transitions(
                observations=steps.observations,
                actions=steps.actions,
                rewards=steps.rewards,
                next_observations=steps.next_observations,
                terminal=steps.done & counts,
                valid=counts & evaluation.valid,
            )
            return replace(evaluation, transitions=transitions)

        return _in_parts(evaluate, self._keys(key, len(genotypes)), genotypes)

    def rollout(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Trajectory:
        """Return every step of one episode; `key` as in `evaluate`."""
        self._check(genotype)
        return self._record(key, genotype)[1]

    def rollout_batch(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Trajectory:
        """Return every step of one episode of each genotype, batch first; `key` as in `evaluate`.

        Robots magnify rounding, and programs for few and for many genotypes round apart: the steps are those that
        `evaluate_batch` took if as many genotypes are given, or a whole part (32).
        """
        self._check_batch(genotypes)
        keys = self._keys(key, len(genotypes))
        return jax.vmap(lambda key, genotype: self._record(key, genotype)[1])(keys, genotypes)

    def replay(self, genotype: Float[Array, " params"]) -> Trajectory:
        """Return every step of one episode as `evaluate_batch` takes them in a part of a batch on a CPU.

        With random resets it begins in some random state, not in one of those of the search.
        """
        self._check(genotype)
        copies = jnp.broadcast_to(genotype, (_PART, self.num_params))
        return jax.tree.map(lambda leaf: leaf[0], self.rollout_batch(jax.random.key(0), copies))

    def actions(
        self, genotype: Float[Array, " params"], observations: Float[Array, "batch observation"]
    ) -> Float[Array, "batch action"]:
        """Return what ONE policy does, each number in [-1, 1], for many observations."""
        return policy.apply_batch(genotype, observations, self.layer_sizes, self.config.activation)

    def act(self, genotype: Float[Array, " params"], observation: Any) -> Float[Array, " action"]:
        """Return what a policy does, each number in [-1, 1], for one observation.

        Raises:
            JedaxError: An observation of another length.
        """
        values = jnp.asarray(observation, jnp.float32)
        if values.shape != (self.observation_size,):
            raise fail(
                "observation",
                expected=f"shape ({self.observation_size},)",
                received=values.shape,
                remedy=f"give what Brax's {self.robot} observes",
            )
        return self.actions(jnp.asarray(genotype), values[None])[0]

    @property
    def _simulator(self) -> Any:
        """The module that imports Brax.

        Raises:
            JedaxError: Brax is not there.
        """
        try:
            from jedax.tasks.control import simulator
        except ImportError as error:
            raise missing_extra(self.name, error) from None
        return simulator

    @property
    def environment(self) -> Any:
        """Brax's environment: `reset`, `step`, and the model `sys`."""
        return self._simulator.load(self.robot, self.config.backend)

    def start_state(self) -> Any:
        """Return Brax's state in which every episode begins, but for random resets."""
        return self._simulator.start_state(self.robot, self.config.backend, self.config.start_seed)

    def _keys(self, key: PRNGKeyArray, number: int) -> PRNGKeyArray | None:
        """Return a key for every member of a batch; None where none is needed."""
        return jax.random.split(key, number) if self.config.random_resets else None

    def _begin(self, key: PRNGKeyArray | None, alive: Bool[Array, ""]) -> Episode:
        if self.config.random_resets:
            start = self.environment.reset(key)
        else:
            start = jax.tree.map(jnp.asarray, self.start_state())
        return Episode(start.pipeline_state, start.obs, Tally.begin(self.num_descriptors, alive))

    def _step(self, layers: list, episode: Episode) -> tuple[Episode, tuple[Array, Array, Array]]:
        """Return the episode after one step, and the step's action, reward and end."""
        start = self.start_state()
        action = policy.forward(layers, episode.observation[None], self.config.activation)[0]
        before = start.replace(
            pipeline_state=episode.physics,
            obs=episode.observation,
            metrics=dict(start.metrics),  # Brax writes into it
        )
        after = self.environment.step(before, action)
        done = after.done > 0
        reward = self._earned(after.reward, done, episode.tally)
        tally = episode.tally.count(reward, done, self._seen(after.pipeline_state), sums=self.sums_behaviour)
        return Episode(after.pipeline_state, after.obs, tally), (action, reward, done)

    def _record(self, key: PRNGKeyArray | None, genotype: Float[Array, " params"]) -> tuple[Tally, Trajectory]:
        layers = policy.layers(genotype, self.layer_sizes)

        def step(episode: Episode, _: None) -> tuple[Episode, tuple]:
            after, (action, reward, done) = self._step(layers, episode)
            x = after.physics.x
            seen = episode.observation, action, reward, after.observation, done, after.physics.q, x.pos, x.rot
            return after, seen

        episode, records = jax.lax.scan(step, self._begin(key, jnp.array(True)), length=self.config.steps)
        return episode.tally, Trajectory(*records, length=episode.tally.length)

    def _evaluation(self, tally: Tally, finite: Bool[Array, ""]) -> Evaluation:
        fitness = jnp.where(finite, tally.fitness, jnp.nan)
        return Evaluation(fitness=fitness, descriptor=self._descriptor(tally))


def _in_parts(evaluate: Any, keys: PRNGKeyArray | None, genotypes: Float[Array, "batch params"]) -> Evaluation:
    """Evaluate a batch by a function for one key (or None) and genotype; parts change nothing but rounding."""
    whole = jax.vmap(evaluate)
    if genotypes.shape[0] <= _PART:
        return whole(keys, genotypes)

    def parts(keys: PRNGKeyArray | None, genotypes: Float[Array, "batch params"]) -> Evaluation:
        return jax.lax.map(lambda member: evaluate(*member), (keys, genotypes), batch_size=_PART)

    return choose(keys, genotypes, on_cpu=parts, elsewhere=whole)


def missing_extra(task: str, error: ImportError) -> JedaxError:
    """Word the error of a control task without Brax."""
    return fail(
        f"task {task}", expected="the simulator Brax", received=error, remedy="install it: pip install 'jedax[brax]'"
    )
