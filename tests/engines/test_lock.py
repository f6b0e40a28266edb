"""A directory to oneself: others wait, and one who is killed stands in nobody's way."""

import os
import subprocess
import sys
import time

import pytest

import jedax
from jedax.engines.lock import alone_in

HOLD = """
import sys, time
from pathlib import Path
from jedax.engines.lock import alone_in
with alone_in(Path(sys.argv[1])):
    print("mine", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that has the directory."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "new" / "run")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "mine\n"
        yield process
        process.kill()


def test_who_waits_too_long_is_told(holder, tmp_path):
    with pytest.raises(jedax.JedaxError, match=r"expected a directory that nobody else writes to.*held for 0 s"):
        alone_in(tmp_path / "new" / "run", patience=0.1).__enter__()


@pytest.mark.parametrize("end", ["kill", "close"])
def test_it_is_free_when_the_other_has_ended(holder, tmp_path, end):
    holder.kill() if end == "kill" else holder.stdin.close()
    began = time.monotonic()
    with alone_in(tmp_path / "new" / "run"):
        assert os.listdir(tmp_path / "new") == [".run.lock"]
    assert time.monotonic() - began < 20
    assert os.listdir(tmp_path / "new") == []


def test_a_lock_that_was_removed_holds_nobody_off(holder, tmp_path):
    """The file that the other has locked is no longer the one that others would find."""
    (tmp_path / "new" / ".run.lock").unlink()
    with alone_in(tmp_path / "new" / "run", patience=0.1):
        assert os.listdir(tmp_path / "new") == [".run.lock"]


def test_file_systems_without_locks(tmp_path, monkeypatch):
    import fcntl

    def none(handle, what):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", none)
    with alone_in(tmp_path / "run"):
        pass
    assert os.listdir(tmp_path) == []
