"""Weights & Biases and MLflow: against stand-ins that keep what they are told, and at night against the real ones."""

import importlib.machinery
import math
import os
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from tests.noisy import Noisy

import jedax
from jedax.bench.reading import read
from jedax.search.loop import Report
from jedax.search.tracking import About, MLflow, WandB, flat, numbers_of
from jedax.store.directory import runs_below

SETTINGS = {"evaluations": 80, "offspring": 8, "cells": 16, "seed": 3}
CONFIG = {"task": "maze-a", "run": {"seed": 3, "long": "x" * 900}}


def report(step, **numbers):
    return Report(step, [{"evaluations": step, "replica": 0, **numbers}], None)


def follow(tracker, folder, status="finished"):
    tracker.begin(About("title", CONFIG, folder))
    for step in (10, 20):
        tracker(report(step, max_fitness=0.5 + step, coverage=0.25, best=-math.inf))
    tracker.finish({"status": status, "max_fitness": [20.5]})


def test_names_of_numbers():
    about = About("title", {"run": {"seed": 7}}, None)
    rows = [{"evaluations": 8, "replica": r, "max_fitness": [1.5, -np.inf][r], "coverage": 0.5} for r in range(2)]
    expected = {"max_fitness/seed7": 1.5, "coverage/seed7": 0.5, "coverage/seed8": 0.5}
    assert numbers_of(Report(8, rows, None), about) == expected
    assert numbers_of(Report(8, rows[:1], None), about) == {"max_fitness": 1.5, "coverage": 0.5}


def test_settings_on_one_level():
    assert flat({"a": 1, "b": {"c": [2], "d": {"e": None}}}) == {"a": 1, "b.c": [2], "b.d.e": None}


def leave_links(folder):
    """Leave files and links as W&B does."""
    inside = folder / "offline-run-1" / "logs"
    inside.mkdir(parents=True)
    (inside / "debug.log").write_text("")
    (inside / "config.yaml").write_text("wandb: no settings of jedax")
    (inside / "debug-core.log").symlink_to("/nowhere/debug-core.log")
    for name, target in (("latest-run", "offline-run-1"), ("debug.log", "offline-run-1/logs/debug.log")):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)


class TestWandB:
    @pytest.fixture
    def stand_in(self, monkeypatch):
        kept = types.SimpleNamespace(logs=[], summary={}, ends=[])

        class Run:
            summary = kept.summary

            def log(self, numbers, step):
                kept.logs.append((step, numbers))

            def finish(self, exit_code):
                kept.ends.append(exit_code)

        def init(**arguments):
            kept.init = arguments
            if arguments["dir"] is not None:
                leave_links(Path(arguments["dir"]) / "wandb")
            return Run()

        package = types.ModuleType("wandb")
        package.__spec__ = importlib.machinery.ModuleSpec("wandb", None)
        package.init, package.Settings = init, dict
        monkeypatch.setitem(sys.modules, "wandb", package)
        for name in ("WANDB_MODE", "WANDB_PROJECT"):
            monkeypatch.delenv(name, raising=False)
        return kept

    def test_a_run(self, stand_in, tmp_path):
        follow(WandB(), tmp_path)
        assert stand_in.init["mode"] == "offline"
        assert stand_in.init["project"] == "jedax"
        assert stand_in.init["name"] == "title"
        assert stand_in.init["config"] == CONFIG
        assert stand_in.init["dir"] == str(tmp_path)
        assert stand_in.logs == [(s, {"max_fitness": 0.5 + s, "coverage": 0.25}) for s in (10, 20)]
        assert stand_in.summary == {"status": "finished", "max_fitness": [20.5]}
        assert stand_in.ends == [0]

    def test_what_the_user_sets_wins(self, stand_in, monkeypatch):
        monkeypatch.setenv("WANDB_MODE", "online")
        monkeypatch.setenv("WANDB_PROJECT", "mine")
        follow(WandB(), None, "failed")
        assert (stand_in.init["mode"], stand_in.init["project"]) == ("online", "mine")
        assert stand_in.init["dir"] is None
        assert stand_in.ends == [1]

    def test_a_run_with_its_links_stays_usable(self, stand_in, tmp_path, without_figures):
        path = tmp_path / "bench" / "arm"
        run = jedax.run("map-elites", "arm", track=["wandb"], out=path, **SETTINGS)
        assert (path / "wandb" / "latest-run").is_symlink()
        assert jedax.load(path).summary == run.summary
        assert jedax.resume(path, track=[]).summary["evaluations"] == 80
        assert [record.source for record in read([tmp_path]).records] == [path]
        assert runs_below(tmp_path) == [path]
        jedax.run("map-elites", "arm", out=path, overwrite=True, **SETTINGS)
        assert not (path / "wandb").exists()

    def test_a_link_in_its_place_is_refused(self, stand_in, tmp_path, without_figures):
        (tmp_path / "elsewhere").mkdir()
        jedax.run("map-elites", "arm", out=tmp_path / "r", **SETTINGS)
        (tmp_path / "r" / "wandb").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(jedax.JedaxError, match=r"wandb, a link or a device"):
            jedax.resume(tmp_path / "r", track=["wandb"])
        assert os.listdir(tmp_path / "elsewhere") == []

    @pytest.mark.nightly
    def test_the_real_one_offline(self, tmp_path, monkeypatch):
        pytest.importorskip("wandb", reason="needs the extra [wandb]")
        monkeypatch.delenv("WANDB_MODE", raising=False)
        notes = []
        progress = types.SimpleNamespace(note=notes.append, update=lambda *numbers: None, close=lambda: None)
        jedax.run("map-elites", Noisy(), track=["wandb"], out=tmp_path / "r", progress=progress, **SETTINGS)
        assert notes == []
        (folder,) = (tmp_path / "r" / "wandb").glob("offline-run-*")
        (kept,) = folder.glob("run-*.wandb")
        assert jedax.load(tmp_path / "r", Noisy()).summary["status"] == "finished"
        data = kept.read_bytes()
        assert b"max_fitness" in data
        assert b"map-elites" in data


