"""`jedax ask`, `tell`, `exchange` and `best`: a search in a directory, whose solutions other programs evaluate."""

from __future__ import annotations

import contextlib
import io
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jedax.cli.options import DIRECTORY, Option, nothing_to_save, only_directory, parse
from jedax.errors import JedaxError, fail, unknown

if TYPE_CHECKING:
    from jedax.search.optimizer import Optimizer

_SEARCH = "search.safetensors"
_PROBLEM = "problem.yaml"
_PATIENCE_SECONDS = 120.0  # a program that tells holds the directory for a few seconds
_TRUST = {
    "trust": Option("Import the method that the search names: only where you would run that code yourself. Not needed "
                    "for methods of jedax and for installed ones.", bool, False),
}  # fmt: skip
_BEST = {**DIRECTORY, **_TRUST}
_NEW = {
    "new": Option("Begin a search in DIR: a YAML file with the problem, see docs/guides/ask-tell-files.md.",
                  str | None),
}  # fmt: skip
_ASK = {
    **DIRECTORY,
    "n": Option("Number of new solutions; default: one for each missing result of the current generation, the same "
                "ones until they are told.", int | None, aliases=("-n",)),
    **_NEW,
    **_TRUST,
}  # fmt: skip
_EXCHANGE = {
    **DIRECTORY,
    "n": Option("Number of solutions that are evaluated at once: so many at first, then a new one for each result; "
                "default: one for each missing result of the current generation.", int | None, aliases=("-n",)),
    **_NEW,
    **_TRUST,
}  # fmt: skip
_TELL = {
    "words": Option("Directory of the search, and a JSON file; -: standard input.", tuple[str, ...], (),
                    words="DIR FILE"),
    **_TRUST,
}  # fmt: skip
_PROBLEM_KEYS = {
    "num_params", "space", "bounds", "x0", "sigma0", "descriptor_bounds", "evaluations", "minimise", "noisy", "seed",
    "method", "initial_std", "settings",
}  # fmt: skip
_RESULT_KEYS = {"id", "x", "fitness", "descriptors", "violations", "failed"}


def ask(arguments: list[str]) -> None:
    """Print solutions to evaluate as JSON."""
    values = parse(
        arguments, _ASK, prog="jedax ask",
        description='Print solutions to evaluate as JSON, [{"id": 3, "x": ...}, ...]; [] if the search is done.',
    )  # fmt: skip
    directory = _begun("ask", values)
    with _search(directory, values["trust"], saves=True) as optimizer:
        solutions = _asked(optimizer, values["n"])
    print(json.dumps(solutions))


def exchange(arguments: list[str]) -> None:
    """Print solutions and read their results in turn, a line each, until the search is done or the input ends."""
    values = parse(
        arguments, _EXCHANGE, prog="jedax exchange",
        description="A search in one process: print solutions as JSON in one line, read results from one line of "
        "standard input, and so on until the search is done, which prints []. Lines are what jedax ask prints and "
        'jedax tell takes; a line with a mistake changes nothing and is answered by {"error": "..."}. The search is '
        "saved before each line is printed.",
    )  # fmt: skip
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # bytes that are no text are a mistake in their line
    directory = _begun("exchange", values)
    with _search(directory, values["trust"]) as optimizer:
        solutions = _asked(optimizer, values["n"])
        while solutions:
            optimizer.save(directory / _SEARCH)
            print(json.dumps(solutions), flush=True)
            number = _take_line(optimizer)
            if number == 0:
                return
            solutions = _asked(optimizer, None if values["n"] is None else number)
        optimizer.save(directory / _SEARCH)
    print("[]")


def _take_line(optimizer: Optimizer) -> int:
    """Take the results in the next line of standard input without a mistake; return their number, 0 at its end."""
    while line := sys.stdin.readline():
        if not line.strip():
            continue
        try:
            results = _results_in(line, "standard input")
            _take(optimizer, results)
        except JedaxError as error:
            print(json.dumps({"error": str(error)}), flush=True)
        else:
            return len(results)
    return 0


def _begun(command: str, values: Mapping[str, Any]) -> Path:
    """Return the directory of a command that asks; with `--new` its search begins."""
    directory = Path(only_directory(command, values["directory"]))
    if values["n"] is not None and not 1 <= values["n"] <= 100_000:
        raise fail("-n", expected="a whole number from 1 to 100000", received=values["n"], remedy="change it")
    if values["new"] is not None:
        _begin(directory, Path(values["new"]), values["trust"])
    return directory


def _asked(optimizer: Optimizer, number: int | None) -> list[dict[str, Any]]:
    """Return solutions to evaluate; none and a sentence on stderr if the search is done."""
    if optimizer.done:
        print(f"jedax: {optimizer.stop_reason}", file=sys.stderr)
        return []
    ids, asked = optimizer.ask_ids(number), optimizer.asked
    return [{"id": one, "x": _plain(asked[one])} for one in ids]


