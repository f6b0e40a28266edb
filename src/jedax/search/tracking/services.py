"""The trackers that come with jedax."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jedax.imports import require
from jedax.search.tracking import About

if TYPE_CHECKING:
    from jedax.search.loop import Report


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
