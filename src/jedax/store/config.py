"""Settings of a run: budget, seeds, when to stop, what to write how often; and the file that keeps them all."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

from pydantic import Field, SerializeAsAny

from jedax.errors import fail
from jedax.methods.registry import DEFAULT_METHOD, check_parameters, default_method, method_defaults
from jedax.methods.settings import JediXConfig
from jedax.settings import Config
from jedax.tasks.maze.settings import MazeConfig
from jedax.tasks.registry import is_maze_file, task_entry
from jedax.yaml_text import read_yaml

# Largest budget that 32-bit counters hold.
_MOST_EVALUATIONS = 2**31 - 1


class RunConfig(Config):
    """How long to search, from which seeds, and what to write."""

    evaluations: int = Field(
        default=1_000_000,
        ge=1,
        le=_MOST_EVALUATIONS,
        description="Budget of each replica, by default the task's; rounded down to generations; every sample of a "
        "solution counts.",
    )
    seed: int = Field(default=0, ge=0, lt=2**32, description="Replica r draws all its random numbers from seed + r.")
    replicas: int = Field(default=1, ge=1, description="Independent searches that run side by side in one program.")
    devices: Literal["all"] | Annotated[int, Field(ge=1)] = Field(
        default=1, description="How many of JAX's devices share the replicas and their populations: a number, or all."
    )
    stop_fitness: float | None = Field(
        default=None, description="Stop at the first report at which every replica has reached this."
    )
    max_seconds: float | None = Field(
        default=None, gt=0, description="Stop after this many seconds; a resumed run counts anew."
    )
    start_from: str | None = Field(
        default=None, description="Genotypes to start from, (n, params) in a .npy file; random ones fill the batch."
    )
    report_every: int | None = Field(
        default=None, ge=1, description="Generations between rows of metrics.csv; default: a fiftieth of the budget."
    )
    workers: int | None = Field(
        default=None, ge=1, description="Processes that evaluate tasks outside JAX; default: one per core."
    )
    evaluation_timeout: float = Field(
        default=600.0,
        gt=0,
        description="Seconds that a worker process may take over what it gets at a time, before it is replaced.",
    )
    checkpoint_seconds: float = Field(
        default=30.0, ge=0, description="Seconds between checkpoints; more where one takes long."
    )
    history: bool = Field(default=True, description="Whether to keep what each loop did, for jedax report.")


CUSTOM = "custom:"
"""Starts the name of a task that is a Python object of the user's, which no file can bring back."""


class FullConfig(Config):
    """All that makes a run: written to its directory before anything else, and enough to run it again."""

    format: Literal[1] = 1
    task: str = Field(description="Name of the task, or where it is defined.")
    task_config: SerializeAsAny[Config] | None = Field(
        default=None, description="Settings of a task that comes with jedax."
    )
    method: str = Field(default=DEFAULT_METHOD, description="Name of the method.")
    method_config: SerializeAsAny[Config] = Field(default_factory=JediXConfig, description="Its parameters.")
    label: str = Field(default="", description="What comparisons call it; empty: the method's name.")
    run: RunConfig = Field(default_factory=RunConfig, description="Budget, seeds, reports.")

    def dump(self) -> str:
        """Return the settings as YAML."""
        return _as_yaml(self.model_dump(mode="json"))

    def digest(self) -> str:
        """Return a checksum of all settings that a search must be resumed with: all but the number of devices."""
        settings = self.model_dump(mode="json", exclude={"run": {"devices"}})
        return hashlib.sha256(_as_yaml(settings).encode()).hexdigest()

    @classmethod
    def parse(cls, text: str, where: str, task: str | None = None) -> FullConfig:
        """Read settings from YAML; parameters left out keep the defaults of their task and method.

        Args:
            text: The YAML.
            where: Where it comes from, for errors.
            task: The task of settings that name none, or instead of theirs, whose settings are dropped then.

        Raises:
            JedaxError: Not such settings, no task, an unknown parameter, or a value that does not fit.
        """
        values: Any = read_yaml(text, where)
        if isinstance(values, dict) and task is not None:
            if values.get("task") not in (None, task):
                values.pop("task_config", None)
            values["task"] = task
        if not isinstance(values, dict) or values.get("task") is None:
            raise fail(
                where,
                expected="settings with the key 'task', as in a run's config.yaml",
                received=type(values).__name__,
                remedy="start from the config.yaml of a run, or name the task beside the file",
            )
        if not all(isinstance(key, str) for key in values):
            raise fail(where, expected="names as keys", received=sorted(map(repr, values)), remedy="mend the file")
        if values.get("format", 1) != 1:
            raise fail(
                f"{where}: format",
                expected="the number 1",
                received=repr(values["format"]),
                remedy="read it with the version of jedax that wrote it",
            )
        task, parameters = str(values["task"]), _section(values, "method_config", where)
        method = str(values.setdefault("method", default_method(parameters)))
        default = method_defaults(method, task, where=where)
        check_parameters(method, parameters, where=where)
        task_config: Any = _task_config(task, _section(values, "task_config", where), where)
        budget = {} if task_config is None else {"evaluations": task_config.evaluations}
        sections = {
            "task_config": task_config,
            "method_config": type(default).build(default.model_dump() | parameters, where=where),
            "run": RunConfig.build(budget | _section(values, "run", where), where=where),
        }
        return cls.build({**values, **sections}, where=where)


def _as_yaml(values: dict[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def _section(values: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    section = values.get(name)
    if section is None:
        return {}
    if not isinstance(section, dict) or not all(isinstance(key, str) for key in section):
        raise fail(f"{where}: {name}", expected="parameters and values", received=section, remedy="mend the file")
    return section


def _task_config(task: str, given: dict[str, Any], where: str) -> Config | None:
    """Return a task's settings: a maze file's are read only where the settings do not bring the maze."""
    if task.startswith(CUSTOM):
        if given:
            raise fail(
                f"{where}: task_config",
                expected="none for a task defined in Python",
                received=given,
                remedy="remove it",
            )
        return None
    default = MazeConfig() if is_maze_file(task) and "walls" in given else task_entry(task, where=where).config()
    return type(default).build(default.model_dump() | given, where=where)
