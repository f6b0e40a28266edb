"""Readers import no code that a run names without trust; commands that need it import that of own runs alone."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.commands import call
from tests.methods import own

import jedax
from jedax.errors import JedaxError
from jedax.imports import load_object
from jedax.methods.registry import code_of as method_code
from jedax.report import viewer
from jedax.report.replay import replay
from jedax.report.viewer import View
from jedax.store import origins, trust
from jedax.store.directory import RunDirectory
from jedax.tasks import make
from jedax.tasks.gym.task import _facts
from jedax.tasks.registry import code_of as task_code
from jedax.tasks.stored import StoredTask

EVIL = """
import os, pathlib
pathlib.Path(os.environ["MARK"]).write_text("evil was imported")

import gymnasium
import numpy as np
from tests.methods.own import HALFWAY, Bowl, Drift, Spherical, farthest


def simulate(genotypes):
    return -(genotypes**2).sum(axis=1), genotypes[:, :2]


simulate.num_params = 3
simulate.descriptor_lows = (-1.0, -2.0)
simulate.descriptor_highs = (1.0, 2.0)
simulate.descriptor_names = ("speed", "height")
simulate.goal_fitness = -0.5


def describe(episode):
    return [len(episode.rewards) % 2, 0.5]


class Still(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), float(action), False, False, {"x_position": 0.1, "y_position": 0.2}


gymnasium.register("Still-v0", "evil:Still", max_episode_steps=3)
"""
BOX = {"hidden": (), "descriptor_lows": (0, 0), "descriptor_highs": (1, 1)}
KINDS = {
    "function": ("map-elites", "evil:simulate", {}),
    "class": ("map-elites", "evil:Bowl", {}),
    "environment": ("map-elites", ("gym:evil:Still-v0", {**BOX, "descriptor": "final-xy"}), {}),
    "descriptor": ("map-elites", ("gym:CartPole-v1", {**BOX, "descriptor": "evil:describe", "steps": 4}), {}),
    "method": ("evil:Drift", "arm", {}),
    "ranker": ("cma-me", "arm", {"ranker": "evil:farthest", "population": 4, "pool": 2}),
    "strategy": ("cma-me", "arm", {"es": "evil:Spherical", "population": 4, "pool": 2}),
    "acceptance": ("map-elites", "arm", {"acceptance": "evil:HALFWAY"}),
}
ROOT = str(Path(__file__).parents[2])


def forget():
    """Let the next import of evil run its file."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("evil", "evilpackage")]:
        del sys.modules[name]
    _facts.cache_clear()


@pytest.fixture(scope="module")
def made(tmp_path_factory, without_figures):
    """Return the run of a kind, made once beside its code, and finished."""
    found = {}

    def make_run(kind):
        if kind not in found:
            home = tmp_path_factory.mktemp(kind)
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("MARK", str(home / "mark"))
                patch.chdir(home)
                patch.setattr(sys, "path", [ROOT, *sys.path])
                (home / "evil.py").write_text(EVIL)
                method, task, settings = KINDS[kind]
                if isinstance(task, tuple):
                    patch.setattr(sys, "path", [str(home), *sys.path])
                    task = make(task[0], **task[1])
                size = {"cells": 16, "evaluations": 64, "seed": 1, "workers": 1}
                jedax.run(method, task, out=home / "run", **size, **settings)
                forget()
                (home / "mark").unlink()
            found[kind] = home
        return found[kind]

    return make_run


@pytest.fixture
def mark(tmp_path, monkeypatch):
    monkeypatch.setenv("MARK", str(tmp_path / "mark"))
    forget()
    yield tmp_path / "mark"
    forget()


@pytest.fixture
def foreign(made, mark, tmp_path, monkeypatch):
    """Return a function that copies a run of somebody else here, with its code in it, above it, or in the directory."""

    def copy(kind, place="parent"):
        run = tmp_path / "bundle" / "run"
        shutil.copytree(made(kind) / "run", run)
        folder = {"inside": run, "parent": run.parent, "cwd": tmp_path}[place]
        shutil.copy(made(kind) / "evil.py", folder)
        monkeypatch.chdir(folder)
        sys.path.insert(0, str(folder))  # as `python -m` does
        unsign(run)
        return run

    return copy


