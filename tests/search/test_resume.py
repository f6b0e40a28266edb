"""Killed at any moment and resumed, a run ends with the bits of one that was left alone."""

import errno
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.conftest import draw_nothing, seal, without_seconds

import jedax
from jedax.store import files
from jedax.store.directory import RunDirectory
from jedax.store.files import read_facts, read_tensors
from jedax.tasks import PlanarArm

ARGUMENTS = [
    "run", "arm", "--method", "jedi-uniform", "--joints", "5", "--evaluations", "64000", "--population", "4", "--pool",
    "2", "--generations", "7", "--cells", "64", "--seed", "11", "--report-every", "500", "--checkpoint-seconds", "0.05",
    "--gp-max-steps", "4",
]  # fmt: skip


COMMAND = """
from jedax.cli import main
from jedax.report import figures
figures.write_figures = lambda run, folder: []  # which takes most of the time of a small run
main()
"""


def start(*arguments, **options):
    command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def finish(*arguments):
    process = start(*arguments)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def final(path):
    arrays = read_tensors(path / "repertoire.safetensors")
    return arrays, without_seconds(RunDirectory(path).read_metrics()), (path / "history.jsonl").read_text()


def assert_same_outcome(path, expected):
    arrays, rows, history = final(path)
    assert rows == expected[1]
    assert history.splitlines() == expected[2].splitlines()
    assert arrays.keys() == expected[0].keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[0][name], err_msg=name)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("undisturbed") / "run"
    code, _, err = finish(*ARGUMENTS, "--out", path)
    assert code == 0, err
    return path


@pytest.fixture(scope="module")
def expected(undisturbed):
    return final(undisturbed)


def wait_for(condition, process, seconds=120):
    limit = time.monotonic() + seconds
    while not condition() and process.poll() is None:
        assert time.monotonic() < limit
        time.sleep(0.01)


def size_of(path):
    return path.stat().st_size if path.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "kills"), [(1, 3), pytest.param(2, 50, marks=pytest.mark.nightly)])
def test_killed_at_random_moments(tmp_path, expected, seed, kills):
    """Anywhere in the life of a process, or soon after it has begun to write: it can always be resumed."""
    path = tmp_path / "run"
    chance = random.Random(seed)
    process = start(*ARGUMENTS, "--out", path)
    wait_for(lambda: (path / "config.yaml").exists(), process)  # before that there is nothing to resume
    logged, killed = 0, 0
    for kill in range(kills):
        if kill % 2:
            time.sleep(chance.uniform(0, 5))
        else:
            wait_for(lambda size=logged: size_of(path / "log.txt") > size, process)
            time.sleep(chance.uniform(0, 1.5))
        logged = size_of(path / "log.txt")
        process.send_signal(signal.SIGKILL)
        _, err = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), err
        killed += process.returncode != 0
        process = start("run", "--resume", path)
    assert killed > kills // 2  # the others came when all was done
    process.send_signal(signal.SIGKILL)
    process.communicate()
    code, _, err = finish("run", "--resume", path)
    assert code == 0, err
    assert_same_outcome(path, expected)
    assert not list(path.rglob(".*"))  # neither halves of files nor a lock


def test_killed_before_the_first_checkpoint(tmp_path, expected):
    path = tmp_path / "run"
    process = start(*ARGUMENTS, "--out", path)
    wait_for(lambda: (path / "config.yaml").exists(), process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    shutil.rmtree(path / "checkpoint", ignore_errors=True)
    code, _, err = finish("run", "--resume", path)
    assert code == 0, err
    assert_same_outcome(path, expected)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.nightly)]
)
def test_stopped_by_a_signal_saves_and_says_how_to_resume(tmp_path, expected, number, code):
    path = tmp_path / "run"
    process = start(*ARGUMENTS, "--out", path)
    wait_for(lambda: (path / "checkpoint").is_dir(), process)
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == code
    assert f"jedax run --resume {path}" in err
    summary = json.loads((path / "summary.json").read_text())
    assert summary["status"] == "interrupted"
    assert jedax.load(path).summary["evaluations"] == summary["evaluations"] < 64000
    assert finish("run", "--resume", path)[0] == 0
    assert_same_outcome(path, expected)
    assert json.loads((path / "summary.json").read_text())["status"] == "finished"


def test_resuming_a_finished_run_changes_nothing(tmp_path, undisturbed, expected):
    path = tmp_path / "run"
    shutil.copytree(undisturbed, path)
    code, out, _ = finish("run", "--resume", path)
    assert code == 0
    assert "64,000 evaluations" in out
    assert_same_outcome(path, expected)


def stop(path, method, arm):
    """Leave a run with two checkpoints, the newer one not the end."""
    jedax.run(method, arm, evaluations=8 * 60, seed=2, out=path, checkpoint_seconds=0, report_every=3,
              callbacks=[lambda report: report.evaluations >= 8 * 40])  # fmt: skip
    directory = RunDirectory(path)
    newest, older = directory.checkpoints()
    for folder in (newest, older):
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest["facts"]["status"] = "running"
        (folder / "manifest.json").write_text(json.dumps(manifest))
    seal(path)
    return path


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory, small, arm):
    with pytest.MonkeyPatch.context() as patch:
        draw_nothing(patch)
        return stop(tmp_path_factory.mktemp("stopped") / "run", small, arm)


