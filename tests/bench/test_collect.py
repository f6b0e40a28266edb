"""Finished runs of a bench, copied from several directories into one."""

import dataclasses
import json
import shutil

import pytest
from tests.conftest import seal

import jedax
from jedax.bench.bench import bench
from jedax.bench.collect import collect
from jedax.bench.grids import Entry, Grid
from jedax.bench.trials import is_finished
from jedax.store.lock import Lock, LockedError

ENTRIES = tuple(Entry(f"map-elites {n}", "map-elites", None, {"cells": n, "offspring": 8}) for n in (16, 32))
GRID = Grid("", ("arm",), ENTRIES, seeds=2, evaluations=80)
ONE, TWO = "arm/map-elites-16/seeds-0-1", "arm/map-elites-32/seeds-0-1"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A bench in two directories, a trial in each."""
    out = tmp_path_factory.mktemp("collect")
    for name, entry in zip("ab", ENTRIES, strict=True):
        bench(dataclasses.replace(GRID, entries=(entry,)), out / "jobs" / name)
    return out / "jobs"


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def cut_off(run):
    summary = json.loads((run / "summary.json").read_text())
    (run / "summary.json").write_text(json.dumps(summary | {"status": "interrupted"}))
    seal(run)


def test_every_run_is_copied_once(done, tmp_path):
    out = tmp_path / "out"
    found = collect([done], out)
    assert (found.copied, found.before, found.unfinished) == ((ONE, TWO), (), ())
    assert files(out) == files(done / "a") | files(done / "b")
    again = collect([done / "a", done / "b", out], out)
    assert (again.copied, again.before) == ((), (ONE, TWO))
    assert files(out) == files(done / "a") | files(done / "b")
    assert bench(GRID, out).before == 4


def test_a_run_that_has_lost_its_settings_is_named(done, tmp_path):
    shutil.copytree(done / "a", tmp_path / "out")
    (tmp_path / "out" / ONE / "config.yaml").unlink()
    for read in (lambda: bench(GRID, tmp_path / "out"), lambda: jedax.compare([tmp_path / "out"])):
        with pytest.raises(jedax.JedaxError, match=r"config.yaml: expected the file that the run wrote, got none"):
            read()


def test_unfinished_runs_are_not_copied_but_replaced(done, tmp_path):
    shutil.copytree(done / "a", tmp_path / "out")
    cut_off(tmp_path / "out" / ONE)
    shutil.copytree(done / "b", tmp_path / "b")
    cut_off(tmp_path / "b" / TWO)
    found = collect([done / "a", tmp_path / "b"], tmp_path / "out")
    assert (found.copied, found.before, found.unfinished) == ((ONE,), (), (tmp_path / "b" / TWO,))
    assert is_finished(tmp_path / "out" / ONE)
    assert files(tmp_path / "out") == files(done / "a")


@pytest.mark.parametrize("name", ["seeds-0-1", "seeds-2-3"])
def test_other_settings_are_refused(done, tmp_path, name):
    shutil.copytree(done / "a", tmp_path / "c")
    run = tmp_path / "c" / ONE
    run = run.rename(run.with_name(name))
    config = run / "config.yaml"
    first = 2 if name == "seeds-2-3" else 0
    config.write_text(
        config.read_text().replace("iso_sigma: 0.2", "iso_sigma: 0.1").replace("seed: 0", f"seed: {first}")
    )
    seal(run)
    with pytest.raises(jedax.JedaxError, match="collect: expected runs of a trial with the same settings"):
        collect([done / "a", tmp_path / "c"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_seed_twice_is_refused(done, tmp_path):
    shutil.copytree(done / "a" / ONE, tmp_path / "c/arm/map-elites-16/seeds-1-2")
    config = tmp_path / "c/arm/map-elites-16/seeds-1-2/config.yaml"
    config.write_text(config.read_text().replace("seed: 0", "seed: 1"))
    seal(config.parent)
    with pytest.raises(jedax.JedaxError, match="collect: expected runs of a trial with each seed once, got seed 1 in"):
        collect([done / "a", tmp_path / "c"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_there(tmp_path):
    with pytest.raises(jedax.JedaxError, match=r"collect: expected directories with runs of a bench, got none below"):
        collect([tmp_path], tmp_path / "out")


@pytest.mark.parametrize("place", ["arm", "arm/map-elites-16", ONE])
def test_links_in_a_bench_lead_nowhere(done, tmp_path, place):
    """A directory from somebody else may hold them."""
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (out / place).parent.mkdir(parents=True)
    (out / place).symlink_to(elsewhere)
    for write in (lambda: bench(GRID, out), lambda: collect([done], out)):
        with pytest.raises(
            jedax.JedaxError, match=f"out: expected folders, got .*{place}, a link; remove it, or choose"
        ):
            write()
    assert list(elsewhere.iterdir()) == []


def test_a_run_that_another_process_works_on_stays(done, tmp_path):
    shutil.copytree(done / "a", tmp_path / "out")
    cut_off(tmp_path / "out" / ONE)
    with Lock(tmp_path / "out" / ONE), pytest.raises(LockedError, match="that no other process writes to"):
        collect([done / "a"], tmp_path / "out")
    assert not is_finished(tmp_path / "out" / ONE)
    assert collect([done / "a"], tmp_path / "out").copied == (ONE,)
    assert files(tmp_path / "out") == files(done / "a")