def tell(arguments: list[str]) -> None:
    """Take results from a JSON file, or from standard input."""
    values = parse(
        arguments, _TELL, prog="jedax tell",
        description='Take the results in a JSON file, or from standard input with FILE -: [{"id": 3, "fitness": 1.2, '
        '"descriptors": [...], "violations": [...], "failed": false}, ...]. "x" instead of "id": a solution that was '
        "not asked for. Either all results are taken, or none.",
    )  # fmt: skip
    words = values["words"]
    if len(words) != 2:
        received, remedy = " ".join(words) or "none", "try: jedax tell DIR results.json"
        raise fail("jedax tell", expected="a directory and a file of results", received=received, remedy=remedy)
    directory, file = words
    where = "standard input" if file == "-" else file
    results = _results_in(_read(file, where), where)
    with _search(Path(directory), values["trust"], saves=True) as optimizer:
        _take(optimizer, results)
    print(json.dumps(_status(optimizer)))


def best(arguments: list[str]) -> None:
    """Print the best solution and the progress as JSON."""
    values = parse(
        arguments, _BEST, prog="jedax best",
        description="Print the best solution told so far, and the progress, as JSON.",
    )  # fmt: skip
    directory = only_directory("best", values["directory"])
    with _search(Path(directory), values["trust"]) as optimizer:
        found: dict[str, Any] = {"best": None}
        if optimizer.has_best:
            one = optimizer.best
            found["best"] = {
                "x": _plain(one.parameters or one.genotype),
                "fitness": None if one.violation else one.fitness,
                "descriptors": _plain(one.descriptor) if optimizer.has_descriptors else None,
                "violation": one.violation if math.isfinite(one.violation) else None,
            }
    print(json.dumps({**found, **_status(optimizer)}, indent=2))


def _status(optimizer: Optimizer) -> dict[str, Any]:
    return {
        "evaluations": optimizer.evaluations,
        "failed": optimizer.num_failed,
        "generations": optimizer.generations,
        "open": list(optimizer.asked),
        "stop": optimizer.stop_reason or None,
    }


@contextlib.contextmanager
def _search(directory: Path, trust: bool, *, saves: bool = False) -> Iterator[Optimizer]:
    """Give the search in a directory, to this process alone; save it at the end if `saves`."""
    file = directory / _SEARCH
    if not file.is_file():
        remedy = f"begin one with: jedax ask {directory} --new problem.yaml"
        raise fail(str(directory), expected="a directory with a search", received="none", remedy=remedy)
    with nothing_to_save(compiles=True):
        from jedax.search.optimizer import Optimizer
        from jedax.store.lock import Lock, unwritable_in_words
    with unwritable_in_words(directory):
        lock = Lock(directory, patience=_PATIENCE_SECONDS)
    with lock:
        optimizer = Optimizer.load(file, trust=trust)
        yield optimizer
        if saves:
            optimizer.save(file)


def _begin(directory: Path, problem: Path, trust: bool) -> None:
    """Begin a search in a directory."""
    with nothing_to_save(compiles=True):
        from jedax.methods.registry import code_of
        from jedax.search.optimizer import Optimizer
        from jedax.store import files
        from jedax.store.lock import alone_in, unwritable_in_words
        from jedax.store.trust import check
    try:
        text = problem.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        received = getattr(error, "strerror", None) or "another kind of file"
        raise fail("--new", expected="a YAML file", received=f"{problem} ({received})", remedy="check it") from None
    given = _read_problem(text, problem)
    settings = given.pop("settings")
    if not trust:
        check(problem, code_of(str(given.get("method", "")), settings))
    with unwritable_in_words(directory):
        lock = alone_in(directory, _PATIENCE_SECONDS)
    with lock:
        if (directory / _SEARCH).exists():
            remedy = "leave --new out to continue it, or choose another directory"
            raise fail("--new", expected="a directory without a search", received=str(directory), remedy=remedy)
        optimizer = Optimizer(**given, **settings)
        directory.mkdir(parents=True, exist_ok=True)
        files.write_atomic(directory / _PROBLEM, text)
        optimizer.save(directory / _SEARCH)