@pytest.fixture
def stopped(stopped_once, tmp_path, undrawn):
    """A run that was stopped, and goes on without figures."""
    return shutil.copytree(stopped_once, tmp_path / "run")


@pytest.fixture(scope="module")
def whole(small, arm):
    return jedax.run(small, arm, evaluations=8 * 60, seed=2, report_every=3)


def outcome(run):
    return run.repertoire, without_seconds(run.rows)


def assert_same_run(run, other):
    from tests.conftest import assert_same_bits

    assert_same_bits(run.repertoire, other.repertoire)
    ours, theirs = without_seconds(run.rows), without_seconds(other.rows)
    for a, b in zip(ours, theirs, strict=True):
        assert a == pytest.approx(b, rel=1e-12)


def test_an_es_that_stores_random_keys(tmp_path, small, arm, undrawn):
    """LM-MA-ES keeps the key of its last samples."""
    method = small.replace(es="lm-ma-es")
    resumed = jedax.resume(stop(tmp_path / "run", method, arm), task=arm)
    assert_same_run(resumed, jedax.run(method, arm, evaluations=8 * 60, seed=2, report_every=3))


def test_resume_from_python(stopped, whole, arm):
    assert_same_run(jedax.resume(stopped, task=arm), whole)


def damage_bit(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["flip", "truncate", "no tensors", "no manifest", "manifest not JSON", "newer format"])
def test_damaged_checkpoint_falls_back_to_the_older_one(stopped, whole, arm, how):
    newest = RunDirectory(stopped).checkpoints()[0]
    tensors, manifest = newest / "state.safetensors", newest / "manifest.json"
    if how == "flip":
        damage_bit(tensors)
    elif how == "truncate":
        tensors.write_bytes(tensors.read_bytes()[:-100])
    elif how == "no tensors":
        tensors.unlink()
    elif how == "no manifest":
        manifest.unlink()
    elif how == "manifest not JSON":
        manifest.write_text("{")
    else:
        manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 2'))
    assert_same_run(jedax.resume(stopped, task=arm), whole)
    assert "Went back to the checkpoint" in (stopped / "log.txt").read_text()
    # A whole one takes the place of the damaged one, which is kept for whoever wants to look into it.
    assert (stopped / "checkpoint" / f"damaged-{newest.name}").is_dir()
    whole_ones = RunDirectory(stopped).checkpoints()
    assert len(whole_ones) == 2
    assert all(read_facts(folder)["evaluations"] == int(folder.name) for folder in whole_ones)


def test_no_whole_checkpoint_is_said(stopped, arm):
    for folder in RunDirectory(stopped).checkpoints():
        damage_bit(folder / "state.safetensors")
    before = {path: path.read_bytes() for path in stopped.rglob("*") if path.is_file() and path.name != "log.txt"}
    with pytest.raises(jedax.JedaxError, match=r"checksum .* No older checkpoint is whole"):
        jedax.resume(stopped, task=arm)
    assert all(path.read_bytes() == data for path, data in before.items())


def test_checkpoint_of_another_run_is_refused(stopped, tmp_path, plain, arm):
    other = tmp_path / "other"
    jedax.run(plain, arm, evaluations=8 * 5, out=other)
    shutil.rmtree(stopped / "checkpoint")
    shutil.copytree(other / "checkpoint", stopped / "checkpoint")
    with pytest.raises(jedax.JedaxError, match="from another run or version"):
        jedax.resume(stopped, task=arm)


def crafted(path, change):
    """Change the state of all checkpoints and give it the checksum it should have."""
    for folder in RunDirectory(path).checkpoints():
        arrays = read_tensors(folder / "state.safetensors")
        manifest = json.loads((folder / "manifest.json").read_text())
        change(arrays, manifest["facts"])
        files.write_tensors(folder / "state.safetensors", arrays)
        data = (folder / "state.safetensors").read_bytes()
        manifest["sha256"] = hashlib.sha256(data).hexdigest()
        (folder / "manifest.json").write_text(json.dumps(manifest))
    seal(path)


def set_generation(value):
    def change(arrays, facts):
        arrays[".generation"] = np.full_like(arrays[".generation"], value)

    return change


