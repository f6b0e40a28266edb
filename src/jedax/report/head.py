"""What stands at the top of a run's page, in words and numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from jedax.methods.jedi import JediConfig
from jedax.methods.jedi_x import JediXConfig
from jedax.report.numbers import decimals_for, fitness_text, share_text
from jedax.search.failures import ALL_FAILED
from jedax.store.run import Run
from jedax.tasks.control.ant_maze import AntMaze
from jedax.tasks.maze.task import Maze
from jedax.tasks.registry import title_of

_STATUS = {
    "running": "has not ended",
    "finished": "budget spent",
    "goal": "stopped: reached its stop fitness",
    "time": "stopped: its time was over",
    "interrupted": "was interrupted",
    "callback": "stopped by a callback",
}
_CHOICES = {
    "uniform": "any of the map's cells with equal chance",
    "pareto": "cells that a Gaussian process promises to be good or knows little about (its Pareto front)",
    "gp-ucb": "cells where a Gaussian process hopes for most (upper confidence bound)",
    "gp-bucb": "cells where a Gaussian process hopes for most (upper confidence bound, chosen as a batch)",
}


@dataclass(frozen=True)
class Fact:
    """A number that a reader looks for first.

    Attributes:
        name: What it is.
        value: The number.
        note: What else there is to say about it.
    """

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Head:
    """The top of a page; all texts are plain.

    Attributes:
        task: Its name.
        method: Its label or name.
        badge: Whether it reached its goal, in a few words.
        badge_kind: "good", "warn" or "".
        lead: What was wanted, how it was looked for, and what came out.
        facts: Numbers.
        command: What made the run; empty: unknown.
        missing: What is not there.
    """

    task: str
    method: str
    badge: str
    badge_kind: str
    lead: str
    facts: tuple[Fact, ...]
    command: str
    missing: tuple[str, ...]


def head_of(found: Run) -> Head:
    """Return the top of a run's page."""
    config, run = found.config, found.config.run
    badge, kind = _badge(found)
    seeds = str(run.seed) if run.replicas == 1 else f"{run.seed} to {run.seed + run.replicas - 1}"
    return Head(
        task=title_of(config.task, config.task_config),
        method=config.label or config.method,
        badge=badge,
        badge_kind=kind,
        lead=_lead(found),
        facts=(
            *_results(found),
            Fact("evaluations", f"{found.evaluations:,}", _of_budget(found)),
            Fact("duration", _duration(found), _STATUS.get(found.status, found.status)),
            Fact("method", config.method, "" if config.label in ("", config.method) else config.label),
            Fact("seed" if run.replicas == 1 else "seeds", seeds),
        ),
        command=_command(found.environment),
        missing=found.missing,
    )


def _badge(found: Run) -> tuple[str, str]:
    """Return whether the goal was reached, in a few words, and the kind of the badge."""
    reached = _reached(found)
    is_running = found.status == "running"
    if _all_failed(found):
        return "no solution", "warn"
    if reached is None:
        return "has not ended" if is_running else "ended", ""
    if any(reached) and len(reached) > 1:
        return f"{sum(reached)} of {len(reached)} seeds reached the goal", "good" if all(reached) else ""
    if any(reached):
        return "reached the goal", "good"
    return ("has not reached the goal so far", "") if is_running else ("did not reach the goal", "warn")


def _of_budget(found: Run) -> str:
    each = " each" if found.replicas > 1 else ""
    return f"of {found.config.run.evaluations:,}{each}"


def _all_failed(found: Run) -> bool:
    """Whether evaluations were done and none of them succeeded."""
    best = _best(found)
    return bool(best) and not np.isfinite(best).any()


def _best(found: Run) -> list[float]:
    """Return the best fitness of each replica, as far as is known."""
    if found.repertoire is not None:
        return np.asarray(found.repertoire.best_fitness, float).tolist()
    last = {row["replica"]: row["max_fitness"] for row in found.rows}
    return [value for _, value in sorted(last.items())]


def _results(found: Run) -> list[Fact]:
    best = _best(found)
    if not best:
        return []
    facts = [Fact("best fitness", _fitness(max(best)), _goal_note(found))]
    if len(best) > 1:
        facts.append(Fact("median of the seeds", _fitness(float(np.median(best)))))
    if found.repertoire is not None:
        shares = np.isfinite(np.asarray(found.repertoire.fitness)).mean(axis=1)
        cells = found.repertoire.fitness.shape[1]
        facts.append(Fact("coverage", share_text(float(np.median(shares))), f"of {cells:,} cells"))
    return facts


def _fitness(value: float) -> str:
    if not math.isfinite(value):
        return "none"
    if 0 < abs(value) < 1e-4:
        return f"{value:.2g}"
    return fitness_text(value, decimals_for([value]))


def _goal_note(found: Run) -> str:
    goal = None if found.task is None else found.task.goal_fitness
    return "" if goal is None else f"goal {goal:g}"


def _reached(found: Run) -> list[bool] | None:
    """Return whether each replica has reached the goal; None: there is none, or nothing is known."""
    goal, best = None if found.task is None else found.task.goal_fitness, _best(found)
    return None if goal is None or not best else [value >= goal for value in best]


