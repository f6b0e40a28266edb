"""The command `jedax`: parse and call, nothing else."""

from __future__ import annotations

import time

BEGAN = time.perf_counter()
"""When the command began."""

import gc  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from typing import NoReturn  # noqa: E402

from jedax._version import __version__  # noqa: E402
from jedax.errors import JedaxError, fail, printable, unknown  # noqa: E402

_HELP = """\
usage: jedax COMMAND ...

Find the best solution of a hard black-box problem by looking at how solutions behave.

commands:
  run TASK [options]       search, such as: jedax run maze-a
  run --resume DIR         continue a run that was stopped or killed; --trust: also with code of somebody else
  run TASK --help          the common options; --help-all: all of them
  bench TASK... [options]  compare methods on tasks, such as: jedax bench maze-a --methods jedi-x map-elites
  bench --preset NAME      a comparison of the paper, such as paper-mazes-quick
  bench ... --engine ray   the same on several machines; --print-trials: as commands for a job array
  ask DIR [-n 8]           solutions for other programs to evaluate, as JSON; --new FILE: begin a search in DIR
  tell DIR FILE            take their results from a JSON file, or - for standard input
  exchange DIR             both in one process, a line of solutions and a line of results in turn
  best DIR                 the best solution of such a search, as JSON
  compare DIR...           tables and figures of the runs below some directories
  replay DIR [--cell X Y]  picture and film of a solution of a run
  reevaluate DIR           evaluate the solutions of a noisy run many times
  export DIR --onnx FILE   the best policy of a run for other programs; --numpy FILE: for Python with NumPy
  report DIR               a run, or a directory of runs, as one HTML page
  view DIR                 the page of a run in a browser; it follows the run
  tasks                    list the tasks
  methods                  list the methods and their presets
  doctor                   versions, devices, and native code in use
  doctor DIR...            which files of runs are intact, and what can be rebuilt
  doctor --speed           measure the speed of this machine

options:
  -h, --help               show this help
  --version                show the version
"""
_EXCHANGE = ("ask", "tell", "exchange", "best")
_READING = ("compare", "export", "replay", "reevaluate", "report", "view")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line.

    Leaves with code 0; 1 for a run without a solution, and for output or files that the system does not let it write; 2
    for a mistake of the user's; 130 or 143 when stopped; 141 when the reader of its output has left.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    gc.set_threshold(50_000)  # imports make many objects that stay; looking for garbage among them took a fifth second
    is_closed = _open_closed_streams()
    try:
        _dispatch(arguments)
        sys.stdout.flush()
        if is_closed:
            raise OSError("standard output is closed; what was to be printed is lost")
    except JedaxError as error:
        _leave(2, str(error))
    except BrokenPipeError:  # whoever read what is printed has read enough, such as head
        _leave(141)
    except KeyboardInterrupt as stop:
        _leave(128 + getattr(stop, "signal", 2), str(stop) or "stopped.")
    except OSError as error:
        where = f" ({error.filename})" if error.filename is not None else ""
        _leave(1, f"{error.strerror or error}{where}.")


def _open_closed_streams() -> bool:
    """Open streams that the caller closed, whose numbers other files would get; return whether the output was one."""
    is_closed = sys.stdout is None
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115
    return is_closed


def _leave(code: int, message: str = "") -> NoReturn:
    """Print a sentence on stderr and exit; output that cannot be written is dropped."""
    message = printable(f"jedax: {message}\n" if message else "", keep="\n")
    for stream, text in ((sys.stdout, ""), (sys.stderr, message)):
        try:
            stream.write(text)
            stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    raise SystemExit(code) from None


def _dispatch(arguments: list[str]) -> None:
    command = arguments.pop(0) if arguments else "--help"
    if command not in ("-h", "--help", "--version"):
        _check_directory()
    if command in ("-h", "--help"):
        print(_HELP, end="")
    elif command == "--version":
        print(f"jedax {__version__}")
    elif command == "run":
        from jedax.cli.run import run

        run(arguments, BEGAN)
    elif command == "bench":
        from jedax.cli.bench import bench

        bench(arguments)
    elif command in _EXCHANGE:
        from jedax.cli import exchange

        getattr(exchange, command)(arguments)
    elif command in _READING:
        from jedax.cli import results

        getattr(results, command)(arguments)
    elif command == "doctor":
        from jedax.cli.doctor import doctor

        doctor(arguments)
    elif command in ("tasks", "methods"):
        if arguments not in ([], ["--help"], ["-h"]):
            raise fail(command, expected="no more words after it", received=repr(arguments[0]), remedy="leave it out")
        _show_tasks() if command == "tasks" else _show_methods()
    else:
        known = ["run", "bench", *_EXCHANGE, *_READING, "doctor", "tasks", "methods", "--help", "--version"]
        raise unknown("command", command, known)


def _check_directory() -> None:
    """Check that the current directory, which libraries ask for, still exists."""
    try:
        os.getcwd()
    except FileNotFoundError:
        remedy = "change to another"
        raise fail("current directory", expected="one that exists", received="a deleted one", remedy=remedy) from None


def _show_tasks() -> None:
    from jedax.tasks.registry import summaries

    for name, summary in summaries().items():
        print(f"{name:<14}{summary}")
    print("\nA maze of your own: jedax run mine.yaml (see the README for what is in the file).")
    print("Tasks of others: gym:HalfCheetah-v5 and the other environments of gymnasium, playground:CheetahRun and\n"
          "others of MuJoCo Playground. Of your own: module:name (docs/guides/tasks.md).")  # fmt: skip


def _show_methods() -> None:
    from jedax.methods.registry import ALIASES, methods

    for name, entry in methods().items():
        print(f"{name:<14}{entry.summary}")
        for number, (preset, known) in enumerate(entry.presets.items()):
            print(f"{'':<14}  --preset {preset}{' (default)' * (not number)}: {known.summary}")
    print("\nearlier names: " + ", ".join(f"{old} is now {new}" for old, new in ALIASES.items()))
    print("a method of your own: --method module:Class (docs/guides/own-method.md)")
    print("evolution strategies (--es): sep-cma-es, cma-es, lm-ma-es, evosax:NAME such as evosax:SNES, or module:Class")
