"""Names of the analytic tasks."""

from __future__ import annotations

from jedax.tasks.family import Family, TaskEntry
from jedax.tasks.functions.settings import ArmConfig, FunctionConfig

_MODULE = "jedax.tasks.functions.task"


class Functions(Family):
    """Analytic tasks."""

    order = 1
    entries = (
        TaskEntry("sphere", "Sphere function; behaviour: two sums of parameters.", FunctionConfig, f"{_MODULE}:Sphere"),
        TaskEntry(
            "rastrigin",
            "Rastrigin function, many local optima; behaviour as sphere.",
            FunctionConfig,
            f"{_MODULE}:Rastrigin"
        ),
        TaskEntry("arm", "Planar arm with smooth joints; behaviour: position of its tip.", ArmConfig,
                  f"{_MODULE}:PlanarArm")
    )  # fmt: skip


FAMILY = Functions()
