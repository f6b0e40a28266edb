"""Two processes, or two runs of one, on one directory: the second is refused, and no lock outlives its process."""

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import jedax
from jedax.store.directory import RunDirectory
from jedax.store.lock import FILE, Lock, LockedError, alone_in

pytestmark = pytest.mark.usefixtures("without_figures")

HOLDER = """
import sys, time
from pathlib import Path
from jedax.store.lock import Lock
lock = Lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""

ALONE = """
import sys
from pathlib import Path
from jedax.store.lock import alone_in
with alone_in(Path(sys.argv[1])):
    print("mine", flush=True)
    sys.stdin.read()
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
    said = (
        rf"expected a directory that no other process writes to, got process {holder.pid} on {socket.gethostname()}, at"
    )
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
    jedax.resume(tmp_path / "run", task=arm)


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
    with pytest.raises(LockedError, match="got another process; wait"):
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


@pytest.fixture
def alone(tmp_path):
    """Another process that has a directory to itself."""
    command = [sys.executable, "-c", ALONE, str(tmp_path / "new" / "run")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "mine\n"
        yield process
        process.kill()


def test_who_waits_too_long_is_told(alone, tmp_path):
    said = rf"expected a directory that no other process writes to, got process {alone.pid} on"
    with pytest.raises(LockedError, match=said):
        alone_in(tmp_path / "new" / "run", patience=0.1)


@pytest.mark.parametrize("end", ["kill", "close"])
def test_a_directory_is_free_when_the_other_has_ended(alone, tmp_path, end):
    alone.kill() if end == "kill" else alone.stdin.close()
    with alone_in(tmp_path / "new" / "run", patience=20):
        assert os.listdir(tmp_path / "new") == [".run.lock"]
    assert os.listdir(tmp_path / "new") == []


def test_a_lock_that_was_removed_holds_nobody_off(alone, tmp_path):
    """The file that the other has locked is no longer the one that others would find."""
    (tmp_path / "new" / ".run.lock").unlink()
    with alone_in(tmp_path / "new" / "run", patience=0.1):
        assert os.listdir(tmp_path / "new") == [".run.lock"]


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS])
def test_file_systems_without_locks(tmp_path, monkeypatch, number):
    import fcntl

    def none(handle, what):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", none)
    with alone_in(tmp_path / "run"), Lock(tmp_path) as lock:
        assert lock.is_in_place()
    assert os.listdir(tmp_path) == []


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("precious")
    (tmp_path / FILE).symlink_to(outside)
    with pytest.raises(OSError, match=FILE):
        Lock(tmp_path)
    assert outside.read_text() == "precious"


def test_a_directory_that_is_gone(tmp_path):
    with pytest.raises(FileNotFoundError):
        Lock(tmp_path / "gone")
    assert not (tmp_path / "gone").exists()


def test_a_new_directory_in_the_place_of_a_removed_one_is_noticed(tmp_path):
    """The file system may give the new one the number of the old one."""
    for _ in range(20):
        (tmp_path / "run").mkdir()
        lock = Lock(tmp_path / "run")
        shutil.rmtree(tmp_path / "run")
        (tmp_path / "run").mkdir()
        assert not lock.is_in_place()
        lock.release()
        (tmp_path / "run").rmdir()


def test_a_child_process_does_not_keep_the_lock(tmp_path):
    """A worker that a callback has started may outlive the run."""
    lock = Lock(tmp_path)
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as child:
        lock.release()
        Lock(tmp_path).release()
        assert child.poll() is None
        child.kill()


def test_settings_that_change_before_the_lock_is_had(tmp_path, small, arm, monkeypatch):
    """Another process puts a new run there while the first one reads the old one's settings."""
    jedax.run(small, arm, evaluations=8 * 6, out=tmp_path / "run")
    real = RunDirectory.lock

    def late(self):
        monkeypatch.setattr(RunDirectory, "lock", real)
        jedax.run(small, arm, evaluations=8 * 7, out=tmp_path / "run", overwrite=True)
        real(self)

    monkeypatch.setattr(RunDirectory, "lock", late)
    with pytest.raises(jedax.JedaxError, match="the settings that were there when this command started, got others"):
        jedax.resume(tmp_path / "run", task=arm)
    jedax.resume(tmp_path / "run", task=arm)


def test_the_current_directory(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with alone_in(Path()):
        assert [path.name for path in tmp_path.glob(".*")] == [".here.lock"]
