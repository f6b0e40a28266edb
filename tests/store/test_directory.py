"""Run directories: what dies on the way leaves a whole checkpoint, and nothing in them leads elsewhere."""

import contextlib
import json
import os
import shutil

import numpy as np
import pytest
from tests.conftest import forget_checksums

import jedax
from jedax.bench.reading import read
from jedax.store import files
from jedax.store.checkup import check_directory
from jedax.store.directory import RunDirectory, runs_below
from jedax.store.files import write_atomic

pytestmark = pytest.mark.usefixtures("without_figures")


class Died(BaseException):
    """As if the process had been killed: nothing that tidies up after an error sees it."""


def state(number):
    return {"numbers": np.arange(5, dtype=np.float32) + number, "count": np.int32(number)}


def facts(number):
    return {"evaluations": number, "seconds": 1.5, "phases": {"io": 0.5}, "status": "running", "config": "abc"}


def dies_at(patch, step, before):
    """Let the process die at a step of those that change the disk, before or after it is taken."""
    left = [step]

    def watched(original):
        def call(*args, **kwargs):
            left[0] -= 1
            if left[0] == 0 and before:
                raise Died
            found = original(*args, **kwargs)
            if left[0] == 0:
                raise Died
            return found

        return call

    for module, name in ((os, "replace"), (os, "fsync"), (os, "mkdir"), (os, "unlink"), (os, "rmdir")):
        patch.setattr(module, name, watched(getattr(module, name)))
    return left


@pytest.mark.parametrize("before", [True, False])
def test_death_at_any_step_of_a_checkpoint_leaves_a_whole_one(tmp_path, before):
    steps = 0
    while True:
        steps += 1
        path = tmp_path / str(steps)
        path.mkdir()
        directory = RunDirectory(path)
        directory.lock()
        for number in (10, 20):
            directory.save_checkpoint(state(number), facts(number))
        with pytest.MonkeyPatch.context() as patch:
            left = dies_at(patch, steps, before)
            with contextlib.suppress(Died):
                directory.save_checkpoint(state(30), facts(30))
        directory.release()
        again = RunDirectory(path)
        again.lock()
        loaded = again.load_checkpoint(state(0))
        assert loaded is not None
        found, kept = loaded
        assert kept["evaluations"] in (20, 30)
        assert kept["warnings"] == []
        np.testing.assert_array_equal(found["numbers"], state(kept["evaluations"])["numbers"])
        again.save_checkpoint(state(40), facts(40))
        assert again.checkpoints()[0].name == f"{40:012d}"
        assert sorted(entry.name for entry in (path / "checkpoint").iterdir()) == [
            folder.name for folder in reversed(again.checkpoints())
        ]
        again.release()
        if left[0] > 0:  # more steps than there are
            break
    assert steps > 8


@pytest.fixture(scope="module")
def whole(tmp_path_factory, small, arm, without_figures):
    path = tmp_path_factory.mktemp("whole") / "run"
    jedax.run(small, arm, evaluations=8 * 6, out=path)
    return path


@pytest.mark.parametrize("name", ["metrics.csv", "log.txt", ".config.yaml.tmp", "checkpoint", "figures/best.png"])
def test_links_are_refused_and_not_followed(whole, tmp_path, name):
    path, outside = tmp_path / "run", tmp_path / "outside"
    shutil.copytree(whole, path)
    if name == "checkpoint":
        (path / name).rename(outside)
    else:
        outside.write_text("precious")
        (path / "figures").mkdir(exist_ok=True)
        (path / name).unlink(missing_ok=True)
    (path / name).symlink_to(outside)
    before = {file: file.read_bytes() for file in (outside.rglob("*") if outside.is_dir() else [outside])
              if file.is_file()}  # fmt: skip
    for attempt in (
        lambda: jedax.load(path),
        lambda: jedax.resume(path),
        lambda: RunDirectory.create(path, overwrite=True),
    ):
        with pytest.raises(jedax.JedaxError, match=rf"expected plain files and folders.*{name}, a link or a device"):
            attempt()
    assert all(file.read_bytes() == data for file, data in before.items())


