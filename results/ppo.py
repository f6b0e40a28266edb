"""Brax's PPO on the half cheetah and the ant's maze, in the same simulator and with the same rewards as the searches.

    python results/ppo.py [--tasks halfcheetah ant-maze] [--evaluations 250000] [--seed 0]

The control steps are those of so many evaluations: 125 million of the half cheetah, 62.5 million of the ant. Policy and
value have two layers of 256 neurons, as all other policies; everything else has the values of Brax's own training
notebook for the half cheetah and the ant. Each part of a training (`PART` steps) ends with one episode of the policy
without noise, from the state in which all episodes of the task begin, and a row of results/ppo/parts.csv. The
parameters after it are kept in runs/results/ppo, so the command can be stopped and given again where these are; only
Adam's moments begin anew with each part. Where they are not, remove the rows of the training to make it anew.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
from brax.envs import State, Wrapper
from brax.training.agents.ppo import checkpoint, train
from brax.training.agents.ppo.networks import make_ppo_networks
from keeping import HERE, add_rows
from robots import EVALUATIONS

import jedax
from jedax.tasks.control.task import ControlTask

PART = 5_242_880  # a multiple of the steps of an update with either of the settings
KEPT = Path("runs/results/ppo")
SETTINGS: dict[str, dict[str, Any]] = {
    "halfcheetah": {
        "num_envs": 2048, "batch_size": 512, "num_minibatches": 32, "num_updates_per_batch": 8, "unroll_length": 20,
        "discounting": 0.95, "entropy_cost": 1e-3, "reward_scaling": 1.0,
    },
    "ant-maze": {
        "num_envs": 4096, "batch_size": 2048, "num_minibatches": 32, "num_updates_per_batch": 4, "unroll_length": 5,
        "discounting": 0.97, "entropy_cost": 1e-2, "reward_scaling": 10.0,
    },
}  # fmt: skip
HIDDEN = {"policy_hidden_layer_sizes": (256, 256), "value_hidden_layer_sizes": (256, 256)}
NETWORKS = functools.partial(make_ppo_networks, **HIDDEN)


def replicated(tree: Any, devices: list[Any]) -> Any:
    """Return a tree with one copy of each leaf for each device, which must be one CPU."""
    (_,) = devices
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], tree)


jax.device_put_replicated = replicated  # JAX 0.10 has it no more, Brax 0.14 still calls it


class AsInTheSearches(Wrapper):
    """Episodes begin in the state of the task, and each step earns what it adds to the fitness."""

    def __init__(self, task: ControlTask) -> None:
        super().__init__(task.environment)
        self.task = task

    def reset(self, rng: jax.Array) -> State:
        """Return the state in which all episodes begin."""
        start = jax.tree.map(jnp.asarray, self.task.start_state())
        return start.replace(metrics={}, info={"steps": jnp.float32(0)})

    def step(self, state: State, action: jax.Array) -> State:
        """Return the state after a control step."""
        after = self.env.step(state.replace(metrics=dict(self.task.start_state().metrics)), action)
        reward = self.task.earned(after.reward, after.done > 0, state.info["steps"])
        return after.replace(metrics={}, reward=reward)


def robot(name: str) -> ControlTask:
    """Return a task."""
    task = jedax.tasks.make(name)
    assert isinstance(task, ControlTask)
    return task


def search(task: str, seed: int, steps: int) -> dict[str, Any]:
    """Return the row of the part of a training that ends after so many steps."""
    environment, began = AsInTheSearches(robot(task)), time.monotonic()
    before, after = (KEPT / f"{task}-{seed}" / f"{at:012}" for at in (steps - PART, steps))
    if steps > PART and not before.exists():
        sys.exit(f"expected the parameters of the part before in {before}, found none; see --help")
    make_policy, parameters, _ = train.train(
        environment=environment,
        num_timesteps=PART,
        episode_length=environment.task.config.steps,
        normalize_observations=True,
        learning_rate=3e-4,
        network_factory=NETWORKS,
        seed=1000 * seed + steps // PART,
        run_evals=False,
        num_evals=1,
        restore_checkpoint_path=str(before.resolve()) if steps > PART else None,
        **SETTINGS[task],
    )
    config = checkpoint.network_config(environment.observation_size, environment.action_size, True, NETWORKS)
    checkpoint.save(str(after.parent.resolve()), steps, parameters, config)
    return {
        "fitness": round(float(episode(environment, make_policy(parameters, deterministic=True))), 2),
        "seconds": round(time.monotonic() - began),
    }


def episode(environment: AsInTheSearches, policy: Any) -> jax.Array:
    """Return the sum of the rewards of one episode, until it ends."""

    def step(carry: tuple[State, jax.Array], _: None) -> tuple[tuple[State, jax.Array], jax.Array]:
        state, alive = carry
        action, _ = policy(state.obs, jax.random.key(0))
        after = environment.step(state, action)
        after = after.replace(info={"steps": state.info["steps"] + 1})
        return (after, alive & ~(after.done > 0)), jnp.where(alive, after.reward, 0.0)

    start = environment.reset(jax.random.key(0)), jnp.array(True)
    return jax.jit(lambda: jax.lax.scan(step, start, length=environment.task.config.steps)[1].sum())()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=tuple(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wanted = {task: options.evaluations * robot(task).config.steps for task in options.tasks}
    keys = [
        {"task": task, "seed": options.seed, "steps": steps}
        for steps in range(PART, max(wanted.values()) + PART, PART)
        for task in options.tasks
        if steps < wanted[task] + PART
    ]
    add_rows(HERE / "ppo" / "parts.csv", keys, search)


if __name__ == "__main__":
    main()
