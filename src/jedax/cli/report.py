"""The commands `jedax report` and `jedax view`."""

from __future__ import annotations

from jedax.cli.options import Option, directory_of, parse
from jedax.cli.run import nothing_to_save
from jedax.errors import fail

_REPORT = {
    "out": Option("File of the page; default: report.html in the directory.", str | None),
    "share": Option("Put the chart library beside the page instead of inside it.", bool, False),
    "runs": Option("For a directory of runs: also write the page of each run; they share plotly.min.js.", bool, False),
    "trace_seconds": Option("Seconds for simulating robots again, so that the page shows them; 0: none.", float, 60.0),
}
_VIEW = {
    "port": Option("Port on this machine, 0 to 65535; default: any that is free.", int, 0),
    "open": Option("Open a browser.", bool, False),
}


def report(arguments: list[str]) -> None:
    """Write the page of a run, or of a directory of runs."""
    directory = directory_of("report", arguments)
    summary = "Write a run, or a directory of runs, as one HTML page that opens from disk."
    values = parse(arguments, _REPORT, prog="jedax report DIR", description=summary)
    if not values["trace_seconds"] >= 0:
        received = values["trace_seconds"]
        raise fail("trace-seconds", expected="a number of at least 0", received=received, remedy="change it")
    with nothing_to_save():
        from jedax.report.pages import write_report
        from jedax.search.compile_cache import keep_compiled_programs

        keep_compiled_programs()
        page = write_report(directory, **values, say=_say)
    print(f"the report is in {page}")


def view(arguments: list[str]) -> None:
    """Serve the page of a run on this machine; the page follows the run."""
    directory = directory_of("view", arguments)
    summary = "Show a run in a browser on this machine; the page follows the run."
    values = parse(arguments, _VIEW, prog="jedax view DIR", description=summary)
    if not 0 <= values["port"] < 65536:
        raise fail("port", expected="a number from 0 to 65535", received=values["port"], remedy="change it")
    with nothing_to_save():
        from jedax.report.viewer import serve
        from jedax.search.compile_cache import keep_compiled_programs

        keep_compiled_programs()
    serve(directory, port=values["port"], browser=values["open"], say=_say)


def _say(text: str) -> None:
    print(text, flush=True)