def test_pipes_are_refused_and_not_waited_for(whole, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(whole, path)
    (path / "metrics.csv").unlink()
    os.mkfifo(path / "metrics.csv")
    with pytest.raises(jedax.JedaxError, match=r"metrics\.csv, a link or a device"):
        jedax.load(path)


@pytest.mark.parametrize("before", [True, False])
def test_death_at_any_step_of_the_end_leaves_a_run_that_has_or_has_not_ended(whole, tmp_path, before):
    summary, steps = RunDirectory(whole).read_summary(), 0
    while True:
        steps += 1
        path = shutil.copytree(whole, tmp_path / str(steps))
        (path / "manifest.json").unlink()
        (path / "summary.json").unlink()
        directory = RunDirectory(path)
        with pytest.MonkeyPatch.context() as patch:
            left = dies_at(patch, steps, before)
            with contextlib.suppress(Died):
                directory.write_outcome(summary)
        has_ended = (path / "manifest.json").exists()
        assert RunDirectory.open(path).read_summary() == (summary if has_ended else {})
        assert check_directory(path).is_sound
        if left[0] > 0:
            break
    assert has_ended
    assert steps > 8


def test_what_users_put_beside_is_theirs(whole, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(whole, path)
    (path / "data").symlink_to(tmp_path)
    assert jedax.load(path).summary["status"] == "finished"


def test_a_temporary_file_is_never_written_through(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("precious")
    (tmp_path / ".notes.tmp").symlink_to(outside)
    files.write_atomic(tmp_path / "notes", "mine")
    assert (outside.read_text(), (tmp_path / "notes").read_text()) == ("precious", "mine")


def test_names_that_are_no_text_are_written(whole):
    """Those of files on a Linux are any bytes."""
    directory = RunDirectory.open(whole)
    directory.log("no mesh caf\udce9\nRun \x1b[31m")
    assert (whole / "log.txt").read_text().endswith(r"no mesh caf\udce9\nRun \x1b[31m" + "\n")
    write_atomic(whole / "note.txt", "caf\udce9")
    assert (whole / "note.txt").read_text() == r"caf\udce9"


def test_metrics_of_an_older_version_keep_their_columns(tmp_path):
    directory = RunDirectory(tmp_path)
    (tmp_path / "metrics.csv").write_text("evaluations,replica\n8,0\n")
    directory.add_metrics([{"evaluations": 16, "failed_nan": 3, "replica": 0}])
    assert directory.read_metrics() == [{"evaluations": 8, "replica": 0}, {"evaluations": 16, "replica": 0}]


def test_a_damaged_summary_is_said(whole, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(whole, path)
    forget_checksums(path)
    for text in ("{", "[]", json.dumps({"status": 3}), json.dumps({"phase_seconds": {"io": -1}})):
        (path / "summary.json").write_text(text)
        with pytest.raises(jedax.JedaxError, match=r"summary\.json: expected the outcome of a run"):
            jedax.load(path)


def test_runs_below_a_directory_are_named(tmp_path):
    for number in range(4):
        folder = tmp_path / "arm" / "jedi" / f"seeds-{number}"
        folder.mkdir(parents=True)
        (folder / "config.yaml").touch()
    with pytest.raises(jedax.JedaxError) as caught:
        RunDirectory.open(tmp_path)
    named = ", ".join(str(tmp_path / "arm" / "jedi" / f"seeds-{number}") for number in range(3))
    assert str(caught.value) == (
        f"run directory: expected a directory with a config.yaml, got {tmp_path}, with 4 of them below it; "
        f"name one of those, as in {named}; jedax report {tmp_path} shows all."
    )


@pytest.mark.parametrize("what", ["link", "folder", "pipe"])
def test_something_else_in_the_place_of_the_settings_is_named(tmp_path, what):
    place = tmp_path / "bench" / "run" / "config.yaml"
    place.parent.mkdir(parents=True)
    {"link": lambda: place.symlink_to("nowhere"), "folder": place.mkdir, "pipe": lambda: os.mkfifo(place)}[what]()
    said = rf"expected plain files and folders.*{place}, a {'folder' if what == 'folder' else 'link or a device'}"
    with pytest.raises(jedax.JedaxError, match=said):
        RunDirectory.open(place.parent)
    with pytest.raises(jedax.JedaxError, match=said):
        read([tmp_path])
    assert runs_below(tmp_path) == [place.parent]


def test_what_others_call_temporary_is_theirs(tmp_path):
    (tmp_path / ".work.tmp").mkdir()
    (tmp_path / ".work.tmp" / "precious").touch()
    (tmp_path / ".config.yaml.123.tmp").touch()  # what a run leaves that is killed as it begins
    with pytest.raises(jedax.JedaxError, match=r"expected an empty or new directory, .*; choose another --out\.$"):
        RunDirectory.create(tmp_path)
    assert (tmp_path / ".work.tmp" / "precious").exists()
    assert not (tmp_path / ".config.yaml.123.tmp").exists()


@pytest.mark.parametrize("text", ["lr: 0.1", "- a", "task: {", ""])
def test_overwrite_spares_other_programs_of_the_same_names(tmp_path, text):
    (tmp_path / "config.yaml").write_text(text)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "mine.pdf").touch()
    with pytest.raises(jedax.JedaxError, match=r"expected a directory that only a run wrote to, got .*config"):
        RunDirectory.create(tmp_path, overwrite=True)
    assert (tmp_path / "figures" / "mine.pdf").exists()


def test_overwrite_replaces_a_run_that_lost_its_settings(whole, tmp_path):
    path = shutil.copytree(whole, tmp_path / "run", ignore=shutil.ignore_patterns("note.txt"))
    (path / "config.yaml").write_text("damaged: [")
    RunDirectory.create(path, overwrite=True).release()
    assert not list(path.iterdir())
