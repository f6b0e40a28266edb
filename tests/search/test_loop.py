"""The loop: budgets, seeds, chunks, replicas, stopping."""

import dataclasses
import math
import time
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.conftest import assert_same_bits, without_seconds
from tests.methods.point_mass import PointMass
from tests.notes import Notes

import jedax
from jedax.gp import condition, posterior, predict
from jedax.methods.jedi import JEDi, alpha_at
from jedax.methods.map_elites import MapElites
from jedax.methods.registry import method_named
from jedax.rankers import weighted_target_fitness_score
from jedax.repertoire import Repertoire
from jedax.search import api as search_api
from jedax.search import loop as search_module
from jedax.search.compiled import Programs
from jedax.search.failures import first_at
from jedax.search.loop import _is_true
from jedax.search.programs import forget_programs, programs_for
from jedax.store.config import FullConfig, RunConfig
from jedax.store.directory import RunDirectory
from jedax.tasks import make
from jedax.tasks.base import Task, reaches
from jedax.types import Evaluation


def parts_of(method):
    """Return the steps of a method, each one program."""
    names = ("init", "start_loop", "ask", "tell", "fit_model", "choose_targets")
    return SimpleNamespace(**{name: jax.jit(getattr(method, name)) for name in names})


BUDGET = 8 * 28  # the initial batch and 27 generations: five loops and a cut one


@pytest.fixture(scope="module")
def once(small, arm):
    return jedax.run(small, arm, evaluations=BUDGET, seed=5)


def test_same_seed_same_bits(small, arm, once):
    again = jedax.run(small, arm, evaluations=BUDGET, seed=5)
    assert_same_bits(once.repertoire, again.repertoire)
    assert without_seconds(once.rows) == without_seconds(again.rows)


def test_other_seed_other_solutions(small, arm, once):
    other = jedax.run(small, arm, evaluations=BUDGET, seed=6)
    assert not np.array_equal(once.best().genotype, other.best().genotype)


def test_every_evaluation_of_the_budget_is_counted(once):
    assert once.summary["evaluations"] == BUDGET
    assert int(once.repertoire.counts.sum()) == BUDGET


def test_budget_is_rounded_down_to_generations(small, arm):
    run = jedax.run(small, arm, evaluations=8 * 3 + 7)
    assert run.summary["evaluations"] == 24 == int(run.repertoire.counts.sum())


def test_budget_of_the_initial_batch_alone(small, arm):
    run = jedax.run(small, arm, evaluations=8)
    assert run.summary["evaluations"] == 8
    assert run.summary["status"] == "finished"


def test_budget_under_one_generation_is_refused(small, arm):
    with pytest.raises(jedax.JedaxError, match=r"evaluations: expected at least one generation of 8, got 7"):
        jedax.run(small, arm, evaluations=7)


def test_chunks_of_any_length_give_the_same_bits(small, arm, once, monkeypatch):
    monkeypatch.setattr(search_module, "_CHUNK_SECONDS", 0.0)
    monkeypatch.setattr(Programs, "first_chunk", 1)
    single_steps = jedax.run(small, arm, evaluations=BUDGET, seed=5)
    assert_same_bits(once.repertoire, single_steps.repertoire)
    assert without_seconds(once.rows) == without_seconds(single_steps.rows)


def test_second_run_compiles_nothing(small, arm, once):
    programs = programs_for(JEDi(small, arm), arm, 1)
    seconds, count = programs.compile_seconds, len(programs._compiled)
    assert count > 0
    jedax.run(small, type(arm)(joints=4), evaluations=BUDGET, seed=9)
    assert (programs.compile_seconds, len(programs._compiled)) == (seconds, count)


def test_replicas_are_the_single_runs_of_their_seeds(small, arm):
    # Rounding may part them later; three generations stay within float tolerance.
    together = jedax.run(small, arm, evaluations=8 * 4, seed=5, replicas=2)
    for replica in range(2):
        alone = jedax.run(small, arm, evaluations=8 * 4, seed=5 + replica)
        np.testing.assert_array_equal(alone.repertoire.counts[0], together.repertoire.counts[replica])
        np.testing.assert_allclose(
            alone.repertoire.genotypes[0], together.repertoire.genotypes[replica], rtol=1e-4, atol=1e-5
        )
        assert together.summary["max_fitness"][replica] == pytest.approx(alone.summary["max_fitness"], rel=1e-4)


def test_summary_lists_values_per_replica(small, arm):
    run = jedax.run(small, arm, evaluations=16, replicas=2)
    for name in ("max_fitness", "coverage", "qd_score", "reached_goal"):
        assert len(run.summary[name]) == 2
    assert run.summary["max_fitness"] == [float(f) for f in run.repertoire.best_fitness]
    assert [(row["evaluations"], row["replica"]) for row in run.rows] == [(8, 0), (8, 1), (16, 0), (16, 1)]


