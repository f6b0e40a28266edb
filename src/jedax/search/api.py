"""`run` and `resume`: a whole search, from settings to results."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from jedax.errors import fail, unknown
from jedax.methods.jedi import JEDi
from jedax.methods.registry import METHODS, check_parameters, default_method, method_defaults, preset_budget
from jedax.methods.settings import JediConfig, MethodConfig
from jedax.search import engines, environment, host
from jedax.search.devices import own_copy
from jedax.search.engines import Engine, LocalEngine
from jedax.search.failures import ALL_FAILED
from jedax.search.loop import Callback, Search
from jedax.search.progress import Progress, Silent
from jedax.search.tracking import About, Tracker, Tracking
from jedax.search.tracking import make as make_tracking
from jedax.store import files
from jedax.store import run as results
from jedax.store.config import CUSTOM, FullConfig, RunConfig
from jedax.store.directory import RunDirectory
from jedax.store.run import Run
from jedax.tasks import make
from jedax.tasks.base import Task
from jedax.tasks.registry import task_entry

# Loops of JEDi that a budget should have room for.
_FEW_LOOPS = 10


def run(
    algorithm: str | MethodConfig | None = None,
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
    **settings: Any,
) -> Run:
    """Search, and return what was found.

    Example:
        `jedax.run("jedi-x", "maze-a", evaluations=200_000).best().fitness`

    Args:
        algorithm: A method's name, or its parameters, as in `jedax.JediConfig(alpha=0.3)`; None: JEDi-X, or JEDi where
            a parameter or a preset of its own is given.
        task: A task's name, the path of a maze file, or a task object of your own.
        evaluations: Budget of each replica; None: the task's own.
        seed: Replica r draws its random numbers from seed + r.
        replicas: Independent searches, run side by side.
        out: Directory for results; None: nothing is written.
        overwrite: Replace what an earlier run left in `out`.
        start_genotypes: `(given, params)`, the first members of the initial batch; random ones fill it up.
        callbacks: Called at each report with a `Report`; one that returns True stops the search.
        progress: What shows how far it is; None: nothing does.
        preset: Of a method given by name, such as "tuned" for the paper's alpha; None: its first.
        track: Trackers that follow the run: "tensorboard", "wandb", "mlflow", or objects of your own; see
            `jedax.search.tracking`.
        engine: Where a task outside JAX is evaluated: "local", in processes, or "ray", or one that
            `jedax.search.engines.make` made; it changes nothing that is found.
        **settings: Parameters of the method, such as `alpha=0.3`, and more of `jedax.store.config.RunConfig`, such
            as `stop_fitness` or `max_seconds`.

    Raises:
        JedaxError: Something in the arguments does not fit, or results cannot be written.
        Interrupted: Ctrl-C or SIGTERM; with `out`, all that was done is saved.
    """
    if isinstance(task, str):
        name, task = task, make(task)
    elif isinstance(task, Task):
        name = results.name_of(task)
    else:
        raise fail("task", expected="a name or a Task", received=repr(task), remedy="see jedax.tasks.names()")
    if algorithm is None:
        algorithm = default_method(settings, preset)
    if isinstance(algorithm, str):
        method, parameters = algorithm, method_defaults(algorithm, name, preset)
        evaluations = preset_budget(algorithm, name, preset) if evaluations is None else evaluations
    elif isinstance(algorithm, MethodConfig):
        method, parameters = name_of_method(algorithm), algorithm
    else:
        raise fail(
            "algorithm",
            expected="a name or parameters such as a JediConfig",
            received=repr(algorithm),
            remedy="try 'jedi-x'",
        )
    of_run = {key: settings.pop(key) for key in list(settings) if key in RunConfig.model_fields}
    unfamiliar = next((key for key in settings if key not in type(parameters).model_fields), None)
    if unfamiliar is not None:
        check_parameters(method, [unfamiliar])
        raise unknown("parameter", unfamiliar, [*RunConfig.model_fields, *type(parameters).model_fields])
    budget = task.default_evaluations if evaluations is None else evaluations
    config = FullConfig(
        task=name,
        task_config=None if name.startswith(CUSTOM) else getattr(task, "config", None) or task_entry(name).config(),
        method=method,
        method_config=parameters.replace(**settings),
        run=RunConfig.build({"evaluations": budget, "seed": seed, "replicas": replicas, **of_run}),
    )
    made = engines.make(engine)
    try:
        return start(config, task=task, out=out, overwrite=overwrite, start_genotypes=start_genotypes,
                     callbacks=callbacks, progress=progress, track=track, engine=made)  # fmt: skip
    finally:
        if made is not engine:
            made.close()


def name_of_method(config: MethodConfig) -> str:
    """Return the name of the method whose own parameters are nearest to these."""
    own = {name: entry.config for name, entry in METHODS.items() if type(entry.config) is type(config)}
    return min(own, key=lambda name: sum(own[name].model_dump()[key] != value
                                         for key, value in config.model_dump().items()))  # fmt: skip


def start(
    config: FullConfig,
    *,
    task: Task | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    start_genotypes: np.ndarray | None = None,
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
    began: float | None = None,
    figures: bool = True,
    track: Sequence[str | Tracker] = (),
    engine: Engine | None = None,
) -> Run:
    """Run what `config` says; errors as in `run`.

    Args:
        config: All settings.
        task: The task, where `config` cannot tell: one defined in Python.
        out: As in `run`.
        overwrite: As in `run`.
        start_genotypes: As in `run`; None: what `config.run.start_from` names.
        callbacks: As in `run`.
        progress: What shows how far it is; None: nothing is shown.
        began: `time.perf_counter()` at which the command began; what came before now is the phase "import".
        figures: Whether to draw them.
        track: As in `run`.
        engine: Where a task outside JAX is evaluated; None: in processes on this machine.
    """
    progress, engine = progress or Silent(), engine or LocalEngine()
    tracking = make_tracking(track, out)
    config, task = host.settled(config, results.task_of(config, task), progress.note, engine)
    samples = getattr(config.method_config, "samples_per_evaluation", 1)
    if samples > 1 and not task.is_noisy:
        progress.note(f"Nothing in {task.name} is random: the {samples} samples of a solution agree.")
    if start_genotypes is None:
        start_genotypes = _read_genotypes(config.run.start_from, task)
    start_genotypes = _check_genotypes(start_genotypes, task)
    search = _search(config, task, start_genotypes, None, progress, callbacks, began, engine)
    if len(start_genotypes) > search.algorithm.num_initial:
        raise fail(
            "start_from",
            expected=f"at most the {search.algorithm.num_initial} genotypes that {config.method} starts from",
            received=len(start_genotypes),
            remedy="give fewer or raise the population",
        )
    search.programs.shapes(search.roots, start_genotypes)  # whatever does not fit shows before anything is written
    try:
        if out is not None and search.leads:
            search.directory = directory = RunDirectory.create(out, overwrite=overwrite)
            if len(start_genotypes):
                directory.write_start_genotypes(start_genotypes)
            directory.write_config(config)
            _write_environment(search)
            directory.log(f"Started {config.method} on {config.task}{search.on_devices}.")
        _hint_at_few_loops(search)
        return _carry_out(search, figures, tracking)
    finally:
        if search.directory is not None:
            search.directory.release()


def resume(
    path: str | Path,
    *,
    task: Task | None = None,
    devices: int | Literal["all"] | None = None,
    max_seconds: float | None = None,
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
    began: float | None = None,
    figures: bool = True,
    track: Sequence[str | Tracker] = (),
    engine: Engine | None = None,
) -> Run:
    """Go on with a run that was stopped or killed; it ends as if nothing had stopped it.

    Args:
        path: Its directory.
        task: The task, where it is an object of your own.
        devices: How many of JAX's devices to go on with; None: as many as it began with.
        max_seconds: Stop after so many from now; None: after as many as in its settings.
        callbacks: As in `run`.
        progress: As in `run`.
        began: As in `start`.
        figures: As in `start`.
        track: As in `run`; it need not be the same as before.
        engine: As in `start`.

    Raises:
        JedaxError: No run there, none of its checkpoints is whole, or another process works on it.
        Interrupted: As in `run`.
    """
    directory, engine = RunDirectory.open(path), engine or LocalEngine()
    tracking = make_tracking(track, directory.path)
    stored_config = config = directory.read_config()
    if devices is not None:
        config = config.replace(run=config.run.replace(devices=devices))
    if max_seconds is not None:
        max_seconds = config.run.replace(max_seconds=max_seconds).max_seconds
    task = results.task_of(config, task)
    stored = directory.start_genotypes
    given = _check_genotypes(_read_genotypes(str(stored) if stored.exists() else None, task), task)
    search = _search(config, task, given, directory, progress, callbacks, began, engine)
    search.max_seconds = max_seconds
    try:
        if search.leads:
            directory.lock()
            if directory.read_config() != stored_config:
                raise fail(
                    str(path),
                    expected="the settings that stood there a moment ago",
                    received="others, from another process",
                    remedy="give the command again if the run that is there now should go on",
                )
            _write_environment(search)
            directory.log(f"Resumed{search.on_devices}.")
        return _carry_out(search, figures, tracking)
    finally:
        directory.release()


def _search(
    config: FullConfig,
    task: Task,
    given: np.ndarray,
    directory: RunDirectory | None,
    progress: Progress | None,
    callbacks: Sequence[Callback],
    began: float | None,
    engine: Engine,
) -> Search:
    now = time.perf_counter()
    algorithm = results.algorithm_of(config, task)
    search = Search(config, algorithm, task, given, directory, progress or Silent(), engine, callbacks,
                    began=now if began is None else began)  # fmt: skip
    search.charge("import", now - search.began)
    return search


def _hint_at_few_loops(search: Search) -> None:
    """Say so where the budget leaves JEDi few choices of targets."""
    method = search.config.method_config
    if not isinstance(method, JediConfig):
        return
    loops = -(-search.generations // method.generations)
    if loops < _FEW_LOOPS:
        search.note(f"JEDi chooses targets {loops} time{'s' * (loops != 1)} only: for more, lower --generations "
                    f"({method.generations}) or --population ({method.population}), or raise --evaluations "
                    f"({search.config.run.evaluations:,}).")  # fmt: skip


def _write_environment(search: Search) -> None:
    """Write where a run began; where it goes on elsewhere, add that."""
    directory = search.directory
    assert directory is not None
    path, here = directory.path / "environment.json", search.engine.describe()
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # a run that was killed early, or a damaged file
        known = {**search.environment(), **here}
    places = [known, *known.get("resumed_on", [])]
    if any(places[-1].get(name) != value for name, value in here.items()):
        known["resumed_on"] = [*places[1:], here]
    with directory.writing():
        files.write_json(path, known)


def _carry_out(search: Search, figures: bool, tracking: Tracking) -> Run:
    """Search, then write the repertoire, figures and summary, also of a search that was interrupted."""
    from jedax.search.loop import Interrupted

    config, directory = search.config, search.directory
    title = f"{config.task}-{config.label or config.method}-seed{config.run.seed}"
    about = About(title, config.model_dump(mode="json"), None if directory is None else directory.path)
    tracking.begin(about, search.note)
    search.callbacks = (*search.callbacks, lambda report: tracking.log(report.evaluations, report.rows))
    summary: dict[str, Any] = {"status": "failed"}
    try:
        try:
            search.run()
        except Interrupted:
            summary = _finish(search, figures).summary
            raise
        found = _finish(search, figures)
        summary = found.summary
        return found
    finally:
        tracking.finish(summary)


def _finish(search: Search, figures: bool) -> Run:
    mean = std = None
    if isinstance(search.algorithm, JEDi):
        with search.phase("gp"), environment.one_blas_thread():
            search.state, at = search.programs.learn_gp(search.state)
            mean, std = np.asarray(at.mean), np.sqrt(np.asarray(at.variance))
    state = jax.device_get(own_copy(search.state, search.programs.mesh))
    directory = search.directory
    found = Run(
        config=search.config, task=search.task, cells=search.algorithm.cells, repertoire=state.repertoire,
        gp_mean=mean, gp_std=std, targets=getattr(state, "targets", None), rows=search.rows, summary={},
        path=None if directory is None else directory.path,
    )  # fmt: skip
    if directory is not None:
        with search.phase("io"), directory.writing():
            results.save_arrays(directory, found)
        if figures:
            with search.phase("figures"), directory.writing():
                from jedax.report.figures import write_figures

                write_figures(found, directory.path / "figures")
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
    worked = sum(search.phases.get(name, 0) for name in ("simulate+es", "gp", "io"))
    wall = search.seconds
    phases = {**search.phases, "other": max(0.0, wall - sum(search.phases.values()))}
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
        "evaluations_per_second": round(search.evaluations * search.config.run.replicas / worked, 1),
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
