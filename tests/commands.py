"""Commands in the process of the tests."""

import time

from jedax import cli


def call(capsys, *arguments):
    """Run the command in this process; return its exit code, output and errors."""
    cli.BEGAN = time.perf_counter()  # a command begins when its process does, and this process began long ago
    try:
        cli.main([str(a) for a in arguments])
        code = 0
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err