@pytest.mark.parametrize(
    ("wanted", "writing", "pause"),
    [(1.0, 0.0, 1.0), (1.0, 0.01, 1.0), (1.0, 0.2, 4.0), (1.0, 3.0, 10.0), (0.0, 3.0, 0.0)],
)
def test_the_pause_between_checkpoints(plain, arm, tmp_path, monkeypatch, undrawn, wanted, writing, pause):
    """20 times as long as writing one takes, at least what the settings say and at most ten times that."""
    clock, saved, save = [0.0], [], RunDirectory.save_checkpoint

    def slow(self, *given):
        save(self, *given)
        clock[0] += writing
        saved.append(clock[0])

    def tick(report):
        clock[0] += 0.25

    monkeypatch.setattr(search_module.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(RunDirectory, "save_checkpoint", slow)
    jedax.run(plain, arm, evaluations=8 * 200, out=tmp_path / "run", report_every=1, callbacks=[tick],
              checkpoint_seconds=wanted)  # fmt: skip
    pauses = np.diff(saved)[:-1] - writing  # the last one is written at the end
    assert len(pauses) > 2
    assert pause - 1e-6 < pauses.min()
    assert pauses.max() < pause + 0.25 + 1e-6  # a checkpoint is written after a report


class FirstParameter(Task):
    """Fitness is the first parameter; the goal lies outside most initial batches."""

    name = "first-parameter"
    num_params = 2
    descriptor_bounds = ((-1.0, -1.0), (1.0, 1.0))
    goal_fitness = 1.6

    def init(self, key):
        return jax.random.normal(key, (2,))

    def evaluate(self, key, genotype):
        return jedax.Evaluation(genotype[0], jnp.clip(genotype, -1, 1))


@pytest.mark.parametrize("samples", [1, 2])
def test_the_evaluation_that_first_reaches_the_goal_is_recorded(plain, samples):
    """With a report after every generation, the first generation that reaches it is known, and so is its best."""
    budget, batch = 8 * 100 * samples, 8 * samples
    method = plain.replace(samples_per_evaluation=samples)
    settings = {"evaluations": budget, "seed": 4, "replicas": 3, "report_every": 1}
    run = jedax.run(method, FirstParameter(), **settings)
    arrivals = []
    for replica, rows in run.metrics.groupby("replica"):
        reached = rows[rows.max_fitness >= 1.6].evaluations
        first, found = reached.min(), run.summary["goal_evaluations"][replica]
        arrivals.append(found)
        assert first - batch < found <= first
        assert found % samples == 0
    assert len(set(arrivals)) == 3
    assert (
        jedax.run(method, FirstParameter(), **(settings | {"report_every": 13})).summary["goal_evaluations"] == arrivals
    )


def test_a_goal_that_is_never_reached(plain):
    run = jedax.run(plain, FirstParameter(), evaluations=8, seed=4)
    assert (run.summary["reached_goal"], run.summary["goal_evaluations"]) == (False, None)


class Lost(FirstParameter):
    """The fitness is above the goal, and no descriptor is finite."""

    def evaluate(self, key, genotype):
        return jedax.Evaluation(jnp.float32(5), jnp.full(2, jnp.nan))


def test_a_failed_evaluation_does_not_reach_the_goal(plain):
    run = jedax.run(plain, Lost(), evaluations=24)
    assert (run.summary["reached_goal"], run.summary["goal_evaluations"]) == (False, None)


class InNumPy(FirstParameter):
    """A task whose attributes are numbers of NumPy."""

    num_params = np.prod((2, 1))
    goal_fitness = np.float64(1.6)
    qd_offset = np.float32(-3)


class Flagged(MapElites):
    """A method with a truth value among its metrics."""

    def metrics(self, state):
        return {"is_late": state.generation > 1}


def test_numbers_of_numpy_and_truth_values_in_files(tmp_path):
    run = jedax.run(Flagged, InNumPy(), evaluations=24, cells=16, offspring=8, report_every=1, out=tmp_path / "run")
    loaded = jedax.load(tmp_path / "run", task=InNumPy())
    assert loaded.summary["reached_goal"] in (True, False)
    assert loaded.summary["qd_offset"] == -3
    assert list(loaded.metrics.is_late) == list(run.metrics.is_late) == [0, 0, 1]


def test_a_metric_with_a_name_of_the_search_is_refused(arm):
    class Greedy(Flagged):
        def metrics(self, state):
            return {"max_fitness": state.generation}

    with pytest.raises(
        jedax.JedaxError, match=r"^metrics: expected names that the search does not use itself, got max_"
    ):
        jedax.run(Greedy, arm, evaluations=24, cells=16, offspring=8)


def test_an_ended_run_that_is_resumed_keeps_the_reason_of_its_end(plain, arm, tmp_path):
    run = jedax.run(plain, arm, evaluations=80, stop_fitness=-100.0, report_every=1, out=tmp_path / "run")
    assert run.summary["status"] == "goal"
    again = jedax.resume(tmp_path / "run")
    assert (again.summary["status"], again.summary["evaluations"]) == ("goal", run.summary["evaluations"])


def test_searches_in_one_process_have_workers_of_their_own(plain):
    task = make("tests.search.workers.work:sphere")
    method = method_named(plain).method(plain, task)
    one, other = (programs_for(method, task, 1) for _ in range(2))
    assert one is not other
    assert one._compiled is other._compiled
    assert one._changed is other._changed


def test_figures_that_fail_cost_nothing_else(plain, arm, tmp_path):
    def draw(run, folder):
        raise ValueError("no such symbol")

    notes = Notes()
    config = FullConfig(
        task="arm", task_config=arm.config, method="map-elites", method_config=plain, run=RunConfig(evaluations=24)
    )
    run = search_api.start(config, task=arm, out=tmp_path / "run", draw=draw, progress=notes)
    assert run.summary["status"] == jedax.load(tmp_path / "run").summary["status"] == "finished"
    assert "The figures failed: ValueError: no such symbol" in (tmp_path / "run" / "log.txt").read_text()


def test_arguments_that_would_be_passed_over(plain, arm):
    with pytest.raises(jedax.JedaxError, match=r"^evaluations: expected greater than or equal to 1, got 0"):
        jedax.run(plain, arm, evaluations=0)
    with pytest.raises(jedax.JedaxError, match=r"^method: expected a method, got 'maze-a', a task; give the method"):
        jedax.run("maze-a", "jedi-x")
    with pytest.raises(jedax.JedaxError, match=r"^preset: expected none beside settings of a method, got tuned"):
        jedax.run(plain, arm, preset="tuned", evaluations=80)


def test_the_first_at_the_goal_in_a_batch():
    fitness = jnp.asarray([[1.0, 3.0, 2.0, 5.0], [1.0, jnp.nan, -jnp.inf, 1.5], [2.0, 0.0, 0.0, jnp.inf]])
    np.testing.assert_array_equal(first_at(2.0, fitness), [2, 0, 1])
    np.testing.assert_array_equal(first_at(None, fitness), [0, 0, 0])
    rounded = np.array([0.0, np.float32(0.7)])  # in float64, as functions of the user's return it
    assert first_at(0.7, rounded) == 2


def test_best_ever_is_the_best_of_the_repertoire(once):
    fitness = once.repertoire.fitness[0]
    assert once.best().fitness == fitness.max() == once.summary["max_fitness"]
    cell = int(fitness.argmax())
    np.testing.assert_array_equal(once.best().genotype, once.repertoire.genotypes[0, cell])


def test_search_improves_on_the_initial_batch(small, arm):
    run = jedax.run(small, arm, evaluations=8 * 400, report_every=1)
    metrics = run.metrics
    assert metrics.max_fitness.is_monotonic_increasing
    assert metrics.max_fitness.iloc[-1] > metrics.max_fitness.iloc[0] / 10
    assert metrics.coverage.iloc[-1] > 2 * metrics.coverage.iloc[0]


def test_alpha_decays_with_progress(small, arm):
    run = jedax.run(small, arm, evaluations=8 * 41, report_every=5)
    alpha = {row["evaluations"]: row["alpha"] for row in run.rows}
    # Row at evaluation 8 (g + 1) shows what was chosen at the start of the loop that led there.
    for generation in (5, 10, 40):
        chosen_at = 8 * (generation - 5 + 1)
        assert alpha[8 * (generation + 1)] == pytest.approx(0.8 * (1 - chosen_at / (8 * 41)), rel=1e-5)


def test_constant_alpha(small):
    assert float(alpha_at(small.replace(alpha=0.3), jnp.float32(0.9))) == pytest.approx(0.3)


def test_stop_fitness_stops_when_every_replica_is_there(small, arm):
    run = jedax.run(small, arm, evaluations=8 * 2000, replicas=2, stop_fitness=-0.5, report_every=1)
    assert run.summary["status"] == "goal"
    assert min(run.summary["max_fitness"]) >= -0.5
    assert run.summary["evaluations"] < 8 * 2000
    before = [row for row in run.rows if row["evaluations"] == run.summary["evaluations"] - 8]
    assert min(row["max_fitness"] for row in before) < -0.5


def test_max_seconds_stops(small, arm):
    run = jedax.run(small, arm, evaluations=10**9, max_seconds=0.5)
    assert run.summary["status"] == "time"
    assert run.summary["evaluations"] < 10**9


def test_callbacks_may_change_the_rows_that_they_get(plain, arm):
    run = jedax.run(plain, arm, evaluations=80, report_every=2, callbacks=[lambda report: report.rows[0].clear()])
    assert all("max_fitness" in row for row in run.rows)


def test_settings_from_a_text_that_leaves_some_out_can_be_resumed(arm, tmp_path):
    text = "format: 3\ntask: arm\nmethod: map-elites\nrun: {evaluations: 400, checkpoint_seconds: 0}\n"

    def stop(report):
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        search_api.start(FullConfig.parse(text, "mine.yaml"), out=tmp_path / "run", callbacks=[stop])
    assert jedax.resume(tmp_path / "run", draw=None).summary["evaluations"] <= 400


def test_the_time_of_imports_is_kept_when_a_run_is_resumed(plain, arm, tmp_path):
    jedax.run(plain, arm, evaluations=80, out=tmp_path / "run", callbacks=[lambda report: True])
    again = jedax.resume(tmp_path / "run", began=time.perf_counter() - 1000, draw=None)
    assert again.summary["phase_seconds"]["import"] >= 1000


def test_callbacks_see_reports_and_stop(small, arm):
    seen = []

    def stop_late(report):
        seen.append((report.evaluations, report.rows[0]["max_fitness"], float(report.state.alpha[0])))
        return report.evaluations >= 8 * 11

    run = jedax.run(small, arm, evaluations=8 * 100, report_every=5, callbacks=[stop_late])
    assert [evaluations for evaluations, *_ in seen] == [8, 48, 88]
    assert run.summary["status"] == "callback"
    assert run.summary["evaluations"] == 88
    assert seen[-1][1] == run.summary["max_fitness"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"callbacks": print}, r"callbacks: expected a list of functions, got <built-in function print>; write callb"),
        ({"callbacks": "print"}, r"callbacks: expected a list of functions, got 'print'"),
        (
            {"progress": True},
            r"progress: expected None or a Progress, got True; give jedax.search.progress.",
        ),
        ({"engine": "loca"}, r"engine: unknown name 'loca'"),
    ],
)
def test_arguments_of_another_kind_are_refused_before_anything_is_written(tmp_path, small, arm, arguments, message):
    out = tmp_path / "run"
    with pytest.raises(jedax.JedaxError, match=message):
        jedax.run(small, arm, evaluations=16, out=out, **arguments)
    assert not out.exists()
    run = jedax.run(small, arm, evaluations=16, out=out, draw=None)
    with pytest.raises(jedax.JedaxError, match=message):
        jedax.resume(out, task=arm, **arguments)
    assert_same_bits(jedax.resume(out, task=arm, engine="local", draw=None).repertoire, run.repertoire)


