"""Task classes of the user's by name, `module:class`."""

from __future__ import annotations

from jedax.errors import fail
from jedax.imports import load_object
from jedax.tasks.base import Task, check_task
from jedax.tasks.python.settings import OwnTaskConfig


def make(config: OwnTaskConfig) -> Task:
    """Return a task of the class that the settings name, made without arguments.

    Raises:
        JedaxError: The class cannot be imported or made, or its parts do not fit together.
    """
    kind = load_object(config.name, "task")
    if not (isinstance(kind, type) and issubclass(kind, Task)):
        raise fail(
            "task",
            expected="a subclass of jedax.tasks.Task",
            received=f"{config.name}, which is none",
            remedy="derive the class from it",
        )
    try:
        task = kind()
    except TypeError as error:
        raise fail(
            "task",
            expected="a class that is made without arguments and has init and evaluate",
            received=f"{config.name} ({error})",
            remedy="give defaults, and see jedax.tasks.Task for what is missing",
        ) from None
    return check_task(task)
