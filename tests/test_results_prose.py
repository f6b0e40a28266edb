"""Numbers in the prose of results/ and docs/ are those of the stored results."""

import json
import re

import numpy as np
import pandas
import pytest
from scipy.stats import chi2_contingency, fisher_exact, kruskal, mannwhitneyu
from tests.scripts import RESULTS, script

if not RESULTS.exists():
    pytest.skip("an unpacked source distribution holds no results", allow_module_level=True)

claims = script("claims")
MAZES = claims.MAZES
ROOT = RESULTS.parent


def says(page, *sentences):
    """Check that a page has sentences, wherever their lines are broken."""
    text = re.sub(r"\s+", " ", (ROOT / page).read_text())
    for sentence in sentences:
        assert re.sub(r"\s+", " ", sentence) in text


def finals(label, maze, folder="paper-mazes"):
    return claims.values(maze, label, folder=folder)


def test_baselines_are_near_the_papers_medians():
    away = [
        abs(np.median(finals(label, maze)) - claims.PAPER[label][MAZES.index(maze)])
        for label in ("es", "es-restart", "cma-me imp", "cma-me opt", "cma-mae")
        for maze in MAZES
        if maze != "maze-c" and claims.PAPER[label][MAZES.index(maze)] is not None
    ]
    assert max(away) <= 15
    says("results/README.md", "ES, CMA-ME and CMA-MAE are within 15 of the paper's medians on A, B and Quad B")


def test_searches_with_and_without_restarts_on_mazes():
    differ = [int((finals("es", maze) != finals("es-restart", maze)).sum()) for maze in MAZES]
    away = [abs(np.median(finals("es", maze)) - np.median(finals("es-restart", maze))) for maze in MAZES]
    assert max(away) <= 1
    a, b, c, quad_b = differ
    says(
        "results/README.md",
        f"Of 20 seeds {a} on A, {b} on B, {c} on C and {quad_b} on Quad B end elsewhere than those of `es`, and no "
        "median differs by more than 1.",
    )


def test_steps_of_map_elites_that_give_the_papers_medians():
    variants = pandas.read_csv(RESULTS / "map-elites" / "variants.csv")
    rows = variants.set_index(["variant", "task"])["median"]
    above = {
        variant: [rows[variant, maze] - paper for maze, paper in zip(MAZES, claims.PAPER["map-elites"], strict=True)]
        for variant in ("isotropic 0.05", "isotropic 0.04", "isotropic 0.02", "weights kept within [-1, 1]")
    }
    low, high = (round(one) for one in (min(above["isotropic 0.05"]), max(above["isotropic 0.05"])))
    a, _, c, quad_b = above["isotropic 0.04"]
    below = sorted(-one for one in (a, c, quad_b))
    far = sorted(round(-one) for one in above["isotropic 0.02"] + above["weights kept within [-1, 1]"])
    says(
        "results/README.md",
        f"Steps of 0.05 end {low} to {high} above the paper's medians on every maze, steps of 0.04 end "
        f"{below[0]:.3g} to {below[-1]:.3g} below them on A, C and Quad B.",
        f"Steps of 0.02, and weights that are kept within [-1, 1], end {far[0]} to {far[-1]} below them",
    )
    tuned = "tuned on other problems (isotropic 0.0452, line 0.704, 256 offspring)"
    ours = [-110.0, -162, -138, -170]
    assert all(rows[tuned, maze] < one for maze, one in zip(MAZES, ours, strict=True))
    p = [
        mannwhitneyu(finals("jedi-x", maze), np.array(best.split(), float)).pvalue
        for maze, best in variants[variants.variant == tuned][["task", "best"]].itertuples(index=False)
    ]
    a, b, c, quad_b = p
    assert max(b, quad_b) < 1e-7
    says("results/README.md", f"it on A (p = {a:.1g}), B and Quad B (p < 1e-7), not on C (p = {c:.2g})")