@pytest.mark.parametrize(
    ("wish", "stops"),
    [
        (np.True_, True),
        (np.array([True]), True),
        (np.False_, False),
        (1, False),
        ("no", False),
        ([1, 2], False),
        ([1, [2]], False),
    ],
)
def test_what_a_callback_returns(wish, stops):
    assert _is_true(wish) is stops


@pytest.mark.parametrize(("settings", "status"), [({"callbacks": [lambda _: True]}, "callback"),
                                                  ({"stop_fitness": -1e6}, "goal")])  # fmt: skip
def test_a_search_can_stop_after_its_first_batch(small, arm, settings, status):
    run = jedax.run(small, arm, evaluations=8 * 20, **settings)
    assert (run.summary["status"], run.summary["evaluations"]) == (status, 8)


def test_blas_has_one_thread_while_it_searches(small, arm):
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    seen = []
    with threadpool_limits(2, user_api="blas"):
        jedax.run(small, arm, evaluations=16, callbacks=[lambda _: seen.append(threads())])
        assert threads() == {2}
    assert seen
    assert all(found == {1} for found in seen)


@pytest.mark.parametrize(
    ("method", "task", "message"),
    [
        ("jedi", 5, "task: expected a name or a Task, got 5"),
        (5, "arm", r"method: expected a name, settings such as a JediConfig, or a class derived .* got 5"),
    ],
)
def test_arguments_of_another_kind(method, task, message):
    with pytest.raises(jedax.JedaxError, match=message):
        jedax.run(method, task)