class TestMLflow:
    @pytest.fixture
    def stand_in(self, monkeypatch):
        kept = types.SimpleNamespace(params={}, metrics=[], ends=[], experiments={}, sizes=[])

        class Client:
            def get_experiment_by_name(self, name):
                number = kept.experiments.get(name)
                return number and types.SimpleNamespace(experiment_id=number)

            def create_experiment(self, name):
                kept.experiments[name] = str(len(kept.experiments) + 1)
                return kept.experiments[name]

            def create_run(self, experiment, run_name):
                kept.run = experiment, run_name
                return types.SimpleNamespace(info=types.SimpleNamespace(run_id="7"))

            def log_batch(self, run, metrics=(), params=()):
                assert run == "7"
                kept.sizes.append(max(len(metrics), len(params)))
                kept.metrics += [(m.step, m.key, m.value) for m in metrics]
                kept.params |= {p.key: p.value for p in params}

            def log_dict(self, run, values, name):
                kept.summary = name, values

            def set_terminated(self, run, status):
                kept.ends.append((run, status))

        package, entities = types.ModuleType("mlflow"), types.ModuleType("mlflow.entities")
        package.MlflowClient, package.entities = Client, entities
        entities.Param = lambda key, value: types.SimpleNamespace(key=key, value=value)
        entities.Metric = lambda key, value, timestamp, step: types.SimpleNamespace(key=key, value=value, step=step)
        monkeypatch.setitem(sys.modules, "mlflow", package)
        monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
        monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
        return kept

    def test_a_run(self, stand_in):
        follow(MLflow(), None)
        assert stand_in.run == ("1", "title")
        assert stand_in.params == {"task": "maze-a", "run.seed": "3", "run.long": "x" * 500}
        assert stand_in.metrics == [
            (step, name, value) for step in (10, 20)
            for name, value in (("max_fitness", 0.5 + step), ("coverage", 0.25))
        ]  # fmt: skip
        assert stand_in.summary == ("summary.json", {"status": "finished", "max_fitness": [20.5]})
        assert stand_in.ends == [("7", "FINISHED")]

    def test_one_experiment_for_all_runs(self, stand_in):
        for status in ("interrupted", "failed"):
            follow(MLflow(), None, status)
        assert stand_in.experiments == {"jedax": "1"}
        assert [status for _, status in stand_in.ends] == ["KILLED", "FAILED"]

    def test_many_numbers_go_in_batches(self, stand_in):
        tracker = MLflow()
        tracker.begin(About("title", {f"p{i}": i for i in range(250)}, None))
        tracker(report(1, **{f"m{i}": float(i) for i in range(250)}))
        assert stand_in.sizes == [100, 100, 50] * 2
        assert len(stand_in.params) == len(stand_in.metrics) == 250

    @pytest.mark.nightly
    def test_the_real_one(self, tmp_path, monkeypatch):
        mlflow = pytest.importorskip("mlflow", reason="needs the extra [mlflow]")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/store.db")
        notes = []
        progress = types.SimpleNamespace(note=notes.append, update=lambda *numbers: None, close=lambda: None)
        monkeypatch.setattr("jedax.search.tracking._PATIENCE", 240.0)
        run = jedax.run("map-elites", Noisy(), track=["mlflow"], progress=progress, **SETTINGS)
        assert notes == []
        client = mlflow.MlflowClient()
        (found,) = client.search_runs([client.get_experiment_by_name("jedax").experiment_id])
        assert found.info.status == "FINISHED"
        assert found.data.params["method_config.offspring"] == "8"
        history = {m.step: m.value for m in client.get_metric_history(found.info.run_id, "max_fitness")}
        assert history == {row["evaluations"]: pytest.approx(row["max_fitness"]) for row in run.rows}