def unsign(run):
    about = json.loads((run / "environment.json").read_text())
    (run / "environment.json").write_text(json.dumps({**about, trust.SIGNATURES: ["0" * 64, 7, None]}))
    RunDirectory(run).seal()


def assert_nothing_imported(mark):
    assert not mark.exists()
    assert "evil" not in sys.modules


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["inside", "parent", "cwd"])
def test_load_imports_nothing(kind, place, foreign, mark, made):
    run = foreign(kind, place)
    for loaded in (jedax.load(run), jedax.load(run, partial=True), jedax.load(run / ".." / "run")):
        assert np.isfinite(loaded.best().fitness)
        assert loaded.evaluations == 64
        assert len(loaded.cells.centroids) == 16
        assert loaded.task.num_descriptors == 2
        assert loaded.metrics["max_fitness"].iloc[-1] == loaded.best().fitness
        assert any("evil" in sentence and "is not imported" in sentence for sentence in loaded.missing)
        assert repr(loaded)
        _ = loaded.method, loaded.history
    assert_nothing_imported(mark)


@pytest.mark.parametrize("kind", KINDS)
def test_pages_comparisons_and_views_import_nothing(kind, foreign, mark, capsys, without_comparison_figures):
    run = foreign(kind, "inside")
    page = jedax.write_report(run, out=run.parent / "page.html", share=True)
    assert "is not imported without trust (--trust, trust=True)." in page.read_text(encoding="utf-8")
    assert jedax.compare(run, out=run.parent / "compare").tables[0].entries[0].final == (
        jedax.load(run).best().fitness,
    )
    view = View(run)
    assert "is not imported" in view.page()
    assert view.update("")["data"]["space"]["centroids"]
    with pytest.raises(JedaxError, match="episode: expected"):
        view.episode(0, 0)
    for words in (["report", ".."], ["report", "../run", "--share"], ["compare", "../run"], ["compare", ".", "../run"]):
        code, _, err = call(capsys, *words)
        assert (code, err) == (0, "")
    assert_nothing_imported(mark)


@pytest.mark.parametrize("kind", ["class", "method"])
def test_figures_of_a_comparison_import_nothing(kind, foreign, mark):
    run = foreign(kind, "inside")
    jedax.compare(run, out=run.parent / "compare", formats=("png",))
    assert list((run.parent / "compare" / "figures").glob("*.png"))
    assert_nothing_imported(mark)


@pytest.mark.parametrize("kind", KINDS)
def test_what_needs_the_code_asks(kind, foreign, mark, capsys):
    run = foreign(kind)
    ways = r"got evil:\w+, in .*bundle/evil\.py; if you trust it, add --trust \(Python: trust=True\), or install it"
    if kind == "environment":
        ways = ways.replace(r"\w+", "Still-v0")
    for call_it in (replay, jedax.reevaluate, jedax.resume):
        with pytest.raises(JedaxError, match=ways):
            call_it(run)
        with pytest.raises(JedaxError, match=ways):
            call_it("run")
    for words in (
        ["replay", "run"],
        ["reevaluate", "run"],
        ["export", "run", "--numpy", "p.py"],
        ["run", "--resume", "run"],
    ):
        code, _, err = call(capsys, *words)
        assert code == 2
        assert "evil.py; if you trust it, add --trust" in err
    for refused in (lambda: jedax.reevaluate(jedax.load(run)), lambda: replay(jedax.load(run))):
        if kind in ("function", "class", "environment", "descriptor"):
            with pytest.raises(
                JedaxError, match=r"^task: expected the code of .*load the run with trust=True .*--trust"
            ):
                refused()
    assert_nothing_imported(mark)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_trusted_goes_on(kind, foreign, mark, capsys, monkeypatch):
    run = foreign(kind)
    before = jedax.load(run)
    assert jedax.reevaluate(run, samples=4, cells="best", trust=True).evaluations
    again = jedax.resume(run, trust=True)
    assert mark.exists() or kind == "acceptance"  # which a run that has ended does not need
    np.testing.assert_array_equal(again.repertoire.fitness, before.repertoire.fitness)
    # Whoever has trusted it once need not do so again for the same code and settings.
    assert jedax.reevaluate(run, samples=4, cells="best").evaluations
    assert jedax.resume(run).missing == ()
    forget()
    code, _, err = call(capsys, "reevaluate", "run", "--cells", "best", "--samples", "4", "--trust")
    assert (code, err) == (0, "")
    code, _, err = call(capsys, "run", "--resume", "run", "--trust")
    assert code == 0, err
    if before.config.task == "arm":
        assert call(capsys, "replay", "run", "--trust")[0] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_of_ones_own_goes_on_without(kind, made, mark, monkeypatch):
    home = made(kind)
    monkeypatch.chdir(home)
    before = jedax.load("run")
    assert jedax.reevaluate("run", samples=4, cells="best").evaluations
    again = jedax.resume("run")
    assert again.missing == ()
    assert again.best().fitness == before.best().fitness
    assert mark.exists() or kind == "acceptance"  # which a run that has ended does not need


