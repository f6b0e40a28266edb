"""Memory is flat over a million evaluations.

With one heap for all threads: glibc's heap for each thread takes a million evaluations until it has its size.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "soak.py"

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads memory as Linux shows it"),
]


def test_memory_is_flat_after_the_first_tenth():
    one_heap = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, SCRIPT, "run"]
    done = subprocess.run(command, env=one_heap, capture_output=True, text=True, check=False)
    print(done.stdout)  # noqa: T201
    assert done.returncode == 0, done.stdout + done.stderr
    assert "last tenth over second tenth" in done.stdout
