"""The command `jedax run`."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import Any

from jedax.cli.options import ENGINE, TRUST, Option, nothing_to_save, parse, peek, say
from jedax.errors import JedaxError, fail, jedax_command

_COMMAND = {
    "method": Option("How to search: a name (see jedax methods) or module:Class.", str, "jedi-x"),
    "preset": Option("Named settings of the method, such as tuned or cpu; see jedax methods.", str | None),
    "out": Option("Directory for the results, new or empty; default: runs/TASK-METHOD-seedS.", str | None),
    "overwrite": Option("Replace an earlier run in --out.", bool, False),
    "resume": Option(
        "Continue the run in this directory; other options allowed: --devices, --max-seconds, --track, --engine, "
        "--address, --trust.",
        str | None,
    ),
    "trust": Option(f"With --resume: {TRUST['trust'].help[0].lower()}{TRUST['trust'].help[1:]}", bool, False),
    "config": Option("YAML file with settings, as a run's config.yaml; TASK and options override it.", str | None),
    "track": Option("Trackers: tensorboard, wandb, mlflow; see docs/guides/tracking.md.", tuple[str, ...], ()),
    **ENGINE,
}
_COMMON = (
    "method", "preset", "evaluations", "seed", "replicas", "out", "overwrite", "resume", "trust", "stop_fitness",
    "max_seconds",
)  # fmt: skip
_WITHOUT_FLAG = {"space", "walls", "name"}  # settings that only files and Python can give
_STATUS = {
    "goal": "stopped because --stop-fitness was reached",
    "time": "stopped because --max-seconds had passed; everything is saved. Continue for as long again with: "
    "{resume}, or add another --max-seconds",
}


def run(arguments: list[str], began: float) -> None:
    """Run or resume a search; `began` is `time.perf_counter()` when the command began."""
    with nothing_to_save():
        from jedax.store.config import FullConfig
    task, file = _take_task(arguments), peek(arguments, "--config")
    config = FullConfig.parse(_read(file), file, task) if file is not None else _default_config(arguments, task)
    if file is not None and (peek(arguments, "--method") or peek(arguments, "--preset")):
        received = "--config and --method or --preset"
        raise fail("method", expected="one source", received=received, remedy="leave one of them out")
    values = _parse(arguments, config)
    where = {flag: values.pop(flag) for flag in ENGINE if flag in values}
    if "resume" in values:
        others = sorted(set(values) - {"resume", "devices", "max_seconds", "track", "trust"})
        if others or task or file:
            allowed = "--devices, --engine, --address, --max-seconds, --track and --trust"
            expected = f"only {allowed}, because the settings of the run stay"
            received = ", ".join(["TASK"] * bool(task) + others)
            raise fail("resume", expected=expected, received=received, remedy="leave them out")
        _carry_out(where, began, values.pop("resume"), **values)
        return
    if values.pop("trust", False):
        raise fail("trust", expected="--resume beside it", received="none", remedy="leave --trust out")
    if task is None and file is None:
        remedy = "see jedax tasks, or try: jedax run maze-a"
        raise fail("task", expected="the name of a task", received="none", remedy=remedy)
    out, overwrite, track = values.pop("out", None), values.pop("overwrite", False), values.pop("track", ())
    config, read = _with_values(config, values), config
    if file is not None and task is None and config.task_config == read.task_config:
        config = _with_start_of(config, Path(file))
    said = ", the default method," if config.method == _COMMAND["method"].default and not file else ""
    with contextlib.suppress(OSError):  # output that nobody reads stops no search
        say(f"{config.method}{said} searches {config.task} with {config.run.evaluations:,} evaluations")
    _carry_out(where, began, out or _default_folder(config, overwrite), config, overwrite=overwrite, track=track)


_WITH_NAMES = ("config", "out", "resume", "method", "es", "engine", "address", "track", "descriptor", "ranker")
"""Options whose values can look like tasks."""


def _take_task(arguments: list[str]) -> str | None:
    """Remove the task from the arguments and return it: the first word, or one that names a task elsewhere."""
    from jedax.tasks.registry import is_task, unknown_task

    if arguments and not arguments[0].startswith("-"):
        if not is_task(arguments[0]):
            raise unknown_task(arguments[0])
        return arguments.pop(0)
    if "--resume" in arguments:
        return None
    for place, argument in enumerate(arguments):
        before = arguments[place - 1].replace("-", "_").lstrip("_")
        is_value = before in _WITH_NAMES
        if not is_value and not argument.startswith("-") and is_task(argument):
            return arguments.pop(place)
    return None


def _default_config(arguments: list[str], task: str | None) -> Any:
    """Return the settings of a task and a method before any options."""
    from jedax.methods.registry import ALIASES, method_named
    from jedax.store.config import FullConfig, RunConfig, defaults_for
    from jedax.tasks.registry import task_entry

    name, method = task or "maze-a", peek(arguments, "--method") or _COMMAND["method"].default
    if method in ALIASES:
        say(f"the method {method} is called {ALIASES[method]} now")
    task_config: Any = task_entry(name).config()
    length = peek(arguments, "--num-params") or ""
    if length.isdecimal() and "num_params" in type(task_config).model_fields:  # some defaults depend on it
        task_config = task_config.replace(num_params=int(length))
    method_config, budget = defaults_for(method, name, peek(arguments, "--preset"), task_config=task_config)
    return FullConfig(
        task=name, task_config=task_config, method=method_named(method).name, method_config=method_config,
        run=RunConfig(evaluations=budget or task_config.evaluations),
    )  # fmt: skip


def _sections(config: Any) -> dict[str, tuple[str, Option]]:
    """Return every setting with a flag: its section of the settings, and its option."""
    found: dict[str, tuple[str, Option]] = {}
    for section in ("run", "method_config", "task_config"):
        settings = getattr(config, section)
        for name, field in type(settings).model_fields.items():
            if name not in _WITHOUT_FLAG and name not in _COMMAND:
                if section == "task_config" and found.get(name, (section,))[0] == "method_config":
                    expected, received = f"settings with other names than those of {config.method}", name
                    remedy = "rename the task's setting, or use jedax.run in Python"
                    raise fail(config.task, expected=expected, received=received, remedy=remedy)
                kind = field.annotation
                found.setdefault(name, (section, Option(field.description or "", kind, getattr(settings, name))))
    return found


def _parse(arguments: list[str], config: Any) -> dict[str, Any]:
    """Return the options given; `--help` shows the common ones, `--help-all` all of them."""
    from jedax.methods.registry import check_settings

    options = {**_COMMAND, **{name: option for name, (_, option) in _sections(config).items()}}
    given = [word[2:].partition("=")[0].replace("-", "_") for word in arguments if word.startswith("--")]
    check_settings(config.method, [name for name in given if name not in options], flag="--")
    more = "Show all options with --help-all."
    if "--help-all" in arguments:
        arguments, more = ["--help"], f"All options of {config.method} on {config.task}, with their defaults."
    elif "--help" in arguments or "-h" in arguments:
        options = {name: options[name] for name in _COMMON}
    description = f"Search for the best solution of a task and write the results to a directory. {more}"
    values = parse(arguments, options, prog=f"jedax run {config.task}", description=description)
    return {name: value for name, value in values.items() if name in given or value != options[name].default}


def _with_values(config: Any, values: dict[str, Any]) -> Any:
    """Return the settings with the values of options."""
    sections = _sections(config)
    changes: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        if name in sections:
            changes.setdefault(sections[name][0], {})[name] = value
    return config.replace(**{name: getattr(config, name).replace(**change) for name, change in changes.items()})


def _with_start_of(config: Any, file: Path) -> Any:
    """Return settings with the genotypes beside the file that they were read from, a run's `config.yaml`."""
    from jedax.store.directory import RunDirectory

    start = RunDirectory(file.parent).start_genotypes
    if config.run.start_from is not None or not start.exists():
        return config
    return config.replace(run=config.run.replace(start_from=str(start)))


