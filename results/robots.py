"""JEDi-X beside other methods on robots with large policies: 250,000 evaluations, normalised observations.

    python results/robots.py [--tasks halfcheetah walker2d ant-maze] [--methods jedi-x es ...] [--seeds 10]
                             [--evaluations 250000] [--report]

Each finished search is a row of results/robots/runs-EVALUATIONS.csv, with its seed, its curve in 50 points, its
seconds and the git revision. The next command makes the rows that are missing, all methods of one seed before the next
seed, and goes on with a search that was stopped. Then it writes the tables of each number of evaluations, and those of
results/robot_claims.py. The first seed of JEDi-X with 250,000 evaluations also leaves a film of its best robot and the
map of its cells. `steady` is the fitness that remains when the parameters change a little: these simulations are
chaotic, so the best fitness of a run is a lucky one (see `steady` below). Seeds begin at 0 and were fixed in advance;
settings were chosen on others, from 300 on, but heats were kept because of the first three seeds.

Methods have their defaults for these tasks. `jedi-x no heats` is JEDi-X before its race had heats. `jedi-x no
gradients` is JEDi-X without PPO, with the settings that it had then; its stored rows are of that version, in which
leaders of the race ended and all rivals began at random policies.
`es small` is the ES with its population and steps, `es bold` with the longer steps of JEDi-X' bold ES. `jedi scaled` is
`jedi decay` with as many choices of targets as in the paper's budget; the paper's JEDi chooses targets every 100
generations on HalfCheetah and every 1,000 on the others, three times and once in this budget.
"""

from __future__ import annotations

import argparse
import functools
import io
import os
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pandas
import robot_claims
from keeping import HERE, add_rows, fill_in, of_revisions, revision, rows_of, write_small
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image, ImageSequence

import jedax
from jedax.bench.grids import CONTROL, PAPER_ENTRIES, Entry, slug
from jedax.bench.statistics import mann_whitney, on_common_grid
from jedax.report.numbers import evaluations_axis
from jedax.report.replay import replay
from jedax.report.styles import styles
from jedax.search.api import Run
from jedax.store.files import write_atomic
from jedax.tasks.base import Task
from jedax.tasks.control.settings import TARGET

BUDGETS = EVALUATIONS, *_ = 250_000, 500_000, 5_000_000
POINTS = 50  # of a curve
SEEDS = 10  # planned, of each method
NOISE, ELITES, COPIES = 1e-4, 16, 64  # of `steady`; random policies have a spread of 0.08
FRAMES, WIDTH, MOST_BYTES = 50, 220, 200_000  # of a film
SMALL = Entry("es small", "es", None, {"population": 64, "step_size": 0.02})
BOLD = Entry("es bold", "es", None, {"population": 64, "step_size": 0.05})
SCALED = Entry("jedi scaled", "jedi", "decay")
BEFORE_HEATS = {"starts": 1, "trial": 128, "scout_share": 0.5}
BEFORE_GRADIENTS = BEFORE_HEATS | {
    "gradient_steps": 0, "first_step": 0.24, "bold_step": 0.0, "trial": 256, "patience": 200,
}  # fmt: skip
WITHOUT = Entry("jedi-x no gradients", "jedi-x", None, BEFORE_GRADIENTS)
NO_HEATS = Entry("jedi-x no heats", "jedi-x", None, BEFORE_HEATS)
METHODS = (Entry("jedi-x", "jedi-x"), NO_HEATS, WITHOUT, SCALED, *PAPER_ENTRIES, SMALL, BOLD, Entry("td3", "td3"))
ENTRIES = {entry.label: entry for entry in METHODS}
VARIANTS = ("jedi-x", NO_HEATS.label, WITHOUT.label, "es", SMALL.label, BOLD.label)
NEAR = ("es", "es-restart", "cma-me opt", "pga-me")  # the others that come near JEDi-X on some robot
GROUPS = (("jedi",), ("es", "pga-me", "td3"), ("map-elites", "cma"))  # of the figure, by the beginnings of their names
KEY = ["task", "method", "seed"]
SUSPENDED = (  # searches whose process stood still for a while, so that their seconds tell nothing
    ("halfcheetah", "jedi-x no gradients", 2), ("ant-maze", "jedi-x no gradients", 4), ("halfcheetah", "jedi decay", 0),
)  # fmt: skip
FOLDER, RUNS = HERE / "robots", Path("runs/results/robots")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=CONTROL, default=list(CONTROL))
    parser.add_argument("--methods", nargs="+", choices=tuple(ENTRIES), default=list(ENTRIES))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS)
    parser.add_argument("--report", action="store_true", help="only write the table anew")
    options = parser.parse_args()
    evaluations: int = options.evaluations
    if not options.report:
        order = product(range(options.seeds), options.tasks, options.methods)
        keys = ({"task": task, "method": method, "seed": seed} for seed, task, method in order)
        add_rows(FOLDER / f"runs-{evaluations}.csv", keys, functools.partial(search, evaluations=evaluations))
    found = stored()
    for budget, rows in found.items():
        fill_in(HERE / "README.md", f"robots-{budget}", page(rows, budget))
        write_small(draw(rows, budget), FOLDER / f"curves-{budget}.png")
    write_small(draw_variants(found[EVALUATIONS]), FOLDER / "variants.png")
    fill_in(HERE / "README.md", "claims-control", robot_claims.table(found))
    page_of_ours = HERE.parent / "docs/explanation/jedi-x.md"
    fill_in(page_of_ours, "robots", beside_the_best(found))
    fill_in(page_of_ours, "robots-seeds", every_seed(found))


