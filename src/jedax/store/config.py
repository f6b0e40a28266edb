"""Settings of a run, and the file `config.yaml` that holds them."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, PrivateAttr, SerializeAsAny, model_validator

from jedax.errors import JedaxError, NotImportableError, fail
from jedax.imports import CUSTOM, is_custom
from jedax.methods.base import Method, MethodConfig
from jedax.methods.registry import (
    ALIASES,
    DEFAULT_METHOD,
    check_settings,
    method_defaults,
    method_named,
    preset_named,
    upgraded,
    with_present_names,
)
from jedax.methods.registry import code_of as method_code
from jedax.settings import MOST, Config
from jedax.space import Real, Space
from jedax.tasks.registry import code_of as task_code
from jedax.tasks.registry import settings_of, task_entry
from jedax.tasks.settings import UnknownTask
from jedax.yaml_text import read_yaml

FORMAT = 3
_MOST_EVALUATIONS = 2**31 - 1  # largest budget that 32-bit counters hold


class RunConfig(Config):
    """Budget, seeds, when to stop, and what to write."""

    evaluations: int = Field(
        default=1_000_000,
        ge=1,
        le=_MOST_EVALUATIONS,
        description="Budget of each replica, rounded down to whole generations; all samples count. Default: the "
        "preset's, else the task's.",
    )
    seed: int = Field(default=0, ge=0, lt=2**32, description="Random seed; replica r uses seed + r.")
    replicas: int = Field(default=1, ge=1, le=MOST, description="Number of independent searches in one program.")
    devices: Literal["all"] | Annotated[int, Field(ge=1, le=MOST)] = Field(
        default=1, description="Number of JAX devices that share the replicas and their populations, or all."
    )
    stop_fitness: float | None = Field(
        default=None, description="Stop at the first report at which every replica has reached this fitness."
    )
    max_seconds: float | None = Field(
        default=None, gt=0, description="Stop after this many seconds; a resumed run starts counting at 0."
    )
    start_from: str | None = Field(
        default=None,
        description="File (.npy) with genotypes (n, params) for the initial batch, or directory of an earlier run for "
        "its fittest elites; random ones fill the batch up.",
    )
    report_every: int | None = Field(
        default=None, ge=1, le=MOST, description="Generations between rows of metrics.csv; default: 1/50 of the budget."
    )
    workers: int | None = Field(
        default=None, ge=1, le=MOST, description="Processes that evaluate a task outside JAX; default: one per core."
    )
    evaluation_timeout: float = Field(
        default=600.0,
        gt=0,
        description="Seconds after which a worker process that has not answered is replaced.",
    )
    checkpoint_seconds: float = Field(
        default=30.0, ge=0, description="Seconds between checkpoints; longer where writing one takes long."
    )
    history: bool = Field(default=True, description="Whether to record the search for jedax report (history.jsonl).")

    @model_validator(mode="after")
    def _check_seeds(self) -> Self:
        if self.seed + self.replicas > 2**32:
            received = f"{self.replicas} from {self.seed} on"
            raise fail("seed", expected=f"seeds up to {2**32 - 1}", received=received, remedy="choose a lower seed")
        return self


class UnknownSettings(MethodConfig):
    """Settings of a method or task whose class cannot be found here: those of every method, and any others."""

    model_config = ConfigDict(extra="allow")


class FullConfig(Config):
    """All settings of a run; its directory holds them as config.yaml.

    They suffice to repeat it, but for solutions that it started from: those are in start_genotypes.npy beside it.
    """

    format: Literal[3] = FORMAT
    task: str = Field(description="Name of the task, or where it is defined.")
    task_config: SerializeAsAny[Config] | None = Field(default=None, description="Settings of the task.")
    method: str = Field(default=DEFAULT_METHOD, description="Name of the method.")
    method_config: SerializeAsAny[MethodConfig] = Field(
        default_factory=lambda: method_defaults(DEFAULT_METHOD), description="Settings of the method."
    )
    label: str = Field(default="", description="Name in comparisons; empty: the method's name.")
    run: RunConfig = Field(default_factory=RunConfig, description="Budget, seeds, reports.")

    _written: dict[str, Any] | None = PrivateAttr(default=None)
    _withheld: tuple[str, ...] = PrivateAttr(default=())

    @property
    def code(self) -> dict[str, list[str]]:
        """What "task" and "method" import that is not part of jedax, as `module:object`."""
        values = self.model_dump(mode="json")
        return _code(self.task, values["task_config"] or {}, self.method, values["method_config"])

    @property
    def withheld(self) -> tuple[str, ...]:
        """Of "task" and "method", what was not imported: its settings are of an unknown type, with all their values."""
        return self._withheld

    def __eq__(self, other: object) -> bool:
        """Return whether all settings are equal, whichever file they come from."""
        return isinstance(other, FullConfig) and dict(self) == dict(other)

    def dump(self) -> str:
        """Return the settings as YAML."""
        return _as_yaml(self.model_dump(mode="json"))

    def digest(self) -> str:
        """Return a checksum of the settings as config.yaml holds them, except the number of devices.

        It ties a checkpoint to the settings of its run, whichever version of jedax wrote them.
        """
        values = self._written or self.model_dump(mode="json")
        run = {name: value for name, value in values["run"].items() if name != "devices"}
        return hashlib.sha256(_as_yaml({**values, "run": run}).encode()).hexdigest()

    @classmethod
    def parse(
        cls, text: str, where: str, task: str | None = None, *, strict: bool = True,
        imports: Collection[str] = ("task", "method"),
    ) -> FullConfig:  # fmt: skip
        """Read settings from YAML; omitted ones get the defaults of their task and method.

        Args:
            text: The YAML.
            where: Its origin, for errors.
            task: A task that replaces the one in the YAML, whose `task_config` is then dropped.
            strict: Refuse a method or task that cannot be found; else its settings become `UnknownSettings`.
            imports: Of "task" and "method", those whose code outside jedax may be imported.
        """
        values: Any = read_yaml(text, where)
        if isinstance(values, dict) and task is not None:
            if values.get("task") not in (None, task):
                values.pop("task_config", None)
            values["task"] = task
        if not isinstance(values, dict) or values.get("task") is None:
            expected, received = "settings with the key 'task', as in a run's config.yaml", type(values).__name__
            remedy = "start from the config.yaml of a run, or name the task beside the file"
            raise fail(where, expected=expected, received=received, remedy=remedy)
        if not all(isinstance(key, str) for key in values):
            raise fail(where, expected="names as keys", received=sorted(map(repr, values)), remedy="mend the file")
        written = {**values} if values.get("format") and isinstance(values.get("run"), dict) else None
        number = values.pop("format", FORMAT)
        if number not in range(1, FORMAT + 1) or isinstance(number, bool):
            expected, remedy = f"a number up to {FORMAT}", "read it with the version of jedax that wrote it"
            raise fail(f"{where}: format", expected=expected, received=repr(number), remedy=remedy)
        task, settings = str(values["task"]), _section(values, "method_config", where)
        method, label = str(values.get("method") or DEFAULT_METHOD), str(values.get("label") or "")
        if number == 1:
            method, label, settings = upgraded(method, label, settings)
        method = ALIASES.get(method, method)
        settings = with_present_names(method, settings)
        task_settings = _section(values, "task_config", where)
        if number < 3 and _has_other_genotypes(task_settings.get("space")):
            expected, received = "genotypes of a space in units of its scales", f"those of format {number}"
            remedy = "read it with the version of jedax that wrote it"
            raise fail(f"{where}: format", expected=expected, received=received, remedy=remedy)
        code = _code(task, task_settings, method, settings)
        withheld = tuple(part for part, names in code.items() if names and part not in imports)
        try:
            kind = UnknownTask.build(task_settings, where=where) if "task" in withheld else None
            task_config = kind or settings_of(task, task_settings, where)
        except JedaxError:
            if strict or not task_settings:
                raise
            task_config = UnknownSettings.build(task_settings, where=where)
        budget = {} if task_config is None else {"evaluations": getattr(task_config, "evaluations", None)}
        sections = {
            "method": method,
            "label": label,
            "task_config": task_config,
            "method_config": UnknownSettings.build(settings, where=where)
            if "method" in withheld
            else _method_config(method, "" if "task" in withheld else task, task_config, settings, where, strict),
            "run": RunConfig.build(budget | _section(values, "run", where), where=where),
        }
        config = cls.build({**values, **sections}, where=where)
        config._written, config._withheld = written, withheld
        return config


def _has_other_genotypes(spec: Any) -> bool:
    """Return whether a search space has real numbers whose coordinates were shares of their range before format 3."""
    if not isinstance(spec, Mapping):
        return False
    with contextlib.suppress(JedaxError):
        reals = [one for one in Space.from_spec(spec).parameters if isinstance(one, Real) and one.scale is not None]
        return any(math.isfinite(one.low) and math.isfinite(one.high) for one in reals)
    return False


def _code(task: str, task_config: dict[str, Any], method: str, method_config: dict[str, Any]) -> dict[str, list[str]]:
    return {"task": task_code(task, task_config), "method": method_code(method, method_config)}


def defaults_for(
    method: str | type[Method],
    task: str,
    preset: str | None = None,
    *,
    task_config: Config | None = None,
    where: str = "",
) -> tuple[MethodConfig, int | None]:
    """Return a method's default settings on a task, and the budget of the preset; None: the task's own budget.

    Args:
        method: As in `jedax.methods.registry.method_named`.
        task: Name of the task.
        preset: One of the method's presets; None: its first.
        task_config: Settings of the task; None: its defaults.
        where: Put in front of an argument's name in errors, such as a file's name.
    """
    large_policies, few, small_budget = False, None, None
    with contextlib.suppress(JedaxError):  # a task that cannot be found here fails when it is made
        entry = task_entry(task)
        large_policies, small_budget = entry.large_policies, entry.small_budget
        if entry.few_evaluations:
            chosen = task_config or entry.config()
            length, space = getattr(chosen, "length", None), getattr(chosen, "space", None)
            few = None if length is None else (length, space is not None and space.is_uniform)
    config = method_defaults(
        method, task, preset, large_policies=large_policies, few_evaluations_of=few,
        has_small_budget=small_budget is not None, where=where,
    )  # fmt: skip
    small = preset is not None and preset_named(method_named(method), preset).small_budget
    return config, small_budget if small else None


def method_of(config: FullConfig, task: Any, given: type[Method] | None = None, *, origin: str = "") -> Method:
    """Return the method that settings name, for a task.

    Args:
        config: The settings.
        task: The task, or what is known of it.
        given: The class, where the settings name one that only the user can give.
        origin: Where an earlier run found the class, for errors.
    """
    if given is None and is_custom(config.method):
        expected = f"the class {config.method.removeprefix(CUSTOM)}{origin}"
        raise fail("method", expected=expected, received="none", remedy="pass it as method=...")
    try:
        kind = given or method_named(config.method).method
    except JedaxError as error:
        if not origin:
            raise
        raise JedaxError(f"{error} The run was made with the class {config.method}{origin}.") from None
    settings = config.method_config
    if not isinstance(settings, kind.Config):
        settings = kind.Config.build(settings.model_dump(), where="method")
    return kind(settings, task)


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


def _method_config(
    method: str, task: str, task_config: Config | None, settings: dict[str, Any], where: str, strict: bool
) -> Config:
    try:
        if is_custom(method):
            return UnknownSettings.build(settings, where=where)
        default, _ = defaults_for(method, task, task_config=task_config, where=where)
    except JedaxError:
        if strict:
            raise
        return UnknownSettings.build(settings, where=where)
    check_settings(method, settings, where=where)
    try:
        return type(default).build({**dict(default), **settings}, where=where)
    except NotImportableError:  # a strategy, ranker or rule of the user's, or of an extra
        if strict:
            raise
        return UnknownSettings.build(settings, where=where)
