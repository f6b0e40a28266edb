"""Studies of Optuna: jedax' sampler beside Optuna's own.

    python benchmarks/independent/optuna_samplers.py [--suites bbob bbob-mixint tuning discrete] [--seeds 10]

- bbob, bbob-mixint: COCO's 24 functions in dimension 5; with integers in four of the five parameters on the second.
  Seed s is that of the sampler, and the problem is instance s + 1. Measured: f(x) above the optimum.
- tuning: ridge regression of scikit-learn on its data set "diabetes", 442 rows of 10 features, with a kernel, which is
  one of its five parameters. Measured: mean squared error of five folds, which are the same in all studies.
- discrete: objectives without real numbers, whose coefficients are drawn at random, other ones with each seed.
  `options`: 12 choices of 4 options, effects of each and of all pairs. `switches`: 30 choices of 2, effects of all
  pairs. `whole`: 6 whole numbers of 20 values, a turned quadratic of condition 100. `mixed`: 4 whole numbers of 12
  values, whose optimum depends on the first of 4 choices of 4 options, effects as there. Measured: the objective.

Each row is one study, with the best value after 25, 50, 100, 200 and 300 trials. All samplers have their defaults and
know only the ranges of the parameters. jedax has no descriptors.
`--algorithms gp`, Optuna's GPSampler, needs `pip install torch`.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import bbob
import jedax_side
import numpy as np
import optuna
import shared
from scipy.stats import wilcoxon
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

REPORTED = (25, 50, 100, 200, 300)
DIM = 5
SAMPLERS = {
    "jedax": jedax_side.optuna_sampler,
    "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "cma-es": lambda seed: optuna.samplers.CmaEsSampler(seed=seed),
    "gp": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
}
DISCRETE = ("options", "switches", "whole", "mixed")
SUITES = {"bbob": range(1, 25), "bbob-mixint": range(1, 25), "tuning": ("ridge",), "discrete": DISCRETE}


class Job(NamedTuple):
    """One study."""

    suite: str
    problem: str
    seed: int
    algorithm: str


def of_coco(job: Job) -> tuple[Callable[[optuna.Trial], np.ndarray], Callable[[np.ndarray], float]]:
    """Return what a trial of a problem of COCO suggests, and f(x) above the optimum."""
    asked = bbob.Job(job.suite, int(job.problem), DIM, job.seed + 1, max(REPORTED), job.algorithm, job.seed)
    problem = bbob.Problem(asked)
    ranges = list(zip(problem.lows.tolist(), problem.highs.tolist(), strict=True))

    def suggest(trial: optuna.Trial) -> np.ndarray:
        whole, real = ranges[: problem.num_integers], ranges[problem.num_integers :]
        x = [trial.suggest_int(f"i{n}", int(low), int(high)) for n, (low, high) in enumerate(whole)]
        return np.array([*x, *(trial.suggest_float(f"x{n}", *ends) for n, ends in enumerate(real))], float)

    def evaluate(x: np.ndarray) -> float:
        with contextlib.suppress(bbob.Finished):  # after the last target
            return problem(x) - problem.optimum
        return problem.gap

    return suggest, evaluate


def ridge(trial: optuna.Trial) -> Any:
    """Return the regressor of a trial."""
    return make_pipeline(
        StandardScaler(),
        KernelRidge(
            kernel=trial.suggest_categorical("kernel", ["rbf", "laplacian", "polynomial", "sigmoid"]),
            alpha=trial.suggest_float("alpha", 1e-4, 1e3, log=True),
            gamma=trial.suggest_float("gamma", 1e-5, 1.0, log=True),
            coef0=trial.suggest_float("coef0", 0.0, 10.0),
            degree=trial.suggest_int("degree", 1, 5),
        ),
    )


def of_model() -> tuple[Callable[[optuna.Trial], Any], Callable[[Any], float]]:
    """Return the model of a trial, and its mean squared error, the mean of five folds; infinite if one fails."""
    x, y = load_diabetes(return_X_y=True)
    folds = KFold(5, shuffle=True, random_state=0)

    def evaluate(model: Any) -> float:
        scores = cross_val_score(model, x, y, cv=folds, scoring="neg_mean_squared_error", error_score=-np.inf)
        return -float(scores.mean())

    return ridge, evaluate


def of_discrete(job: Job) -> tuple[Callable[[optuna.Trial], np.ndarray], Callable[[np.ndarray], float]]:
    """Return what a trial of a discrete objective suggests, and the objective."""
    rng = np.random.default_rng([DISCRETE.index(job.problem), job.seed])
    whole, levels = {"whole": (6, 20), "mixed": (4, 12)}.get(job.problem, (0, 2))
    number, kinds = {"options": (12, 4), "switches": (30, 2), "mixed": (4, 4)}.get(job.problem, (0, 2))
    single = rng.normal(size=(number, kinds)) * (job.problem != "switches")
    pairs = rng.normal(size=(number, number, kinds, kinds)) * (0.3 if job.problem == "options" else 1)
    best = rng.integers(0, levels, (kinds, whole))
    turn, _ = np.linalg.qr(rng.normal(size=(whole, whole)))
    turn = np.eye(whole) if job.problem == "mixed" else turn
    scales = turn @ np.diag(10 ** np.linspace(-1.5, 0.5, whole)) @ turn.T

    def suggest(trial: optuna.Trial) -> np.ndarray:
        numbers = [trial.suggest_int(f"n{i}", 0, levels - 1) for i in range(whole)]
        return np.array(numbers + [trial.suggest_categorical(f"c{i}", list(range(kinds))) for i in range(number)])

    def evaluate(x: np.ndarray) -> float:
        numbers, chosen = x[:whole], x[whole:]
        apart = numbers - best[chosen[0] if number else 0]
        places = np.arange(number)
        of_pairs = pairs[places[:, None], places, chosen[:, None], chosen]
        return float(apart @ scales @ apart + single[places, chosen].sum() + np.tril(of_pairs, -1).sum())

    return suggest, evaluate


def run(job: Job) -> dict[str, Any]:
    """Return the row of one study."""
    suites = {"tuning": lambda _: of_model(), "discrete": of_discrete}
    suggest, evaluate = suites.get(job.suite, of_coco)(job)
    seconds = 0.0

    def objective(trial: optuna.Trial) -> float:
        nonlocal seconds
        asked = suggest(trial)
        began = time.perf_counter()
        value = evaluate(asked)
        seconds += time.perf_counter() - began
        return value

    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(sampler=SAMPLERS[job.algorithm](job.seed))
        study.optimize(objective, n_trials=max(REPORTED))
    in_all = time.perf_counter() - began
    values = [trial.value if trial.value is not None else np.inf for trial in study.trials]  # None: failed
    best = np.minimum.accumulate(values)
    return (
        job._asdict()
        | {f"best_{n}": f"{best[n - 1]:.6g}" for n in REPORTED}
        | {"evaluations": len(best), "seconds": round(in_all, 3), "evaluation_seconds": round(seconds, 3)}
    )


def report(rows: list[dict[str, str]]) -> Iterator[str]:
    """Yield the lines of the tables: of studies that every algorithm has finished."""
    names = [name for name in SAMPLERS if name in {row["algorithm"] for row in rows}]
    for suite, title, here in tables(rows, names):
        yield f"| {title} | {' | '.join(f'{n} trials' for n in REPORTED)} | own us per trial |"
        yield "|---|" + "---:|" * (len(REPORTED) + 1)
        of_targets = suite.startswith("bbob")
        for name in names:
            best = np.array([of[name] for of in here])  # (studies, reported)
            if of_targets:
                cells = [f"{(b[:, None] <= bbob.TARGETS).mean():.3f}" for b in best.T]
            else:
                spread = zip(np.median(best, 0), best.min(0), best.max(0), strict=True)
                cells = [f"{middle:,.1f} ({low:,.1f} to {high:,.1f})" for middle, low, high in spread]
            of = [row for row in rows if (row["suite"], row["algorithm"]) == (suite, name)]
            yield f"| {name}, {len(here)} studies | {' | '.join(cells)} | {shared.overhead(of)} |"
        yield ""
        yield from tests(here, of_targets=of_targets)


def tables(rows: list[dict[str, str]], names: list[str]) -> Iterator[tuple[str, str, list[dict[str, list[float]]]]]:
    """Yield suite, title and studies of each table: those of coco in one, other problems apart."""
    for suite, problems in SUITES.items():
        found: dict[str, dict[tuple[str, str], dict[str, list[float]]]] = {}
        for row in rows:
            if row["suite"] == suite and row["problem"] in map(str, problems):
                best = [float(row[f"best_{n}"]) for n in REPORTED]
                title = suite if suite.startswith("bbob") else row["problem"]
                study = found.setdefault(title, {}).setdefault((row["problem"], row["seed"]), {})
                study[row["algorithm"]] = best
        for title, studies in found.items():
            here = [of for of in studies.values() if len(of) == len(names)]
            if here:
                yield suite, title, here


def tests(studies: list[dict[str, list[float]]], *, of_targets: bool) -> Iterator[str]:
    """Yield p of jedax against each other sampler: Wilcoxon's signed ranks of the studies, after Holm's correction.

    They compare numbers of targets, or the errors themselves. Random samples are not tested.
    """
    found = {}
    for name in (name for name in studies[0] if name not in ("jedax", "random")):
        for place, trials in enumerate(REPORTED):
            pairs = np.array([[of["jedax"][place], of[name][place]] for of in studies])
            pairs = (pairs[..., None] <= bbob.TARGETS).sum(axis=-1) if of_targets else pairs
            found[name, trials] = float(wilcoxon(*pairs.T).pvalue) if np.any(pairs[:, 0] != pairs[:, 1]) else 1.0
    for ((name, trials), p), corrected in zip(found.items(), jedax_side.holm(list(found.values())), strict=True):
        yield f"- jedax and {name} after {trials} trials: p = {p:.2g}, {corrected:.2g} after Holm's correction"
    yield ""


def main() -> None:
    parser = shared.parser(__doc__, "optuna-samplers", tuple(SAMPLERS))
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=list(SUITES), help="default: all")
    shared.add_seeds(parser)
    parser.set_defaults(algorithms=[name for name in SAMPLERS if name != "gp"])
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    table = shared.Table(options.out, Job._fields)
    if not options.report:
        jobs = [
            Job(suite, str(problem), seed, name)
            for suite in options.suites
            for problem in SUITES[suite]
            for seed in range(options.seeds)
            for name in options.algorithms
        ]
        shared.fill(table, jobs, run, options)
    print("\n".join(report(table.rows)))
    print(f"Revisions: {table.revisions()}")


if __name__ == "__main__":
    main()
