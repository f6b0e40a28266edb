"""Commands whose output, working directory or terminal is not what they expect: one sentence, and a code for it."""

import os
import shlex
import subprocess
import sys

import pytest
from tests.commands import call

from jedax.store.directory import RunDirectory

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a POSIX shell and /dev/full")

RUN = "run arm --evaluations 64 --population 4 --pool 2 --cells 16 --out run"


def shell(line, **options):
    """Run a line of a shell in which JEDAX stands for the command; return its code, output and errors."""
    line = line.replace("JEDAX", f"{shlex.quote(sys.executable)} -m jedax")
    found = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=300, **options)
    return found.returncode, found.stdout, found.stderr


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize(
    ("line", "code", "errors"),
    [
        ("JEDAX tasks >&-", 1, "jedax: standard output is closed; what was to be printed is lost.\n"),
        ("JEDAX tasks >/dev/full", 1, "jedax: No space left on device.\n"),
        ("JEDAX tasks >&- 2>&-", 1, ""),
        ("JEDAX tasks <&- >/dev/null", 0, ""),
        ("JEDAX bogus 2>/dev/full", 2, ""),
        ("JEDAX bogus 2> >(exec true)", 2, ""),
    ],
)
def test_output_that_cannot_be_written(line, code, errors, buffered):
    assert shell(line, env={**os.environ, "PYTHONUNBUFFERED": buffered}) == (code, "", errors)


@pytest.mark.parametrize(
    ("streams", "code"), [("2> >(exec true)", 0), (">/dev/full 2>/dev/full", 1), (">&- 2>&-", 1), ("| true", 141)]
)
def test_a_run_goes_on_without_its_output(here, streams, code):
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    assert shell(f"set -o pipefail; JEDAX {RUN} {streams}", env=env)[0] == code
    assert RunDirectory.open(here / "run").read_summary()["status"] == "finished"


@pytest.mark.parametrize("command", ["tasks", RUN, "run mine:f", "report /nowhere", "compare ."])
def test_a_deleted_working_directory(here, monkeypatch, capsys, command):
    def gone():
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "getcwd", gone)
    code, out, err = call(capsys, *command.split())
    assert (code, out) == (2, "")
    assert err == "jedax: current directory: expected one that exists, got a deleted one; change to another.\n"


@pytest.mark.parametrize("port", ["²", "x", "-1", "65536", "9" * 30])
def test_ports_that_are_none(here, capsys, port):
    code, out, err = call(capsys, "view", ".", "--port", port)
    assert (code, out) == (2, "")
    assert "port" in err
    assert "Traceback" not in err


def test_errors_of_the_system_are_one_sentence(here, capsys, monkeypatch):
    def fails():
        raise PermissionError(13, "Permission denied", "some\x1b[31m file")

    monkeypatch.setattr("jedax.cli._show_tasks", fails)
    assert call(capsys, "tasks") == (1, "", "jedax: Permission denied (some\\x1b[31m file).\n")
