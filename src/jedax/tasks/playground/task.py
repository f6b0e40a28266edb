"""Environments of MuJoCo Playground as tasks: physics in JAX (MJX), so that whole searches are compiled."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jedax.errors import JedaxError, fail, unknown
from jedax.imports import load_object, require
from jedax.settings import Config as AnyConfig
from jedax.tasks.motion import Act, Motion, Postures, acting
from jedax.tasks.mujoco import feet_of, quiet_mujoco, unsuitable
from jedax.tasks.playground.settings import PREFIX, PlaygroundConfig
from jedax.tasks.policy import EnvironmentTask, axis_names
from jedax.types import Array, Bool, Evaluation, Float, Int, PRNGKeyArray

# MuJoCo's numbers for kinds of geoms (mjtGeom).
_PLANE, _SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX = 0, 2, 3, 4, 5, 6
_BATCH = 16  # policies that act together on a page


class _Loaded(NamedTuple):
    environment: Any
    start: Any  # the first state of all episodes
    steps: int  # length of an episode


class Playground(EnvironmentTask):
    """An environment of MuJoCo Playground, simulated by MJX's own implementation in JAX.

    A genotype holds the weights of a multilayer perceptron from the observation (of several, the one called "state")
    to the action. Fitness is the sum of rewards up to the step that ends the episode; all episodes start in the same
    state. A descriptor of the user's is a JAX function from the environment's last state (`state.data.qpos`,
    `state.info`, ...) to `(d,)`.

    Example:
        `Playground(name="playground:CheetahRun", steps=500)`
    """

    config: PlaygroundConfig
    Config = PlaygroundConfig
    is_noisy = False
    runs_own_code = False  # tracing shows mistakes in a function of the user's without a trial

    def __init__(self, config: AnyConfig | None = None, /, **settings: Any):
        super().__init__(config, **settings)
        loaded = _load(self.config)
        if self.config.descriptor == "feet-contact":
            _check_feet(self.config, loaded.environment.mj_model)
        elif self.config.descriptor == "final-xy" and loaded.environment.mj_model.nq < 2:
            expected = "an environment with two coordinates in qpos for 'final-xy'"
            raise unsuitable(expected, f"{self.config.name} with one")

    @property
    def layer_sizes(self) -> tuple[int, ...]:
        """Neurons of each layer of the policy, observation and action included."""
        loaded = _load(self.config)
        return (*_observation(loaded.start).shape, *self.config.hidden, loaded.environment.action_size)

    @property
    def descriptor_names(self) -> tuple[str, ...]:
        """Axis labels of the descriptor; see `axis_names`."""
        return axis_names(self.config.descriptor, self.config.feet, _load(self.config).environment.mj_model)

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        """Evaluate ONE genotype over one episode; `key` is ignored."""
        self._check(genotype)
        loaded = _load(self.config)
        touches = self._contacts(loaded)
        nothing = jnp.zeros_like(touches(loaded.start), dtype=jnp.float32)

        def step(episode: tuple) -> tuple:
            number, state, fitness, contacts = episode
            after = self._step(loaded, state, self.act(genotype, _observation(state)))
            return number + 1, after, fitness + after.reward, contacts + touches(after)

        start = (jnp.int32(0), loaded.start, jnp.float32(0), nothing)
        number, state, fitness, contacts = jax.lax.while_loop(
            lambda episode: (episode[0] < loaded.steps) & (episode[1].done < 0.5), step, start
        )
        descriptor = self._descriptor(state, contacts, number)
        finite = jnp.isfinite(genotype).all()
        return Evaluation(jnp.where(finite, fitness, jnp.nan), jnp.where(finite, descriptor, jnp.nan))

    def record(
        self, genotype: Float[Array, " params"]
    ) -> tuple[Float[Array, " steps"], Int[Array, ""], Float[Array, "steps seen"]]:
        """Return rewards, the number of steps that count, and what the descriptor saw after each step of an episode.

        It is simulated to the end even if it ends before.
        """
        steps, length = self._episode(genotype)
        return steps["rewards"], length, steps["seen"]

    def actor(self) -> tuple[int, Act]:
        """Return how many policies act together, and how they act."""
        return _BATCH, acting(jax.vmap(self.record), _BATCH)

    def replay(self, genotype: Float[np.ndarray, " params"]) -> Motion:
        """Return one episode of ONE genotype, for drawing."""
        steps, length = jax.tree.map(np.asarray, jax.jit(self._episode)(jnp.asarray(genotype)))
        environment = _load(self.config).environment
        numbers = {name: value[:length] for name, value in steps.items()}
        postures = Postures(environment.mj_model, *(numbers.pop(name) for name in ("q", "positions", "rotations")))
        return Motion(**numbers, dt=float(environment.dt), postures=postures)

    def _episode(self, genotype: Float[Array, " params"]) -> tuple[dict[str, Array], Int[Array, ""]]:
        """Return values of each step of an episode, and the number of steps that count."""
        loaded = _load(self.config)
        touches = self._contacts(loaded)

        def step(state: Any, _: None) -> tuple[Any, tuple]:
            observation = _observation(state)
            action = self.act(genotype, observation)
            after = self._step(loaded, state, action)
            seen = after.data.qpos[:2] if self.config.descriptor == "final-xy" else touches(after)
            numbers = {
                "observations": observation, "actions": action, "rewards": after.reward, "seen": seen,
                "q": after.data.qpos, "positions": after.data.xpos[1:], "rotations": after.data.xquat[1:]
            }  # fmt: skip
            return after, (numbers, after.done)

        _, (steps, done) = jax.lax.scan(step, loaded.start, length=loaded.steps)
        ends = jnp.append(done[:-1] >= 0.5, True)
        return steps, jnp.argmax(ends) + 1

    def _step(self, loaded: _Loaded, state: Any, action: Float[Array, " actions"]) -> Any:
        after = loaded.environment.step(state, action)
        return jax.tree.map(lambda new, old: jnp.asarray(new, jnp.asarray(old).dtype), after, state)

    def _contacts(self, loaded: _Loaded) -> Callable[[Any], Bool[Array, " feet"]]:
        """Return a function from a state to the feet that touch the ground; empty for other descriptors."""
        if self.config.descriptor != "feet-contact":
            return lambda state: jnp.zeros(0, bool)
        model = loaded.environment.mj_model
        feet = feet_of(model, self.config.feet)
        planes = _planes(model)
        return lambda state: jnp.stack([
            jnp.stack([_gap(model, state.data, foot, plane) <= 0 for plane in planes]).any() for foot in feet
        ])  # fmt: skip

    def _descriptor(self, state: Any, contacts: Float[Array, " feet"], steps: Int[Array, ""]) -> Array:
        if self.config.descriptor == "feet-contact":
            return contacts / jnp.maximum(1, steps)
        if self.config.descriptor == "final-xy":
            return state.data.qpos[:2]
        found = jnp.asarray(load_object(self.config.descriptor, "descriptor")(state), jnp.float32)
        if found.ndim != 1 or found.shape[0] != (self.num_given or found.shape[0]):
            raise fail(
                f"{self.config.descriptor}: descriptor",
                expected=f"shape ({self.num_given or 'd'},)",
                received=found.shape,
                remedy="return one list of numbers",
            )
        return found


def _make(config: PlaygroundConfig) -> _Loaded:
    """Return the environment of the settings."""
    require("mujoco_playground", "mjx", config.name)
    from mujoco_playground import registry

    name = config.name.removeprefix(PREFIX)
    if name not in registry.ALL_ENVS:
        raise unknown("task", config.name, [f"{PREFIX}{known}" for known in registry.ALL_ENVS])
    try:
        settings: Any = registry.get_default_config(name)
        overrides: dict[str, Any] = {"impl": "jax"} if "impl" in settings else {}
        with quiet_mujoco():
            environment = registry.load(name, config_overrides=overrides)
    except (subprocess.SubprocessError, OSError) as error:
        raise fail(
            config.name,
            expected="the robot models of MuJoCo Menagerie, which Playground downloads with git when first used",
            received=f"a download that failed ({str(error).rstrip('.')})",
            remedy="try again with a network, or choose an environment without a download, as playground:CheetahRun",
        ) from None
    start = jax.jit(environment.reset)(jax.random.key(config.episode_seed))
    return _Loaded(environment, start, config.steps or int(settings["episode_length"]))


_load: Callable[[PlaygroundConfig], _Loaded] = functools.lru_cache(maxsize=4)(_make)  # type: ignore[assignment]


def _observation(state: Any) -> Float[Array, " observation"]:
    if not isinstance(state.obs, dict):
        return state.obs
    if "state" not in state.obs:
        raise JedaxError(f"observation: expected one called 'state', got {sorted(state.obs)}; choose another task.")
    return state.obs["state"]


def _planes(model: Any) -> list[int]:
    return [int(geom) for geom in np.flatnonzero((model.geom_bodyid == 0) & (model.geom_type == _PLANE))]


def _check_feet(config: PlaygroundConfig, model: Any) -> None:
    """Raise a `JedaxError` unless `_gap` knows the shapes of the feet and of the ground."""
    feet = feet_of(model, config.feet)
    known = (_SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX)
    strange = [model.geom(foot).name for foot in feet if model.geom_type[foot] not in known]
    if strange or not _planes(model):
        raise fail(
            "descriptor",
            expected="feet that are spheres, capsules, ellipsoids, cylinders or boxes, and a plane for 'feet-contact'",
            received=f"{config.name} with {'the feet ' + ', '.join(strange) if strange else 'no plane'}",
            remedy="name other geoms with --feet, or give a function of your own as --descriptor module:function",
        )


def _gap(model: Any, data: Any, geom: int, plane: int) -> Float[Array, ""]:
    """Return the distance between a convex geom and a plane, negative where they overlap."""
    normal = data.geom_xmat[plane].reshape(3, 3)[:, 2]
    along = data.geom_xmat[geom].reshape(3, 3).T @ normal  # the normal in the frame of the geom
    size = jnp.asarray(model.geom_size[geom], jnp.float32)
    kind = int(model.geom_type[geom])
    if kind == _BOX:
        reach = jnp.abs(along) @ size
    elif kind == _ELLIPSOID:
        reach = jnp.linalg.norm(along * size)
    elif kind == _CYLINDER:
        reach = size[0] * jnp.linalg.norm(along[:2]) + size[1] * jnp.abs(along[2])
    else:
        reach = size[0] + (size[1] * jnp.abs(along[2]) if kind == _CAPSULE else 0.0)
    return normal @ (data.geom_xpos[geom] - data.geom_xpos[plane]) - reach
