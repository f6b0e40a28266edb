"""`run` and `resume`: a whole search, from settings to results."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from jedax.errors import JedaxError, fail, memory_in_words, unknown
from jedax.gp.threads import one_blas_thread
from jedax.imports import is_custom
from jedax.methods.base import Method, MethodConfig
from jedax.methods.registry import DEFAULT_METHOD, check_settings, method_named
from jedax.search import engines
from jedax.search.compiled import checked_genotypes
from jedax.search.devices import describe, local_copy, summary
from jedax.search.engines import Engine, LocalEngine
from jedax.search.failures import ALL_FAILED
from jedax.search.interrupts import Interrupted, interruptible
from jedax.search.loop import Callback, Search
from jedax.search.programs import settled
from jedax.search.progress import Logged, Progress
from jedax.search.tracking import About, Tracker, Tracking
from jedax.search.tracking import make as make_tracking
from jedax.settings import reference_name, references, resolve
from jedax.store import environment, files
from jedax.store import run as results
from jedax.store.config import FullConfig, RunConfig, defaults_for, method_of
from jedax.store.directory import RunDirectory, is_disk_full
from jedax.store.run import Run
from jedax.store.trust import Code, sign
from jedax.tasks.base import Task, reaches
from jedax.tasks.registry import config_of, make, name_of, names, task_of
from jedax.tasks.stored import facts_of

Draw = Callable[[Run, Path], Any]  # draws the figures of a run into a folder

_NOTED_SHARE = 0.1  # of a budget: less may stay unused without a note
_TASKS = "see jedax.tasks.names(); name a function module:function, or give it to jedax.minimize"


def run(
    method: str | MethodConfig | type[Method] = DEFAULT_METHOD,
    task: str | Task = "maze-a",
    *,
    evaluations: int | None = None,
    seed: int = 0,
    replicas: int = 1,
    out: str | Path | None = None,
    overwrite: bool = False,
    start_genotypes: np.ndarray | Run | None = None,
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
        evaluations: Budget of each replica, rounded down to whole generations; default: the preset's, else the task's.
        seed: Random seed, 0 to 2^32 - 1; replica r uses seed + r.
        replicas: Number of independent searches, run side by side.
        out: Directory for the results; None: nothing is written.
        overwrite: Replace an earlier run in `out`.
        start_genotypes: `(given, params)`, the first members of the initial batch; random ones fill it up. An earlier
            `Run`: its fittest elites, as many as the batch has.
        callbacks: Called at each report with a `Report`; the search stops when one returns True.
        progress: Shows the progress; None: nothing but remarks, as warnings of the logger "jedax".
        preset: A preset of the method, such as "tuned" for the paper's alpha; default: its first.
        track: Trackers: "tensorboard", "wandb", "mlflow", or objects of your own; see `jedax.search.tracking`.
        engine: Where a task outside JAX is evaluated: "local", "ray", or an engine; it does not change the results.
        draw: Draws the figures of the run into a folder; None: no figures. `jedax.run` draws its own by default.
        **settings: Settings of the method, such as `alpha=0.3`, and of the run (`jedax.store.config.RunConfig`), such
            as `stop_fitness` or `max_seconds`.

    Raises:
        JedaxError: An argument does not fit, or results cannot be written.
        Interrupted: Ctrl-C or SIGTERM; with `out`, all that was done is saved.
    """
    try:
        entry = method_named(method)
    except JedaxError:
        if isinstance(method, str) and method in names():
            remedy = "give the method first, then the task"
            raise fail("method", expected="a method", received=f"{method!r}, a task", remedy=remedy) from None
        raise
    if isinstance(task, str):
        name, task = task, make(task)
    elif isinstance(task, Task):
        name = name_of(task)
    else:
        remedy = f"make one: {task.__name__}()" if isinstance(task, type) and issubclass(task, Task) else _TASKS
        raise fail("task", expected="a name or a Task", received=repr(task), remedy=remedy)
    task_config = config_of(name, task)
    if isinstance(method, MethodConfig):
        if preset is not None:
            raise fail("preset", expected="none beside settings of a method", received=preset, remedy="leave it out")
        parameters, budget = method, None
    else:
        parameters, budget = defaults_for(method, name, preset, task_config=task_config)
    if evaluations is None:
        evaluations = task.default_evaluations if budget is None else budget
    of_run = {key: settings.pop(key) for key in list(settings) if key in RunConfig.model_fields}
    if isinstance(of_run.get("start_from"), os.PathLike):
        of_run["start_from"] = os.fspath(of_run["start_from"])
    unfamiliar = next((key for key in settings if key not in type(parameters).model_fields), None)
    if unfamiliar is not None:
        check_settings(entry, [unfamiliar])
        raise unknown("setting", unfamiliar, [*RunConfig.model_fields, *type(parameters).model_fields])
    config = FullConfig(
        task=name,
        task_config=task_config,
        method=entry.name,
        method_config=parameters.replace(**settings),
        run=RunConfig.build({"evaluations": evaluations, "seed": seed, "replicas": replicas} | of_run),
    )
    with _opened(engine) as used:
        return start(config, task=task, method=entry.method if is_custom(entry.name) else None, out=out,
                     overwrite=overwrite, start_genotypes=start_genotypes, callbacks=callbacks, progress=progress,
                     track=track, engine=used, draw=draw)  # fmt: skip


