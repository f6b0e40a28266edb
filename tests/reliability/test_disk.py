"""A disk that fills up, goes away or turns read-only under a run: it says so, and can go on where it was.

The disks are real, small ones in memory, for which the tests must be allowed to mount.
"""

import os
import shutil
import subprocess

import pytest
from tests.conftest import assert_same_bits, without_seconds

import jedax
from jedax.store.directory import RunDirectory

SETTINGS = {"evaluations": 8 * 200, "seed": 2, "report_every": 1, "history": False}
FULL_AT = 8 * 20


def mount(path, size):
    path.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


@pytest.fixture
def disk(tmp_path):
    """Mount small disks, unmounted in the end."""
    mounted = []

    def make(path, size="400k"):
        try:
            said = mount(path, size)
        except FileNotFoundError as error:
            said = str(error)
        if said:
            pytest.skip(f"needs to mount a small disk: {said.strip()}")
        mounted.append(path)
        return path

    yield make
    for path in reversed(mounted):
        subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.fixture(scope="module")
def whole(small, arm):
    return jedax.run(small, arm, **SETTINGS)


def fill(path):
    """Leave not one byte."""
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 512)
        except OSError:
            os.fsync(file.fileno())


def assert_goes_on(path, arm, whole):
    run = jedax.resume(path, task=arm, draw=None)
    assert_same_bits(run.repertoire, whole.repertoire)
    ours, theirs = without_seconds(run.rows), without_seconds(whole.rows)
    assert len(ours) == len(theirs)
    for row, other in zip(ours, theirs, strict=True):
        assert row == pytest.approx(other, rel=1e-12)


@pytest.mark.parametrize(("what", "pause"), [("metrics", 1e9), ("checkpoint", 0)])
def test_a_full_disk_while_writing(tmp_path, disk, small, arm, whole, what, pause):
    folder = disk(tmp_path / "disk")
    path = folder / "run"
    seen = []

    def full(report):
        seen.append(report.evaluations)
        if report.evaluations == FULL_AT:
            seen.append(RunDirectory(path).checkpoints()[0].name)
            fill(folder / "filler")

    with pytest.raises(jedax.JedaxError, match=r"out: expected room to write results, got .*No space left on device"):
        jedax.run(small, arm, out=path, checkpoint_seconds=pause, callbacks=[full], **SETTINGS)
    (good,) = [name for name in seen if isinstance(name, str)]
    if what == "metrics":
        assert max(report for report in seen if not isinstance(report, str)) > FULL_AT
    assert RunDirectory(path).checkpoints()[0].name >= good
    assert not list(path.rglob(".*.tmp"))  # what is half written would fill the disk
    before = jedax.load(path, task=arm).repertoire  # the last good one is there while the disk is still full
    assert before.counts.sum() == int(RunDirectory(path).checkpoints()[0].name)
    with pytest.raises(jedax.JedaxError, match="No space left on device"):
        jedax.resume(path, task=arm, draw=None)
    (folder / "filler").unlink()
    assert_goes_on(path, arm, whole)


def test_a_full_disk_while_drawing(tmp_path, disk, small, arm, whole):
    path = tmp_path / "run"

    def narrow(report):
        if report.evaluations == FULL_AT:
            (path / "figures").mkdir()
            disk(path / "figures", "16k")

    with pytest.raises(jedax.JedaxError, match=r"out: expected room to write results, got .*No space left on device"):
        jedax.run(small, arm, out=path, callbacks=[narrow], **SETTINGS)
    assert_same_bits(jedax.load(path).repertoire, whole.repertoire)
    assert not list((path / "figures").glob(".*"))
    assert_goes_on(path, arm, whole)


def test_a_disk_that_turns_read_only(tmp_path, disk, small, arm, whole):
    folder = disk(tmp_path / "disk")
    path = folder / "run"

    def freeze(report):
        if report.evaluations == FULL_AT:
            subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
            subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)

    with pytest.raises(
        jedax.JedaxError, match=r"out: expected a directory that can be written, got .*Read-only.*mend that"
    ):
        jedax.run(small, arm, out=path, checkpoint_seconds=0, callbacks=[freeze], **SETTINGS)
    assert jedax.load(path, task=arm).repertoire.counts.sum() > 0  # reading goes on
    for attempt in (
        lambda: jedax.resume(path, task=arm),
        lambda: jedax.run(small, arm, out=folder / "other", evaluations=80),
        lambda: jedax.run(small, arm, out=path, overwrite=True, evaluations=80),
    ):
        with pytest.raises(jedax.JedaxError, match=r"/(run|other): expected a directory that can be written"):
            attempt()
    subprocess.run(["umount", str(folder)], check=True)
    assert_goes_on(path, arm, whole)


@pytest.mark.parametrize("how", ["removed", "moved", "made anew"])
def test_a_directory_that_goes_away(tmp_path, small, arm, whole, how, without_figures):
    path, away = tmp_path / "run", tmp_path / "away"

    def vanish(report):
        if report.evaluations == FULL_AT:
            path.rename(away)
            if how == "removed":
                shutil.rmtree(away)
            elif how == "made anew":
                jedax.run(small, arm, evaluations=8, out=path)

    with pytest.raises(
        jedax.JedaxError, match=r"out: expected the directory .*/run, which this run writes to, got none"
    ):
        jedax.run(small, arm, out=path, checkpoint_seconds=0, callbacks=[vanish], **SETTINGS)
    if how == "made anew":
        assert jedax.load(path).summary["evaluations"] == 8
        assert jedax.load(path).config.run.evaluations == 8
    else:
        assert not path.exists()  # half a run must not come back
    if how != "removed":
        assert_goes_on(away, arm, whole)