def _read_problem(text: str, path: Path) -> dict[str, Any]:
    """Return the arguments of an `Optimizer` from a YAML text; `settings` is a mapping."""
    from jedax.space import Choice, Space
    from jedax.space.parameters import as_numbers
    from jedax.yaml_text import read_yaml

    given = read_yaml(text, str(path))
    if not isinstance(given, dict):
        remedy = "write the names of its settings, such as space: and evaluations:"
        raise fail(str(path), expected="a mapping", received=type(given).__name__, remedy=remedy)
    for key in given:
        if key not in _PROBLEM_KEYS:
            raise unknown(str(path), str(key), _PROBLEM_KEYS)
    for key in ("evaluations", "seed", "num_params", "initial_std", "bounds", "x0", "sigma0"):
        if key in given:
            given[key] = as_numbers(given[key])  # YAML takes 1e3 for a text
    given["settings"] = given.get("settings") or {}
    if not (isinstance(given["settings"], dict) and all(isinstance(name, str) for name in given["settings"])):
        remedy = "write settings: {population: 16}"
        raise fail("settings", expected="a mapping of names", received=repr(given["settings"]), remedy=remedy)
    for key in sorted((_PROBLEM_KEYS | {"initial", "out"}) & set(given["settings"])):
        raise fail("settings", expected="settings of the method", received=key, remedy=f"remove {key} from settings")
    if given.get("space") is not None:
        space = given["space"] = Space.from_spec(given["space"])
        if isinstance(given.get("x0"), dict):
            options = [name for name, one in zip(space.names, space.parameters, strict=True) if isinstance(one, Choice)]
            given["x0"] = {name: x if name in options else as_numbers(x) for name, x in given["x0"].items()}
    for key in ("bounds", "descriptor_bounds"):  # YAML has lists only: these are lows and highs
        if isinstance(given.get(key), list):
            given[key] = tuple(given[key])
    return given


def _read(name: str, where: str) -> str:
    """Return the text of a file, or of standard input for `-`."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        received = getattr(error, "strerror", None) or "another kind of file"
        raise fail(where, expected="a JSON file", received=received, remedy="check its path") from None


def _results_in(text: str, where: str) -> list[dict[str, Any]]:
    """Return results from JSON, each a mapping with known names."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise fail(where, expected="JSON", received=f"a mistake: {error}", remedy="correct it") from None
    found = [found] if isinstance(found, dict) else found
    if not isinstance(found, list) or not found:
        received = "none" if found == [] else type(found).__name__
        remedy = 'write [{"id": 3, "fitness": 1.2}]'
        raise fail(where, expected="a list of results", received=received, remedy=remedy)
    for place, result in enumerate(found):
        entry = f"{where}: result {place}"
        if not isinstance(result, dict):
            remedy = 'write {"id": 3, "fitness": 1.2}'
            raise fail(entry, expected="a mapping", received=type(result).__name__, remedy=remedy)
        for key in result:
            if key not in _RESULT_KEYS:
                raise unknown(entry, key, _RESULT_KEYS)
        has_id = result.get("id") is not None
        if has_id == ("x" in result):
            received = "both" if has_id else "neither"
            raise fail(entry, expected='either "id" or "x"', received=received, remedy="give one of them")
        if not isinstance(result.get("failed", False), bool):
            received, remedy = repr(result["failed"]), "change failed"
            raise fail(entry, expected="true or false", received=received, remedy=remedy)
    return found


def _take(optimizer: Optimizer, results: Sequence[Mapping[str, Any]]) -> None:
    """Give results to the search: all of them, or none and an error."""
    ids, rows = [result.get("id") for result in results], [result.get("x") for result in results]
    samples, width = optimizer.config.samples_per_evaluation, optimizer.cells.centroids.shape[1]
    nan = float("nan")
    columns: dict[str, Any] = {"fitness": nan if samples == 1 else [nan] * samples}  # of failed evaluations
    if optimizer.has_descriptors:
        columns["descriptors"] = [nan] * width if samples == 1 else [[nan] * width] * samples
    for key in ("descriptors", "violations"):
        if any(key in result for result in results if not result.get("failed")):
            columns.setdefault(key, nan)
    failed = [result.get("failed", False) for result in results]
    found = {key: _column(results, key, nothing) for key, nothing in columns.items()}
    optimizer.tell(rows, failed=failed, ids=ids, **found)


def _column(results: Sequence[Mapping[str, Any]], key: str, nothing: Any) -> list[Any]:
    """Return what each result has under a key; failed ones have NaN in the shape of the others, or `nothing`."""
    succeeded = [result for result in results if not result.get("failed")]
    first = _shape(succeeded[0].get(key)) if succeeded else None
    for result in succeeded:
        which = f"id {result['id']}" if "id" in result else f"x {result['x']}"
        if key not in result:
            raise fail(which, expected=f'"{key}"', received="none", remedy='give it, or "failed": true')
        shape = _shape(result[key])
        if shape is None or shape != first:
            expected = f'numbers as "{key}"' if shape is None or first is None else f'"{key}" as long as that of others'
            raise fail(which, expected=expected, received=repr(result[key]), remedy="correct it")
    if succeeded:
        nothing = _nan_like(succeeded[0][key])
    return [nothing if result.get("failed") else result[key] for result in results]


def _shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape of a number, or of nested lists of numbers; None: it is something else. null is a number."""
    if not isinstance(value, list):
        return () if value is None or (isinstance(value, int | float) and not isinstance(value, bool)) else None
    shapes = {_shape(one) for one in value}
    inner = shapes.pop() if len(shapes) == 1 else None
    return None if inner is None else (len(value), *inner)


def _nan_like(value: Any) -> Any:
    return [_nan_like(one) for one in value] if isinstance(value, list) else float("nan")


def _plain(solution: Any) -> Any:
    return solution if isinstance(solution, dict) else solution.tolist()
