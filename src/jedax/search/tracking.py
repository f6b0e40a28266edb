"""Experiment trackers: callbacks that send the numbers of a run elsewhere, each in a thread of its own.

A tracker that fails or hangs does not stop the run. A `concurrent.futures` executor would not do: the interpreter waits
for its threads when it exits.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from jedax.errors import check_choice, fail
from jedax.imports import load_object, require

if TYPE_CHECKING:
    from jedax.search.loop import Report

__all__ = ["TRACKERS", "About", "Tracker", "Tracking", "make", "names"]

_PATIENCE = 60.0  # seconds that a run waits for all its trackers at the end


@dataclass(frozen=True)
class About:
    """What a tracker is told of a run before the first report.

    Attributes:
        title: A name for the run.
        config: All settings, as in config.yaml.
        folder: The directory of the run; None: it has none.
    """

    title: str
    config: Mapping[str, Any]
    folder: Path | None


class Tracker(Protocol):
    """A callback of a run, in a thread of its own; an error switches it off.

    If it has a method `begin(about)`, that is called before the first report, with an `About`. If it has a method
    `finish(summary)`, that is the last call, with the content of summary.json; of a run that failed, only "status".
    """

    def __call__(self, report: Report) -> object:
        """Take a report; its `state` is None."""
        ...


class Tracking:
    """All trackers of one run, each with the name that messages use, as a callback."""

    def __init__(self, trackers: Sequence[tuple[str, Tracker]]):
        self._trackers = trackers
        self._threads: list[_Thread] = []

    def begin(self, about: About, note: Callable[[str], None]) -> None:
        """Start all trackers; `note` gets one message for each that is switched off."""
        self._note = note
        self._threads = [_Thread(name, tracker) for name, tracker in self._trackers]
        self._call("begin", about)

    def __call__(self, report: Report) -> None:
        """Pass a report on."""
        self._call("__call__", dataclasses.replace(report, state=None))

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Pass the outcome on, and wait for all trackers, up to a minute."""
        self._call("finish", summary)
        for thread in self._threads:
            thread.join(_PATIENCE / len(self._trackers))
        self._switch_off(is_over=True)

    def _call(self, method: str, argument: Any) -> None:
        for thread in self._threads:
            thread.calls.put((method, argument))
        self._switch_off()

    def _switch_off(self, is_over: bool = False) -> None:
        """Leave the trackers that have failed, and, when it `is_over`, those that still work."""
        for thread in [*self._threads]:
            why = "did not finish in time" if is_over and thread.is_alive() else ""
            if thread.error is not None:
                why = f"failed ({type(thread.error).__name__}: {thread.error})"
            if why:
                self._threads.remove(thread)
                self._note(f"The tracker {thread.name} {why}; the run goes on without it.")


class _Thread(threading.Thread):
    """The thread of one tracker."""

    def __init__(self, name: str, tracker: Tracker):
        super().__init__(name=name, daemon=True)
        self.calls: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self.error: BaseException | None = None
        self._tracker = tracker
        self.start()

    def run(self) -> None:
        """Call the tracker until it has finished or failed."""
        method = ""
        try:
            while method != "finish":
                method, argument = self.calls.get()
                if hasattr(self._tracker, method):
                    getattr(self._tracker, method)(argument)
        except BaseException as error:  # some libraries raise SystemExit
            self.error = error


def numbers_of(report: Report, about: About) -> dict[str, float]:
    """Return the finite numbers of a report by name; with several replicas by names such as `max_fitness/seed3`."""
    numbers = {}
    for row in report.rows:
        end = "" if len(report.rows) == 1 else f"/seed{about.config['run']['seed'] + row['replica']}"
        numbers |= {f"{name}{end}": float(value) for name, value in row.items()
                    if name not in ("evaluations", "replica") and math.isfinite(value)}  # fmt: skip
    return numbers


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings as one level, with names such as `run.seed`."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return found


