"""How native robots agree with Brax's: from the same states, and over whole episodes of the same policies.

    python results/physics.py [--only hopper ...] [--out results/physics]

2,000 states of each robot, half of them met by random and half by trained policies; native code and Brax simulate a
substep, a control step and ten control steps from each. Differences are relative as `errors` in
`tests/tasks/control/beside_brax.py` says. Brax is also compared with itself, from states that differ by the rounding of
float32. Then the episodes of 256 random and 256 trained policies, whose fitness and descriptors are compared as two
samples (Kolmogorov-Smirnov) and as pairs (Wilcoxon's signed ranks). Robots whose rows are in the tables are skipped.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np
import pandas
from scipy.stats import ks_2samp, wilcoxon

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from keeping import clean_revision, fill_in  # noqa: E402
from tests.tasks.control.beside_brax import COMPARED, ROBOTS, ROUNDING, Robot, errors  # noqa: E402

from jedax.store import environment  # noqa: E402
from jedax.store.files import write_json  # noqa: E402
from jedax.tasks import make  # noqa: E402

STATES, POLICIES = 2000, 256
STEPS = {"halfcheetah": 500, "walker2d": 1000, "hopper": 1000, "ant": 1000, "humanoid": 200, "ant-maze": 250}
TIMES = {"substep": (1, 1), "control step": (1, None), "ten control steps": (10, None)}
HIDDEN = (64, 64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=ROBOTS, default=ROBOTS)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "physics")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    revision = clean_revision("*.md", "results/physics")
    tables = {"agreement": agreement, "episodes": episodes}
    for name in arguments.only:
        robot = policies = None
        for table, measure in tables.items():
            path = arguments.out / f"{table}.csv"
            known = pandas.read_csv(path) if path.exists() else pandas.DataFrame({"robot": []})
            if name in set(known.robot):
                continue
            began = time.perf_counter()
            if robot is None:
                robot = Robot(name, hidden=HIDDEN, steps=STEPS[name])
                trained = robot.trained_policies(POLICIES, generations=60)
                policies = np.concatenate([robot.random_policies(POLICIES), trained])
            rows = pandas.DataFrame([{"robot": name, **row, "revision": revision} for row in measure(robot, policies)])
            pandas.concat([known, rows]).to_csv(path, index=False)
            write_json(arguments.out / "environment.json", {**environment.describe(), "git_revision": revision})
            print(f"{name}: {table} in {time.perf_counter() - began:.0f} s", flush=True)
    if arguments.out == ROOT / "results" / "physics":
        fill_in(ROOT / "results" / "README.md", "physics", readable(arguments.out))


def agreement(robot: Robot, policies: np.ndarray) -> list[dict]:
    """Return the differences of each quantity after each time, native code to Brax and Brax to Brax."""
    found = []
    start, policy = robot.states(policies, STATES, robot.episode.steps)
    genotypes = policies[policy]
    near = robot.perturbed(start, ROUNDING)
    before = np.asarray(robot.touching(start))
    for when, (steps, substeps) in TIMES.items():
        expected = robot.brax(start, genotypes, steps, substeps)
        native, length = robot.native(start, genotypes, steps, substeps)
        lives = length == steps
        pick = lambda after, lives=lives: jax.tree.map(lambda leaf: leaf[lives], after)  # noqa: E731
        native = pick(jax.tree.map(lambda leaf: leaf[:, -1], native))
        expected = pick(expected)
        changed = (np.asarray(robot.touching(robot.rows(expected))) != before[lives]).any(axis=1).mean()
        against = {"native": native, "Brax, other rounding": pick(robot.brax(near, genotypes, steps, substeps))}
        for who, after in against.items():
            for quantity, values in errors(after, expected).items():
                if (quantity, when) == ("reward", "substep"):
                    continue  # a reward is of a control step
                found.append({
                    "after": when, "compared": who, "quantity": quantity, "states": int(lives.sum()),
                    "median": np.median(values), "q95": np.quantile(values, 0.95), "max": values.max(),
                    "above_1e-4": (values > 1e-4).mean(), "contacts_changed": changed,
                    "ends_differ": (after.done != expected.done).mean()
                })  # fmt: skip
    return found


def episodes(robot: Robot, policies: np.ndarray) -> list[dict]:
    """Return how fitness and descriptors of whole episodes are distributed, native code beside Brax."""
    found = []
    of = {}
    for physics in ("native", "brax"):
        task = make(robot.name, hidden=HIDDEN, steps=STEPS[robot.name], physics=physics)
        evaluation = jax.jit(task.evaluate_batch)(jax.random.key(0), policies)
        # Rounded: the same count divided by the same steps may differ in its last bit, and ties decide the test.
        values = np.round(np.column_stack([evaluation.fitness, evaluation.descriptor]), 5)
        of[physics] = dict(zip(("fitness", *task.descriptor_names), values.T, strict=True))
    for number, kind in enumerate(("random", "trained")):
        rows = slice(number * POLICIES, (number + 1) * POLICIES)
        for quantity in of["native"]:
            native, brax = (of[physics][quantity][rows] for physics in of)
            of_pairs = (native - brax)[np.isfinite(native - brax)]
            ours, theirs = np.nanmedian(native), np.nanmedian(brax)
            found.append({
                "policies": kind, "quantity": quantity, "steps": STEPS[robot.name],
                "ks_p": ks_2samp(native, brax).pvalue,
                "signed_rank_p": wilcoxon(of_pairs).pvalue if of_pairs.any() else 1.0,
                "median_of_pairs": np.median(of_pairs),
                "native_median": ours, "brax_median": theirs, "difference_percent": 100 * (ours - theirs) / abs(theirs),
                "native_iqr": np.subtract(*np.nanquantile(native, (0.75, 0.25))),
                "brax_iqr": np.subtract(*np.nanquantile(brax, (0.75, 0.25))),
                "correlation": np.corrcoef(native, brax)[0, 1]
            })  # fmt: skip
    return found


def readable(folder: Path) -> str:
    """Return the tables of the README: of each statistic the largest over all quantities, and the episodes."""
    table = pandas.read_csv(folder / "agreement.csv")
    lines = ["| robot | after | contacts change in | native: median, 95 %, max | Brax, other rounding |",
             "|---|---|---:|---:|---:|"]  # fmt: skip
    for (robot, after), rows in table.groupby(["robot", "after"], sort=False):
        cells = []
        for _, one in rows.groupby("compared", sort=False):
            one = one[one.quantity.isin(COMPARED)]
            cells.append(", ".join(f"{one[column].max():.0e}" for column in ("median", "q95", "max")))
        lines.append(f"| {robot} | {after} | {rows.contacts_changed.iloc[0]:.0%} | {cells[0]} | {cells[1]} |")
    table = pandas.read_csv(folder / "episodes.csv")
    columns = (
        "robot",
        "policies",
        "quantity",
        "native median",
        "Brax median",
        "difference",
        "in quartile ranges",
        "KS p",
        "pairs: median difference, in quartile ranges",
        "p",
    )
    lines += ["", "| " + " | ".join(columns) + " |", "|---|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    for row in table.itertuples():
        ranges = (row.native_median - row.brax_median) / row.brax_iqr
        lines.append(
            f"| {row.robot} | {row.policies} | {row.quantity} | {row.native_median:,.4g} | {row.brax_median:,.4g} | "
            f"{row.difference_percent:+.1f} % | {ranges:+.2f} | {row.ks_p:.2g} | "
            f"{row.median_of_pairs / row.brax_iqr:+.2g} | {row.signed_rank_p:.2g} |"
        )
    shifted = table[table.signed_rank_p < 0.05]
    largest = (shifted.median_of_pairs / shifted.brax_iqr).abs().max() if len(shifted) else 0
    text = f"Of {len(table)} tests of pairs {len(shifted)} have p < 0.05"
    lines += ["", f"{text}; the largest of their median differences is {largest:.1g} quartile ranges."]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