def test_other_readings_of_the_choice_of_targets():
    counts = {
        label: sum(int((finals(label, maze, folder) >= claims.GOAL).sum()) for maze in MAZES)
        for label, folder in (
            ("without-inverse", "readings"),
            ("jedi decay", "paper-mazes"),
            ("never-fitted", "readings"),
        )
    }
    few, ours, never = counts.values()
    p = fisher_exact([[few, 120 - few], [ours, 120 - ours]]).pvalue
    says(
        "results/README.md",
        f"({few} and {ours} of 120, Fisher's exact test: p = {p:.2g}), never fitted about as many ({never})",
    )


def test_how_many_seeds_arrive_with_each_alpha():
    rows = claims.rows("ablations/alpha")
    text, ps = [], []
    for maze, name in zip(MAZES, ("A", "B", "C", "Quad B"), strict=True):
        arrived = (rows[rows.task == maze].set_index("label").final_fitness >= claims.GOAL).groupby("label")
        counts = arrived.agg(["sum", "size"])
        ps.append(chi2_contingency([counts["sum"], counts["size"] - counts["sum"]]).pvalue)
        text.append(f"p = {ps[-1]:.2g} on {name}")
    says("results/README.md", ", ".join(text))
    fitness = [
        kruskal(*(each for _, each in rows[rows.task == maze].groupby("label").final_fitness)).pvalue for maze in MAZES
    ]
    assert 4 * min(ps) > 0.05
    assert 4 * min(fitness) > 0.05  # Holm's correction
    on_a, on_c, on_quad_b = (arrivals_of(maze, "alpha=0.0") for maze in ("maze-a", "maze-c", "maze-quad-b"))
    says("results/README.md", f"(0: {on_a} of 30, 0.7: {arrivals_of('maze-a', 'alpha=0.7')})")
    assert on_c == 0
    says("results/README.md", f"(0: none of 30, 1: {arrivals_of('maze-c', 'alpha=1.0')})")
    nearly_greedy = arrivals_of("maze-quad-b", "alpha=0.9")
    says("results/README.md", f"here {on_quad_b} of 30 seeds get to its goal with 0 and {nearly_greedy} with 0.9")


def arrivals_of(maze, label, folder="ablations/alpha", seeds=30):
    return int((finals(label, maze, folder)[:seeds] >= claims.GOAL).sum())


def test_repeated_settings_differ_by_rounding_alone():
    for folder, label in (("ablations/generations", "decay generations=100"), ("ablations/pool", "decay pool=4")):
        away = [arrivals_of(maze, "alpha=decay", seeds=10) - arrivals_of(maze, label, folder) for maze in MAZES]
        assert max(np.abs(away)) == 1
        first, again = (
            np.median(one)
            for one in (finals("alpha=decay", MAZES[3], "ablations/alpha")[:10], finals(label, MAZES[3], folder))
        )
        says("results/README.md", f"one seed decides the median (Quad B: {first:.0f} and {again:.0f})")


def test_searches_with_and_without_restarts_on_robots():
    rows = pandas.read_csv(RESULTS / "robots" / "runs-500000.csv").set_index(["task", "method", "seed"]).best
    same = {
        task: [seed for seed in range(3) if rows[task, "es", seed] == rows[task, "es-restart", seed]]
        for task in ("walker2d", "ant-maze")
    }
    assert same == {"walker2d": [0, 1, 2], "ant-maze": [0, 2]}
    says(
        "results/README.md", "The `es-restart` of all seeds on Walker2D and of seeds 0 and 2 on AntMaze never restarts"
    )


