"""JEDi-X on problems beyond the paper's, and on the paper's mazes with a hundred million evaluations.

    python results/beyond.py [--runs runs/results] [--only GRID ...]

Each of these grids is run, compared and kept in results/beyond; runs that are finished are not repeated and a run that
was stopped goes on, so the command can be stopped and given again, and given twice at once.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import claims
import frozen
import matplotlib.pyplot as plt
import numpy as np
import problems
import tuning
from keeping import HERE, cross, fill_in, keep, parser, run, write_small
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from shortest import shortest_way

import jedax
from jedax.bench import comparison
from jedax.bench.comparison import Comparison
from jedax.bench.grids import MAZES, Entry, Grid
from jedax.bench.reading import Record
from jedax.bench.statistics import holm
from jedax.report.comparisons import GOAL, curves, is_early
from jedax.report.styles import styles

OURS = Entry("jedi-x", "jedi-x")
OTHERS = tuple(Entry(method, method) for method in ("jedi-uniform", "map-elites", "cma-mae"))
ELSEWHERE = (OURS, *OTHERS, Entry("es-restart", "es-restart"))


def _like_control(entry: Entry) -> Entry:
    """Return a method with its settings for large policies, at the size for CPUs."""
    found = entry.registered
    return replace(entry, changes={**found.method.large_policies, **found.presets["cpu"].changes})


FROZEN = (*frozen.mazes(), *frozen.arms(), *frozen.functions())
TUNED, NOVELTY = (OURS, *tuning.all_tuned()), Entry("dns", "dns")  # dominated novelty search has its defaults
GRIDS = {
    "beyond-long": Grid("", MAZES, (OURS,), 1, 100_000_000),
    "beyond-development": Grid("", problems.DEVELOPMENT, ELSEWHERE, 10, 250_000),
    "beyond-held-out": Grid("", problems.HELD_OUT, ELSEWHERE, 10, 250_000),
    "beyond-late": Grid("", problems.LATE, ELSEWHERE, 20, 500_000),
    "beyond-frozen": Grid("", FROZEN, (OURS, *OTHERS, Entry("cma-me", "cma-me"), ELSEWHERE[-1]), 10, 250_000),
    "beyond-tuned": Grid("", FROZEN, (*TUNED, NOVELTY), 10, 250_000),
    "beyond-paper-mazes": Grid("", MAZES, (*TUNED, NOVELTY), 10),
    "beyond-gymnasium": Grid("", problems.HELD_OUT_SLOW, tuple(map(_like_control, ELSEWHERE)), 3, 4096),
}
MOST_DRAWN = 16  # tasks in one figure
VERDICT = "against the best other"
FOLDERS = {name: f"beyond/{name.removeprefix('beyond-')}" for name in GRIDS}


def main() -> None:
    arguments = parser(GRIDS).parse_args()
    for name in () if arguments.report else arguments.only:
        run(GRIDS[name], arguments.runs / name)
    for name in arguments.only:  # afterwards, since it changes the checkout
        runs = arguments.runs / name
        command = f"python results/beyond.py --only {name}"
        drawn = len(GRIDS[name].tasks) <= MOST_DRAWN
        found = keep(runs, HERE / FOLDERS[name], command, reference=OURS.label, mapped=(), figures=drawn)
        if drawn:
            draw(found, [one.label for one in GRIDS[name].entries], HERE / FOLDERS[name] / "beside-others.png")
        fill_in(HERE / "beyond" / "README.md", name, TABLES.get(name, tables)(found))


def draw(found: Comparison, labels: list[str], path: Path) -> None:
    """Draw best fitness over evaluations on each task, of some methods."""
    labels = [label for label in labels if label in found.labels]
    style, columns, rows = styles(labels), min(4, len(found.tables)), -(-len(found.tables) // 4)
    size = max(7, 3.5 * columns), 3.2 * rows + 0.6
    figure, axes = plt.subplots(rows, columns, figsize=size, dpi=110, layout="constrained", squeeze=False)
    log = is_early(found, found.tables)
    for ax, task in zip(axes.flat, found.tables, strict=False):
        curves(ax, found, task, style, log=log)
        ax.set(title=task.task, ylabel="best fitness (median)" if ax in axes[:, 0] else "")
    for ax in axes.flat[len(found.tables) :]:
        ax.set_axis_off()
    handles, names = axes.flat[0].get_legend_handles_labels()
    marks = {"quartiles": Patch(color="#bbbbbb"), "goal": Line2D([], [], **GOAL)}
    used = {"quartiles": len(found.records.records) > len(found.tables) * len(labels),
            "goal": any(task.goal is not None for task in found.tables)}  # fmt: skip
    marks = {name: mark for name, mark in marks.items() if used[name]}
    texts = [*names, *marks]
    figure.legend([*handles, *marks.values()], texts, loc="outside lower center", ncol=len(texts), frameon=False)
    write_small(figure, path)


def tables(found: Comparison) -> str:
    """Return three tables of methods and tasks: final fitness and arrivals, how soon, and the mean on the way."""
    final, soon, mean = {}, {}, {}
    for task in found.tables:
        for entry in task.entries:
            where = entry.label, task.task
            records = found.records.of(task.task, entry.label)
            mean[where] = f"{np.median([mean_on_the_way(record) for record in records]):.4g}"
            final[where] = f"{entry.median:.4g}"
            if entry.successes is not None:
                final[where] += f" ({entry.successes} of {len(entry.seeds)})"
                first = entry.reached[0].median
                soon[where] = f"{first:,.0f}" if np.isfinite(first) else "never"
    goals = ", and how many seeds reach the goal" if soon else ""
    parts = [f"Median of the final best fitness{goals}:\n\n{cross(found, final)}", summary(found)]
    if soon:
        with_goal = tuple(task for task in found.tables if any(name == task.task for _, name in soon))
        soon = cross(replace(found, tables=with_goal), soon)
        parts.append(f"Evaluations until the goal is reached, median:\n\n{soon}")
    parts.append(f"Best fitness on the way, its mean over the budget, median:\n\n{cross(found, mean)}")
    return "\n".join(parts)


def summary(found: Comparison) -> str:
    """Return a sentence on how many tasks JEDi-X has the best median, and on the tests of the others."""
    leads, shared, unclear, lost = 0, [], [], []
    for task in found.tables:
        ours, best, p = _ours_and_best(task)
        leads += ours.median > best.median
        shared += [task.task] if ours.median == best.median else []
        text = f"{task.task} ({best.label}, p = {p:.2g})"
        if best.similar:
            unclear.append(text)
        elif ours.median < best.median:
            lost.append(text)
    parts = [f"JEDi-X has the best median on {leads} of {len(found.tables)}."]
    parts += [f"It shares the best median on {', '.join(shared)}."] if shared else []
    parts += [f"It ends below another method on {', '.join(lost)}."] if lost else []
    parts += [f"It is not distinguishable from the best other on {', '.join(unclear)}."] if unclear else []
    return " ".join(parts) + "\n"


def _ours_and_best(task: comparison.TaskTable) -> tuple[comparison.Entry, comparison.Entry, float]:
    """Return JEDi-X, the other method with the highest median, and p of the test between them."""
    ours = task.entry(OURS.label)
    best = max((entry for entry in task.entries if entry is not ours), key=lambda entry: entry.median)
    assert ours is not None
    assert best.p is not None
    return ours, best, best.p


def beside_the_shortest(found: Comparison) -> str:
    """Return a table of the best fitness on each maze beside its shortest way."""
    lines = [
        "| | steps of the best robot | best of the thirty short runs | shortest way | ratio of the best |",
        "|---|---:|---:|---:|---:|",
    ]
    for table in found.tables:
        steps, short = -table.entries[0].median, -max(claims.values(table.task, OURS.label))
        shortest = shortest_way(jedax.tasks.make(table.task).config)
        lines.append(
            f"| {table.task} | {steps:.0f} | {short:.0f} | {shortest:.1f} | {min(steps, short) / shortest:.2f} |"
        )
    return "\n".join(lines) + "\n"


def losses_first(found: Comparison) -> str:
    """Return a table of final fitness that begins with the tasks on which JEDi-X is not first, and `balance`."""
    values, places = {}, {}
    for task in found.tables:
        ours, best, p = _ours_and_best(task)
        lead = int(np.sign(ours.median - best.median))
        places[task.task] = lead, -lead * p, p  # the clearest loss first, the clearest win last
        for entry in task.entries:
            arrived = "" if entry.successes is None else f" ({entry.successes})"
            values[entry.label, task.task] = f"{entry.median:.4g}{arrived}"
        if lead < 0:
            values[best.label, task.task] = f"**{values[best.label, task.task]}**"
        verdict = ("behind", "equal", "ahead")[lead + 1] + (", not distinguishable" if best.similar else "")
        values[VERDICT, task.task] = f"{verdict}, p = {p:.2g}"
    ordered = sorted(found.tables, key=lambda task: places[task.task])
    table = cross(replace(found, tables=tuple(ordered), labels=(*found.labels, VERDICT)), values)
    new = [place for name, place in places.items() if name not in problems.DEVELOPMENT]
    return f"{table}\n{balance([lead for lead, *_ in new], [p for *_, p in new])}"


def balance(leads: list[int], ps: list[float]) -> str:
    """Return on how many problems JEDi-X leads (1) or is behind (-1), and how many of the tests are significant."""
    counts = {
        side: [sum(lead == side and p < claims.SIGNIFICANT for lead, p in zip(leads, each, strict=True))
               for each in (ps, holm(ps))]
        for side in (1, -1)
    }  # fmt: skip
    texts = {side: f"{n} with p < {claims.SIGNIFICANT}, {m} after Holm's correction" for side, (n, m) in counts.items()}
    return (
        f"Of the {len(leads)} problems that it was not developed on, JEDi-X has the best median on {leads.count(1)} "
        f"({texts[1]}), and is behind on {leads.count(-1)} ({texts[-1]}).\n"
    )


def mean_on_the_way(record: Record) -> float:
    """Return the area under the curve of the best fitness, from the first report on, over the evaluations it spans."""
    return claims.mean_of_curve(record.curve["max_fitness"], record.curve.index.to_numpy())


TABLES = {"beyond-long": beside_the_shortest, "beyond-frozen": losses_first, "beyond-tuned": losses_first}

if __name__ == "__main__":
    main()