def stored() -> dict[int, pandas.DataFrame]:
    """Return the rows of each budget that has any."""
    found = {budget: pandas.DataFrame(rows_of(FOLDER / f"runs-{budget}.csv")) for budget in BUDGETS}
    return {budget: rows for budget, rows in found.items() if len(rows)}


def search(task: str, method: str, seed: int, evaluations: int = EVALUATIONS) -> dict[str, Any]:
    """Return the row of one search."""
    entry = ENTRIES[method]
    robot = jedax.tasks.make(task, normalise=True).settled()
    config = entry.config(task, robot.config)
    if method == SCALED.label:
        config = config.replace(generations=round(config.generations * evaluations / robot.default_evaluations))
    folder = RUNS / revision() / f"{task}-{slug(method)}-{seed}-{evaluations}"
    if (folder / "config.yaml").exists():
        result = jedax.resume(folder)
    else:
        result = jedax.run(
            config, robot, evaluations=evaluations, seed=seed, out=folder, overwrite=True, checkpoint_seconds=300
        )
    if method == "jedi-x" and seed == 0 and evaluations == EVALUATIONS:
        film = next(path for path in replay(result).files if path.suffix == ".gif")
        write_small_film(film, FOLDER / f"{task}.webp")
        write_small(folder / "figures" / "repertoire.png", FOLDER / f"{task}.png")
    at = np.linspace(0, len(result.rows) - 1, min(POINTS, len(result.rows))).round().astype(int)
    curve = " ".join(f"{result.rows[i]['evaluations']}:{result.rows[i]['max_fitness']:.5g}" for i in at)
    last = result.rows[-1]
    row = {
        "best": round(last["max_fitness"], 2), "first": round(result.rows[0]["max_fitness"], 2),
        "seconds": round(result.summary["wall_seconds"]),
        "steady": steady(result, robot),
        "coverage": round(last["coverage"], 4), "qd_score": round(last["qd_score"]),
        "nearest": nearest(result) if task == "ant-maze" else None, "curve": curve,
    }  # fmt: skip
    shutil.rmtree(folder)  # hundreds of MB
    return row


def steady(result: Run, robot: Task) -> float:
    """Return the mean fitness of the neighbours of an elite.

    Parameters of neighbours differ by normal noise with standard deviation `NOISE`. The elite is that of the `ELITES`
    fittest whose neighbours, `COPIES` of each, have the highest mean fitness; the mean of four times as many others is
    returned, so it is not a lucky one.
    """
    fitness, genotypes = (np.asarray(values)[0] for values in (result.repertoire.fitness, result.repertoire.genotypes))
    chance, evaluate = np.random.default_rng(0), jax.jit(robot.evaluate_batch)

    def mean(genotype: np.ndarray) -> float:
        noise = NOISE * chance.standard_normal((COPIES, len(genotype)), np.float32)
        return float(evaluate(jax.random.key(0), jnp.asarray(genotype + noise)).fitness.mean())

    best = max(np.argsort(-fitness)[: min(ELITES, np.isfinite(fitness).sum())], key=lambda cell: mean(genotypes[cell]))
    return round(sum(mean(genotypes[best]) for _ in range(4)) / 4, 2)