def test_more_start_genotypes_than_a_batch_are_refused(small, arm):
    with pytest.raises(jedax.JedaxError, match=r"start_genotypes: expected at most 8 rows of 4 .*, got .*\(9, 4\)"):
        jedax.run(small, arm, evaluations=8, start_genotypes=np.zeros((9, 4)))


def test_start_genotypes_come_first(small, arm):
    given = np.full((3, 4), 0.25, np.float32)
    run = jedax.run(small, arm, evaluations=8, start_genotypes=given)
    # All angles equal: fitness 0, the best there is, so it is the best ever.
    np.testing.assert_array_equal(run.best().genotype, given[0])
    assert run.best().fitness == 0


def test_start_genotypes_of_the_wrong_length_are_refused(small, arm):
    with pytest.raises(jedax.JedaxError, match=r"start_genotypes: expected at most 8 rows of 4 .*, got .*\(2, 5\)"):
        jedax.run(small, arm, evaluations=8, start_genotypes=np.zeros((2, 5)))


class Failing(Task):
    """Half of all solutions fail, in every way there is."""

    name = "failing"
    num_params = 3
    descriptor_bounds = ((0.0, 0.0), (1.0, 1.0))
    descriptor_names = ("a", "b")
    qd_offset = -100.0

    def init(self, key):
        return jax.random.uniform(key, (3,))

    def evaluate(self, key, genotype):
        kind = jnp.floor(jnp.abs(genotype[0]) * 97) % 6
        fitness = jnp.select([kind == 0, kind == 1], [jnp.nan, jnp.inf], -jnp.sum(genotype**2))
        descriptor = jnp.where(kind == 2, jnp.nan, genotype[1:])
        return Evaluation(fitness, descriptor)


def test_failures_are_counted_and_never_stored(plain):
    run = jedax.run(plain, Failing(), evaluations=8 * 30)
    found: Repertoire = run.repertoire
    failed = run.summary["num_failed"]
    assert 0.2 * 240 < failed < 0.8 * 240
    assert run.summary["failures"].keys() == {"nan", "infinite"}
    assert sum(run.summary["failures"].values()) == failed
    assert int(found.counts.sum()) + failed == 240
    filled = found.fitness[0] > -np.inf
    assert np.isfinite(found.fitness[0][filled]).all()
    assert np.isfinite(found.descriptors).all()
    assert np.isfinite(run.best().fitness)
    assert run.config.task == f"{__name__}:Failing"


def test_all_evaluations_failing_ends_well(small):
    """Also where a Gaussian process is to be learnt from them."""

    class AllFail(Failing):
        name = "all-fail"

        def evaluate(self, key, genotype):
            return Evaluation(jnp.float32(jnp.nan), genotype[1:])

    notes = Notes()
    run = jedax.run(small, AllFail(), evaluations=8 * 12, progress=notes)
    assert notes.said[-1].startswith("All evaluations failed, so there is no solution")
    assert run.summary["num_failed"] == 96
    assert run.summary["coverage"] == 0
    assert not run.has_solution
    with pytest.raises(jedax.JedaxError, match=r"^best: expected an evaluation that succeeded, got none"):
        run.best()


