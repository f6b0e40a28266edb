"""The command `jedax`: parse and call, nothing else."""

from __future__ import annotations

import time

BEGAN = time.perf_counter()
"""When the command began."""

import os  # noqa: E402
import sys  # noqa: E402
from collections.abc import Sequence  # noqa: E402

from jedax._version import __version__  # noqa: E402
from jedax.errors import JedaxError, fail, unknown  # noqa: E402

_HELP = """\
usage: jedax COMMAND ...

Find the best solution of a hard black-box problem by looking at how solutions behave.

commands:
  run TASK [options]       search, such as: jedax run maze-a
  run --resume DIR         go on with a run that was stopped or killed
  run TASK --help          all options, with the defaults for that task
  bench TASK... [options]  methods, tasks and seeds, such as: jedax bench maze-a --methods jedi-x map-elites
  bench --preset NAME      a grid of the paper, such as paper-mazes-quick
  bench ... --engine ray   the same on several machines; --print-cells: as commands for a job array
  compare DIR...           tables and figures of what bench and run left
  replay DIR [--cell X Y]  picture and film of what a run found
  reevaluate DIR           evaluate it again, many times: how much of what a noisy run reports was luck
  report DIR               a run, or a directory of runs, as one page that opens from disk
  view DIR                 the page of a run in a browser, following it while it goes on
  tasks                    the tasks that come with jedax
  methods                  the methods, and presets of their parameters
  benchmark                how fast this machine is, beside NumPy and other packages
  doctor                   versions, devices, and which native code is in use

options:
  -h, --help               show this help
  --version                show the version
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; leaves with code 0, 2 for a mistake of the user's, 130 or 143 when stopped."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        _dispatch(arguments)
        sys.stdout.flush()
    except JedaxError as error:
        print(f"jedax: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except BrokenPipeError:  # whoever read what is printed has read enough, such as head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except KeyboardInterrupt as stop:
        print(f"jedax: {stop}" if str(stop) else "jedax: stopped.", file=sys.stderr)
        raise SystemExit(128 + getattr(stop, "signal", 2)) from None


def _dispatch(arguments: list[str]) -> None:
    command = arguments.pop(0) if arguments else "--help"
    if command in ("-h", "--help"):
        print(_HELP, end="")
    elif command == "--version":
        print(f"jedax {__version__}")
    elif command == "run":
        from jedax.cli.run import run

        run(arguments)
    elif command in ("bench", "compare"):
        from jedax.cli import experiments

        experiments.bench(arguments) if command == "bench" else experiments.compare(arguments)
    elif command == "replay":
        from jedax.cli.replay import replay

        replay(arguments)
    elif command == "reevaluate":
        from jedax.cli.reevaluate import reevaluate

        reevaluate(arguments)
    elif command == "benchmark":
        from jedax.cli.benchmark import benchmark

        benchmark(arguments)
    elif command in ("report", "view"):
        from jedax.cli import report

        report.report(arguments) if command == "report" else report.view(arguments)
    elif command in ("tasks", "methods", "doctor"):
        if arguments not in ([], ["--help"], ["-h"]):
            raise fail(command, expected="no more words after it", received=repr(arguments[0]), remedy="leave it out")
        {"tasks": _show_tasks, "methods": _show_methods, "doctor": _show_machine}[command]()
    else:
        known = ["run", "bench", "compare", "replay", "reevaluate", "report", "view", "benchmark"]
        raise unknown("command", command, [*known, "tasks", "methods", "doctor", "--help", "--version"])


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
    print("evolution strategies (--es): sep-cma-es, lm-ma-es, evosax:NAME such as evosax:SNES, or module:Class")


def _show_machine() -> None:
    from jedax.store.environment import describe

    facts = describe()
    facts |= {f"{name} version": version for name, version in facts.pop("packages").items()}
    facts |= {f"native {kernel}": status for kernel, status in facts.pop("native").items()}
    facts["devices"] = ", ".join(facts["devices"])
    for name in ("command", "started"):
        del facts[name]
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):<20}{'unknown' if value is None else value}")