def nearest(result: Run) -> float:
    """Return how near to the target an ant of the repertoire ends, in metres."""
    ends, filled = np.asarray(result.repertoire.descriptors), np.isfinite(np.asarray(result.repertoire.fitness))
    return round(float(np.linalg.norm(ends[filled] - TARGET, axis=-1).min()), 2)


def write_small_film(film: Path, path: Path) -> None:
    """Write a film as WebP, with few small frames, in a quality that takes at most `MOST_BYTES`."""
    with Image.open(film) as whole:
        frames = [(frame.convert("RGB"), frame.info["duration"]) for frame in ImageSequence.Iterator(whole)]
    every = -(-len(frames) // FRAMES)
    size = WIDTH, round(frames[0][0].height * WIDTH / frames[0][0].width)
    first, *others = (frame.resize(size, Image.Resampling.LANCZOS) for frame, _ in frames[::every])
    for quality in (70, 50, 30, 10):
        buffer = io.BytesIO()
        settings = {"save_all": True, "append_images": others, "duration": every * frames[0][1], "loop": 0}
        first.save(buffer, "WEBP", quality=quality, **settings)
        if buffer.tell() <= MOST_BYTES:
            break
    write_atomic(path, buffer.getvalue())


def draw(rows: pandas.DataFrame, evaluations: int) -> Figure:
    """Return a figure of the best fitness over evaluations: a row for each of `GROUPS` and JEDi-X, a column a robot."""
    rows = rows[rows.curve.notna()]
    tasks, others = tasks_of(rows), rows.method[rows.method != "jedi-x"]
    groups = [group for group in GROUPS if others.str.startswith(group).any()] or GROUPS[:1]
    style = styles([method for method in ENTRIES if method in set(rows.method)])
    size = {"figsize": (13 * len(tasks) / len(CONTROL), 4.2 * len(groups)), "dpi": 110}
    figure, axes = plt.subplots(len(groups), len(tasks), layout="constrained", sharey="col", squeeze=False, **size)
    for (group, task), ax in zip(product(groups, tasks), axes.flat, strict=True):
        is_shown = rows.method.str.startswith(group) | (rows.method == "jedi-x")
        draw_panel(ax, rows[(rows.task == task) & is_shown], style, evaluations)
        ax.set(title=task, ylabel="best fitness")
    return figure


def draw_variants(rows: pandas.DataFrame) -> Figure:
    """Return a figure of the best fitness of every seed of JEDi-X, of its earlier versions and of parts of it."""
    figure, axes = plt.subplots(1, len(CONTROL), figsize=(13, 2.8), dpi=110, layout="constrained")
    for task, ax in zip(CONTROL, axes, strict=True):
        for place, (method, style) in enumerate(styles(VARIANTS).items()):
            best = rows[(rows.task == task) & (rows.method == method)].best
            look = {"color": style["color"], "marker": style["marker"], "s": 40, "linewidth": 0, "zorder": 3}
            ax.scatter(best, np.full(len(best), place), **look)
            if len(best):
                ax.plot([best.median()] * 2, [place - 0.35, place + 0.35], color="#111111", linewidth=1.8)
        ax.set(title=task, xlabel="best fitness of each seed; line: median", ylim=(len(VARIANTS) - 0.5, -0.5))
        ax.set_yticks(range(len(VARIANTS)), VARIANTS if ax is axes[0] else [""] * len(VARIANTS))
        ax.grid(alpha=0.25, axis="x")
    return figure


def draw_panel(ax: Axes, rows: pandas.DataFrame, style: dict[str, dict[str, Any]], evaluations: int) -> None:
    """Draw the curves of one task: the median of each method, and the range of seeds from three on.

    Brackets give the number of seeds.
    """
    for method, known in style.items():
        texts = rows[rows.method == method].curve
        if texts.empty:
            continue
        curves = on_common_grid([curve_of(text) for text in texts], evaluations)
        lines = known | {"linewidth": 1.6, "markevery": [-1]}
        ax.plot(curves.median(axis=1), **lines, label=f"{method} ({len(texts)})", drawstyle="steps-post")
        if len(texts) > 2:
            band = {"step": "post", "color": known["color"], "alpha": 0.13, "linewidth": 0}
            ax.fill_between(curves.index, curves.min(axis=1), curves.max(axis=1), **band)
    ax.set_xlim(0, evaluations)
    evaluations_axis(ax)
    ax.grid(alpha=0.25)
    ax.legend(fontsize=7, ncols=3, handlelength=3, loc="upper center", bbox_to_anchor=(0.5, -0.17))


def curve_of(text: str) -> pandas.Series:
    """Return a curve of a row, the best fitness by evaluations."""
    evaluations, fitness = np.array([point.split(":") for point in text.split()], float).T
    return pandas.Series(fitness, evaluations)


def page(rows: pandas.DataFrame, evaluations: int) -> str:
    """Return tables of the best fitness and of what remains of it with noise, and how near to the target ants end."""
    ends = rows.dropna(subset="nearest").groupby("method").nearest.agg(["min", "max", "size"])
    each = (
        f"{one.Index} {one.min:.2f}{f' to {one.max:.2f}' if one.size > 1 else ''} ({one.size})"
        for one in ends.itertuples()
    )
    parts = [
        table(rows, "best", evaluations),
        f"From the target to the nearest end of an ant, in metres: {', '.join(each)}." if len(ends) else "",
        f"Mean fitness of neighbours of an elite, whose parameters have noise of {NOISE} (`steady`):",
        table(rows.dropna(subset="steady"), "steady", evaluations),
        "Best fitness on the way, its mean over the budget:",
        table(on_the_way(rows, evaluations), "mean", evaluations),
        "JEDi-X beside each other method after equal minutes, those of the faster one's search (medians of seeds):",
        equal_minutes(rows, evaluations),
        f"Hours of one core: {rows.seconds.sum() / 3600:.0f}. {minutes(rows)} {of_revisions(rows)}",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def on_the_way(rows: pandas.DataFrame, evaluations: int) -> pandas.DataFrame:
    """Return the rows that have a curve, with its mean over the budget."""
    rows = rows[rows.curve.notna()]
    return rows.assign(mean=[on_common_grid([curve_of(text)], evaluations).mean().item() for text in rows.curve])


def equal_minutes(rows: pandas.DataFrame, evaluations: int) -> str:
    """Return a table of the median best fitness of JEDi-X and of each other method after equal minutes.

    These are the minutes of the faster of the two, by the medians of seconds. All seeds of a method are taken to have
    the same, steady pace, so that the share of these seconds is that of the evaluations.
    """
    rows = rows[rows.curve.notna() & ~pandas.MultiIndex.from_frame(rows[KEY]).isin(SUSPENDED)]
    tasks = tasks_of(rows)
    lines = [f"| minutes: JEDi-X / the method | {' | '.join(head(task, evaluations) for task in tasks)} |"]
    lines.append("|---|" + "---:|" * len(tasks))
    for method in ENTRIES:
        cells = []
        for task in tasks:
            both = [rows[(rows.task == task) & (rows.method == name)] for name in ("jedi-x", method)]
            seconds = [each.seconds.median() for each in both]
            if method == "jedi-x" or not all(map(len, both)):
                cells.append("")
                continue
            ours, theirs = (
                np.median([curve_of(text).asof(evaluations * min(seconds) / whole) for text in each.curve])
                for each, whole in zip(both, seconds, strict=True)
            )
            cells.append(f"{min(seconds) / 60:.0f}: {ours:,.0f} / {theirs:,.0f}")
        if any(cells):
            lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def minutes(rows: pandas.DataFrame) -> str:
    """Return how long one search of each robot takes."""
    medians = rows.groupby(["task", "method"]).seconds.median() / 60
    each = (f"{task} {medians[task].min():.0f} to {medians[task].max():.0f}" for task in tasks_of(rows))
    return f"Minutes of one search, medians of the fastest and of the slowest method: {', '.join(each)}."


def tasks_of(rows: pandas.DataFrame) -> list[str]:
    """Return the tasks that have rows, in the paper's order."""
    return [task for task in CONTROL if task in set(rows.task)]


def head(task: str, evaluations: int) -> str:
    """Return a task with the share of the paper's budget."""
    return f"{task} ({evaluations / jedax.tasks.make(task).default_evaluations:.1%})"


def table(rows: pandas.DataFrame, column: str, evaluations: int) -> str:
    """Return medians and ranges of a column on the tasks that have rows, and p against JEDi-X."""
    tasks = tasks_of(rows)
    heads = (head(task, evaluations) for task in tasks)
    lines = [f"| (share of the paper's budget) | {' | '.join(heads)} |", "|---|" + "---:|" * len(tasks)]
    for method in ENTRIES:
        cells = []
        for task in tasks:
            ours, values = (rows[(rows.task == task) & (rows.method == name)][column] for name in ("jedi-x", method))
            test = None if method == "jedi-x" else mann_whitney(list(ours), list(values))
            p = "" if test is None else f"; p = {test.p:.2g}"
            ends = f"{values.min():,.0f} to {values.max():,.0f}; " if len(values) > 1 else ""
            cells.append(f"{values.median():,.0f} ({ends}{len(values)}{p})" if len(values) else "")
        if any(cells):
            lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def beside_the_best(found: dict[int, pandas.DataFrame]) -> str:
    """Return a table of JEDi-X and of the other method with the highest median, at the end and on the way.

    Gains are counted from the first population of JEDi-X, 64 random policies.
    """
    columns = {}
    for task, budget, rows in by_task(found):
        first = rows[rows.method == "jedi-x"]["first"].median()
        ours, best, theirs = against_the_best(rows, "best")
        ratio = (np.median(ours) - first) / (np.median(theirs) - first)
        test = mann_whitney(ours, theirs)
        ours_before, best_before, theirs_before = against_the_best(on_the_way(rows, budget), "mean")
        columns[f"{budget:,}: {head(task, budget)}"] = {
            "JEDi-X, median (seeds)": with_median(ours),
            "the best other method": f"{best} {with_median(theirs)}",
            "gain of JEDi-X over random policies, divided by that method's": f"{ratio:.2f}",
            "p (Mann-Whitney U)": f"{test.p:.2g}" if test else "too few seeds",
            "on the way: JEDi-X, mean over the budget": with_median(ours_before),
            "the best other method on the way": f"{best_before} {with_median(theirs_before)}",
        }
    return turned(columns)


def every_seed(found: dict[int, pandas.DataFrame]) -> str:
    """Return a table of the best fitness of each seed, of JEDi-X and of the methods in `NEAR`."""
    columns = {
        f"{budget:,}: {head(task, budget)}": {
            method: ", ".join(f"{best:,.0f}" for best in rows[rows.method == method].sort_values("seed").best)
            for method in ("jedi-x", NO_HEATS.label, *NEAR)
        }
        for task, budget, rows in by_task(found)
    }
    return turned(columns)


def by_task(found: dict[int, pandas.DataFrame]) -> Iterator[tuple[str, int, pandas.DataFrame]]:
    """Return the rows of each task with each number of evaluations that JEDi-X has rows of."""
    for task, budget in product(CONTROL, found):
        rows = found[budget][found[budget].task == task]
        if "jedi-x" in set(rows.method):
            yield task, budget, rows


def turned(columns: dict[str, dict[str, str]]) -> str:
    """Return a table with these columns; all have the same rows."""
    lines = [f"| evaluations: task (share of the paper's budget) | {' | '.join(columns)} |"]
    lines.append("|---|" + "---:|" * len(columns))
    lines += [
        f"| {name} | {' | '.join(column[name] for column in columns.values())} |"
        for name in next(iter(columns.values()))
    ]
    return "\n".join(lines) + "\n"


def with_median(values: list[float]) -> str:
    """Return the median of some seeds, with their number."""
    return f"{np.median(values):,.0f} ({len(values)})"


def against_the_best(rows: pandas.DataFrame, column: str) -> tuple[list[float], str, list[float]]:
    """Return a column of JEDi-X, and the other method with the highest median with its column."""
    others = rows[~rows.method.str.startswith("jedi-x")].groupby("method")[column]
    best = others.median().idxmax()
    return list(rows[rows.method == "jedi-x"][column]), best, list(others.get_group(best))


if __name__ == "__main__":
    main()
