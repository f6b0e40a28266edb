"""What a run directory keeps of its task, and a task made from it where the task's code must not be imported."""

from __future__ import annotations

import math
from typing import Any

from pydantic import ConfigDict, Field, ValidationError

from jedax.errors import JedaxError, fail
from jedax.tasks.base import ConfiguredTask, Task, computed
from jedax.tasks.settings import SpaceSetting, WithDescriptorBounds
from jedax.types import Array, Evaluation, Float, PRNGKeyArray


class TaskFacts(WithDescriptorBounds):
    """What reports show of a task."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    num_params: int = Field(ge=1, description="Length of a genotype.")
    space: SpaceSetting = Field(default=None, description="The parameters, where the task has a space.")
    descriptor_names: tuple[str, ...] = Field(default=(), description="Label of each descriptor.")
    is_noisy: bool = Field(default=True, description="Whether two evaluations of one genotype can differ.")
    draws: bool = Field(default=True, description="Whether the task's own code draws solutions.")


class StoredTask(ConfiguredTask):
    """A task of which only facts are known: it can be shown, but evaluates nothing."""

    config: TaskFacts
    Config = TaskFacts
    name = computed(lambda self: self.config.name)
    num_params = computed(lambda self: self.config.num_params)
    descriptor_bounds = computed(lambda self: (self.config.descriptor_lows, self.config.descriptor_highs))
    descriptor_names = computed(lambda self: self.config.descriptor_names)
    qd_offset = computed(lambda self: self.config.qd_offset)
    goal_fitness = computed(lambda self: self.config.goal_fitness)
    is_noisy = computed(lambda self: self.config.is_noisy)
    space = computed(lambda self: self.config.space)

    def init(self, key: PRNGKeyArray) -> Float[Array, " params"]:
        """Raise a `JedaxError`."""
        raise self.no_code()

    def evaluate(self, key: PRNGKeyArray, genotype: Float[Array, " params"]) -> Evaluation:
        """Raise a `JedaxError`."""
        raise self.no_code()

    def no_code(self) -> JedaxError:
        """Return the error for what needs the task's code."""
        return fail(
            "task",
            expected=f"the code of {self.name}",
            received="what the run directory keeps of it",
            remedy="load the run with trust=True (in a command: --trust) if you trust that code, or with task=... if "
            "you have the task",
        )


def facts_of(task: Task) -> dict[str, Any]:
    """Return what a run directory keeps of its task, as JSON values."""
    lows, highs = task.descriptor_bounds
    goal = task.goal_fitness
    return {
        "name": task.name,
        "num_params": int(task.num_params),
        "descriptor_lows": [float(low) for low in lows],
        "descriptor_highs": [float(high) for high in highs],
        "descriptor_names": [str(name) for name in task.descriptor_names or ()],
        "qd_offset": float(task.qd_offset),
        "goal_fitness": float(goal) if goal is not None and math.isfinite(goal) else None,
        "is_noisy": bool(task.is_noisy),
        "draws": task.drawing.has_own_code,
        "space": None if task.space is None else task.space.spec(),
    }


def stored_task(*sources: Any) -> StoredTask | None:
    """Return a task from what several sources tell, of which earlier ones win; None if they tell too little."""
    found: dict[str, Any] = {}
    for source in sources:
        if isinstance(source, dict):
            found = {name: value for name, value in source.items() if name in TaskFacts.model_fields} | found
    try:
        facts = TaskFacts(**found)
    except (ValidationError, JedaxError):
        return None
    return StoredTask(facts) if facts.descriptor_lows else None