@pytest.mark.parametrize("targets", ["pareto", "gp-ucb", "gp-bucb"])
def test_targets_by_the_gp_run(small, arm, targets):
    run = jedax.run(small.replace(targets=targets), arm, evaluations=8 * 12)
    assert int(run.repertoire.counts.sum()) == 96
    columns = {"gp_signal", "gp_length_scale", "gp_noise", "gp_noise_floor"}
    assert all(row[name] > 0 for row in run.rows for name in columns)
    centroids = {tuple(c) for c in run.cells.centroids.tolist()}
    chosen = [tuple(t) for t in run.targets[0].tolist()]
    assert set(chosen) <= centroids
    assert len(set(chosen)) == small.pool


def test_a_gp_that_does_not_guide_is_learnt_once_at_the_end(small, arm, monkeypatch):
    calls = []

    def fit_model(self, state, *, original=Programs.fit_model):
        calls.append(int(state.generation[0]))
        return original(self, state)

    monkeypatch.setattr(Programs, "fit_model", fit_model)
    run = jedax.run(small, arm, evaluations=8 * 12, report_every=1)
    assert calls == [11]
    assert not any(name.startswith("gp_") for row in run.rows for name in row)
    filled = run.repertoire.fitness[0] > -np.inf
    fitness = run.repertoire.fitness[0, filled]
    assert run.gp_mean.shape == run.gp_std.shape == (1, 64)
    assert np.corrcoef(run.gp_mean[0, filled], fitness)[0, 1] > 0.5
    calls.clear()
    jedax.run(small.replace(targets="pareto"), arm, evaluations=8 * 12)
    assert calls == [0, 5, 10, 11]


@pytest.mark.parametrize(
    ("refit", "newer", "fits"), [(0.5, 33, True), (0.5, 32, False), (0.0, 1, True), (0.0, 0, False)]
)
def test_hyperparameters_are_fitted_where_enough_is_new(small, arm, once, refit, newer, fits):
    """All 64 cells are filled; `newer` of them since the last fit, after 10 evaluations.

    The fitness is noisy, or the process were so nearly singular that how a compiler rounds would show.
    """
    method = JEDi(small.replace(targets="pareto", gp_refit=refit), arm)
    given = jax.random.uniform(jax.random.key(0), (8, 4), minval=-1)
    state = parts_of(method).init(jax.random.key(0), given, arm.evaluate_batch(jax.random.key(0), given))
    centroids = jnp.asarray(method.cells.centroids)
    repertoire = dataclasses.replace(
        state.repertoire,
        fitness=-jnp.sum(centroids**2, axis=1) + 0.1 * jax.random.normal(jax.random.key(1), (64,)),
        descriptors=centroids,
        counts=jnp.full(64, 7),
        improved_at=jnp.where(jnp.arange(64) < newer, 11, 10),
    )
    state = dataclasses.replace(state, repertoire=repertoire, gp_fitted_at=jnp.int32(10))
    learnt, at = jax.jit(method.fit_model)(state)
    assert (learnt.gp.log_length_scale != state.gp.log_length_scale) == fits
    assert learnt.gp_fitted_at == (8 if fits else 10)  # evaluations of the initial batch
    known = condition(method.config, learnt.gp, method.gp_data(repertoire))
    mean = predict(known, method.cells.to_unit_box(centroids)).mean
    np.testing.assert_allclose(at.mean, mean, atol=1e-3)
    assert np.corrcoef(mean, repertoire.fitness)[0, 1] > 0.9


@pytest.mark.parametrize(("gp", "share"), [("weighted", 4 * 5), ("standard", 1)])
def test_bucb_expects_what_a_loop_brings(small, arm, gp, share):
    """The weighted GP learns from every evaluation of the 5 generations of 4, the standard one from one datum."""
    from jedax.targets import choose_bucb

    config = small.replace(targets="gp-bucb", gp=gp)
    method = JEDi(config, arm)
    run = jedax.run(config.replace(targets="uniform"), arm, evaluations=8 * 12)
    parts = parts_of(method)
    state = parts.init(jax.random.key(0), jnp.zeros((8, 4)), arm.evaluate_batch(jax.random.key(0), jnp.zeros((8, 4))))
    state = dataclasses.replace(state, repertoire=jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), run.repertoire))
    key = jax.random.key(1)
    learnt, at = parts.fit_model(state)
    fitted = condition(method.config, learnt.gp, method.gp_data(state.repertoire))
    targets = parts.choose_targets(key, at)
    at = posterior(fitted, method.cells.to_unit_box(jnp.asarray(method.cells.centroids)))
    expected = choose_bucb(key, at, fitted.noise_variance / share, config.pool, beta=config.ucb_beta)
    np.testing.assert_array_equal(targets, method.cells.centroids[np.asarray(expected)])


