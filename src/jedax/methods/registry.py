"""Methods by name: those of this package, of installed packages (entry points `jedax.methods`), and `module:Class`."""

from __future__ import annotations

import functools
import importlib
import inspect
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jedax.errors import JedaxError, check_choice, fail, unknown
from jedax.es import strategy_names
from jedax.imports import entry_points, is_custom, object_name, subclasses_in
from jedax.methods.base import Method, MethodConfig, Preset
from jedax.settings import object_names, resolve

DEFAULT_METHOD = "jedi-x"
"""The method of runs that name none."""

ALIASES = {"jedi-paper": "jedi"}
"""Earlier names of methods, kept for one version."""

_GROUP = "jedax.methods"
# Names and rankers in settings of format 1.
_RENAMED = {"jedi": "jedi-uniform", "jedi-paper": "jedi"}
_RENAMED_RANKERS = {"imp": "2imp", "opt": "obj", "rnd": "rd", "threshold": "imp"}
# Former names of settings, of each method.
_RENAMED_SETTINGS = {"jedi-x": {"steps": "step_range"}}


@dataclass(frozen=True)
class MethodEntry:
    """A method under one of its names, with its default settings; the first preset is the default."""

    name: str
    method: type[Method]
    config: MethodConfig
    summary: str
    presets: Mapping[str, Preset]


@functools.cache
def methods() -> dict[str, MethodEntry]:
    """Return all registered methods by name, the default first; names of this package win over entry points."""
    found: dict[str, MethodEntry] = {}
    for method in subclasses_in("jedax.methods", Method).values():
        found |= _entries(method, method.name)
    for name, point in entry_points(_GROUP).items():
        try:
            found = {**found, **_entries(_checked(point.load(), name), name), **found}
        except Exception as error:  # the code of another package may raise anything
            warnings.warn(f"the method {name} of a package ({point.value}) is left out: {error}", stacklevel=2)
    return dict(sorted(found.items(), key=lambda item: (item[0] != DEFAULT_METHOD, not item[1].method.is_reference)))


def _entries(method: type[Method], name: str) -> dict[str, MethodEntry]:
    """Return a class under its name and those of its variants."""
    config = method.Config.build({})

    def entry(name: str, changes: Mapping[str, Any], summary: str, presets: Mapping[str, Preset]) -> MethodEntry:
        if method.large_policies:
            large = Preset("policies of tens of thousands of parameters, on any task", method.large_policies)
            presets = {**(presets or {"default": Preset("the defaults")}), "large-policies": large}
        return MethodEntry(name, method, config.replace(**changes), summary, presets)

    return {name: entry(name, {}, method.summary or f"The class {name}.", method.presets)} | {
        other: entry(other, variant.changes, variant.summary, variant.presets)
        for other, variant in method.variants.items()
    }


def code_of(method: str, settings: Mapping[str, Any]) -> list[str]:
    """Return what a method in the settings of a run imports that jedax does not know, as `module:object`.

    Nothing is imported. `settings` are plain values; names of Python objects that the user must give are left out.
    """
    names = [method] if ":" in method and method not in methods() else []
    for setting, value in settings.items():
        names += [name for name in object_names([setting, value]) if setting != "es" or not name.startswith("evosax:")]
    return [name for name in names if not is_custom(name)]


def method_named(method: str | MethodConfig | type[Method], *, where: str = "") -> MethodEntry:
    """Return the entry of a method.

    Args:
        method: A registered name, `module:Class`, a class derived from `Method`, or settings. Of a method with several
            names, settings give the one whose defaults are nearest: a value that differs counts 1, or 1/2 if it has the
            type of the default.
        where: Put in front of the argument's name in errors, such as a file's name.

    Raises:
        JedaxError: The name is unknown, the class cannot be imported or is not a method, or no method has such
            settings.
    """
    argument = f"{where}: method" if where else "method"
    if isinstance(method, MethodConfig):
        return _entry_of_settings(method)
    if isinstance(method, str):
        method = ALIASES.get(method, method)
        if method in methods():
            return methods()[method]
        if ":" not in method and method in strategy_names():
            raise fail(argument, expected="a method", received=f"{method!r}, a strategy", remedy=f"give es={method!r}")
        if ":" not in method:
            raise unknown(argument, method, [*methods(), "module:Class"])
        name, method = method, _checked(resolve(argument, method), argument)
    else:
        method, name = _checked(method, argument), object_name(method)
        known = next((entry for entry in methods().values() if entry.method is method), None)
        if known is not None:
            return known
    return _entries(method, name)[name]


