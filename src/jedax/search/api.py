"""`run` and `resume`: a whole search, from settings to results."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from jedax.errors import fail, unknown
from jedax.gp.threads import one_blas_thread
from jedax.imports import is_custom
from jedax.methods.base import Method, MethodConfig
from jedax.methods.registry import DEFAULT_METHOD, check_settings, method_named
from jedax.search import engines, host
from jedax.search.devices import describe, local_copy, summary
from jedax.search.engines import Engine, LocalEngine
from jedax.search.failures import ALL_FAILED
from jedax.search.interrupts import Interrupted
from jedax.search.loop import Callback, Search
from jedax.search.progress import Progress, Silent
from jedax.search.tracking import About, Tracker, Tracking
from jedax.search.tracking import make as make_tracking
from jedax.settings import reference_name, references, resolve
from jedax.store import environment, files
from jedax.store import run as results
from jedax.store.config import FullConfig, RunConfig, defaults_for, method_of
from jedax.store.directory import RunDirectory
from jedax.store.run import Run
from jedax.tasks.base import Task
from jedax.tasks.registry import config_of, make, name_of, task_of

Draw = Callable[[Run, Path], Any]
"""Draws the figures of a run into a folder."""


def run(
    method: str | MethodConfig | type[Method] = DEFAULT_METHOD,
    task: str | Task = "maze-a",
    *,
    evaluations: int | None = None,
    seed: int = 0,
    replicas: int = 1,
    out: str | Path | None = None,
    overwrite: bool = False,
    start_genotypes: np.ndarray | None = None,
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
    preset: str | None = None,
    track: Sequence[str | Tracker] = (),
    engine: str | Engine = "local",
    draw: Draw | None = None,
    **settings: Any,
) -> Run:
    """Search, and return the results.

    Example:
        `jedax.run("jedi-x", "maze-a", evaluations=200_000).best().fitness`

    Args:
        method: A name, settings such as `jedax.JediConfig(alpha=0.3)`, or a class derived from `jedax.Method`.
        task: A name, the path of a maze file, `module:name`, or a task object.
        evaluations: Budget of each replica; default: the task's.
        seed: Random seed; replica r uses seed + r.
        replicas: Number of independent searches, run side by side.
        out: Directory for the results; None: nothing is written.
        overwrite: Replace an earlier run in `out`.
        start_genotypes: `(given, params)`, the first members of the initial batch; random ones fill it up.
        callbacks: Called at each report with a `Report`; the search stops when one returns True.
        progress: Shows the progress; None: silent.
        preset: A preset of the method, such as "tuned" for the paper's alpha; default: its first.
        track: Trackers: "tensorboard", "wandb", "mlflow", or objects of your own; see `jedax.search.tracking`.
        engine: Where a task outside JAX is evaluated: "local", "ray", or an engine; it does not change the results.
        draw: Draws the figures of the run; None: no figures.
        **settings: Settings of the method, such as `alpha=0.3`, and of the run (`jedax.store.config.RunConfig`), such
            as `stop_fitness` or `max_seconds`.

    Raises:
        JedaxError: An argument does not fit, or results cannot be written.
        Interrupted: Ctrl-C or SIGTERM; with `out`, all that was done is saved.
    """
    if isinstance(task, str):
        name, task = task, make(task)
    elif isinstance(task, Task):
        name = name_of(task)
    else:
        raise fail("task", expected="a name or a Task", received=repr(task), remedy="see jedax.tasks.names()")
    given, entry = None, method_named(method)
    if isinstance(method, MethodConfig):
        parameters, budget = method, None
    else:
        parameters, budget = defaults_for(method, name, preset)
    if is_custom(entry.name):
        given = entry.method
    of_run = {key: settings.pop(key) for key in list(settings) if key in RunConfig.model_fields}
    unfamiliar = next((key for key in settings if key not in type(parameters).model_fields), None)
    if unfamiliar is not None:
        check_settings(entry, [unfamiliar])
        raise unknown("setting", unfamiliar, [*RunConfig.model_fields, *type(parameters).model_fields])
    config = FullConfig(
        task=name,
        task_config=config_of(name, task),
        method=entry.name,
        method_config=parameters.replace(**settings),
        run=RunConfig.build(
            {"evaluations": evaluations or budget or task.default_evaluations, "seed": seed, "replicas": replicas}
            | of_run
        ),
    )
    made = engines.make(engine)
    try:
        return start(config, task=task, method=given, out=out, overwrite=overwrite, start_genotypes=start_genotypes,
                     callbacks=callbacks, progress=progress, track=track, engine=made, draw=draw)  # fmt: skip
    finally:
        if made is not engine:
            made.close()


def start(
    config: FullConfig,
    *,
    task: Task | None = None,
    method: type[Method] | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    start_genotypes: np.ndarray | None = None,
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
    began: float | None = None,
    track: Sequence[str | Tracker] = (),
    engine: Engine | None = None,
    draw: Draw | None = None,
) -> Run:
    """Run a search with all settings given; errors as in `run`.

    Args:
        config: All settings.
        task: The task, where the settings cannot name it.
        method: The class of the method, where the settings cannot name it.
        out: As in `run`.
        overwrite: As in `run`.
        start_genotypes: As in `run`; None: those in the file `config.run.start_from`.
        callbacks: As in `run`.
        progress: As in `run`.
        began: `time.perf_counter()` at the start of the command; the time since then is the phase "import".
        track: As in `run`.
        engine: As in `run`; None: processes on this machine.
        draw: As in `run`.
    """
    progress, engine = progress or Silent(), engine or LocalEngine()
    tracking = make_tracking(track, out)
    config, task = host.settled(config, task_of(config.task, config.task_config, task), progress.note, engine)
    samples = getattr(config.method_config, "samples_per_evaluation", 1)
    if samples > 1 and not task.is_noisy:
        progress.note(f"{task.name} is deterministic: all {samples} samples of a solution are equal.")
    if start_genotypes is None:
        start_genotypes = _read_genotypes(config.run.start_from, task)
    start_genotypes = _check_genotypes(start_genotypes, task)
    made = method_of(config, task, method)
    search = _search(config, made, task, start_genotypes, None, progress, callbacks, began, engine)
    if len(start_genotypes) > made.num_initial:
        raise fail(
            "start_from",
            expected=f"at most the {made.num_initial} genotypes of the initial batch of {config.method}",
            received=len(start_genotypes),
            remedy="give fewer or raise the population",
        )
    search.programs.shapes(search.roots, start_genotypes)  # raises what does not fit before anything is written
    try:
        if out is not None and search.leads:
            search.directory = directory = RunDirectory.create(out, overwrite=overwrite)
            if len(start_genotypes):
                directory.write_start_genotypes(start_genotypes)
            directory.write_config(config)
            _write_environment(search)
            directory.log(f"Started {config.method} on {config.task}{summary(search.programs.mesh)}.")
        for hint in made.hints(search.generations):
            search.note(hint)
        return _carry_out(search, tracking, draw)
    finally:
        if search.directory is not None:
            search.directory.release()


def resume(
    path: str | Path,
    *,
    task: Task | None = None,
    method: type[Method] | None = None,
    devices: int | Literal["all"] | None = None,
    max_seconds: float | None = None,
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
    began: float | None = None,
    track: Sequence[str | Tracker] = (),
    engine: Engine | None = None,
    draw: Draw | None = None,
) -> Run:
    """Continue a run that was stopped or killed; the results are those of a run without the stop.

    Args:
        path: Its directory.
        task: The task, where it is a Python object that cannot be imported by name.
        method: The class of the method, where it cannot be imported by name.
        devices: Number of JAX devices to continue with; None: as in the settings.
        max_seconds: Stop after this many seconds from now; None: as in the settings.
        callbacks: As in `run`.
        progress: As in `run`.
        began: As in `start`.
        track: As in `run`; trackers may differ from before.
        engine: As in `start`.
        draw: As in `run`.

    Raises:
        JedaxError: No run there, no checkpoint that is whole, or another process works on it.
        Interrupted: As in `run`.
    """
    directory, engine = RunDirectory.open(path), engine or LocalEngine()
    tracking = make_tracking(track, directory.path)
    stored_config = config = directory.read_config()
    if devices is not None:
        config = config.replace(run=config.run.replace(devices=devices))
    if max_seconds is not None:
        max_seconds = config.run.replace(max_seconds=max_seconds).max_seconds
    task = task_of(config.task, config.task_config, task)
    stored = directory.start_genotypes
    given = _check_genotypes(_read_genotypes(str(stored) if stored.exists() else None, task), task)
    made = method_of(config, task, method, origin=_origin(directory, "method"))
    search = _search(config, made, task, given, directory, progress, callbacks, began, engine)
    search.max_seconds, search.checkpoints.digest = max_seconds, stored_config.digest()
    try:
        if search.leads:
            directory.lock()
            if directory.read_config() != stored_config:
                raise fail(
                    str(path),
                    expected="the settings that were there when this command started",
                    received="others, from another process",
                    remedy="give the command again to continue the run that is there now",
                )
            _write_environment(search)
            directory.log(f"Resumed{summary(search.programs.mesh)}.")
        return _carry_out(search, tracking, draw)
    finally:
        directory.release()


def _search(
    config: FullConfig,
    method: Method,
    task: Task,
    given: np.ndarray,
    directory: RunDirectory | None,
    progress: Progress | None,
    callbacks: Sequence[Callback],
    began: float | None,
    engine: Engine,
) -> Search:
    now = time.perf_counter()
    search = Search(config, method, task, given, directory, progress or Silent(), engine, callbacks,
                    began=now if began is None else began)  # fmt: skip
    search.phase.add("import", now - search.began)
    return search


def _write_environment(search: Search) -> None:
    """Write versions and machine of a run that begins; add the machine where a run continues on another one."""
    directory = search.directory
    assert directory is not None
    path, here = directory.path / "environment.json", search.engine.describe()
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # a run that was killed early, or a damaged file
        known = {**environment.describe(), "devices_used": describe(search.programs.mesh), **here, **_code(search)}
    places = [known, *known.get("resumed_on", [])]
    if any(places[-1].get(name) != value for name, value in here.items()):
        known["resumed_on"] = [*places[1:], here]
    with directory.writing():
        files.write_json(path, known)


def _code(search: Search) -> dict[str, Any]:
    """Return where the code of method, task, and parts such as an ES comes from, where that is not this package."""
    config = search.config
    objects = {"method": (config.method, type(search.method)), "task": (config.task, type(search.task))}
    for setting, value in references(config.method_config).items():
        name = str(reference_name(value))
        if ":" in name and not name.startswith("evosax:"):
            objects[setting] = (name, resolve(setting, value))
    found = {}
    for what, (name, made) in objects.items():
        kind = made if hasattr(made, "__qualname__") else type(made)
        if not kind.__module__.startswith("jedax."):
            try:
                file = inspect.getsourcefile(kind)
            except TypeError:  # defined in an interactive session
                file = None
            found[what] = {"name": name, "class": f"{kind.__module__}:{kind.__qualname__}", "file": file}
    return {"code": found} if found else {}


def _origin(directory: RunDirectory, what: str) -> str:
    """Return words for where a run's code came from, such as ", defined in /home/me/mine.py"; empty: unknown."""
    try:
        known = json.loads((directory.path / "environment.json").read_text(encoding="utf-8"))
        return f", defined in {known['code'][what]['file']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _carry_out(search: Search, tracking: Tracking, draw: Draw | None) -> Run:
    """Search, then write the repertoire, figures and summary, also after an interruption."""
    config, directory = search.config, search.directory
    title = f"{config.task}-{config.label or config.method}-seed{config.run.seed}"
    about = About(title, config.model_dump(mode="json"), None if directory is None else directory.path)
    tracking.begin(about, search.note)
    search.callbacks = (*search.callbacks, tracking)
    summary: dict[str, Any] = {"status": "failed"}
    try:
        try:
            search.run()
        except Interrupted:
            summary = _finish(search, draw).summary
            raise
        found = _finish(search, draw)
        summary = found.summary
        return found
    finally:
        tracking.finish(summary)


