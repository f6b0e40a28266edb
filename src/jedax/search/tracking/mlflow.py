"""MLflow: where `MLFLOW_TRACKING_URI` says, by default a store in the working directory, as is MLflow's custom."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from jedax.imports import require
from jedax.search.tracking.base import About, flat

# What a store takes of a parameter's value, and how many entries at a time.
_LONGEST = 500
_BATCH = 100
_STATUS = {"failed": "FAILED", "interrupted": "KILLED"}


class MLflow:
    """A run of the experiment `MLFLOW_EXPERIMENT_NAME`, "jedax" by default."""

    def __init__(self) -> None:
        self._client: Any = None
        self._entities: Any = None
        self._run = ""

    def begin(self, about: About) -> None:
        """Begin a run; settings become parameters."""
        package = require("mlflow", "mlflow", "track mlflow")
        self._entities = require("mlflow.entities", "mlflow", "track mlflow")
        # Its own functions keep a run per thread and process; a client keeps none.
        self._client = package.MlflowClient()
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "jedax")
        experiment = self._client.get_experiment_by_name(name)
        number = self._client.create_experiment(name) if experiment is None else experiment.experiment_id
        self._run = self._client.create_run(number, run_name=about.title).info.run_id
        parameters = [self._entities.Param(key, str(value)[:_LONGEST]) for key, value in flat(about.config).items()]
        for first in range(0, len(parameters), _BATCH):
            self._client.log_batch(self._run, params=parameters[first : first + _BATCH])

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Log numbers as metrics."""
        now = int(1000 * time.time())
        metrics = [self._entities.Metric(name, value, now, step) for name, value in numbers.items()]
        for first in range(0, len(metrics), _BATCH):
            self._client.log_batch(self._run, metrics=metrics[first : first + _BATCH])

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Keep the outcome in a file, `summary.json`, and end the run."""
        self._client.log_dict(self._run, dict(summary), "summary.json")
        self._client.set_terminated(self._run, _STATUS.get(str(summary.get("status")), "FINISHED"))