def _checked(method: Any, argument: str) -> type[Method]:
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise fail(
            argument,
            expected="a name, settings such as a JediConfig, or a class derived from jedax.Method",
            received=repr(method),
            remedy=f"try {DEFAULT_METHOD!r}",
        )
    for attribute in ("Config", "init", "ask", "tell"):
        if getattr(method, attribute, None) in (None, getattr(Method, attribute, None)):
            raise fail(method.__name__, expected=f"the attribute {attribute}", received="none", remedy="define it")
    if not (isinstance(method.Config, type) and issubclass(method.Config, MethodConfig)):
        expected = "a class derived from jedax.MethodConfig"
        raise fail(f"{method.__name__}.Config", expected=expected, received=repr(method.Config), remedy="derive it")
    return method


def _entry_of_settings(config: MethodConfig) -> MethodEntry:
    known = [entry for entry in methods().values() if type(config) is type(entry.config)]
    if not known:
        owner = _enclosing_class(config)
        if owner is not None:
            return method_named(owner)
        known = [entry for entry in methods().values() if isinstance(config, type(entry.config))]
    if not known:
        raise fail(
            "method",
            expected="settings of a method",
            received=repr(config),
            remedy="give the method's class, and its settings by name",
        )

    def distance(entry: MethodEntry) -> float:
        pairs = [(getattr(config, name), value) for name, value in entry.config]
        return sum(0.5 + (type(ours) is not type(theirs)) / 2 for ours, theirs in pairs if ours != theirs)

    return min(known, key=distance)


def _enclosing_class(config: MethodConfig) -> type[Method] | None:
    """Return the class in whose body the class of some settings is defined, such as `Mine` of `Mine.Config`."""
    kind = type(config)
    scope: Any = importlib.import_module(kind.__module__)
    for part in kind.__qualname__.split(".")[:-1]:
        scope = getattr(scope, part, None)
    is_method = isinstance(scope, type) and issubclass(scope, Method) and scope.Config is kind
    owners = [scope] if is_method else [m for m in _all_subclasses(Method) if getattr(m, "Config", None) is kind]
    return owners[-1] if owners else None


def _all_subclasses(kind: type) -> list[type]:
    return [found for child in kind.__subclasses__() for found in (child, *_all_subclasses(child))]


def check_settings(method: str | MethodEntry, names: Iterable[str], *, where: str = "", flag: str = "") -> None:
    """Raise a `JedaxError` for a setting that only other methods have; settings that no method has are ignored.

    The error begins with `where`, such as a file's name; names of settings begin with `flag`, such as "--".
    """
    entry = method if isinstance(method, MethodEntry) else method_named(method)
    fields = {name: type(known.config).model_fields for name, known in {**methods(), entry.name: entry}.items()}
    for name in names:
        owners = [owner for owner, own in fields.items() if name in own]
        shown = flag + (name.replace("_", "-") if flag else name)
        _check_owners(f"{where}: setting" if where else "setting", entry.name, shown, owners)


_ELSEWHERE = {
    **dict.fromkeys(("popsize", "populationsize", "batchsize"), "population"),
    **dict.fromkeys(("maxfev", "maxfevals", "maxfun", "maxiter", "budget", "ntrials", "numevaluations"), "evaluations"),
    **dict.fromkeys(("measures", "features", "behaviors", "behaviours"), "descriptors"),
    **dict.fromkeys(("ranges", "measurebounds"), "descriptor_bounds"),
    **dict.fromkeys(("ftarget", "stopfitness"), "target"),
    **dict.fromkeys(("timeout", "maxtime", "timelimit"), "max_seconds"),
    **dict.fromkeys(("solutiondim", "dim", "ndim", "dimension"), "num_params"),
    **dict.fromkeys(("randomstate", "rng", "key"), "seed"),
    **dict.fromkeys(("njobs", "processes", "nprocesses"), "workers"),
    **dict.fromkeys(("sigma", "std"), "sigma0"),
    **dict.fromkeys(("vectorized", "vectorise", "vectorize"), "vectorised"),
    "minimize": "minimise",
}
"""Arguments of scipy, pycma, pyribs, QDax and Optuna, in small letters without "_", and what jedax calls them."""


_NOT_HERE = {
    **dict.fromkeys(
        ("tol", "ftol", "xtol", "gtol", "tolfun", "tolx", "tolerance"),
        "no tolerance ends a search, as ES restart: give target=, a value that is good enough, or max_seconds=",
    ),
    "args": "give functools.partial(fun, ...) or a lambda instead",
}
"""What to do instead of arguments of scipy and pycma that have no counterpart."""