@memory_in_words()
def start(
    config: FullConfig,
    *,
    task: Task | None = None,
    method: type[Method] | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    start_genotypes: np.ndarray | Run | None = None,
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
    began: float | None = None,
    track: Sequence[str | Tracker] = (),
    engine: Engine | None = None,
    draw: Draw | None = None,
) -> Run:
    """Run a search with all settings given, as `run` does.

    `task` and the class `method` are needed where the settings cannot name them. `began` is `time.perf_counter()` at
    the start of the command; the time since then is the phase "import".
    """
    _check(callbacks, progress)
    config = config.replace()  # all settings are written, whatever file they come from
    progress, engine = progress or Logged(), engine or LocalEngine()
    tracking = make_tracking(track, out)
    config, task = settled(config, task_of(config.task, config.task_config, task), engine, progress.note)
    samples = config.method_config.samples_per_evaluation
    if samples > 1 and not task.is_noisy:
        progress.note(f"{task.name} is deterministic: all {samples} samples of a solution are equal.")
    made = method_of(config, task, method)
    argument = "start_genotypes"
    if start_genotypes is None and config.run.start_from is not None:
        argument = "start_from"
        start_genotypes = _read_genotypes(config.run.start_from)
    if isinstance(start_genotypes, Run):
        start_genotypes = np.array([elite.genotype for elite in start_genotypes.elites()[: made.num_initial]])
    if start_genotypes is None and task.space is not None:
        start_genotypes = task.space.start_genotype
    given = checked_genotypes(argument, start_genotypes, made.num_initial, task.num_params)
    with interruptible() as caught:
        search = Search(config, made, task, given, None, progress, engine, callbacks, began)
        search.programs.shapes(search.roots, given)  # raises what does not fit before anything is written
        if caught:
            raise Interrupted("Stopped; nothing was written.", caught[0])
        try:
            if out is not None and search.leads:
                search.directory = directory = RunDirectory.create(out, overwrite=overwrite)
                if len(given):
                    directory.write_start_genotypes(given)
                directory.write_config(config)
                _write_environment(search, directory)
                directory.log(f"Started {config.method} on {config.task}{summary(search.programs.mesh)}.")
            for hint in made.hints(search.generations):
                search.note(hint)
            if search.unused >= _NOTED_SHARE * config.run.evaluations:
                last = config.run.evaluations - search.unused
                search.note(
                    f"The search ends after {last:,} of {config.run.evaluations:,} evaluations, since a generation has "
                    f"{search.batch:,}."
                )
            return _carry_out(search, tracking, draw, caught)
        finally:
            if search.directory is not None:
                search.directory.release()


