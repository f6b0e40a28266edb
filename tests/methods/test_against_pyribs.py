"""QD score, coverage and best fitness after a fixed budget against pyribs on the same task, cells and start."""

import jax
import numpy as np
import pytest
from ribs.archives import CVTArchive
from ribs.emitters import EvolutionStrategyEmitter, IsoLineEmitter
from ribs.schedulers import Scheduler
from scipy.stats import mannwhitneyu

import jedax
from jedax.methods.registry import method_defaults, methods
from jedax.repertoire.cells import make_cells
from jedax.tasks import PlanarArm

TASK = PlanarArm(joints=8)
CELLS = 128
GENERATIONS = 120
SEEDS = 6
PEERS = {"imp": "2imp", "opt": "obj", "rnd": "rd", "cma-mae": "imp"}


def emitters(method, archive, seed):
    if method == "map-elites":
        start = archive.sample_elites(1)["solution"][0]
        yield IsoLineEmitter(archive, x0=start, iso_sigma=0.1, line_sigma=0.2, batch_size=64, seed=seed)
        return
    for number in range(4):
        yield EvolutionStrategyEmitter(
            archive, x0=archive.sample_elites(1)["solution"][0], sigma0=0.05, ranker=PEERS[method], es="sep_cma_es",
            selection_rule="mu", batch_size=16, seed=10 * seed + number,
        )  # fmt: skip


def peer(method, seed, evaluate, start):
    """One run of pyribs from the same kind of initial batch."""
    archive = CVTArchive(
        solution_dim=TASK.num_params, centroids=make_cells(TASK.descriptor_bounds, CELLS).centroids.astype(float),
        ranges=[(-1, 1), (-1, 1)], seed=seed,
        **({"learning_rate": 0.1, "threshold_min": TASK.qd_offset} if method == "cma-mae" else {}),
    )  # fmt: skip
    result = CVTArchive(solution_dim=TASK.num_params, centroids=archive.centroids, ranges=[(-1, 1), (-1, 1)])
    first = np.asarray(start(jax.random.split(jax.random.key(seed), 64)))
    found = evaluate(first)
    archive.add(first, *found)
    result.add(first, *found)
    scheduler = Scheduler(archive, list(emitters(method, archive, seed)), result_archive=result)
    for _ in range(GENERATIONS):
        genotypes = scheduler.ask()
        scheduler.tell(*evaluate(genotypes.astype(np.float32)))
    fitness = archive.data("objective")
    return {
        "qd_score": (fitness - TASK.qd_offset).sum(),
        "coverage": len(fitness) / CELLS,
        "max_fitness": result.stats.obj_max,
    }


@pytest.fixture(scope="module")
def evaluate():
    program = jax.jit(lambda genotypes: TASK.evaluate_batch(jax.random.key(0), genotypes))

    def run(genotypes):
        evaluation = program(genotypes)
        return np.asarray(evaluation.fitness, float), np.asarray(evaluation.descriptor, float)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("method", ["map-elites", "imp", "opt", "rnd", "cma-mae"])
def test_scores_lie_within_the_spread_of_the_peer(method, evaluate):
    theirs = [peer(method, seed, evaluate, jax.jit(jax.vmap(TASK.init))) for seed in range(SEEDS)]
    settings = {"iso_sigma": 0.1, "line_sigma": 0.2} if method == "map-elites" else {}
    name, preset = (method, None) if method in methods() else ("cma-me", method)
    config = method_defaults(name, "arm", preset).replace(cells=CELLS, **settings)
    ours = jedax.run(config, TASK, evaluations=64 * (GENERATIONS + 1), replicas=SEEDS).rows[-SEEDS:]
    wanted, found = ({name: np.array([run[name] for run in runs]) for name in theirs[0]} for runs in (theirs, ours))
    for name in ("qd_score", "coverage"):
        assert wanted[name].min() <= np.median(found[name]) <= wanted[name].max(), (name, found, wanted)
    assert mannwhitneyu(found["max_fitness"], wanted["max_fitness"]).pvalue > 0.005, (found, wanted)
