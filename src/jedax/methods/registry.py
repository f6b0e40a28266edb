"""The methods by name, and the paper's parameters for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jedax.errors import check_choice, fail
from jedax.methods.pga_me_settings import PGAMEConfig
from jedax.methods.settings import CMAMEConfig, ESConfig, JediConfig, JediXConfig, MapElitesConfig, MethodConfig

GLOBAL_TABLE = "paper, table 'Global hyperparameters for maze and Brax tasks'"
JEDI_TABLE = "paper, table 'JEDi hyperparameters for maze and Brax tasks'"
PGA_TABLE = "paper, table 'Hyperparameters for PGA-ME'"

CONTROL_TASKS = ("halfcheetah", "walker2d", "ant-maze", "hopper", "ant", "humanoid")
"""Tasks with large policies, for which the tables' column "Brax" holds; all others take that of mazes."""

# JEDi's constant alpha, and the generations of an ES before new targets are chosen.
_TUNED_ALPHA = {
    "maze-a": 0.3, "maze-b": 0.3, "maze-c": 0.5, "maze-quad-b": 0.7,
    "halfcheetah": 0.5, "walker2d": 0.3, "ant-maze": 0.0,
}  # fmt: skip
_LONG_LOOPS = {"walker2d": 1000, "ant-maze": 1000}
_CONTROL_ES = {"population": 256, "es": "lm-ma-es"}
_CONTROL_VARIATION = {"offspring": 1024, "iso_sigma": 0.005, "line_sigma": 0.05}
# What two CPU cores evaluate in a few minutes.
_CPU_BUDGETS = {
    "halfcheetah": 4096, "walker2d": 8192, "ant-maze": 8192, "hopper": 8192, "ant": 4096, "humanoid": 4096,
}  # fmt: skip


