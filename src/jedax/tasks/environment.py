"""Environments of other packages as tasks: what gymnasium and Playground share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jedax.imports import load_object
from jedax.tasks.measured import MeasuredTask
from jedax.tasks.mujoco import feet_of
from jedax.tasks.policy import PolicyTask
from jedax.tasks.settings import WithPolicy


class EnvironmentTask(PolicyTask, MeasuredTask):
    """An environment of another package."""

    config: WithPolicy

    @property
    def natural_bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """0 and 1 for shares of steps; None for other descriptors."""
        if self.config.descriptor != "feet-contact":
            return None
        number = len(self.descriptor_names)
        return (0.0,) * number, (1.0,) * number


def axis_names(descriptor: str, feet: Sequence[str], model: Any) -> tuple[str, ...]:
    """Return the axis labels of a descriptor; of a function of the user's, its attribute `descriptor_names`.

    Args:
        descriptor: `feet-contact`, `final-xy` or `module:function`.
        feet: As in `jedax.tasks.mujoco.feet_of`.
        model: MuJoCo's model; None: the environment has none.

    Raises:
        JedaxError: The model has no feet, or the function cannot be imported.
    """
    if descriptor == "feet-contact":
        return tuple(f"share of {model.geom(geom).name}" for geom in feet_of(model, feet))
    if descriptor == "final-xy":
        if model is None or int(model.jnt_type[0]) == 0:  # the root moves freely
            return ("x", "y")
        return (model.joint(0).name, model.joint(1).name)
    return tuple(getattr(load_object(descriptor, "descriptor"), "descriptor_names", ()))