def move_elites(arrays, facts):
    """Exchange the descriptors of the cells, as if these were in other places."""
    arrays[".repertoire.descriptors"] = np.ascontiguousarray(arrays[".repertoire.descriptors"][:, ::-1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_generation(10**6), "expected a checkpoint whose state and manifest agree"),  # a search without an end
        (set_generation(-3), "expected a checkpoint whose state and manifest agree"),
        (move_elites, "run: expected elites in the cells of their descriptors, got elites elsewhere"),
        (lambda arrays, facts: facts.update(failures={"nan": [1, 2, 3]}), "whose state and manifest agree"),
        (lambda arrays, facts: facts.update(evaluations=8), "expected the evaluations of a run in its manifest"),
        (lambda arrays, facts: facts.update(seconds="long"), "expected the seconds of a run in its manifest, got long"),
        (lambda arrays, facts: facts.pop("config"), "expected the config of a run in its manifest, got None"),
    ],
)
def test_crafted_checkpoints_are_refused(stopped, arm, change, message):
    crafted(stopped, change)
    with pytest.raises(jedax.JedaxError, match=message):
        jedax.resume(stopped, task=arm)


def test_failures_by_kind_are_resumed(tmp_path, plain, undrawn):
    from tests.search.test_loop import Failing

    def kill(report):
        if report.evaluations >= 8 * 20:
            raise KeyError("killed")

    task, path, settings = Failing(), tmp_path / "run", {"evaluations": 8 * 30, "report_every": 3}
    whole = jedax.run(plain, task, **settings)
    with pytest.raises(KeyError, match="killed"):
        jedax.run(plain, task, out=path, checkpoint_seconds=0, callbacks=[kill], **settings)
    resumed = jedax.resume(path, task=task, draw=None)
    assert resumed.summary["failures"] == whole.summary["failures"]
    assert sum(whole.summary["failures"].values()) == whole.summary["num_failed"]
    assert min(whole.summary["failures"].values()) > 0
    assert without_seconds(resumed.rows) == without_seconds(whole.rows)


def test_changed_settings_are_refused(stopped, arm):
    config = stopped / "config.yaml"
    config.write_text(config.read_text().replace("alpha_start: 0.8", "alpha_start: 0.7"))
    seal(stopped)
    with pytest.raises(jedax.JedaxError, match="other settings"):
        jedax.resume(stopped, task=arm)


def test_a_task_of_an_own_class_must_be_given(tmp_path, plain, undrawn):
    class Own(PlanarArm):
        name = "own"

    path = tmp_path / "run"
    jedax.run(plain, Own(joints=3), evaluations=16, out=path)
    with pytest.raises(jedax.JedaxError, match="task: expected the task object own, got none; pass it as task="):
        jedax.resume(path)
    assert jedax.load(path, task=Own(joints=3)).task == Own(joints=3)


def test_another_task_than_the_runs_is_refused(stopped):
    with pytest.raises(jedax.JedaxError, match="task: expected the arm of the settings"):
        jedax.resume(stopped, task=PlanarArm(joints=3))


def test_a_run_that_goes_on_has_no_outcome_yet(stopped, whole):
    """What an interruption wrote is older than the checkpoints that follow."""

    class Killed(Exception):
        pass

    def kill(report):
        raise Killed

    assert (stopped / "summary.json").exists()
    with pytest.raises(Killed):
        jedax.resume(stopped, callbacks=[kill])
    run = jedax.load(stopped)
    assert run.summary == {}
    assert run.repertoire.counts.sum() > 8 * 40
    assert_same_run(jedax.resume(stopped), whole)


def test_start_genotypes_are_there_after_a_kill(tmp_path, small, arm, undrawn):
    given, path = np.full((3, 4), 0.25, np.float32), tmp_path / "run"
    jedax.run(small, arm, evaluations=8 * 6, start_genotypes=given, out=path)
    expected = final(path)
    shutil.rmtree(path / "checkpoint")
    jedax.resume(path)
    assert_same_outcome(path, expected)


@pytest.mark.parametrize("name", ["summary.json", "repertoire.safetensors", "environment.json", "convergence.png"])
def test_a_full_disk_is_said(tmp_path, small, arm, monkeypatch, name):
    def full(path, data):
        if path.name == name:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, data)

    if name != "convergence.png":
        draw_nothing(monkeypatch)
    write = files.write_atomic
    monkeypatch.setattr(files, "write_atomic", full)
    monkeypatch.setattr("jedax.report.pictures.write_atomic", full)
    with pytest.raises(jedax.JedaxError, match=r"out: expected room to write results, got .*No space left.*--resume"):
        jedax.run(small, arm, evaluations=8 * 6, out=tmp_path / "run")


def test_an_error_of_a_callback_is_its_own(small, arm):
    def fail(report):
        raise FileNotFoundError("mine")

    with pytest.raises(FileNotFoundError, match="mine"):
        jedax.run(small, arm, evaluations=8 * 6, callbacks=[fail])


def test_torn_metrics_are_mended(stopped, whole, arm):
    (stopped / "manifest.json").unlink()  # as if killed
    with open(stopped / "metrics.csv", "a") as file:
        file.write("999,0,-1")
    assert_same_run(jedax.resume(stopped, task=arm), whole)


def test_two_newest_checkpoints_are_kept(stopped):
    assert len(RunDirectory(stopped).checkpoints()) == 2
    assert not [name for name in os.listdir(stopped / "checkpoint") if name.startswith(".")]
