"""The commands `jedax report` and `jedax view`."""

from __future__ import annotations

from typing import Any

from jedax.cli.options import Option, parse
from jedax.cli.run import nothing_to_save
from jedax.errors import JedaxError, fail

_REPORT = {
    "out": Option("The page; default: report.html in the directory.", str),
    "share": Option("Put the library that draws charts beside the page, not into it.", bool, False),
    "runs": Option(
        "Of a directory of runs: write the page of each run as well; they share plotly.min.js.",
        bool,
        False,
    ),
    "trace_seconds": Option(
        "Of robots' episodes: how long policies may act again, so that the page shows what they do. 0: none.",
        float,
        60.0,
    ),
}
_VIEW = {
    "port": Option("Port on this machine; default: any that is free.", int),
    "open": Option("Open a browser.", bool, False),
}


def report(arguments: list[str]) -> None:
    """Write the page of a run, or of a directory of runs."""
    directory, values = _parsed(
        "report", arguments, _REPORT, "Turn a run, or a directory of runs, into one page that opens from disk."
    )
    with nothing_to_save():
        from jedax.report.pages import write_report
        from jedax.search.environment import keep_compiled_programs

        keep_compiled_programs()
        page = write_report(
            directory, out=values.get("out"), share=values.get("share", False), runs=values.get("runs", False),
            trace_seconds=_seconds(values.get("trace_seconds", "60")), say=_say,
        )  # fmt: skip
    print(f"the report is in {page}")


def view(arguments: list[str]) -> None:
    """Serve the page of a run on this machine, and follow the run."""
    directory, values = _parsed(
        "view", arguments, _VIEW, "Show a run in a browser on this machine, and follow it while it goes on."
    )
    with nothing_to_save():
        from jedax.report.viewer import serve
        from jedax.search.environment import keep_compiled_programs

        keep_compiled_programs()
    serve(directory, port=_port(values.get("port", "0")), browser=values.get("open", False), say=_say)


def _say(text: str) -> None:
    print(text, flush=True)


def _parsed(command: str, arguments: list[str], options: dict[str, Option], summary: str) -> tuple[str, dict[str, Any]]:
    words = []
    while arguments and not arguments[0].startswith("-"):
        words.append(arguments.pop(0))
    values = parse(arguments, options, prog=f"jedax {command} DIR", description=summary)
    if len(words) != 1:
        raise fail(
            f"jedax {command}",
            expected="one directory",
            received=" ".join(words) or "none",
            remedy=f"try: jedax {command} runs/maze-a-jedi-x-seed0",
        )
    return words[0], values


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if seconds >= 0:
        return seconds
    raise JedaxError(f"trace-seconds: expected a number of seconds from 0 on, got {text!r}; change it.")


def _port(text: str) -> int:
    if text.isdigit() and int(text) < 65536:
        return int(text)
    raise JedaxError(f"port: expected a number from 0 to 65535, got {text!r}; change it.")