def _carry_out(where: dict[str, str], began: float, out: Any, config: Any = None, **options: Any) -> None:
    """Run a search, or resume the one in `out` if there are no settings, and print its outcome."""
    with nothing_to_save(compiles=True):
        from jedax.api import draw_figures
        from jedax.search import api, engines
        from jedax.search.progress import RunProgress
        from jedax.store.directory import RunDirectory
        from jedax.tasks.measured import HostTask
        from jedax.tasks.registry import task_of
    if config is None:
        code = "any" if options.get("trust") else "ask"
        config, search = RunDirectory.open(out).read_config(code), functools.partial(api.resume, out)
    else:
        search = functools.partial(api.start, config, out=out)
    with engines.make(**where) as engine:
        if where.get("engine") == "ray" and not isinstance(task_of(config.task, config.task_config), HostTask):
            expected = "a task outside JAX, such as gym:HalfCheetah-v5, for an engine of several machines"
            remedy = "leave it out; jedax bench --engine ray runs whole searches on several machines"
            raise fail("engine", expected=expected, received=f"ray for {config.task}", remedy=remedy)
        shown = RunProgress(config.run.evaluations)
        try:
            found = search(progress=shown, began=began, engine=engine, draw=draw_figures, **options)
        finally:
            shown.close()
    _print_outcome(found, out)


