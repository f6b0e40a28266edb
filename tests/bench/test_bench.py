"""Benches: runs that are done, skipped, resumed, or failed."""

import dataclasses
import json
import os
import shutil
import signal

import numpy as np
import pytest

import jedax
from jedax import cli
from jedax.bench.bench import bench
from jedax.bench.comparison import compare
from jedax.bench.grids import Entry, Grid, slug
from jedax.bench.trials import is_finished, replicas_that_fit, run_trial, trials_of
from jedax.methods.map_elites import MapElites
from jedax.search.compiled import Programs
from jedax.search.engines import LocalEngine
from jedax.search.loop import Interrupted, Search
from jedax.search.progress import Silent
from jedax.store.lock import LockedError

pytestmark = pytest.mark.usefixtures("programs_kept")

ENTRIES = (
    Entry("map-elites", "map-elites", None, {"cells": 16, "offspring": 8}),
    Entry("small es", "es", None, {"cells": 16, "population": 8}),
)
GRID = Grid("", ("arm",), ENTRIES, seeds=2, evaluations=80)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    out = tmp_path_factory.mktemp("bench") / "results"
    return out, bench(GRID, out)


def files_of(out):
    return {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def test_every_trial_is_an_ordinary_run(done):
    out, outcome = done
    assert (outcome.done, outcome.before, outcome.failed) == (2, 0, ())
    runs = sorted(path.parent.relative_to(out).as_posix() for path in out.rglob("config.yaml"))
    assert runs == ["arm/map-elites/seeds-0-1", "arm/small-es/seeds-0-1"]
    run = jedax.load(out / runs[1])
    assert (run.config.label, run.config.method, run.config.run.replicas) == ("small es", "es", 2)
    assert run.summary["status"] == "finished"
    assert not (out / runs[1] / "figures").exists()


def test_a_seed_is_that_of_a_run_of_its_own(done):
    alone = jedax.run("map-elites", "arm", evaluations=80, seed=1, cells=16, offspring=8)
    together = jedax.load(done[0] / "arm/map-elites/seeds-0-1")
    np.testing.assert_allclose(together.repertoire.fitness[1], alone.repertoire.fitness[0], rtol=1e-5)


def test_the_first_seed_is_chosen(tmp_path):
    size = ["--evaluations", "80", "--seeds", "2", "--first-seed", "5"]
    cli.main(["bench", "arm", "--methods", "map-elites,cells=16,offspring=8", *size, "--out", str(tmp_path)])
    together = jedax.load(tmp_path / "arm/map-elites-cells=16-offspring=8/seeds-5-6")
    alone = jedax.run("map-elites", "arm", evaluations=80, seed=6, cells=16, offspring=8)
    np.testing.assert_allclose(together.repertoire.fitness[1], alone.repertoire.fitness[0], rtol=1e-5)


def test_finished_runs_are_skipped(done):
    out, _ = done
    before = files_of(out)
    outcome = bench(GRID, out)
    assert (outcome.done, outcome.before) == (0, 4)
    assert files_of(out) == before


def test_a_trial_is_found_in_the_folder_of_an_earlier_name(done, tmp_path):
    shutil.copytree(done[0] / "arm", tmp_path / "arm")
    (tmp_path / "arm" / "map-elites").rename(tmp_path / "arm" / "earlier-name")
    outcome = bench(dataclasses.replace(GRID, seeds=3), tmp_path, only=["arm/map-elites"])
    assert (outcome.done, outcome.before, outcome.failed) == (1, 2, ())
    assert (tmp_path / "arm" / "earlier-name" / "seeds-2-2").is_dir()


def test_seeds_methods_and_tasks_are_added(done):
    out, _ = done
    before = files_of(out)
    more = Grid("", ("arm", "sphere"), (*ENTRIES, Entry("second", *["map-elites", None, ENTRIES[0].changes])), 3, 80)
    outcome = bench(more, out)
    assert (outcome.done, outcome.before) == (2 + 1 + 3, 4)
    assert {path.name for path in (out / "arm" / "map-elites").iterdir()} == {"seeds-0-1", "seeds-2-2"}
    assert (out / "sphere" / "second" / "seeds-0-2").is_dir()
    after = files_of(out)
    assert {path: after[path] for path in before} == before


def test_other_settings_under_one_name_are_refused_before_anything_runs(done):
    out, _ = done
    before = files_of(out)
    longer = dataclasses.replace(GRID, evaluations=160, tasks=("sphere", "arm"), entries=ENTRIES[:1])
    with pytest.raises(jedax.JedaxError, match=r"out: .*map-elites.*got evaluations 80 instead of 160; choose"):
        bench(longer, out)
    other = (Entry("map-elites", "map-elites", None, {"cells": 16, "offspring": 8, "iso_sigma": 0.1}),)
    with pytest.raises(jedax.JedaxError, match=r"got iso_sigma 0.2 instead of 0.1"):
        bench(dataclasses.replace(GRID, entries=other), out)
    assert files_of(out) == before


def test_a_failed_run_stops_no_other_and_is_tried_again(tmp_path, monkeypatch):
    true_run = Search.run

    def run(search, caught):
        if search.config.label == "map-elites":
            raise RuntimeError("the simulator broke")
        true_run(search, caught)

    monkeypatch.setattr(Search, "run", run)
    outcome = bench(GRID, tmp_path)
    assert outcome.done == 1
    ((path, message),) = outcome.failed
    assert message == "RuntimeError: the simulator broke"
    assert path == tmp_path / "arm" / "map-elites" / "seeds-0-1"
    note = path.with_name("seeds-0-1.error.txt")
    assert note.read_text().startswith("RuntimeError: the simulator broke\n\nTraceback")
    monkeypatch.undo()
    again = bench(GRID, tmp_path)
    assert (again.done, again.before, again.failed) == (1, 2, ())
    assert not note.exists()
    assert is_finished(path)


def test_an_interrupted_bench_continues_to_the_same_bits(done, tmp_path, monkeypatch):
    true_chunk = Search._run_chunk

    def chunk(search):
        true_chunk(search)
        if search.generation == 4:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Search, "_run_chunk", chunk)
    monkeypatch.setattr(Programs, "first_chunk", 1)
    with pytest.raises(Interrupted):
        bench(GRID, tmp_path)
    path = tmp_path / "arm" / "map-elites" / "seeds-0-1"
    assert json.loads((path / "summary.json").read_text())["status"] == "interrupted"
    assert not (tmp_path / "arm" / "small-es").exists()
    monkeypatch.undo()
    outcome = bench(GRID, tmp_path)
    assert (outcome.done, outcome.before) == (2, 0)
    ours, undisturbed = jedax.load(path), jedax.load(done[0] / "arm/map-elites/seeds-0-1")
    np.testing.assert_array_equal(ours.repertoire.genotypes, undisturbed.repertoire.genotypes)
    np.testing.assert_array_equal(ours.repertoire.counts, undisturbed.repertoire.counts)