def _duration(found: Run) -> str:
    seconds = found.summary.get("wall_seconds") or (found.rows[-1].get("seconds") if found.rows else None)
    if not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return "unknown"
    if seconds < 120:
        return f"{seconds:.3g} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _command(environment: dict[str, Any]) -> str:
    command = str(environment.get("command") or "")
    return "jedax" + command.removeprefix("__main__.py") if command.startswith("__main__.py") else command


def _lead(found: Run) -> str:
    method = found.config.method_config
    parts = [f"Wanted: {_wanted(found)}."]
    best = _best(found)
    if best:
        reached = _reached(found)
        parts.append(_outcome(found, max(best), None if reached is None else any(reached)))
    if isinstance(method, JediConfig):
        parts.append(
            "JEDi looked for it by sending searches towards many different behaviours, not uphill in fitness alone, "
            "so that a dead end does not stop it."
        )
    return " ".join(parts)


def _wanted(found: Run) -> str:
    if isinstance(found.task, Maze):
        return "a robot that drives from the start to the goal in as few steps as it can"
    if isinstance(found.task, AntMaze):
        return "an ant that walks around the walls and gets near the goal soon"
    return "the solution with the highest fitness"


def _outcome(found: Run, best: float, reached: bool | None) -> str:
    seeds = f" the best of {found.replicas} seeds" if found.replicas > 1 else " the best solution"
    after = f"After {found.evaluations:,} evaluations (solutions that were tried),"
    if not math.isfinite(best):
        return ALL_FAILED
    if isinstance(found.task, Maze):
        robot = f" the best robot{f' of {found.replicas} seeds' if found.replicas > 1 else ''}"
        if reached:
            return f"{after}{robot} reaches the goal in {-best:.0f} steps."
        config = found.task.config
        left = (-best - config.steps) / config.distance_weight if config.distance_weight else math.nan
        return f"{after}{robot} does not reach the goal and ends {left:.2f} away from it."
    ending = "" if reached is None else ", which is the goal" if reached else ", short of the goal"
    return f"{after}{seeds} has fitness {_fitness(best)}{ending}."


def how_to_read(found: Run) -> str:
    """Return how the map is read, in a few sentences."""
    parts = ["Each cell of the map stands for one way to behave and holds the best solution that behaved so."]
    if isinstance(found.task, Maze):
        config = found.task.config
        parts = [
            "Each cell of the map is a place where robots ended up, and holds the best robot that ended there. Its "
            f"fitness is minus the steps it took to the goal; without arriving, less than -{config.steps}, and the "
            "less the farther away it ended."
        ]
    elif isinstance(found.task, AntMaze):
        parts = ["Each cell of the map is a place where ants ended up, and holds the best ant that ended there."]
    parts.append("Brighter is better. Point at a cell to see its values, choose it to see what its solution does.")
    return " ".join(parts)


def how_it_searched(found: Run) -> str:
    """Return what a loop and a target are, in a few sentences."""
    method = found.config.method_config
    if not isinstance(method, JediConfig):
        return "How the cells filled."
    thing = "robot" if isinstance(found.task, Maze | AntMaze) else "solution"
    place = "places in the maze" if isinstance(found.task, Maze | AntMaze) else "behaviours, places on this map"
    several = f"{method.pool} targets" if method.pool > 1 else "one target"
    return (
        f"JEDi goes in loops. At the start of each it picks {several}: {place}, {_CHOICES[method.targets]}. For each "
        f"an evolution strategy sets out from the stored {thing} that behaved most like it, and breeds {thing}s that "
        "come nearer to the target and are better. All that is tried on the way fills the map, so that later loops "
        "set out from farther on."
    )


def words(found: Run) -> list[tuple[str, str]]:
    """Return the words of the page and what they mean."""
    listed = [
        ("fitness", "How good a solution is; higher is better."),
        ("descriptor, behaviour", "How a solution behaves, as a few numbers; the axes of the map."),
        ("cell", "A piece of the behaviour space. It keeps the best solution that fell into it."),
        ("coverage", "The share of cells that hold a solution."),
        ("QD score", f"Fitness above {found.task.qd_offset:g}, summed over all filled cells." if found.task is not None
         else "Fitness above an offset, summed over all filled cells."),
        ("evaluations here", "How often a solution that was tried fell into the cell, whether it was kept or not."),
    ]  # fmt: skip
    es = ("evolution strategy, ES", "Tries variations of a solution and moves to the better, again and again.")
    if isinstance(found.config.method_config, JediConfig):
        listed += [
            ("target", "A behaviour that an evolution strategy is sent towards; it need not be one that is known yet."),
            es,
            ("GP mean, GP standard deviation", "What a Gaussian process expects of a cell, and how unsure it is."),
            ("Pareto rank", "1: no other cell is both more promising and less known; 2: once those are taken away."),
            ("alpha", "What counts for the evolution strategies: 1 nearness to the target alone, 0 fitness alone."),
            ("loop", f"{found.config.method_config.generations} generations towards the same targets."),
        ]
    if isinstance(found.config.method_config, JediXConfig):
        listed += [
            ("elite", "The best solution of a cell."),
            es,
            ("pool", f"The {found.config.method_config.pool} ES that go after fitness, from the fittest elites."),
            ("variation", "Elites from all over the map, changed at random: what finds new cells."),
            ("scouts", "Small ES that go up from any elite, and start anew where they find nothing."),
        ]
    return listed