def _finish(search: Search, draw: Draw | None) -> Run:
    mean = std = None
    if search.method.has_model:
        with search.phase("gp"), one_blas_thread():
            search.state, prediction = search.programs.fit_model(search.state)
            mean, std = np.asarray(prediction.mean), np.sqrt(np.asarray(prediction.variance))
    state = jax.device_get(local_copy(search.state, search.programs.mesh))
    directory = search.directory
    found = Run(
        config=search.config, task=search.task, cells=search.method.cells, repertoire=state.repertoire,
        gp_mean=mean, gp_std=std, targets=getattr(state, "targets", None), rows=search.rows, summary={},
        path=None if directory is None else directory.path,
    )  # fmt: skip
    if directory is not None:
        with search.phase("io"), directory.writing():
            results.save_arrays(directory, found)
        if draw is not None:
            with search.phase("figures"), directory.writing():
                draw(found, directory.path / "figures")
    summary = _summarise(search)
    if directory is not None:
        with directory.writing():
            files.write_json(directory.path / "summary.json", summary)
        best = f"best {found.best().fitness:.3f}." if found.has_solution else ALL_FAILED
        directory.log(f"Ended ({search.status}): {best}")
    found.summary.update(summary)
    return found


def _summarise(search: Search) -> dict[str, Any]:
    """Return the outcome in numbers; values per replica are lists where there are several."""
    rows = search.measure()
    several = search.config.run.replicas > 1

    def per_replica(name: str) -> Any:
        values = [row[name] for row in rows]
        return values if several else values[0]

    goal = search.task.goal_fitness
    reached = None if goal is None else [row["max_fitness"] >= goal for row in rows]
    wall, spent = search.seconds, search.phase.seconds
    phases = {**spent, "other": max(0.0, wall - sum(spent.values()))}
    return {
        "task": search.config.task,
        "method": search.config.method,
        "seed": search.config.run.seed,
        "replicas": search.config.run.replicas,
        "status": search.status,
        "evaluations": search.evaluations,
        "max_fitness": per_replica("max_fitness"),
        "coverage": per_replica("coverage"),
        "qd_score": per_replica("qd_score"),
        "qd_offset": search.task.qd_offset,
        "reached_goal": reached if reached is None or several else reached[0],
        "num_failed": per_replica("num_failed"),
        "failures": {kind: per_replica(f"failed_{kind}") for kind in search.programs.failure_kinds},
        "num_outside": per_replica("num_outside"),
        "wall_seconds": round(wall, 3),
        "evaluations_per_second": round(search.evaluations * search.config.run.replicas / search.phase.working, 1),
        "phase_seconds": {name: round(seconds, 3) for name, seconds in phases.items()},
    }


def _read_genotypes(path: str | None, task: Task) -> np.ndarray:
    if path is None:
        return np.zeros((0, task.num_params), np.float32)
    try:
        genotypes = np.load(path, allow_pickle=False)
        if not isinstance(genotypes, np.ndarray):
            raise ValueError("several arrays")
        return genotypes
    except Exception as error:  # what reads the header of a damaged file may raise anything
        raise fail(
            "start_from",
            expected="a .npy file of genotypes",
            received=f"{path} ({error})",
            remedy="write one with numpy.save",
        ) from None


def _check_genotypes(genotypes: Any, task: Task) -> np.ndarray:
    array = np.atleast_2d(np.asarray(genotypes))
    if array.ndim != 2 or array.shape[1] != task.num_params or array.dtype.kind not in "fiu":
        raise fail(
            "start_from",
            expected=f"numbers of shape (n, {task.num_params})",
            received=f"{array.dtype} of shape {array.shape}",
            remedy="give genotypes of this task",
        )
    return array.astype(np.float32)
