"""Control tasks: a policy, a robot, an episode, and the steps of it that count."""

from __future__ import annotations

import abc
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from jedax import networks
from jedax.errors import JedaxError, fail
from jedax.native import choose
from jedax.tasks.base import member_keys
from jedax.tasks.motion import Trajectory
from jedax.tasks.policy import PolicyTask
from jedax.types import Array, Bool, Evaluation, Float, Int, PRNGKeyArray, Transitions


class State(NamedTuple):
    """An episode after some steps. Steps count up to and including the one that ends the episode.

    Attributes:
        physics: Brax's state of the robot.
        observation: `(o,)`, what the policy sees next.
        fitness: Sum of the rewards of the steps that count.
        length: Number of these steps.
        alive: Whether the episode has not ended.
        behaviour: `(d,)`, what `_seen` returned: summed over these steps, or of the last of them.
    """

    physics: Any
    observation: Float[Array, " observation"]
    fitness: Float[Array, ""]
    length: Int[Array, ""]
    alive: Bool[Array, ""]
    behaviour: Float[Array, " descriptor"]


class ControlTask(PolicyTask):
    """A robot that a multilayer perceptron controls (paper, section 5.1).

    Every episode begins in the state that Brax's `reset` draws from the setting `start_seed`, and nothing in it is
    random: a genotype always gets the same evaluation. With `random_resets`, `reset` draws the first state of each
    episode from the evaluation's key. Steps after the one in which the robot falls or leaves its range ("done") count
    neither for the fitness nor for the descriptor.

    Attributes:
        part: Policies that a CPU simulates together. Their weights are read again in every step and should stay in
            its caches, and a part takes as long as the longest of its episodes.
        robot: Name of the robot in `jedax.tasks.control.simulator`.
        sums_behaviour: Whether behaviour is summed over the steps; otherwise that of the last step is kept.
    """

    config: Any
    part: ClassVar[int] = 32
    drawing_class = "jedax.tasks.control.drawing:ControlDrawing"
    robot: str
    sums_behaviour: ClassVar[bool]

    @abc.abstractmethod
    def _seen(self, physics: Any) -> Float[Array, " descriptor"]:
        """Return what a state says of the behaviour."""

    def _earned(self, reward: Float[Array, ""], done: Bool[Array, ""], state: State) -> Float[Array, ""]:
        """Return the reward of a step, given the state before it."""
        return reward

    def _descriptor(self, state: State) -> Float[Array, " descriptor"]:
        """Return the descriptor of an episode that has ended."""
        return state.behaviour

    @property
    def is_noisy(self) -> bool:
        """Whether episodes begin in random states."""
        return self.config.random_resets

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        """Evaluate one genotype; only random resets use `key`.

        A policy with weights that are not finite, or one that breaks the simulation, fails: its fitness is NaN.
        """
        self._check(genotype)
        layers = networks.layers(genotype, self.layer_sizes)
        finite = jnp.isfinite(genotype).all()
        state = jax.lax.while_loop(
            lambda state: state.alive & (state.length < self.config.steps),
            lambda state: self._step(layers, state)[0],
            self._begin(key, finite),
        )
        return self._evaluation(state, finite)

    def evaluate_batch(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Evaluate a batch: on a CPU in parts that its caches can hold, elsewhere as a whole."""
        self._check_batch(genotypes)
        return self._in_parts(self.evaluate, self._keys(key, len(genotypes)), genotypes)

    def evaluate_with_transitions(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Evaluation:
        """Return fitness and descriptors as `evaluate_batch` does, and every step as well.

        Falling is terminal, the time limit is not. A policy that failed has no valid steps. The fitness is that of
        these steps: it equals that of `evaluate_batch` up to rounding, which robots magnify.
        """
        self._check_batch(genotypes)

        def evaluate(key: PRNGKeyArray | None, genotype: Float[Array, " params"]) -> Evaluation:
            state, steps = self._record(key, genotype)
            evaluation = self._evaluation(state, jnp.isfinite(genotype).all())
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

        return self._in_parts(evaluate, self._keys(key, len(genotypes)), genotypes)

    def rollout_batch(self, key: PRNGKeyArray, genotypes: Float[Array, "batch params"]) -> Trajectory:
        """Return every step of one episode of each genotype, batch first.

        Robots magnify rounding, and programs for batches of different sizes round differently: the steps are those of
        `evaluate_batch` for a batch of the same size, or for `part` genotypes.
        """
        self._check_batch(genotypes)
        keys = self._keys(key, len(genotypes))
        return jax.vmap(lambda key, genotype: self._record(key, genotype)[1])(keys, genotypes)

    def replay(self, genotype: Float[Array, " params"]) -> Trajectory:
        """Return every step of one episode as `evaluate_batch` takes them in a part of a batch on a CPU.

        With random resets it begins in a random state, not in one of those of the search.
        """
        self._check(genotype)
        copies = jnp.broadcast_to(genotype, (self.part, self.num_params))
        return jax.tree.map(lambda leaf: leaf[0], self.rollout_batch(jax.random.key(0), copies))

    @property
    def _simulator(self) -> Any:
        """The module that imports Brax.

        Raises:
            JedaxError: Brax is not installed.
        """
        try:
            from jedax.tasks.control import simulator
        except ImportError as error:
            raise _missing_extra(self.name, error) from None
        return simulator

    @property
    def environment(self) -> Any:
        """Brax's environment: `reset`, `step`, and the model `sys`."""
        return self._simulator.load(self.robot, self.config.backend)

    def start_state(self) -> Any:
        """Return Brax's state in which every episode begins, unless resets are random."""
        return self._simulator.start_state(self.robot, self.config.backend, self.config.start_seed)

    def _keys(self, key: PRNGKeyArray, number: int) -> PRNGKeyArray | None:
        """Return a key for every member of a batch; None where no key is used."""
        return member_keys(key, number) if self.config.random_resets else None

    def _begin(self, key: PRNGKeyArray | None, alive: Bool[Array, ""]) -> State:
        if self.config.random_resets:
            start = self.environment.reset(key)
        else:
            start = jax.tree.map(jnp.asarray, self.start_state())
        nothing = jnp.zeros(self.num_descriptors)
        return State(start.pipeline_state, start.obs, jnp.float32(0), jnp.int32(0), jnp.asarray(alive), nothing)

    def _step(self, layers: list, state: State) -> tuple[State, tuple[Array, Array, Array]]:
        """Return the state after one more step, and the step's action, reward and end."""
        start = self.start_state()
        action = networks.forward(layers, state.observation[None], self.config.activation)[0]
        before = start.replace(
            pipeline_state=state.physics,
            obs=state.observation,
            metrics=dict(start.metrics),  # Brax writes into it
        )
        after = self.environment.step(before, action)
        done = after.done > 0
        reward = self._earned(after.reward, done, state)
        seen = self._seen(after.pipeline_state)
        behaviour = state.behaviour + seen if self.sums_behaviour else seen
        state = State(
            after.pipeline_state,
            after.obs,
            fitness=state.fitness + jnp.where(state.alive, reward, 0),
            length=state.length + state.alive,
            alive=state.alive & ~done,
            behaviour=jnp.where(state.alive, behaviour, state.behaviour),
        )
        return state, (action, reward, done)

    def _record(self, key: PRNGKeyArray | None, genotype: Float[Array, " params"]) -> tuple[State, Trajectory]:
        layers = networks.layers(genotype, self.layer_sizes)

        def step(state: State, _: None) -> tuple[State, dict[str, Array]]:
            after, (action, reward, done) = self._step(layers, state)
            x = after.physics.x
            return after, {
                "observations": state.observation, "actions": action, "rewards": reward,
                "next_observations": after.observation, "done": done, "q": after.physics.q, "positions": x.pos,
                "rotations": x.rot
            }  # fmt: skip

        state, records = jax.lax.scan(step, self._begin(key, jnp.array(True)), length=self.config.steps)
        return state, Trajectory(**records, length=state.length)

    def _evaluation(self, state: State, finite: Bool[Array, ""]) -> Evaluation:
        return Evaluation(fitness=jnp.where(finite, state.fitness, jnp.nan), descriptor=self._descriptor(state))

    def _in_parts(
        self, evaluate: Any, keys: PRNGKeyArray | None, genotypes: Float[Array, "batch params"]
    ) -> Evaluation:
        """Evaluate a batch by a function of one key (or None) and genotype; the parts change nothing but rounding."""
        whole = jax.vmap(evaluate)
        if genotypes.shape[0] <= self.part:
            return whole(keys, genotypes)

        def parts(keys: PRNGKeyArray | None, genotypes: Float[Array, "batch params"]) -> Evaluation:
            return jax.lax.map(lambda member: evaluate(*member), (keys, genotypes), batch_size=self.part)

        return choose(keys, genotypes, on_cpu=parts, elsewhere=whole)


def _missing_extra(task: str, error: ImportError) -> JedaxError:
    return fail(
        f"task {task}", expected="the simulator Brax", received=error, remedy="install it: pip install 'jedax[brax]'"
    )