def test_seeds_are_split_where_memory_is_short(tmp_path, monkeypatch):
    engine = LocalEngine()
    run = trials_of(dataclasses.replace(GRID, seeds=5), tmp_path, engine)["arm/map-elites"]
    memory = engine.memory()
    assert memory is None or replicas_that_fit(run, memory) > 5
    task_state = 16 * (10 + 2 + 5) * 4  # cells x (genotype, descriptor, five numbers), and little more
    monkeypatch.setattr(engine, "memory", lambda: int(2.2 * 3 * 2 * (task_state + 100)))
    assert replicas_that_fit(run, engine.memory()) == 2
    outcome = bench(dataclasses.replace(GRID, seeds=5, entries=ENTRIES[:1]), tmp_path, engine=engine)
    assert outcome.failed == ()
    found = sorted(path.name for path in (tmp_path / "arm" / "map-elites").iterdir())
    assert found == ["seeds-0-1", "seeds-2-3", "seeds-4-4"]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (dataclasses.replace(GRID, tasks=("amr",)), "task: unknown name 'amr'; did you mean 'arm'"),
        (dataclasses.replace(GRID, seeds=0), "seeds: expected at least 1, got 0"),
        (dataclasses.replace(GRID, entries=ENTRIES[:1] * 2), "methods: expected a name of its own for every trial"),
        (dataclasses.replace(GRID, evaluations=0), "evaluations: expected greater than or equal to 1"),
    ],
)
def test_bad_input_runs_nothing(tmp_path, grid, message):
    with pytest.raises(jedax.JedaxError, match=message):
        bench(grid, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_progress_tells_of_all_runs(tmp_path, capsys, monkeypatch):
    import sys

    from jedax.bench.bench import BenchProgress
    from jedax.search import progress

    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    bench(GRID, tmp_path, progress=BenchProgress(sys.stderr))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "2 runs, 320 evaluations to do"
    assert any(line.startswith("16 of 320 evaluations, run 1 of 2: arm, map-elites, best") for line in lines)
    # An ES starts from one genotype: 73 of 80 evaluations per seed are whole generations.
    assert lines[-1].startswith("306 of 320 evaluations, run 2 of 2: arm, small es, best")


def test_seeds_that_another_process_has_begun_are_left_to_it(tmp_path):
    """Two benches may split the same seeds differently, since they see other amounts of free memory."""
    trial = trials_of(dataclasses.replace(GRID, entries=ENTRIES[:1]), tmp_path, LocalEngine())["arm/map-elites"]
    whole, second = trial.of_seeds(0, 2), trial.of_seeds(1, 1)
    run_trial(second.path, Silent(), LocalEngine(), second.config, None)
    with pytest.raises(LockedError, match=r"seeds-1-1 has some of the same seeds"):
        run_trial(whole.path, Silent(), LocalEngine(), whole.config, None)
    assert not whole.path.exists()


def test_a_method_that_raises_any_error_stops_no_other(tmp_path):
    class Broken(MapElites):
        def init(self, key, genotypes, evaluation):
            raise TypeError("no such thing")

    entries = (Entry("broken", Broken, None, {"cells": 16, "offspring": 8}), ENTRIES[0])
    outcome = bench(dataclasses.replace(GRID, entries=entries), tmp_path)
    assert (outcome.done, [message for _, message in outcome.failed]) == (1, ["TypeError: no such thing"])


def test_names_in_paths():
    assert (slug("ä:f"), slug("a b/c"), slug("..")) == ("ä-f", "a-b-c", "unnamed")


def test_a_comparison_makes_no_task_that_the_directory_describes(done, monkeypatch):
    def fail(*arguments):
        raise AssertionError("made")

    monkeypatch.setattr("jedax.bench.reading.task_of", fail)
    assert [entry.label for entry in compare(done[0]).tables[0].entries]


def test_methods_of_one_task_have_one_budget(tmp_path):
    """That of a small preset is not that of the others, and `compare` would refuse the results."""
    entries = Entry("map-elites,cpu", "map-elites", "cpu"), Entry("es", "es")
    message = r"evaluations on halfcheetah: expected the same .*, got 4,096 of map-elites,cpu and 5,000,000 of es; .*"
    with pytest.raises(jedax.JedaxError, match=message):
        trials_of(Grid("", ("halfcheetah",), entries, seeds=1), tmp_path, LocalEngine())
    assert len(trials_of(Grid("", ("halfcheetah",), entries, seeds=1, evaluations=64), tmp_path, LocalEngine())) == 2
