"""Grids of tasks and methods: the paper's, and those of a command."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jedax.errors import check_choice, fail, unknown
from jedax.methods.base import Method, MethodConfig
from jedax.methods.registry import MethodEntry, check_settings, method_named, preset_named
from jedax.settings import Config
from jedax.store.config import defaults_for
from jedax.yaml_text import read_yaml

if TYPE_CHECKING:
    from jedax.tasks.base import Task

MAZES = ("maze-a", "maze-b", "maze-c", "maze-quad-b")
CONTROL = ("halfcheetah", "walker2d", "ant-maze")


@dataclass(frozen=True)
class Entry:
    """A method of a grid, with its parameters."""

    label: str  # in tables and figures
    method: str | MethodConfig | type[Method]
    preset: str | None = None  # None: the method's first
    changes: Mapping[str, Any] = field(default_factory=dict)  # parameters that differ from the preset

    @property
    def registered(self) -> MethodEntry:
        """The method as jedax knows it."""
        return method_named(self.method)

    def config(self, task: str, task_config: Config | None = None) -> MethodConfig:
        """Return the method's settings on a task, which may have settings of its own."""
        config = self.defaults(task, task_config)[0]
        unfamiliar = [name for name in self.changes if name not in type(config).model_fields]
        if unfamiliar:
            check_settings(self.registered.name, unfamiliar, where=self.label)
            raise unknown(f"{self.label}: setting", unfamiliar[0], type(config).model_fields)
        return config.replace(**self.changes)

    def defaults(self, task: str, task_config: Config | None = None) -> tuple[MethodConfig, int | None]:
        """Return the settings before `changes`, and the budget of the preset; None: the task's own."""
        if isinstance(self.method, MethodConfig):
            return self.method, None
        return defaults_for(self.method, task, self.preset, task_config=task_config)


@dataclass(frozen=True)
class Grid:
    """Tasks and methods; each method is run on each task."""

    summary: str  # what it is for
    tasks: tuple[str | Task, ...]  # names of tasks, maze files, or task objects
    entries: tuple[Entry, ...]
    seeds: int = 10  # number of seeds
    evaluations: int | None = None  # budget of each seed; None: the task's own
    first_seed: int = 0


PAPER_ENTRIES = (
    Entry("jedi tuned", "jedi", "tuned"),
    Entry("jedi decay", "jedi", "decay"),
    Entry("jedi-uniform", "jedi-uniform"),
    Entry("es", "es"),
    Entry("es-restart", "es-restart"),
    Entry("map-elites", "map-elites"),
    Entry("cma-me imp", "cma-me", "imp"),
    Entry("cma-me opt", "cma-me", "opt"),
    Entry("cma-mae", "cma-mae"),
    Entry("pga-me", "pga-me"),
)
"""The methods of the paper's Table 1 and of its table of additional baselines, and JEDi with uniform targets."""


def _vary(parameter: str, values: Sequence[Any], method: str = "jedi") -> tuple[Entry, ...]:
    return tuple(Entry(f"{parameter}={value}", method, None, {parameter: value}) for value in values)


GRIDS: dict[str, Grid] = {
    "paper-mazes": Grid("the paper's mazes and methods at full budget", MAZES, PAPER_ENTRIES),
    "paper-mazes-quick": Grid("the same with a small budget, to check that everything works", MAZES, PAPER_ENTRIES, 2,
                              10_000),
    "paper-control": Grid("the paper's control tasks and methods at full budget", CONTROL, PAPER_ENTRIES, 5),
    "ablation-alpha": Grid("weight of the distance to the target (paper, appendix C)", MAZES,
                           _vary("alpha", (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0, "decay"))),
    "ablation-targets": Grid("how targets are chosen (paper, appendix C)", MAZES, (
        Entry("targets=uniform", "jedi", None, {"targets": "uniform"}),
        Entry("targets=gp", "jedi", None, {"gp": "standard"}),
        Entry("targets=weighted-gp", "jedi"),
    )),
    "ablation-generations": Grid("generations of an ES before new targets are chosen (paper, appendix C)", MAZES,
                                 _vary("generations", (10, 50, 100, 200))),
    "ablation-pool": Grid("number of ES side by side (paper, appendix C)", MAZES, _vary("pool", (1, 4, 16))),
    "ablation-learning-rate": Grid("learning rate of CMA-MAE's thresholds (paper, appendix A)", MAZES,
                                   _vary("learning_rate", (1.0, 0.1, 0.01, 0.001, 0.0), "cma-mae")),
}  # fmt: skip


def grid_named(name: str) -> Grid:
    """Return a grid of the paper by its name."""
    return GRIDS[check_choice("preset", name, GRIDS)]


def parse_entry(text: str) -> Entry:
    """Return the method that a command names, with a preset or settings after commas; the label has spaces instead.

    Examples are `jedi-x`, `jedi,tuned`, `jedi,alpha=0.3,pool=1`, `jedi-x,step_range=[0.1,0.5]`,
    `es-restart,restart_tolerance=null` and `module:Class,setting=2`.
    """
    method, *rest = [part.strip() for part in re.split(r",(?![^\[]*\])", text)]
    entry = method_named(method)
    preset, changes = None, {}
    for part in rest:
        name, equals, value = part.partition("=")
        if equals:
            value = value.strip()
            is_yaml = value.startswith("[") or value == "null"
            changes[name.strip().replace("-", "_")] = read_yaml(value, text) if is_yaml else value
        elif preset is None:
            preset_named(entry, part)
            preset = part
        else:
            raise fail("methods", expected="one preset", received=repr(text), remedy="leave one out")
    return Entry(" ".join([method, *rest]), method, preset, changes)


def slug(name: str) -> str:
    """Return a name as part of a path: letters, digits, and `._=+-`."""
    return re.sub(r"[^\w.=+-]+", "-", name).strip("-.") or "unnamed"