def check_arguments(names: Iterable[str], method: str | type[Method] | MethodConfig, *functions: Any) -> None:
    """Raise a `JedaxError` for a name that is neither a setting of a method nor an argument of some functions."""
    known = set(type(method_named(method).config).model_fields)
    known |= {name for function in functions for name in inspect.signature(function).parameters}
    known -= {"settings"}
    for name in names:
        if name in ("maximise", "maximize"):
            shown = "return minus the value" if "fun" in known else "fitness is maximised without minimise=True"
            raise JedaxError(f"argument: unknown name {name!r}; leave it out: {shown}.")
        if name not in known and name.lower() in _NOT_HERE:
            raise JedaxError(f"argument: unknown name {name!r}; {_NOT_HERE[name.lower()]}.")
        meant = _ELSEWHERE.get(name.lower().replace("_", ""))
        if name not in known and meant in known:
            raise JedaxError(f"argument: unknown name {name!r}; it is called {meant!r} here.")
        check_choice("argument", name, known)


def _check_owners(argument: str, method: str, given: str, owners: list[str]) -> None:
    if owners and method not in owners:
        raise fail(
            argument,
            expected=f"one that {method} has",
            received=f"{given}, which belongs to {', '.join(owners)}",
            remedy=f"leave it out, or choose the method {owners[0]}",
        )


def method_defaults(
    method: str | type[Method],
    task: str = "",
    preset: str | None = None,
    *,
    large_policies: bool = False,
    few_evaluations_of: tuple[int, bool] | None = None,
    has_small_budget: bool = False,
    where: str = "",
) -> MethodConfig:
    """Return the settings of a method on a task before any changes by the user.

    Args:
        method: As in `method_named`.
        task: Name of the task.
        preset: One of the method's presets; None: its first.
        large_policies: Whether the task has large policies (column "Brax" of the paper's tables).
        few_evaluations_of: Length of a genotype, and whether random ones are uniform between bounds, where evaluations
            are done outside JAX and so are few.
        has_small_budget: Whether the task has a small budget, which some presets need.
        where: Put in front of an argument's name in errors, such as a file's name.

    Raises:
        JedaxError: The method or preset is unknown, or the preset does not apply to the task.
    """
    entry = method_named(method, where=where)
    changes: dict[str, Any] = {}
    if large_policies:
        changes |= {**entry.method.large_policies, **entry.method.by_task.get(task, {})}
    if few_evaluations_of is not None:
        num_params, in_box = few_evaluations_of
        changes |= entry.method.few_evaluations(num_params, None, in_box=in_box)
    if preset is None and entry.presets:
        preset = next(iter(entry.presets))
    if preset is not None:
        chosen = preset_named(entry, preset)
        if (chosen.by_task and task not in chosen.by_task) or (chosen.small_budget and not has_small_budget):
            raise fail(
                "preset",
                expected=f"a task that it applies to ({', '.join(chosen.by_task) or 'robots with large policies'})",
                received=f"{preset!r} for {task!r}",
                remedy="choose another preset",
            )
        changes |= {**chosen.changes, **chosen.by_task.get(task, {})}
    return entry.config.replace(**changes)


def preset_named(entry: MethodEntry, preset: str) -> Preset:
    """Return a preset of a method; an error names the methods that have it."""
    owners = [name for name, other in methods().items() if preset in other.presets]
    if preset not in entry.presets:
        _check_owners("preset", entry.name, repr(preset), owners)
    return entry.presets[check_choice("preset", preset, entry.presets)]


def with_present_names(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a method, those with former names under their present ones."""
    present = _RENAMED_SETTINGS.get(method, {})
    return {present.get(name, name): value for name, value in settings.items()}


def upgraded(method: str, label: str, settings: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return name, label and settings of a method as written in format 1 under their present names.

    In format 1, `jedi` was the method with uniform targets and `jedi-paper` the paper's.
    """
    settings = dict(settings)
    if "ranker" in settings:
        is_hard = settings.get("threshold_min", "-inf") == "-inf"
        ranker = settings["ranker"]
        settings["ranker"] = "2imp" if ranker == "threshold" and is_hard else _RENAMED_RANKERS.get(ranker, ranker)
    if method in ("jedi", "jedi-paper"):
        settings.setdefault("targets", "uniform" if method == "jedi" else "pareto")
    first, _, rest = label.partition(" ")
    label = " ".join([_RENAMED.get(first, first), rest]).strip()
    return _RENAMED.get(method, method), label, settings