def test_the_policy_of_ones_own_run_is_exported(made, mark, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(made("environment"))
    assert call(capsys, "export", "run", "--numpy", tmp_path / "policy.py")[::2] == (0, "")
    assert (tmp_path / "policy.py").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_readers_of_ones_own_run_import_nothing(
    kind, made, mark, monkeypatch, tmp_path, capsys, without_comparison_figures
):
    monkeypatch.chdir(made(kind))
    loaded = jedax.load("run")
    assert len(loaded.missing) == 1
    assert "is not imported without trust" in loaded.missing[0]
    page = jedax.write_report("run", out=tmp_path / "page.html", share=True)
    assert "is not imported without trust" in page.read_text(encoding="utf-8")
    assert "is not imported without trust" in View("run").page()
    for words in (["report", "run", "--out", tmp_path / "page.html"], ["compare", "run"]):
        code, _, err = call(capsys, *words)
        assert (code, err) == (0, "")
    assert_nothing_imported(mark)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("whose", ["own", "foreign"])
def test_readers_import_what_is_trusted(kind, whose, foreign, made, mark, monkeypatch, tmp_path, capsys):
    if whose == "own":
        monkeypatch.chdir(made(kind))
        run = made(kind) / "run"
    else:
        run = foreign(kind)
    page = tmp_path / "page.html"
    for read in (
        lambda: jedax.load(run, trust=True),
        lambda: jedax.write_report(run, out=page, share=True, trace_seconds=1e-9, trust=True),
        lambda: View(run, trust=True).page(),
        lambda: View(run, trust=True).update(""),
        lambda: call(capsys, "report", run, "--out", page, "--trace-seconds", "1e-9", "--trust"),
    ):
        read()
        assert mark.exists() or kind == "acceptance"  # which is looked up by the search alone
        mark.unlink(missing_ok=True)
        forget()
    assert "is not imported" not in page.read_text(encoding="utf-8")
    loaded = jedax.load(run, trust=True)
    assert loaded.missing == ()
    assert loaded.method is not None
    assert type(loaded.task) is not StoredTask


def test_the_run_in_memory_keeps_its_task(made, mark, monkeypatch, without_figures):
    """Also where its directory is read without it."""
    monkeypatch.chdir(made("class"))
    run = jedax.run("map-elites", "evil:Bowl", cells=16, evaluations=64, out=mark.parent / "run")
    assert type(run.task).__name__ == "Bowl"
    assert jedax.reevaluate(run, samples=4, cells="best").evaluations == 4
    assert type(jedax.load(run.path).task) is StoredTask
    assert type(run.task).__name__ == "Bowl"


def test_the_command_view(foreign, mark, capsys, monkeypatch):
    run, seen = foreign("class"), []
    monkeypatch.setattr(viewer, "serve", lambda directory, *, trust, **rest: seen.append(trust))
    for words in ((), ("--trust",)):
        assert call(capsys, "view", run, *words)[0] == 0
    assert seen == [False, True]
    with pytest.raises(JedaxError, match="episode: expected"):
        View(run).episode(0, 0)
    assert_nothing_imported(mark)


class TestSignature:
    """A run is of this user and machine only as it was made."""

    @pytest.fixture
    def run(self, made, mark, tmp_path, monkeypatch):
        """A copy of a run of this user; its code lies where it was."""
        monkeypatch.chdir(made("function"))
        shutil.copytree(made("function") / "run", tmp_path / "run")
        jedax.resume(tmp_path / "run")
        forget()
        mark.unlink()
        return tmp_path / "run"

    def assert_refused(self, run, mark):
        assert jedax.load(run).missing[0].startswith("Nothing can be evaluated again: evil:simulate is not imported")
        with pytest.raises(JedaxError, match="--trust"):
            jedax.resume(run)
        assert_nothing_imported(mark)

    def test_other_settings(self, run, mark):
        text = (run / "config.yaml").read_text()
        (run / "config.yaml").write_text(text.replace("seed: 1", "seed: 2"))
        RunDirectory(run).seal()
        self.assert_refused(run, mark)

    def test_other_code(self, run, mark, made):
        file = made("function") / "evil.py"
        try:
            file.write_text(EVIL + "\nmore = 1\n")
            self.assert_refused(run, mark)
        finally:
            file.write_text(EVIL)

    def test_the_same_code_in_another_place(self, run, mark, made, monkeypatch):
        shutil.copy(made("function") / "evil.py", run)
        monkeypatch.chdir(run)
        self.assert_refused(run, mark)

    def test_another_machine(self, run, mark, monkeypatch):
        monkeypatch.setattr(trust, "_machine", lambda: "elsewhere")
        self.assert_refused(run, mark)

    def test_another_user(self, run, mark, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        self.assert_refused(run, mark)

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
    def test_files_of_another_user(self, run, mark):
        os.chown(run / "config.yaml", 12345, 12345)
        self.assert_refused(run, mark)

    def test_another_key(self, run, mark, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        self.assert_refused(run, mark)
        (tmp_path / "state" / "jedax").mkdir(parents=True)
        for content in (b"", b"x" * 31, b"x" * 33):
            (tmp_path / "state" / "jedax" / "key").write_bytes(content)
            self.assert_refused(run, mark)

    def test_a_key_that_others_can_read(self, run, mark):
        key = Path(os.environ["XDG_STATE_HOME"]) / "jedax" / "key"
        assert key.stat().st_mode & 0o777 == 0o600
        key.chmod(0o644)
        try:
            self.assert_refused(run, mark)
        finally:
            key.chmod(0o600)

    def test_a_directory_that_moves_stays_ones_own(self, run, mark):
        run.rename(run.with_name("other"))
        assert jedax.resume(run.with_name("other")).missing == ()
        assert mark.exists()

    def test_processes_that_make_the_key_at_once(self, tmp_path):
        program = "from jedax.store import trust; print(trust._key(create=True).hex())"
        environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
        started = [subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
                   for _ in range(4)]  # fmt: skip
        keys = {process.communicate()[0].strip() for process in started}
        assert len(keys) == 1
        assert len(keys.pop()) == 64
        assert [path.name for path in (tmp_path / "state" / "jedax").iterdir()] == ["key"]


@pytest.mark.parametrize("home", ["/proc/none", "relative"])
def test_a_home_that_cannot_be_written(home, made, mark, monkeypatch, tmp_path, without_figures):
    """The run goes on, and says what it lacks."""
    monkeypatch.chdir(made("function"))
    monkeypatch.setenv("XDG_STATE_HOME", home)
    monkeypatch.setenv("HOME", home)
    jedax.run("map-elites", "evil:simulate", cells=16, evaluations=64, workers=1, out=tmp_path / "run")
    assert "There is no record that this run was made here" in (tmp_path / "run" / "log.txt").read_text()
    with pytest.raises(JedaxError, match="add --trust"):
        jedax.resume(tmp_path / "run")
    jedax.resume(tmp_path / "run", trust=True)
    jedax.run("map-elites", "arm", cells=16, evaluations=64, out=tmp_path / "arm")
    assert "There is no record" not in (tmp_path / "arm" / "log.txt").read_text()


class TestWhatIsKnownWithoutCode:
    def test_the_task(self, foreign):
        task = jedax.load(foreign("function")).task
        assert task.name == "evil:simulate"
        assert task.descriptor_bounds == ((-1.0, -2.0), (1.0, 2.0))
        assert task.descriptor_names == ("speed", "height")
        assert (task.num_params, task.goal_fitness, task.qd_offset) == (3, -0.5, 0.0)
        for wanted in (lambda: task.init(None), lambda: task.evaluate(None, None)):
            with pytest.raises(
                JedaxError, match="expected the code of evil:simulate, got what the run directory keeps"
            ):
                wanted()

    def test_a_policy(self, foreign):
        with pytest.raises(JedaxError, match=r"expected the code of gym:evil:Still-v0"):
            jedax.load(foreign("environment")).policy()

    def test_a_comparison_and_a_page(self, foreign):
        run = foreign("function")
        assert jedax.compare(run, formats=()).tables[0].goal == -0.5
        page = jedax.write_report(run).read_text(encoding="utf-8")
        assert "goal -0.5" in page
        assert '"names":["speed","height"]' in page

    def test_a_run_that_has_not_ended(self, foreign):
        run = foreign("class")
        whole = jedax.load(run)
        for name in ("summary.json", "repertoire.safetensors", "manifest.json"):
            (run / name).unlink()
        found = jedax.load(run)
        np.testing.assert_array_equal(found.repertoire.fitness, whole.repertoire.fitness)
        assert found.task == whole.task
        assert found.cells.bounds == whole.cells.bounds

    @pytest.mark.parametrize("kind", ["function", "class", "environment"])
    @pytest.mark.parametrize("kept", [None, 3, {"name": "x", "num_params": 0}, {"descriptor_lows": ["a"]}])
    def test_directories_that_tell_less(self, kind, kept, foreign, mark):
        """Earlier versions wrote nothing of the task; others may write anything."""
        run = foreign(kind)
        about = json.loads((run / "environment.json").read_text())
        (run / "environment.json").write_text(json.dumps({**about, "task": kept, trust.SIGNATURES: ["é", 1]}))
        RunDirectory(run).seal()
        loaded = jedax.load(run)
        (lows, highs), own_bounds = loaded.task.descriptor_bounds, kind != "class"
        assert (np.asarray(lows) < loaded.cells.centroids.min(axis=0)).all()
        assert (np.asarray(highs) > loaded.cells.centroids.max(axis=0)).all()
        assert own_bounds == (lows in ((-1.0, -2.0), (0.0, 0.0)))
        assert jedax.write_report(run).exists()
        notes = jedax.compare(run, formats=()).notes
        assert ("its code is not imported" in " ".join(notes)) == (kind != "function")
        assert_nothing_imported(mark)

    def test_nothing_can_make_readers_import(self, foreign, mark, monkeypatch):
        """Not even settings whose two names of the task differ."""
        run = foreign("function")
        text = (run / "config.yaml").read_text()
        for task in ("json:dumps", "gym:CartPole-v1", "playground:CheetahRun", "evil.sub:f", "evil:simulate.yaml:f"):
            (run / "config.yaml").write_text(text.replace("task: evil:simulate", f"task: {task}"))
            RunDirectory(run).seal()
            jedax.load(run, partial=True)
            with pytest.raises(JedaxError, match=r"add --trust|expected"):
                jedax.resume(run)
        assert_nothing_imported(mark)


def test_settings_that_name_thousands_of_modules(foreign, mark, monkeypatch):
    """They are not looked for one by one."""
    looks = []
    for name in ("files_of", "is_found", "is_installed"):
        look = getattr(trust, name)
        monkeypatch.setattr(trust, name, lambda *given, look=look: looks.append(given) or look(*given))
    run = foreign("function")
    text = (run / "config.yaml").read_text()
    names = "".join(f"  - numpy.m{number}:f\n" for number in range(20_000))
    (run / "config.yaml").write_text(text.replace("task_config:\n", f"task_config:\n  more:\n{names}"))
    RunDirectory(run).seal()
    jedax.load(run, partial=True)
    with pytest.raises(JedaxError, match="add --trust"):
        jedax.resume(run)
    assert 0 < len(looks) < 1000
    assert_nothing_imported(mark)


class TestObjectsOfTheUser:
    """Whoever passes the object is not asked."""

    def test_a_method(self, foreign, mark):
        run = foreign("method")
        fitness = jedax.load(run).best().fitness
        assert jedax.resume(run, method=own.Drift).best().fitness == fitness
        assert_nothing_imported(mark)

    def test_a_task(self, foreign, mark):
        run = foreign("class")
        assert jedax.load(run, task=own.Bowl()).missing == ()
        assert type(jedax.resume(run, task=own.Bowl()).task) is own.Bowl
        assert jedax.reevaluate(run, task=own.Bowl(), samples=4, cells="best").evaluations == 4
        jedax.write_report(run, task=own.Bowl())
        assert_nothing_imported(mark)

    def test_a_task_whose_settings_differ(self, foreign, mark):
        with pytest.raises(JedaxError, match=r"^task"):
            jedax.resume(foreign("function"), task=make("arm"))
        assert_nothing_imported(mark)

    def test_a_method_whose_settings_name_more(self, foreign, mark):
        run = foreign("ranker")
        with pytest.raises(JedaxError, match=r"got evil:farthest, in .*evil\.py"):
            jedax.resume(run, method=jedax.methods.cma_me.CMAME)
        assert_nothing_imported(mark)


@pytest.mark.usefixtures("here")
class TestInstalled:
    def test_packages(self):
        assert all(map(origins.is_installed, ("numpy", "numpy.linalg", "jedax", "jedax.tasks", "pytest")))
        others = ("json", "sys", "os.path", "evil", "tests.methods.own", "", ".", "a b", "nul\0l")
        assert not any(map(origins.is_installed, others))
        assert not any(map(origins.is_found, ("evil", "", ".", "a b", "nul\0l")))

    def test_nothing_is_imported(self, mark, tmp_path, monkeypatch):
        package = tmp_path / "evilpackage"
        package.mkdir()
        (package / "__init__.py").write_text(EVIL)
        (package / "sub.py").write_text(EVIL)
        monkeypatch.chdir(tmp_path)
        assert origins.files_of("evilpackage.sub") == [package / "__init__.py", package / "sub.py"]
        assert not origins.is_installed("evilpackage.sub")
        assert not mark.exists()
        assert "evilpackage" not in sys.modules

    @pytest.mark.parametrize("file", ["tqdm.py", "tqdm/__init__.py", "tqdm/evil.py", "rich.py"])
    def test_what_takes_the_place_of_a_package(self, file, tmp_path, monkeypatch):
        name = file.partition("/")[0].removesuffix(".py")
        if not origins.is_installed(name):
            pytest.skip(f"{name} is not installed")
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(EVIL)
        monkeypatch.chdir(tmp_path)
        assert not origins.is_installed(name)

    def test_metadata_here_is_not_an_installation(self, tmp_path, monkeypatch):
        folder = tmp_path / "evil-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
        (folder / "top_level.txt").write_text("evil\n")
        (tmp_path / "evil.py").write_text(EVIL)
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        assert not origins.is_installed("evil")

    @pytest.mark.parametrize(
        "name", ["env_id=evil:Env", "x={a: evil:Env}", "my evil:Env", "evil.py:f", "../evil:f", "sys:exit"]
    )
    def test_names_that_are_no_modules(self, name):
        """What another package may make of them is not known."""
        Path("evil.py").write_text(EVIL)
        with pytest.raises(JedaxError, match="add --trust"):
            trust.check("config.yaml", [name])

    def test_modules_that_are_not_found(self):
        trust.check("config.yaml", ["evil:f", "evil.sub:f"])

    def test_editable(self, tmp_path, monkeypatch):
        """A folder in a .pth file is installed as far as its package says what it has."""
        site, project = tmp_path / "site", tmp_path / "project"
        (site / "mine-1.dist-info").mkdir(parents=True)
        project.mkdir()
        (site / "mine-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
        (site / "mine.pth").write_text(f"import nothing\n{project}\n")
        for name in ("mine", "evil"):
            (project / f"{name}.py").write_text(EVIL)
        monkeypatch.setattr(origins, "_site_folders", lambda: [str(site)])
        monkeypatch.setattr(sys, "path", [*sys.path, str(site), str(project)])
        monkeypatch.chdir(project)
        assert origins.is_installed("mine")
        assert not origins.is_installed("evil")
        (tmp_path / "mine.py").write_text(EVIL)
        monkeypatch.chdir(tmp_path)
        assert not origins.is_installed("mine")

    def test_a_run_of_installed_code_goes_on(self, foreign, mark, monkeypatch):
        run = foreign("function")
        monkeypatch.setattr(trust, "is_installed", lambda module: module == "evil")
        assert jedax.load(run).missing  # a reader has no need for it
        assert not mark.exists()
        jedax.resume(run)
        assert mark.exists()


def test_the_names_in_settings():
    assert task_code("maze-a", {"name": "evil:simulate"}) == []
    assert task_code("gym:CartPole-v1", {"name": "gym:CartPole-v1", "descriptor": "final-xy"}) == []
    assert task_code("gym:CartPole-v1", {"name": "gym:evil:Env", "hidden": (1,)}) == ["evil:Env"]
    assert task_code("gym:evil:Env-v0", {}) == ["evil:Env-v0"]
    assert task_code("gym:Old-v0", {"arguments": ["env_id=evil:Env"]}) == ["env_id=evil:Env"]
    assert task_code("playground:CheetahRun", {"descriptor": "evil:f"}) == ["evil:f"]
    assert task_code("evil:f", {"name": "worse:f", "label": "speed: m/s"}) == ["evil:f", "worse:f"]
    assert task_code("custom:mine", {}) == []
    assert method_code("jedi", {"es": "evosax:SNES", "acceptance": None, "pool": 3}) == []
    assert method_code("cma-me", {"ranker": "evosax:f", "es": "custom:Mine"}) == ["evosax:f"]
    assert method_code("evil:M", {"deep": {"er": ["worse:f", "see: here"]}}) == ["evil:M", "worse:f"]


def test_a_name_with_spaces_is_no_module(here, mark):
    (here / "my evil.py").write_text(EVIL)
    with pytest.raises(JedaxError, match="ranker: expected a module's name without spaces"):
        load_object("my evil:farthest", "ranker")
    assert not mark.exists()


def test_jedax_does_not_look_for_its_own_modules_here(here, mark, monkeypatch):
    """Files here could take the place of packages that jedax imports later."""
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry and Path(entry) != here])
    load_object("jedax.tasks.drawing:TaskDrawing", "drawing_class")
    assert str(here) not in sys.path


def test_a_bench_goes_on_with_what_its_command_names(made, mark, monkeypatch, tmp_path, without_figures):
    """Also on a machine that has no record of its runs."""
    from jedax.bench.bench import bench
    from jedax.bench.grids import Grid, parse_entry

    monkeypatch.chdir(made("class"))
    grid = Grid("", ("evil:Bowl",), (parse_entry("map-elites,cells=16"),), seeds=1, evaluations=64)
    assert bench(grid, tmp_path / "b").done == 1
    run = next((tmp_path / "b").glob("*/*/seeds-0-0"))
    unsign(run)
    for name in ("summary.json", "manifest.json"):
        (run / name).unlink()
    outcome = bench(grid, tmp_path / "b")
    assert (outcome.done, outcome.failed) == (1, ())
    assert RunDirectory(run).read_summary()["status"] == "finished"


class TestOptimizer:
    @pytest.fixture
    def saved(self, made, mark, tmp_path, monkeypatch):
        monkeypatch.chdir(made("method"))
        optimizer = jedax.Optimizer(3, ([-1, -1], [1, 1]), evaluations=80, method="evil:Drift", cells=16)
        genotypes = optimizer.ask()
        optimizer.tell(genotypes, np.zeros(8), genotypes[:, :2])
        optimizer.save(tmp_path / "o")
        forget()
        mark.unlink()
        return tmp_path / "o"

    def test_ones_own(self, saved, mark):
        assert jedax.Optimizer.load(saved).ask().shape == (8, 3)
        assert mark.exists()

    def test_of_somebody_else(self, saved, mark, monkeypatch):
        monkeypatch.setattr(trust, "_machine", lambda: "elsewhere")
        with pytest.raises(JedaxError, match=r"got evil:Drift, in .*evil\.py; if you trust it, add --trust"):
            jedax.Optimizer.load(saved)
        given = jedax.Optimizer.load(saved, method=own.Drift).ask()
        assert_nothing_imported(mark)
        np.testing.assert_array_equal(jedax.Optimizer.load(saved, trust=True).ask(), given)