def test_a_pool_of_one_is_that_es_alone_and_then_the_gp(small, arm):
    """A loop equals running the ES by itself on its score, keeping all it tried, and learning the GP from that."""
    method = JEDi(small.replace(pool=1, targets="pareto", alpha=0.6), arm)
    parts, evaluate = parts_of(method), jax.jit(arm.evaluate_batch)
    keys = jax.random.split(jax.random.key(8), 4 + method.generations_per_loop)
    first = jax.vmap(arm.init)(jax.random.split(keys[0], 4))
    state = parts.init(keys[1], first, evaluate(keys[2], first))
    state = parts.start_loop(keys[3], state, jnp.float32(0))
    (target,) = state.targets
    strategy, tried = method.pool.strategy, [first]
    begin_alone, ask_alone, tell_alone = map(jax.jit, (strategy.init, strategy.ask, strategy.tell))
    nearest = np.linalg.norm(evaluate(keys[2], first).descriptor - target, axis=1).argmin()
    alone = begin_alone(keys[0], first[nearest])
    for key in keys[4:]:
        ask_key, tell_key = jax.random.split(key)
        genotypes, state = parts.ask(ask_key, state)
        state, _ = parts.tell(tell_key, state, genotypes, evaluate(key, genotypes))
        mine, alone = ask_alone(jax.random.split(ask_key, 1)[0], alone)
        scores = weighted_target_fitness_score(evaluate(key, mine), target, jnp.float32(0.6))
        alone = tell_alone(jax.random.split(tell_key, 1)[0], alone, mine, scores)
        tried.append(mine)
    np.testing.assert_allclose(strategy.mean(alone), strategy.mean(state.pool)[0], rtol=1e-4, atol=1e-5)
    everything = jnp.concatenate(tried)
    repertoire, _ = Repertoire.empty(method.cells, first[0]).add(
        method.cells, everything, evaluate(keys[0], everything), jnp.int32(len(everything))
    )
    np.testing.assert_allclose(state.repertoire.fitness, repertoire.fitness, rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(state.repertoire.counts, repertoire.counts)
    assert method.is_loop_start(int(state.generation))
    ours, _ = parts.fit_model(state)
    wanted, _ = parts.fit_model(dataclasses.replace(state, repertoire=repertoire))
    for name in ("signal", "length_scale", "noise"):
        ratio = float(getattr(ours.gp, name) / getattr(wanted.gp, name))
        assert 0.9 < ratio < 1.1, name


def test_one_loop_by_hand(small, arm):
    """A loop of the method, written out with the blocks, one ES after the other."""
    method = JEDi(small.replace(alpha=0.4), arm)
    parts, evaluate = parts_of(method), jax.jit(arm.evaluate_batch)
    keys = jax.random.split(jax.random.key(3), 9)
    genotypes = jax.vmap(arm.init)(jax.random.split(keys[0], 8))
    state = parts.init(keys[1], genotypes, evaluate(keys[2], genotypes))
    state = parts.start_loop(keys[3], state, jnp.float32(0))
    strategy, emitters = method.pool.strategy, []
    begin_alone, ask_alone, tell_alone = map(jax.jit, (strategy.init, strategy.ask, strategy.tell))
    for target in state.targets:
        distance = np.linalg.norm(np.asarray(state.repertoire.descriptors) - target, axis=1)
        distance[~np.asarray(state.repertoire.filled)] = np.inf
        emitters.append(begin_alone(keys[0], state.repertoire.genotypes[int(distance.argmin())]))
    for ask_key, tell_key in zip(keys[4:6], keys[6:8], strict=True):
        genotypes, state = parts.ask(ask_key, state)
        evaluation = evaluate(tell_key, genotypes)
        state, info = parts.tell(tell_key, state, genotypes, evaluation)
        assert info.stored.shape == (8,)
        for number, key in enumerate(jax.random.split(ask_key, 2)):
            mine, emitters[number] = ask_alone(key, emitters[number])
            part = slice(4 * number, 4 * number + 4)
            np.testing.assert_allclose(mine, genotypes[part], rtol=1e-5, atol=1e-6)
            own = Evaluation(evaluation.fitness[part], evaluation.descriptor[part])
            scores = weighted_target_fitness_score(own, state.targets[number], jnp.float32(0.4))
            emitters[number] = tell_alone(tell_key, emitters[number], mine, scores)
    for number in range(2):
        np.testing.assert_allclose(strategy.mean(emitters[number]),
                                   jax.vmap(strategy.mean)(state.pool)[number], rtol=1e-4, atol=1e-5)  # fmt: skip
    assert int(state.repertoire.counts.sum()) == 24
    assert int(state.generation) == 2


def test_parameters_of_method_and_run_by_name(arm):
    given = {"population": 4, "pool": 2, "cells": 64, "generations": 5, "alpha": 0.3, "targets": "uniform",
             "gp_max_steps": 5}  # fmt: skip
    run = jedax.run("jedi", arm, evaluations=16, report_every=1, **given)
    assert run.config.method == "jedi"
    assert {name: getattr(run.config.method_config, name) for name in given} == given
    assert run.config.run.report_every == 1
    assert [row["evaluations"] for row in run.rows] == [8, 16]
    with pytest.raises(jedax.JedaxError, match=r"^setting: unknown name 'alhpa'; did you mean 'alpha'"):
        jedax.run("jedi", arm, alhpa=0.3)


def test_parameters_of_other_methods_are_refused(arm):
    with pytest.raises(jedax.JedaxError, match="setting: expected one that jedi-x has, got alpha, which belongs to"):
        jedax.run("jedi-x", arm, alpha=0.3)


def test_jedi_x_is_the_default_and_an_earlier_name_still_works(arm):
    given = {"population": 4, "pool": 2, "cells": 64, "evaluations": 8}
    assert jedax.run(task=arm, **given).config.method == "jedi-x"
    assert jedax.run("jedi-paper", arm, **given).config.method == "jedi"
    with pytest.raises(jedax.JedaxError, match="got alpha, which belongs to jedi, jedi-uniform; leave it out"):
        jedax.run(task=arm, alpha=0.3, **given)


class Good(Task):
    name = "good"
    num_params = 3
    descriptor_bounds = ((0.0, 0.0), (1.0, 1.0))

    def init(self, key):
        return jax.random.uniform(key, (3,))

    def evaluate(self, key, genotype):
        return Evaluation(genotype.sum(), genotype[:2])


class Saturating(Good):
    """A fitness of at most a goal that float32 rounds down."""

    goal_fitness = 0.7

    def evaluate(self, key, genotype):
        return Evaluation(jnp.minimum(genotype.sum(), 0.7), genotype[:2])


def test_a_goal_that_float32_rounds_is_reached(plain, tmp_path):
    run = jedax.run(plain, Saturating(), evaluations=80, stop_fitness=0.7, out=tmp_path / "run")
    assert run.summary["max_fitness"] < 0.7
    assert (run.summary["status"], run.summary["reached_goal"]) == ("goal", True)
    assert 1 <= run.summary["goal_evaluations"] <= 80
    (entry,) = jedax.compare(tmp_path / "run").tables[0].entries
    assert entry.successes == 1
    assert reaches([0.7 - 1e-9, np.float32(0.7), np.nan, np.inf], 0.7).tolist() == [False, True, False, True]


def test_a_task_needs_no_more_than_that(plain, tmp_path, without_figures):
    run = jedax.run(plain, Good(), evaluations=16, out=tmp_path / "run")
    assert repr(run).startswith(f"Run(map-elites on {__name__}:Good, 16 evaluations, best fitness ")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"init": lambda self, key: jnp.zeros(4)}, r"Bad.init: expected a genotype of shape \(3,\), got \(4,\)"),
        ({"evaluate": lambda self, key, g: (g.sum(), g[:2])}, "Bad.evaluate: expected an Evaluation, got tuple"),
        (
            {"evaluate": lambda self, key, g: Evaluation(g.sum(), [g[0], g[1]])},
            r"Bad.evaluate: expected arrays, got list; use jnp.stack",
        ),
        (
            {"descriptor_bounds": (-1.0, 1.0)},
            r"Bad.descriptor_bounds: expected \(lows, highs\), a tuple each, got \(-1.0, 1.0\)",
        ),
        (
            {"descriptor_bounds": ((1e8, 0.0), (1e8 + 10, 1.0))},
            "descriptor_bounds: expected bounds between which float32 has more than 1,000 numbers",
        ),
        (
            {"evaluate": lambda self, key, g: Evaluation(g.sum(), g)},
            r"Bad.evaluate: expected fitness of shape \(\) and a descriptor of \(2,\), got \(\) and \(3,\)",
        ),
        ({"evaluate": lambda self, key, g: Evaluation(g, g[:2])}, r"Bad.evaluate: expected fitness of shape \(\)"),
        (
            {"evaluate": lambda self, key, g: Evaluation(g[0] + 1j, g[:2])},
            "Bad.evaluate: expected real numbers, got complex numbers; return their real part or their modulus",
        ),
        ({"__hash__": None}, "Bad: expected a hashable object"),
        (
            {"evaluate_batch": lambda self, key, g: (g.sum(axis=1), g[:, :2])},
            "Bad.evaluate_batch: expected an Evaluation, got tuple",
        ),
        (
            {"evaluate_batch": lambda self, key, g: Evaluation(g.sum(), g[:, :2])},
            r"Bad.evaluate_batch: expected fitness of shape \(8,\) and a descriptor of \(8, 2\), got \(\) and \(8, 2\)",
        ),
        ({"num_params": "3"}, "Bad.num_params: expected a whole number, got '3'; change it"),
        ({"qd_offset": None}, "Bad.qd_offset: expected a number, got None; change it"),
        ({"goal_fitness": "high"}, "Bad.goal_fitness: expected a number or None, got 'high'; change it"),
        ({"goal_fitness": math.nan}, "Bad.goal_fitness: expected a number, got nan; change it"),
        ({"qd_offset": -math.inf}, "Bad.qd_offset: expected a number, got -inf; change it"),
        ({"name": None}, "Bad.name: expected a text, got None; change it"),
        (
            {"evaluate_batch": lambda self, key, g: Evaluation(float(g[0, 0]), g[:, :2])},
            "Bad.evaluate_batch: expected code that JAX can trace",
        ),
        ({"space": "x"}, "Bad.space: expected a jedax.Space or None, got 'x'; change it"),
        ({"space": jedax.Space(a=(0, 1))}, "Bad.num_params: expected 1, the length of the genotypes of its space, got"),
        (
            {"descriptor_bounds": None},
            r"Bad.descriptor_bounds: expected \(lows, highs\), a tuple each, got None; write",
        ),
    ],
)
def test_tasks_whose_parts_do_not_fit(small, tmp_path, changes, message):
    bad = type("Bad", (Good,), changes)()
    with pytest.raises(jedax.JedaxError, match=message):
        jedax.run(small, bad, evaluations=16, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


class Counting(Good):
    """Fitness and descriptors are whole numbers."""

    descriptor_bounds = ((0, 0), (8, 8))

    def evaluate(self, key, genotype):
        counts = (8 * genotype).astype(int)
        return Evaluation(counts.sum(), counts[:2])


class Small(Counting):
    """The same numbers as small floating-point ones."""

    def evaluate(self, key, genotype):
        found = super().evaluate(key, genotype)
        return Evaluation(found.fitness.astype(jnp.float16), found.descriptor.astype(jnp.bfloat16))


class Fractional(Counting):
    """The same numbers as floating-point ones."""

    def evaluate(self, key, genotype):
        found = super().evaluate(key, genotype)
        return Evaluation(found.fitness.astype(float), found.descriptor.astype(float))


@pytest.mark.parametrize(
    ("method", "settings"),
    [("dns", {"offspring": 8, "population": 16}), ("cma-mae", {"population": 4, "pool": 2}),
     ("map-elites", {"offspring": 8, "samples_per_evaluation": 2}), ("jedi-x", {"population": 4, "pool": 2})],
)  # fmt: skip
def test_whole_and_small_numbers_are_taken_as_floating_point_ones(method, settings):
    tasks = (Fractional(), Counting(), Small())
    one, *others = (jedax.run(method, task, evaluations=64, cells=16, **settings) for task in tasks)
    for other in others:
        assert_same_bits(one.repertoire, other.repertoire)


@pytest.mark.parametrize(
    ("method", "offset", "said"),
    [
        ("cma-mae", 4, ["none has a fitness above the threshold of empty cells, 4. Set threshold_min, or the task's"]),
        ("cma-mae", -1, []),
        ("cma-me", 4, []),
        ("cma-me", -1, []),
    ],
)
def test_a_threshold_above_the_fitness_is_said(method, offset, said):
    notes, task = Notes(), type("Low", (Good,), {"qd_offset": offset})()
    run = jedax.run(method, task, evaluations=32, cells=16, population=4, pool=2, progress=notes)
    assert len(notes.said) == len(said)
    assert all(part in message for part, message in zip(said, notes.said, strict=True))
    assert (run.summary["coverage"] == 0) == (method == "cma-mae" and offset == 4)


def test_random_numbers_do_not_depend_on_the_default_generator_of_jax(plain):
    run = jedax.run(plain, Good(), evaluations=32)
    with jax.default_prng_impl("rbg"):
        assert_same_bits(jedax.run(plain, Good(), evaluations=32).repertoire, run.repertoire)


@pytest.mark.parametrize("attribute", ["name", "num_params", "descriptor_bounds"])
def test_tasks_that_lack_something(small, attribute):
    class Lacking(Task):
        init, evaluate = Good.init, Good.evaluate

    for name in {"name", "num_params", "descriptor_bounds"} - {attribute}:
        setattr(Lacking, name, getattr(Good, name))
    with pytest.raises(jedax.JedaxError, match=f"Lacking.{attribute}: expected a value, got none; set it"):
        jedax.run(small, Lacking(), evaluations=16)


@pytest.mark.parametrize("method", ["jedi-x", "jedi", "cma-mae", "td3"])
def test_tasks_in_jax_are_searched_in_float32_whatever_jax_is_set_to(arm, method):
    task, settings = arm, {"population": 4, "pool": 2, "cells": 16}
    if method == "td3":
        task, settings = PointMass(hidden=(4,), steps=5), {"population": 4, "critic_steps": 2, "cells": 16}
    run = jedax.run(method, task, evaluations=64, **settings)
    forget_programs()
    with jax.enable_x64(True):
        again = jedax.run(method, task, evaluations=64, **settings)
    assert again.repertoire.fitness.dtype == np.float32
    assert_same_bits(again.repertoire, run.repertoire)


def test_presets(arm):
    run = jedax.run("jedi", "maze-b", preset="tuned", evaluations=64, cells=16)
    assert run.config.method_config.alpha == 0.3


@pytest.mark.parametrize(("generations", "said"), [(45, True), (46, False)])
def test_few_choices_of_targets_are_said(small, arm, tmp_path, generations, said, without_figures):
    """Loops are of 5 generations; the tenth may be a short one."""
    notes = Notes()
    budget = 8 * (1 + generations)
    jedax.run(small, arm, evaluations=budget, progress=notes, out=tmp_path / "run")
    hint = (
        "JEDi chooses targets only 9 times with this budget; for more, lower --generations (5) or --population (4), or "
        "raise --evaluations."
    )
    assert notes.said == [hint] * said
    assert (hint in (tmp_path / "run" / "log.txt").read_text()) == said


@pytest.mark.parametrize(("budget", "said"), [(39, True), (35, False), (32, False)])
def test_a_budget_that_a_search_cannot_use_up_is_said(arm, budget, said):
    """A tenth of it or more."""
    notes = Notes()
    run = jedax.run("map-elites", arm, evaluations=budget, offspring=8, cells=16, progress=notes)
    assert run.evaluations == 32
    assert notes.said == ["The search ends after 32 of 39 evaluations, since a generation has 8."] * said


def test_methods_without_targets_are_not_asked_for_more_of_them(arm):
    notes = Notes()
    jedax.run("map-elites", arm, evaluations=32, offspring=16, cells=16, progress=notes)
    assert notes.said == []