@memory_in_words()
def resume(
    path: str | Path,
    *,
    task: Task | None = None,
    method: type[Method] | None = None,
    trust: bool = False,
    devices: int | Literal["all"] | None = None,
    max_seconds: float | None = None,
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
    began: float | None = None,
    track: Sequence[str | Tracker] = (),
    engine: str | Engine = "local",
    draw: Draw | None = None,
) -> Run:
    """Continue a run that was stopped or killed; the results are those of a run without the stop.

    Args:
        path: Its directory.
        task: The task, where it is a Python object that cannot be imported by name.
        method: The class of the method, where it cannot be imported by name.
        trust: Import all code that the settings name. Without it, code outside jedax must be installed, be given as
            `task` or `method`, or be that of a run that you made on this machine.
        devices: Number of JAX devices to continue with; None: as in the settings.
        max_seconds: Stop after this many seconds from now; None: as in the settings.
        callbacks: As in `run`.
        progress: As in `run`.
        began: `time.perf_counter()` at the start of the command, for the phase "import"; None: now.
        track: As in `run`; trackers may differ from before.
        engine: As in `run`.
        draw: As in `run`.

    Raises:
        JedaxError: No run there, no checkpoint that is whole, or another process works on it.
        Interrupted: As in `run`.
    """
    _check(callbacks, progress)
    directory = RunDirectory.open(path)
    tracking = make_tracking(track, directory.path)
    code: Code = "any" if trust else "ask"
    given_parts = [part for part, value in (("task", task), ("method", method)) if value is not None]
    config = stored = directory.read_config(code, given_parts)
    if devices is not None:
        config = config.replace(run=config.run.replace(devices=devices))
    if max_seconds is not None:
        max_seconds = config.run.replace(max_seconds=max_seconds).max_seconds
    task = task_of(config.task, config.task_config, task)
    made = method_of(config, task, method, origin=_origin_of_method(directory))
    given = checked_genotypes("start_from", directory.read_start_genotypes(), made.num_initial, task.num_params)
    with _opened(engine) as used, interruptible() as caught:
        search = Search(config, made, task, given, directory, progress or Logged(), used, callbacks, began, max_seconds)
        search.digest = stored.digest()
        try:
            if search.leads:
                directory.lock()
                if directory.read_config(code, given_parts) != stored:
                    raise fail(
                        str(path),
                        expected="the settings that were there when this command started",
                        received="others, from another process",
                        remedy="give the command again to continue the run that is there now",
                    )
                _write_environment(search, directory)
                directory.log(f"Resumed{summary(search.programs.mesh)}.")
                if directory.has_lost_manifest():
                    search.note(
                        "manifest.json is missing: the files of this run are used without a check of their content."
                    )
            return _carry_out(search, tracking, draw, caught)
        finally:
            directory.release()


def _opened(engine: str | Engine) -> contextlib.AbstractContextManager[Engine]:
    """Return an engine, to be closed if it is made here."""
    return contextlib.nullcontext(engine) if isinstance(engine, Engine) else engines.make(engine)


def _check(callbacks: Any, progress: Any) -> None:
    """Raise an error unless there are callbacks in a list, and something that shows progress."""
    if not isinstance(callbacks, Sequence) or not all(map(callable, callbacks)):
        remedy = "write callbacks=[f]"
        raise fail("callbacks", expected="a list of functions", received=repr(callbacks), remedy=remedy)
    if progress is not None and not isinstance(progress, Progress):
        remedy = "give jedax.search.progress.RunProgress(evaluations)"
        raise fail("progress", expected="None or a Progress", received=repr(progress), remedy=remedy)


def _write_environment(search: Search, directory: RunDirectory) -> None:
    """Write versions and machine of a run that begins; add the machine where a run continues on another one."""
    here, known = search.engine.describe(), {}
    with contextlib.suppress(OSError, ValueError):  # a damaged file is written again
        known = directory.read_environment()
    known = known or {
        **environment.describe(), "devices_used": describe(search.programs.mesh), **here, **_code(search)
    }  # fmt: skip
    known["task"] = facts_of(search.task)
    names = [name for named in search.config.code.values() for name in named]
    if names and (problem := sign(known, search.digest, names)):
        search.note(problem)
    resumed = known.get("resumed_on")
    places = [known, *(place for place in (resumed if isinstance(resumed, list) else []) if isinstance(place, dict))]
    if any(places[-1].get(name) != value for name, value in here.items()):
        known["resumed_on"] = [*places[1:], here]
    with directory.writing():
        files.write_json(directory.path / "environment.json", known)


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


