"""The engine of this machine, and engines by name."""

import json
import platform
import sys

import pytest

import jedax
from jedax.methods.registry import method_defaults
from jedax.search import api, engines
from jedax.search.engines import Job, LocalEngine
from jedax.search.engines.base import _free_of_group
from jedax.search.progress import Silent
from jedax.store.config import FullConfig, RunConfig
from jedax.tasks.registry import task_entry


def write(path, progress, engine, text):
    """Run a job."""
    if text == "mistake":
        raise jedax.JedaxError("text: expected another, got this one; change it.")
    if text == "chance":
        raise ZeroDivisionError("at the wrong time")
    path.write_text(f"{text} {type(engine).__name__}")


def test_jobs_run_one_by_one(tmp_path):
    """Each is taken when the one before has ended; a failure does not stop the others."""
    events = []

    def jobs():
        for text in ("a", "mistake", "chance", "b"):
            events.append(f"take {text}")
            yield Job(text, tmp_path / text, f"{__name__}:write", {"text": text})

    def follow(job):
        events.append(f"begin {job.name}")
        return Silent()

    sys.modules.setdefault(__name__, sys.modules[write.__module__])
    results = {}
    for job, failure in LocalEngine().run_jobs(jobs(), follow):
        events.append(f"end {job.name}")
        results[job.name] = failure and failure.message
    assert events == [f"{what} {name}" for name in ("a", "mistake", "chance", "b") for what in ("take", "begin", "end")]
    assert results == {
        "a": None, "b": None, "mistake": "text: expected another, got this one; change it.",
        "chance": "ZeroDivisionError: at the wrong time",
    }  # fmt: skip
    assert (tmp_path / "b").read_text() == "b LocalEngine"


def test_describe():
    assert LocalEngine().describe() == {"engine": "local", "node": platform.node()}


def test_by_name():
    assert isinstance(engines.make(), LocalEngine)
    assert isinstance(engines.make("local", address=None), LocalEngine)
    mine = LocalEngine()
    assert engines.make(mine) is mine


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("rya", {}, r"engine: unknown name 'rya'; did you mean 'ray'\?"),
        ("local", {"address": "auto"}, r"address: expected an engine of several machines, got the engine local; add"),
        ("local", {"cpus_per_trial": 2.0}, r"cpus-per-trial: expected an engine of several machines"),
    ],
)
def test_mistakes(name, settings, message):
    with pytest.raises(jedax.JedaxError, match=message):
        engines.make(name, **settings)


def test_a_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(jedax.JedaxError, match=r"engine: expected the package ray.*pip install 'jedax\[ray\]'"):
        engines.make("ray").describe()


def test_a_run_records_its_node_and_where_it_was_resumed(tmp_path, monkeypatch):
    method = method_defaults("map-elites", "arm").replace(offspring=8, cells=16)
    config = FullConfig(task="arm", task_config=task_entry("arm").config(), method="map-elites", method_config=method,
                        run=RunConfig(evaluations=80, max_seconds=1e-9))  # fmt: skip
    path = tmp_path / "run"
    api.start(config, out=path)
    jedax.resume(path)
    facts = json.loads((path / "environment.json").read_text())
    assert (facts["engine"], facts["node"]) == ("local", platform.node())
    assert "resumed_on" not in facts
    monkeypatch.setattr(platform, "node", lambda: "elsewhere")
    jedax.resume(path)
    facts = json.loads((path / "environment.json").read_text())
    assert facts["node"] != "elsewhere"
    assert facts["resumed_on"] == [{"engine": "local", "node": "elsewhere"}]


def test_the_memory_that_a_control_group_leaves(tmp_path):
    """The least of all groups around the process; files in the cache can be dropped."""
    own, root = tmp_path / "cgroup", tmp_path / "fs"
    (root / "job" / "step").mkdir(parents=True)
    own.write_text("3:cpu:/\n0::/job/step\n")
    assert _free_of_group(own, root) is None
    for group, most, used, cached in (("job", "1000", 700, 100), ("job/step", "max", 600, 0)):
        (root / group / "memory.max").write_text(f"{most}\n")
        (root / group / "memory.current").write_text(f"{used}\n")
        (root / group / "memory.stat").write_text(f"anon 5\ninactive_file {cached}\n")
    assert _free_of_group(own, root) == 400
    (root / "job" / "step" / "memory.max").write_text("650\n")
    assert _free_of_group(own, root) == 50
    own.write_text("3:memory:/job\n")
    assert _free_of_group(own, root) is None