class TensorBoard:
    """Event files in `tensorboard/` of the run's directory, written by tensorboardX (without TensorFlow).

    Numbers are scalars; settings and summary are texts. A resumed run adds a file.
    """

    def begin(self, about: About) -> None:
        """Keep the settings; the file is opened at the first report."""
        self._about = about
        self._writer: Any = None

    def __call__(self, report: Report) -> None:
        """Write a report as scalars."""
        writer = self._open(report.evaluations)
        for name, value in numbers_of(report, self._about).items():
            writer.add_scalar(name, value, report.evaluations)
        writer.flush()

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Write the summary and close the file."""
        writer = self._open(None)
        writer.add_text("summary", _as_text(summary))
        writer.close()

    def _open(self, step: int | None) -> Any:
        """Return the writer, which hides what an earlier process wrote from `step` on."""
        if self._writer is None:
            assert self._about.folder is not None
            package = require("tensorboardX", "tensorboard", "track tensorboard")
            # The suffix keeps apart files that are begun in the same second.
            self._writer = package.SummaryWriter(
                str(self._about.folder / "tensorboard"), purge_step=step, filename_suffix=f".{time.time_ns()}"
            )
            self._writer.add_text("config", _as_text(self._about.config))
        return self._writer


def _as_text(values: Mapping[str, Any]) -> str:
    """Return YAML in a block that TensorBoard shows without formatting."""
    import yaml

    return f"```\n{yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True)}```"


class WandB:
    """A run of the W&B project `WANDB_PROJECT`, "jedax" by default.

    It is offline, in `wandb/` of the run's directory, unless `WANDB_MODE` says otherwise.
    """

    def begin(self, about: About) -> None:
        """Begin a run."""
        wandb = require("wandb", "wandb", "track wandb")
        self._about = about
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "jedax"),
            name=about.title,
            config=dict(about.config),
            dir=None if about.folder is None else str(about.folder),
            mode=os.environ.get("WANDB_MODE", "offline"),
            reinit="create_new",
            settings=wandb.Settings(console="off", silent=True),  # the run's own output stays as it is
        )

    def __call__(self, report: Report) -> None:
        """Log a report."""
        self._run.log(numbers_of(report, self._about), step=report.evaluations)

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Log the summary and end the run."""
        self._run.summary.update(dict(summary))
        self._run.finish(exit_code=int(summary.get("status") == "failed"))


# What an MLflow store takes of a parameter's value, and how many entries at a time.
_LONGEST, _BATCH = 500, 100
_STATUS = {"failed": "FAILED", "interrupted": "KILLED"}


class MLflow:
    """A run of the MLflow experiment `MLFLOW_EXPERIMENT_NAME`, "jedax" by default.

    It is kept where `MLFLOW_TRACKING_URI` says, by default in a store in the working directory.
    """

    def begin(self, about: About) -> None:
        """Begin a run; settings become parameters."""
        self._entities = require("mlflow.entities", "mlflow", "track mlflow")
        # MLflow's module-level functions keep one run per process; a client keeps none.
        self._client = require("mlflow", "mlflow", "track mlflow").MlflowClient()
        self._about = about
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "jedax")
        experiment = self._client.get_experiment_by_name(name)
        number = self._client.create_experiment(name) if experiment is None else experiment.experiment_id
        self._run = self._client.create_run(number, run_name=about.title).info.run_id
        self._log("params", [self._entities.Param(key, str(value)[:_LONGEST])
                             for key, value in flat(about.config).items()])  # fmt: skip

    def __call__(self, report: Report) -> None:
        """Log a report as metrics."""
        now, step = int(1000 * time.time()), report.evaluations
        self._log("metrics", [self._entities.Metric(name, value, now, step)
                              for name, value in numbers_of(report, self._about).items()])  # fmt: skip

    def _log(self, kind: str, entries: list[Any]) -> None:
        for first in range(0, len(entries), _BATCH):
            self._client.log_batch(self._run, **{kind: entries[first : first + _BATCH]})

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Log the summary as a file and end the run."""
        self._client.log_dict(self._run, dict(summary), "summary.json")
        self._client.set_terminated(self._run, _STATUS.get(str(summary.get("status")), "FINISHED"))


TRACKERS = {"mlflow": ("mlflow", MLflow), "tensorboard": ("tensorboardX", TensorBoard), "wandb": ("wandb", WandB)}
"""The package and the class of each tracker by name, which is also the name of its extra."""


def names() -> list[str]:
    """Return the names that `make` knows."""
    return sorted(TRACKERS)


def make(wanted: str | Tracker | Sequence[str | Tracker], folder: str | Path | None) -> Tracking:
    """Return the trackers of a run.

    Args:
        wanted: Names, `module:name` of a class or function of your own, or callbacks; or one of them.
        folder: The directory of the run; None: it has none.

    Raises:
        JedaxError: An unknown name, a package that is not installed, an object that cannot be called, or a tracker that
            needs a directory.
    """
    listed = [wanted] if isinstance(wanted, str) or callable(wanted) else wanted
    return Tracking([_make(entry, folder) for entry in listed])


def _make(entry: str | Tracker, folder: str | Path | None) -> tuple[str, Tracker]:
    found: Any = entry
    name = entry if isinstance(entry, str) else getattr(entry, "__name__", type(entry).__name__)
    if isinstance(entry, str) and ":" not in entry:
        package, found = TRACKERS[check_choice("track", entry, TRACKERS)]
        if importlib.util.find_spec(package) is None:
            raise fail(
                f"track {entry}",
                expected=f"the package {package}",
                received="none",
                remedy=f"install it with: pip install 'jedax[{entry}]'",
            )
        if entry == "tensorboard" and folder is None:
            raise fail("track tensorboard", expected="a run with a directory", received="none", remedy="give out")
    elif isinstance(entry, str):
        found = load_object(entry, "track")
    tracker = found() if isinstance(found, type) else found
    if not callable(tracker):
        raise fail(f"track {name}", expected="a callback", received=tracker, remedy="see docs/guides/tracking.md")
    return name, tracker
