"""What a folder of tasks declares: its entries in the registry, and the names that only it understands.

Each folder in `jedax.tasks` has a module `entries` with a `FAMILY`; that module imports neither JAX nor an extra.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from jedax.errors import JedaxError
from jedax.settings import Config, texts

if TYPE_CHECKING:
    from jedax.tasks.base import Task


@dataclass(frozen=True)
class TaskEntry:
    """A task in the registry.

    Attributes:
        name: Name of the task.
        summary: One sentence for `jedax tasks`.
        config: Returns the default settings.
        make: Makes the task from its settings: a callable, or `module:callable`, imported when it is needed.
        large_policies: Whether the column "Brax" of the paper's tables holds for the task.
        few_evaluations: Whether evaluations are done outside JAX and so are few; `config` then has `length`, the length
            of a genotype.
        small_budget: Evaluations that two CPU cores do in a few minutes; None: any budget is small enough.
        title: What reports and directories call the task; empty: its name.
        read: Makes settings from the values in a file and the file's name, where `config` does not give their
            defaults; None: the values replace those of `config`.
    """

    name: str
    summary: str
    config: Callable[[], Config]
    make: Callable[[Any], Task] | str
    large_policies: bool = False
    few_evaluations: bool = False
    small_budget: int | None = None
    title: str = ""
    read: Callable[[Mapping[str, Any], str], Config] | None = None


def path_of(kind: type) -> str:
    """Return `module:Class`."""
    return f"{kind.__module__}:{kind.__qualname__}"


class Family:
    """A family of tasks; subclasses add names beyond their entries."""

    entries: ClassVar[tuple[TaskEntry, ...]] = ()  # tasks with a name of their own
    order: ClassVar[int] = 50  # the first family is first in lists, and its pattern is tried first
    pattern: str = "(?!)"  # regular expression of further names; by default it matches none
    prefix: str = ""  # start of the further names under which tasks are kept
    make: str = ""  # `module:Class` of the tasks that are kept under such names

    def entry(self, name: str) -> TaskEntry:
        """Return the entry of a name that `pattern` matches."""
        raise NotImplementedError

    def name_of(self, task: Task) -> str | None:
        """Return the name that is not one of the entries and under which `entry` finds a task; None: there is none."""
        return self.prefix + task.name.removeprefix(self.prefix) if path_of(type(task)) == self.make else None

    def title(self, name: str, config: Config | None) -> str:
        """Return what reports call a task whose name `pattern` matches."""
        return name

    def code(self, name: str, settings: Mapping[str, Any]) -> list[str]:
        """Return what is not of jedax and is imported for a task with plain settings, as `module:object`."""
        return []

    def explain(self, argument: str, name: str) -> JedaxError | None:
        """Return the error for an unknown name that this family can explain better than by similar names."""
        return None


class EnvironmentFamily(Family):
    """Environments of another package; the settings of each have a field `name`."""

    order = 40

    def __init__(self, prefix: str, config: Callable[..., Config], make: str):
        self.prefix, self.make, self._config = prefix, make, config
        self.pattern = rf"{re.escape(prefix)}\S+"

    def entry(self, name: str) -> TaskEntry:
        """Return the entry of an environment."""
        return TaskEntry(name, f"The environment {name}.", functools.partial(self._config, name=name), self.make)

    def code(self, name: str, settings: Mapping[str, Any]) -> list[str]:
        """Return the environment if its name begins with a module, and all settings that may name an object."""
        return [text for text in (given.removeprefix(self.prefix) for given in (name, *texts(settings))) if ":" in text]
