"""Two processes, or two runs of one, on one directory: the second is refused, and no lock outlives its process."""

import os
import signal
import socket
import subprocess
import sys

import pytest

import jedax
from jedax.runs.directory import RunDirectory
from jedax.runs.lock import FILE, Lock, LockedError

pytestmark = pytest.mark.usefixtures("without_figures")

HOLDER = """
import sys, time
from pathlib import Path
from jedax.runs.lock import Lock
lock = Lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of `tmp_path`."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_the_second_process_is_refused_until_the_first_is_killed(tmp_path, holder):
    said = rf"expected a run that no other process works on, got process {holder.pid} on {socket.gethostname()}, at"
    with pytest.raises(LockedError, match=said):
        Lock(tmp_path)
    with pytest.raises(LockedError, match=said):
        RunDirectory.create(tmp_path, overwrite=True)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / FILE).exists()  # what a killed process leaves locks nobody out
    lock = Lock(tmp_path)
    assert f'"pid": {os.getpid()}' in (tmp_path / FILE).read_text()
    lock.release()
    assert not (tmp_path / FILE).exists()


def test_two_runs_of_one_process(tmp_path, small, arm):
    refused = []

    def again(report):
        for attempt in (
            lambda: jedax.resume(tmp_path / "run", task=arm),
            lambda: jedax.run(small, arm, evaluations=16, out=tmp_path / "run", overwrite=True),
        ):
            with pytest.raises(LockedError) as caught:
                attempt()
            refused.append(str(caught.value))
        if report.evaluations > 8:  # reading needs no lock
            assert jedax.load(tmp_path / "run", task=arm).config.task == "arm"

    jedax.run(small, arm, evaluations=8 * 6, out=tmp_path / "run", callbacks=[again], report_every=5)
    assert len(refused) == 4
    assert all(f"process {os.getpid()} on" in text for text in refused)
    assert not (tmp_path / "run" / FILE).exists()
    jedax.resume(tmp_path / "run", task=arm, figures=False)


def test_an_error_lets_go(tmp_path, small, arm):
    def fail(report):
        raise KeyError("mine")

    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            jedax.run(small, arm, evaluations=8 * 6, out=tmp_path / "run", overwrite=True, callbacks=[fail])


def test_a_file_that_is_no_lock_is_overwritten(tmp_path):
    (tmp_path / FILE).write_text("[" * 100_000)
    lock = Lock(tmp_path)
    with pytest.raises(LockedError, match="got process"):
        Lock(tmp_path)
    (tmp_path / FILE).write_text("[" * 100_000)
    with pytest.raises(LockedError, match="got another process at work; wait"):
        Lock(tmp_path)
    lock.release()


@pytest.mark.parametrize("how", ["removed", "another", "moved"])
def test_a_lock_knows_its_directory(tmp_path, how):
    folder = tmp_path / "run"
    folder.mkdir()
    lock = Lock(folder)
    assert lock.is_in_place()
    folder.rename(tmp_path / "away")
    if how == "removed":
        (tmp_path / "away" / FILE).unlink()
        (tmp_path / "away").rmdir()
    elif how == "another":
        folder.mkdir()
        other = Lock(folder)
    assert not lock.is_in_place()
    lock.release()
    if how == "another":
        assert (folder / FILE).exists()  # that of the other
        with pytest.raises(LockedError):
            Lock(folder)
        other.release()