def test_what_jedi_x_reaches_on_walker2d_after_500_000_evaluations():
    rows = pandas.read_csv(RESULTS / "robots" / "runs-500000.csv")
    rows = rows[rows.method == "jedi-x"]
    ends = {}
    for seed, row in rows[rows.task == "walker2d"].set_index("seed").iterrows():
        curve = script("robots").curve_of(row.curve)
        ends[seed] = row.best, curve.index[curve >= curve.iloc[-1]][0]
    assert ends[0][1] < 220_000
    assert ends[1][1] > 480_000
    assert ends[2][1] < 170_000
    says(
        "docs/explanation/jedi-x.md",
        f"seed 0 finds nothing better after 210,000 and ends at {ends[0][0]:,.0f}; "
        f"seed 1 goes on to {ends[1][0]:,.0f}, found at the end; "
        f"seed 2 has {ends[2][0]:,.0f} after 160,000, and nothing better later",
    )
    near = rows[rows.task == "ant-maze"].nearest
    assert (round(near.min(), 1), round(near.max(), 1)) == (0.1, 1.0)
    says("docs/explanation/jedi-x.md", "With 500,000 evaluations three seeds end 0.1 to 1.0 m from it.")


def test_jedi_x_and_the_medians_of_the_mazes():
    ours = [np.median(finals("jedi-x", maze)) for maze in MAZES]
    assert [round(one) for one in ours] == [-110, -162, -138, -170]
    says("docs/explanation/jedi-x.md", "on mazes A, B, C and Quad B they are -110, -162, -138 and -170")


def test_hours_of_the_mazes():
    facts = json.loads((RESULTS / "paper-mazes" / "environment.json").read_text())
    whole, slowest = facts["hours"], facts["hours_by_method"]["pga-me"]
    says("benchmarks/README.md", f"took {whole:.1f} h of one core (AVX2), of which PGA-ME took {slowest:.1f} h")


def test_how_much_of_the_best_fitness_is_luck():
    rows = pandas.read_csv(RESULTS / "robots" / "luck.csv")
    least = rows[rows.noise == 1e-6]
    assert (least.greatest > least.best).all()
    cheetah, ant = (rows[rows.task == task].sort_values("noise") for task in ("halfcheetah", "ant-maze"))
    assert ((cheetah.best - cheetah["mean"]) / cheetah["std"]).between(0.9, 1.4).all()
    assert ant["mean"].is_monotonic_decreasing
    std = float(cheetah["std"].iloc[0])
    says("docs/explanation/jedi-x.md", f"changes the fitness of a half cheetah by [{std:.0f}, a standard deviation]")


GROUPS = {
    "separable": range(1, 6),
    "moderate": range(6, 10),
    "ill-conditioned": range(10, 15),
    "multimodal, f15 to f19": range(15, 20),
    "weak structure, f20 to f24": range(20, 25),
    "all": range(1, 55),
}


def targets_on(suite):
    """Return the rows of a suite of COCO, with the number of targets that each search reaches."""
    rows = pandas.read_csv(RESULTS / "independent" / f"{suite}.csv")
    return rows.assign(targets=rows.reached.fillna("").str.split().str.len())


def share(rows, algorithm):
    return f"{rows[rows.algorithm == algorithm].targets.mean() / 51:.3f}"


def test_targets_on_bbob():
    rows = targets_on("bbob")
    for name, functions in GROUPS.items():
        of = rows[rows.function.isin(functions)]
        cells = (" / ".join(share(of[of.dim == dim], one) for one in ("jedax", "pycma-bipop")) for dim in (2, 5, 20))
        line = f"| {name} | {' | '.join(cells)} |"
        text = (ROOT / "benchmarks" / "independent" / "README.md").read_text().replace("**", "")
        assert line in text


@pytest.mark.parametrize("suite", ["bbob-mixint", "bbob-constrained"])
def test_targets_with_integers_and_with_constraints(suite):
    rows = targets_on(suite)
    ours, theirs = (share(rows, one) for one in ("jedax", "pycma"))
    text = (ROOT / "benchmarks" / "independent" / "README.md").read_text()
    assert (f"| all | **{ours}**" if suite == "bbob-mixint" else f"**{ours}** of the targets, pycma's") in text
    says("docs/guides/when.md", f"{ours} and {theirs}")
