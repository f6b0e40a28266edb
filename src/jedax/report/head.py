"""The top of a run's page and its explanations, in words and numbers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jedax.report.numbers import decimals_for, fitness_text, share_text
from jedax.search.failures import ALL_FAILED
from jedax.store.run import Run
from jedax.tasks.drawing import drawing_of
from jedax.tasks.registry import title_of

_STATUS = {
    "running": "has not ended",
    "finished": "budget spent",
    "goal": "stopped: reached its stop fitness",
    "time": "stopped: its time was over",
    "interrupted": "was interrupted",
    "callback": "stopped by a callback",
}


class Fact(NamedTuple):
    """A number that a reader looks for first, with a remark on it."""

    name: str
    value: str
    note: str = ""


class Head(NamedTuple):
    """The top of a page, as plain texts; the kind of the badge is "good", "warn" or ""."""

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
    several = run.replicas > 1
    seeds = f"{run.seed} to {run.seed + run.replicas - 1}" if several else str(run.seed)
    budget = f"of {run.evaluations:,}{' each' if several else ''}"
    return Head(
        task=title_of(config.task, config.task_config),
        method=config.label or config.method,
        badge=badge,
        badge_kind=kind,
        lead=_lead(found),
        facts=(
            *_results(found),
            Fact("evaluations", f"{found.evaluations:,}", budget),
            Fact("duration", _duration(found), _STATUS.get(found.status, found.status)),
            Fact("method", config.method, "" if config.label in ("", config.method) else config.label),
            Fact("seeds" if several else "seed", seeds),
        ),
        command=_command(found.environment),
        missing=found.missing,
    )


def _badge(found: Run) -> tuple[str, str]:
    """Return whether the goal was reached, in a few words, and the kind of the badge."""
    best, reached = _best(found), _reached(found)
    is_running = found.status == "running"
    if best and not np.isfinite(best).any():
        return "no solution", "warn"
    if reached is None:
        return "has not ended" if is_running else "ended", ""
    if any(reached) and len(reached) > 1:
        return f"{sum(reached)} of {len(reached)} seeds reached the goal", "good" if all(reached) else ""
    if any(reached):
        return "reached the goal", "good"
    return ("has not reached the goal so far", "") if is_running else ("did not reach the goal", "warn")


def _best(found: Run) -> list[float]:
    """Return the best fitness of each replica, as far as is known."""
    if found.repertoire is not None:
        return np.asarray(found.repertoire.best_fitness, float).tolist()
    last = {row["replica"]: row["max_fitness"] for row in found.rows}
    return [value for _, value in sorted(last.items())]


def _goal(found: Run) -> float | None:
    return None if found.task is None else found.task.goal_fitness


def _reached(found: Run) -> list[bool] | None:
    """Return whether each replica has reached the goal; None: there is none, or nothing is known."""
    goal, best = _goal(found), _best(found)
    return None if goal is None or not best else [value >= goal for value in best]


def _results(found: Run) -> list[Fact]:
    best, goal = _best(found), _goal(found)
    if not best:
        return []
    facts = [Fact("best fitness", _fitness(max(best)), "" if goal is None else f"goal {goal:g}")]
    if len(best) > 1:
        facts.append(Fact("median of the seeds", _fitness(float(np.median(best)))))
    if found.repertoire is not None:
        filled = np.isfinite(np.asarray(found.repertoire.fitness))
        coverage = share_text(float(np.median(filled.mean(axis=1))))
        facts.append(Fact("coverage", coverage, f"of {filled.shape[1]:,} cells"))
    return facts


def _fitness(value: float) -> str:
    if not math.isfinite(value):
        return "none"
    return f"{value:.2g}" if 0 < abs(value) < 1e-4 else fitness_text(value, decimals_for([value]))


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
    parts = [f"Wanted: {drawing_of(found.task).wanted}."]
    best = _best(found)
    if best:
        parts.append(_outcome(found, max(best)))
    return " ".join([*parts, *filter(None, [found.method and found.method.lead()])])


def _outcome(found: Run, best: float) -> str:
    if not math.isfinite(best):
        return ALL_FAILED
    drawing, reached = drawing_of(found.task), _reached(found)
    achieved = drawing.outcome(best, reached=reached is not None and any(reached))
    if achieved is None:
        ending = "" if reached is None else ", which reaches the goal" if any(reached) else ", short of the goal"
        achieved = f"has fitness {_fitness(best)}{ending}"
    seeds = f" of {found.replicas} seeds" if found.replicas > 1 else ""
    return (
        f"After {found.evaluations:,} evaluations (solutions that were tried), the best {drawing.solution}{seeds} "
        f"{achieved}."
    )


def how_to_read(found: Run) -> str:
    """Return how the map is read, in a few sentences."""
    use = "Brighter is better. Point at a cell to see its values, choose it to see what its solution does."
    return f"{drawing_of(found.task).map_text} {use}"


def how_it_searched(found: Run) -> str:
    """Return how the method searched, in a few sentences."""
    drawing, method = drawing_of(found.task), found.method
    return "How the cells filled." if method is None else method.describe_search(drawing.solution, drawing.place)


def words(found: Run) -> list[tuple[str, str]]:
    """Return the words of the page and what they mean."""
    offset = "an offset" if found.task is None else f"{found.task.qd_offset:g}"
    return [
        ("fitness", "How good a solution is; higher is better."),
        ("descriptor, behaviour", "How a solution behaves, as a few numbers; the axes of the map."),
        ("cell", "A piece of the behaviour space. It keeps the best solution that fell into it."),
        ("coverage", "The share of cells that hold a solution."),
        ("QD score", f"Fitness above {offset}, summed over all filled cells."),
        ("evaluations here", "How often a solution that was tried fell into the cell, whether it was kept or not."),
        *(found.method.glossary() if found.method else ()),
    ]
