"""Names of the control tasks."""

from __future__ import annotations

import functools

from jedax.tasks.control.settings import AntMazeConfig, LocomotionConfig, Robot
from jedax.tasks.family import Family, TaskEntry


def _robot(name: Robot, summary: str, steps: int, evaluations: int, small_budget: int) -> TaskEntry:
    config = functools.partial(LocomotionConfig, name=name, steps=steps, evaluations=evaluations)
    make = "jedax.tasks.control.task:Locomotion"
    return TaskEntry(name, summary, config, make, large_policies=True, small_budget=small_budget)


class Control(Family):
    """Robots of Brax."""

    order = 2
    entries = (
        _robot("halfcheetah", "Brax's half cheetah runs; behaviour: share of steps each foot is on the floor.",
               500, 5_000_000, 4096),
        _robot("walker2d", "Brax's two-legged walker walks; behaviour as halfcheetah.", 1000, 10_000_000, 8192),
        TaskEntry("ant-maze", "Brax's ant finds its way between walls; behaviour: its last position.", AntMazeConfig,
                  "jedax.tasks.control.task:AntMaze", large_policies=True, small_budget=8192),
        _robot("hopper", "Brax's one-legged hopper hops; behaviour as halfcheetah.", 1000, 10_000_000, 8192),
        _robot("ant", "Brax's ant runs; behaviour as halfcheetah, four feet.", 1000, 10_000_000, 4096),
        _robot("humanoid", "Brax's humanoid walks; behaviour as halfcheetah.", 1000, 10_000_000, 4096)
    )  # fmt: skip


FAMILY = Control()