@dataclass(frozen=True)
class Preset:
    """A named choice of a method's parameters.

    Attributes:
        summary: What it is and where its numbers come from, in a line.
        changes: Parameters that differ from the method's own.
        tuned_alpha: Whether alpha is the constant that the paper found best for the task.
        budgets: Evaluations by task, of a preset that is for these tasks alone; empty: for all, at their own.
    """

    summary: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    tuned_alpha: bool = False
    budgets: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A method by name.

    Attributes:
        config: Its parameters for mazes, and for any task that the paper does not know.
        summary: What it is, in a line.
        presets: Its presets by name; the first is the default.
        control: What differs on tasks with large policies.
    """

    config: MethodConfig
    summary: str
    presets: Mapping[str, Preset]
    control: Mapping[str, Any]


def _cpu(**changes: Any) -> dict[str, Preset]:
    summary = "control tasks in a few minutes on two CPU cores: small population and budget, not the paper's"
    return {"cpu": Preset(summary, changes, budgets=_CPU_BUDGETS)}


_JEDI_PRESETS = {
    "decay": Preset(f"alpha falls from 0.8 to 0 over the budget (paper, section 4.3); rest: {GLOBAL_TABLE}"),
    "tuned": Preset(f"the constant alpha that the paper found best for the task ({JEDI_TABLE})", tuned_alpha=True),
    **_cpu(population=16, generations=5),
}
_PAPER = {"paper": Preset(GLOBAL_TABLE)}

DEFAULT_METHOD = "jedi-x"
"""The method where none is named, and nothing says that JEDi is meant."""

METHODS: dict[str, Method] = {
    "jedi": Method(
        JediConfig(),
        "JEDi with the targets that arrive most often: uniform over all cells.",
        _JEDI_PRESETS,
        _CONTROL_ES,
    ),
    "jedi-paper": Method(
        JediConfig(targets="pareto"),
        "JEDi to the letter of the paper: weighted GP, targets on the Pareto front.",
        _JEDI_PRESETS,
        _CONTROL_ES,
    ),
    "jedi-x": Method(
        JediXConfig(),
        "JEDi-X, the default: ES after fitness, and where they wait in vain, scouts and varied elites.",
        {
            "default": Preset("one setting for all tasks; the ES as in the paper's tables"),
            **_cpu(population=64, pool=1),
        },
        {**_CONTROL_ES, "pool": 4},
    ),
    "es": Method(
        ESConfig(),
        "One evolution strategy (--es) from a random genotype, by fitness alone.",
        {**_PAPER, **_cpu(population=64)},
        _CONTROL_ES,
    ),
    "es-restart": Method(
        ESConfig(restart_tolerance=1e-3),
        "The same, begun anew from a random genotype whenever it has converged.",
        {**_PAPER, **_cpu(population=64)},
        _CONTROL_ES,
    ),
    "map-elites": Method(
        MapElitesConfig(),
        "MAP-Elites with the iso+line variation.",
        {**_PAPER, **_cpu(offspring=64)},
        _CONTROL_VARIATION,
    ),
    "cma-me": Method(
        CMAMEConfig(),
        "CMA-ME: evolution strategies that are after what the repertoire gains.",
        {
            "imp": Preset(f"improvement emitters: new cells first, then gains; {GLOBAL_TABLE}"),
            "opt": Preset(f"optimising emitters: fitness alone; {GLOBAL_TABLE}", {"ranker": "opt"}),
            "rnd": Preset(f"random direction emitters; {GLOBAL_TABLE}", {"ranker": "rnd"}),
            **_cpu(population=16),
        },
        _CONTROL_ES,
    ),
    "cma-mae": Method(
        CMAMEConfig(ranker="threshold", learning_rate=0.1, threshold_min="task"),
        "CMA-MAE: CMA-ME with thresholds that follow the fitness slowly (--learning-rate).",
        {"paper": Preset(f"learning rate 0.1 (paper, appendix A); {GLOBAL_TABLE}"), **_cpu(population=16)},
        _CONTROL_ES,
    ),
    "pga-me": Method(
        PGAMEConfig(),
        "PGA-ME: MAP-Elites half of whose offspring follow the gradient of a learnt critic.",
        {"paper": Preset(f"{PGA_TABLE}, rest TD3's own; {GLOBAL_TABLE}"), **_cpu(offspring=64)},
        {
            **_CONTROL_VARIATION,
            "critic_hidden": (256, 256),
            "critic_batch": 100,
        },
    ),
}


def default_method(parameters: Iterable[str] = (), preset: str | None = None) -> str:
    """Return the method where none is named: JEDi-X, or JEDi where a parameter or a preset of its own is given.

    Args:
        parameters: Names of parameters that are given.
        preset: Name of the preset that is given.
    """
    other, jedi = METHODS[DEFAULT_METHOD], METHODS["jedi"]
    own = type(jedi.config).model_fields.keys() - type(other.config).model_fields.keys()
    means_jedi = not own.isdisjoint(parameters) or preset in jedi.presets.keys() - other.presets.keys()
    return "jedi" if means_jedi else DEFAULT_METHOD


def check_parameters(method: str, parameters: Iterable[str], *, where: str = "", flag: str = "") -> None:
    """Refuse parameters that only other methods have; what no method has is for the caller to judge.

    Args:
        method: Name of the method.
        parameters: Names of parameters.
        where: Put in front of the error, such as a file's name.
        flag: What a parameter's name begins with where it was given, such as "--".

    Raises:
        JedaxError: One of them is another method's.
    """
    fields = {name: type(entry.config).model_fields for name, entry in METHODS.items()}
    for parameter in parameters:
        shown = flag + (parameter.replace("_", "-") if flag else parameter)
        owners = [name for name, own in fields.items() if parameter in own]
        _check_owners(f"{where}: parameter" if where else "parameter", method, shown, owners)


def _check_owners(argument: str, method: str, given: str, owners: list[str]) -> None:
    """Raise a `JedaxError` where what is given has owners, and the method is none of them."""
    if owners and method not in owners:
        raise fail(
            argument,
            expected=f"one that {method} has",
            received=f"{given}, which is for {', '.join(owners)}",
            remedy=f"leave it out, or take {owners[0]} for the method",
        )


def method_defaults(method: str, task: str, preset: str | None = None, *, where: str = "") -> MethodConfig:
    """Return a method's parameters for a task, before any of the user's own.

    Args:
        method: Name of the method.
        task: Name of the task.
        preset: One of the method's presets; None: its first.
        where: Put in front of an argument's name in errors, such as a file's name.

    Raises:
        JedaxError: Unknown method or preset, or a preset that has nothing for the task.
    """
    check_choice(f"{where}: method" if where else "method", method, METHODS)
    entry = METHODS[method]
    if preset is None:
        preset = next(iter(entry.presets))
    owners = [name for name, other in METHODS.items() if preset in other.presets]
    _check_owners("preset", method, repr(preset), owners)
    chosen = entry.presets[check_choice("preset", preset, entry.presets)]
    if chosen.budgets and task not in chosen.budgets:
        raise fail(
            "preset",
            expected=f"a task that it is for ({', '.join(chosen.budgets)})",
            received=f"{preset!r} for {task!r}",
            remedy="take another preset",
        )
    changes: dict[str, Any] = {}
    if task in CONTROL_TASKS:
        changes |= entry.control
        if isinstance(entry.config, JediConfig) and task in _LONG_LOOPS:
            changes["generations"] = _LONG_LOOPS[task]
    changes |= chosen.changes
    if chosen.tuned_alpha:
        changes["alpha"] = _tuned_alpha(task)
    return entry.config.replace(**changes)


def preset_budget(method: str, task: str, preset: str | None) -> int | None:
    """Return the evaluations that a preset of a method sets for a task; None: it leaves the task's own."""
    return METHODS[method].presets[preset].budgets.get(task) if preset is not None else None


def _tuned_alpha(task: str) -> float:
    if task not in _TUNED_ALPHA:
        raise fail(
            "preset",
            expected=f"a task the paper tuned alpha for ({', '.join(_TUNED_ALPHA)})",
            received=f"'tuned' for {task!r}",
            remedy="take the preset decay or give alpha",
        )
    return _TUNED_ALPHA[task]


def config_class(name: str) -> type[MethodConfig]:
    """Return the class of a method's parameters by its name, such as "JediConfig".

    Raises:
        JedaxError: There is none of that name.
    """
    kinds = {type(method.config).__name__: type(method.config) for method in METHODS.values()}
    return kinds[check_choice("method", name, kinds)]
