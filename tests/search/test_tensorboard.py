"""Event files, read back from their bytes."""

import struct

import pytest
import yaml
from tests.noisy import Noisy

import jedax
from jedax import cli
from jedax.search.loop import Report
from jedax.search.tracking import About, TensorBoard

pytest.importorskip("tensorboardX", reason="needs the extra [tensorboard]")

SETTINGS = {"evaluations": 80, "offspring": 8, "cells": 16, "seed": 3}


def read(folder):
    """All events of the files in a folder: a TFRecord is a length, its checksum, the data, their checksum."""
    from tensorboardX.proto.event_pb2 import Event

    events = []
    for path in sorted(folder.glob("events.out.tfevents.*")):
        data, at = path.read_bytes(), 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            events.append(Event.FromString(data[at + 12 : at + 12 + size]))
            at += 16 + size
    return events


def scalars(events):
    return [(event.step, value.tag, value.simple_value) for event in events for value in event.summary.value
            if value.WhichOneof("value") == "simple_value"]  # fmt: skip


def texts(events):
    return {value.tag.partition("/")[0]: value.tensor.string_val[0].decode() for event in events
            for value in event.summary.value if value.WhichOneof("value") == "tensor"}  # fmt: skip


def test_what_a_run_leaves(tmp_path):
    run = jedax.run("map-elites", Noisy(), track=["tensorboard"], replicas=2, out=tmp_path / "r", **SETTINGS)
    events = read(tmp_path / "r" / "tensorboard")
    found = {(step, tag): value for step, tag, value in scalars(events)}
    for row in run.rows:
        for name in ("max_fitness", "coverage", "qd_score", "seconds"):
            assert found.pop((row["evaluations"], f"{name}/seed{3 + row['replica']}")) == pytest.approx(row[name])
    assert {tag.partition("/")[0] for _, tag in found} == {
        "num_failed", "num_outside", "failed_nan", "failed_infinite"
    }  # fmt: skip
    config, summary = (yaml.safe_load(texts(events)[name].strip("`\n")) for name in ("config", "summary"))
    assert config == run.config.model_dump(mode="json")
    assert summary["max_fitness"] == pytest.approx(run.summary["max_fitness"])


def test_a_run_that_goes_on_hides_what_it_does_again(tmp_path):
    for first in (10, 30):
        tracker = TensorBoard()
        tracker.begin(About("t", {}, tmp_path))
        for step in range(first, 50, 10):
            tracker(Report(step, [{"replica": 0, "a": first + step}], None))
        tracker.finish({})
    events = read(tmp_path / "tensorboard")
    # TensorBoard drops what lies at or after the step of a later START.
    from tensorboardX.proto.event_pb2 import SessionLog

    starts = [event.step for event in events if event.session_log.status == SessionLog.START]
    assert starts == [10, 30]
    assert sorted(step for step, _, value in scalars(events) if value == 30 + step) == [30, 40]


def test_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cli.main(["run", "--track", "tensorboard", "arm", "--method", "map-elites", "--evaluations", "64", "--offspring",
              "8", "--cells", "16", "--out", "r"])  # fmt: skip
    before = scalars(read(tmp_path / "r" / "tensorboard"))
    assert {step for step, *_ in before} == set(range(8, 65, 8))
    cli.main(["run", "--resume", "r", "--track", "tensorboard"])
    assert scalars(read(tmp_path / "r" / "tensorboard")) == before
    assert "track" not in (tmp_path / "r" / "config.yaml").read_text()


def test_without_a_directory_it_is_refused():
    with pytest.raises(jedax.JedaxError, match=r"track tensorboard: expected a run with a directory, got none; give"):
        jedax.run("map-elites", Noisy(), track=["tensorboard"], **SETTINGS)