def _print_outcome(found: Any, out: Any) -> None:
    """Print the best fitness, failures, and where the results are; leave with code 1 if there is no solution."""
    from jedax.search.progress import clock

    summary = found.summary
    fitness = summary["max_fitness"]
    if not found.has_solution:
        best = "no solution"
    elif isinstance(fitness, list):
        best = f"best fitness of each replica {', '.join(map(_rounded, fitness))}"
    else:
        best = f"best fitness {_rounded(fitness)}"
    say(f"{best} after {summary['evaluations']:,} evaluations at {summary['evaluations_per_second']:,.0f}/s "
          f"({clock(summary['wall_seconds'])} in all)")  # fmt: skip
    if found.has_solution and (parameters := found.best().parameters) is not None:
        shown = (
            f"{name} {_rounded(value) if isinstance(value, float) else value}" for name, value in parameters.items()
        )
        say(f"best solution: {', '.join(shown)}")
    if summary["status"] in _STATUS:
        say(_STATUS[summary["status"]].format(resume=jedax_command("run", "--resume", out)))
    if any(_each(summary["num_failed"])):
        kinds = {kind.replace("_", " "): sum(_each(number)) for kind, number in summary["failures"].items()}
        named = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number)
        say(f"{sum(_each(summary['num_failed'])):,} evaluations failed ({named}) and were not stored")
    outside, counted = sum(_each(summary["num_outside"])), summary["evaluations"] * len(_each(fitness))
    if 10 * outside > counted:
        say(f"{outside:,} of {counted:,} descriptors lay outside the task's descriptor_bounds (lows, highs); "
              "they went to the nearest cells")  # fmt: skip
    seed = getattr(found.task, "sample_seed", lambda sample: None)(0)
    if found.has_solution and seed is not None and found.config.method_config.samples_per_evaluation == 1:
        again = jedax_command("reevaluate", out)
        say(f"each fitness is that of one evaluation, from seed {seed}; for other seeds: {again}")
    say(f"results are in {out}" + (f": see {Path(out) / 'figures' / 'best.png'}" if found.has_solution else ""))
    if not found.has_solution:
        raise SystemExit(1)


def _rounded(fitness: float) -> str:
    """Return a fitness with two decimals, or three digits below 1."""
    return f"{fitness:.3g}" if 0 < abs(fitness) < 1 else f"{fitness + 0.0:.2f}"


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        received = f"{path} ({error})"
        raise fail("config", expected="a readable file", received=received, remedy="check the path") from None


def _default_folder(config: Any, overwrite: bool) -> Path:
    """Return a directory below runs/ that does not exist yet, or may be overwritten."""
    from jedax.bench.grids import slug
    from jedax.tasks.registry import title_of

    stem = f"{slug(title_of(config.task))}-{slug(config.method)}-seed{config.run.seed}"
    folder, number = Path("runs") / stem, 1
    while folder.exists() and not overwrite:
        if _is_unfinished(folder):
            resume = jedax_command("run", "--resume", folder)
            say(f"{folder} has a run that has not ended; to continue that one: {resume}")
        number += 1
        folder = folder.with_name(f"{stem}-{number}")
    return folder


def _is_unfinished(folder: Path) -> bool:
    """Return whether a folder has a run that has saved something and has not ended."""
    from jedax.store.directory import RunDirectory, has_ended

    with contextlib.suppress(JedaxError):
        summary = RunDirectory.open(folder).read_summary()
        return (folder / "checkpoint").is_dir() and not has_ended(summary.get("status"))
    return False