def _origin_of_method(directory: RunDirectory) -> str:
    """Return words for where a run's method came from, such as ", defined in /home/me/mine.py"; empty: unknown."""
    try:
        return f", defined in {directory.read_environment()['code']['method']['file']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _carry_out(search: Search, tracking: Tracking, draw: Draw | None, caught: list[int]) -> Run:
    """Search, then write the repertoire, figures and summary, also after a signal in `caught`."""
    config, directory = search.config, search.directory
    title = f"{config.task}-{config.label or config.method}-seed{config.run.seed}"
    about = About(title, config.model_dump(mode="json"), None if directory is None else directory.path)
    tracking.begin(about, search.note)
    search.callbacks = (*search.callbacks, tracking)
    summary: dict[str, Any] = {"status": "failed"}
    try:
        try:
            search.run(caught)
        except Interrupted:
            summary = {"status": "interrupted"}
            if search.state is not None:  # else it was stopped before the first generation was complete
                summary = _finish(search, draw).summary
            raise
        found = _finish(search, draw)
        summary = found.summary
    except KeyboardInterrupt as stop:
        if isinstance(stop, Interrupted) or directory is None:
            raise
        saved = f"Stopped at once. Continue from what was saved before with: {directory.resume_command}"
        raise Interrupted(saved) from None
    finally:
        tracking.finish(summary)
    if caught:
        raise Interrupted("Stopped; the search had ended before, and all of it is saved.", caught[0])
    return found


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
                try:
                    draw(found, directory.path / "figures")
                except Exception as error:  # such as of a user's drawing: the results are there without figures
                    if isinstance(error, JedaxError) or is_disk_full(error):
                        raise  # a full disk is said in words
                    search.note(f"The figures failed: {type(error).__name__}: {error}")
    summary = _summarise(search)
    if not found.has_solution:
        search.note(ALL_FAILED)
    if directory is not None:
        directory.write_outcome(summary)
        best = f"best {found.best().fitness:.3f}" if found.has_solution else "no solution"
        directory.log(f"Ended ({search.status}): {best}.")
    found.summary.update(summary)
    return found


def _summarise(search: Search) -> dict[str, Any]:
    """Return the outcome in numbers; values per replica are lists where there are several."""
    rows, run, goal = search.measure(), search.config.run, search.task.goal_fitness
    per_replica = {name: [row[name] for row in rows] for name in rows[0]}
    if goal is not None:
        per_replica["reached_goal"] = reaches(per_replica["max_fitness"], goal).tolist()
        per_replica["goal_evaluations"] = [int(first) if first > 0 else None for first in search.arrivals]
    found = {name: values if run.replicas > 1 else values[0] for name, values in per_replica.items()}
    wall, spent = search.seconds, search.phase.seconds
    phases = {**spent, "other": max(0.0, wall - sum(spent.values()))}
    return {
        "task": search.config.task,
        "method": search.config.method,
        "seed": run.seed,
        "replicas": run.replicas,
        "status": search.status,
        "evaluations": search.evaluations,
        **{name: found[name] for name in ("max_fitness", "coverage", "qd_score")},
        "qd_offset": float(search.task.qd_offset),
        "reached_goal": found.get("reached_goal"),
        "goal_evaluations": found.get("goal_evaluations"),
        "num_failed": found["num_failed"],
        "failures": {kind: found[f"failed_{kind}"] for kind in search.programs.failure_kinds},
        "num_outside": found["num_outside"],
        "wall_seconds": round(wall, 3),
        "evaluations_per_second": round(search.evaluations * run.replicas / max(search.phase.working, 1e-9), 1),
        "phase_seconds": {name: round(seconds, 3) for name, seconds in phases.items()},
    }


def _read_genotypes(path: str | Path) -> np.ndarray | Run:
    """Return the genotypes in a file, or an earlier run."""
    if Path(path).is_dir():
        return results.load(path)
    try:
        return files.read_array(Path(path))
    except ValueError as error:
        received, remedy = f"{path} ({error})", "write one with numpy.save, or give a run's directory"
        raise fail("start_from", expected="a .npy file of genotypes", received=received, remedy=remedy) from None
