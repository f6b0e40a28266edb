"""Methods, strategies, rankers, rules and tasks from outside the package: as objects, by name, and as entry points."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.commands import call
from tests.conftest import assert_same_bits, assert_same_run
from tests.methods import own

import jedax
from jedax.bench.bench import bench
from jedax.bench.grids import Entry, Grid
from jedax.es import check_strategy, make_strategy, strategy_names
from jedax.imports import entry_points, object_name
from jedax.methods.map_elites import MapElites, MapElitesConfig
from jedax.methods.registry import method_defaults, method_named, methods
from jedax.tasks.stored import StoredTask

OWN = "tests.methods.own"
ROOT = str(Path(__file__).parents[2])
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, os.environ.get("PYTHONPATH", "")])}
SMALL = {"evaluations": 8 * 15, "seed": 3, "replicas": 2, "cells": 16, "report_every": 2}
COMBINATIONS = {
    "method": {"method": own.Drift, "acceptance": own.HALFWAY, "powers": (0, 1)},
    "emitters": {"method": "cma-me", "es": own.Spherical, "ranker": own.farthest, "acceptance": own.HALFWAY,
                 "population": 4, "pool": 2},
    "jedi": {"method": "jedi", "es": own.Spherical, "population": 4, "pool": 2, "generations": 4, "gp_max_steps": 4},
}  # fmt: skip


@pytest.fixture(scope="module", params=COMBINATIONS)
def combination(request):
    """Settings with objects, and the same with their names."""
    settings = COMBINATIONS[request.param]
    named = {key: object_name(value) if hasattr(value, "__module__") else value for key, value in settings.items()}
    return {**SMALL, **settings, "task": own.Bowl()}, {**SMALL, **named, "task": f"{OWN}:Bowl"}


@pytest.fixture(scope="module")
def whole(combination, tmp_path_factory, without_figures):
    return jedax.run(**combination[0], out=tmp_path_factory.mktemp("whole") / "run")


@dataclass(frozen=True)
class Loose:
    """A state that is no pytree."""

    repertoire: int
    generation: int


def remembering(method, key, state):
    """Keeps something in the method."""
    method.number = 1


@pytest.mark.usefixtures("without_figures")
class TestRun:
    def test_names_and_objects_are_the_same(self, combination, whole):
        named = jedax.run(**combination[1])
        assert_same_run(named, whole)
        assert named.config.dump() == whole.config.dump() == (whole.path / "config.yaml").read_text()

    @pytest.mark.parametrize("which", [0, 1], ids=["objects", "names"])
    def test_killed_and_resumed(self, combination, whole, which, tmp_path):
        def kill(report):
            if report.evaluations >= 8 * 9:
                raise KeyError("killed")

        with pytest.raises(KeyError):
            jedax.run(**combination[which], out=tmp_path / "run", checkpoint_seconds=0, callbacks=[kill])
        assert_same_run(jedax.resume(tmp_path / "run"), whole)
        assert (tmp_path / "run" / "history.jsonl").read_text() == (whole.path / "history.jsonl").read_text()

    def test_stopped_by_the_clock_and_resumed(self, combination, whole, tmp_path):
        run = jedax.run(**combination[0], out=tmp_path / "run", max_seconds=1e-6)
        while run.summary["status"] == "time":
            run = jedax.resume(tmp_path / "run")
        assert_same_run(run, whole)

    def test_loaded(self, whole):
        shown = jedax.load(whole.path)
        assert_same_run(shown, whole)
        assert type(shown.task) is StoredTask
        assert type(whole.task) is own.Bowl
        loaded = jedax.load(whole.path, trust=True)
        assert_same_run(loaded, whole)
        assert type(loaded.task) is own.Bowl
        assert type(loaded.config.method_config) is type(whole.config.method_config)
        assert loaded.config.dump() == whole.config.dump()

    def test_the_directory_says_where_the_code_comes_from(self, whole):
        code = json.loads((whole.path / "environment.json").read_text())["code"]
        parts = {"task": ("Bowl", "Bowl"), "method": ("Drift", "Drift"), "es": ("Spherical", "Spherical"),
                 "ranker": ("farthest", "farthest"), "acceptance": ("HALFWAY", "Halfway")}  # fmt: skip
        settings = dict(whole.config.method_config)
        used = ["task", *(part for part in ("es", "ranker", "acceptance") if settings.get(part) is not None)]
        if whole.config.method == f"{OWN}:Drift":
            used.append("method")
        expected = {
            part: {"name": f"{OWN}:{parts[part][0]}", "class": f"{OWN}:{parts[part][1]}", "file": own.__file__}
            for part in used
        }
        assert code == expected

    def test_page_and_comparison(self, whole, tmp_path):
        bare = jedax.write_report(whole.path, out=tmp_path / "bare.html").read_text()
        page = jedax.write_report(whole.path, out=tmp_path / "page.html", trust=True).read_text()
        for text in (bare, page):
            assert whole.config.method in text
            assert f"{OWN}:Bowl" in text
        assert "is not imported without trust" in bare
        assert "is not imported" not in page
        if whole.config.method == f"{OWN}:Drift":
            for words in ("Drift walked from elite to elite.", "Drift tried 4 generations", "A walk from elite"):
                assert words in page
                assert words not in bare
        found = jedax.compare(whole.path, out=tmp_path / "compared", formats=())
        assert [table.task for table in found.tables] == [f"{OWN}:Bowl"]
        assert [entry.label for entry in found.tables[0].entries] == [whole.config.method]


@pytest.mark.usefixtures("without_figures")
class TestMethod:
    def test_presets_and_settings(self):
        config = jedax.run(own.Drift, "arm", evaluations=16, cells=16).config.method_config
        assert config == own.Drift.Config(cells=16, step=0.5)
        config = jedax.run(f"{OWN}:Drift", "arm", evaluations=16, cells=16, preset="narrow").config.method_config
        assert config == own.Drift.Config(cells=16, step=0.05)
        config = jedax.run(own.Drift.Config(batch=4), "arm", evaluations=16, cells=16).config
        assert (config.method, config.method_config) == (f"{OWN}:Drift", own.Drift.Config(batch=4, cells=16))
        with pytest.raises(jedax.JedaxError, match=r"^setting: unknown name 'stepp'; did you mean 'step'"):
            jedax.run(own.Drift, "arm", stepp=2)
        with pytest.raises(jedax.JedaxError, match=r"^setting: expected one that .*:Drift has, got alpha, which"):
            jedax.run(own.Drift, "arm", alpha=0.3)
        with pytest.raises(jedax.JedaxError, match=r"^powers: expected one or more, got \(\); name one"):
            jedax.run(own.Drift, "arm", powers=())

    @pytest.mark.parametrize("method", [own.Drift, f"{OWN}:Drift", own.Drift.Config(step=0.5)], ids=str)
    def test_optimizer(self, method, tmp_path):
        optimizer = jedax.Optimizer(4, ([-1, -1], [1, 1]), evaluations=96, method=method, cells=16, loop=3)
        for _ in range(5):
            genotypes = optimizer.ask()
            optimizer.tell(genotypes, -np.square(genotypes).sum(axis=1), genotypes[:, :2])
        optimizer.save(tmp_path / "half")
        again = jedax.Optimizer.load(tmp_path / "half")
        while not optimizer.done:
            for each in (optimizer, again):
                genotypes = each.ask()
                each.tell(genotypes, -np.square(genotypes).sum(axis=1), genotypes[:, :2])
        assert_same_bits(optimizer.repertoire, again.repertoire)
        assert optimizer.best.fitness > -1
        assert int(optimizer._steps.state.num_moves[0]) == 4

    def test_a_class_derived_from_one_of_ours(self, arm, small):
        run = jedax.run(Steady, arm, evaluations=8 * 8, **dict(small))
        assert run.config.method == f"{__name__}:Steady"
        assert {row["alpha"] for row in run.rows[1:]} == {np.float32(0.25).item()}
        assert method_named(small).name == "jedi-uniform"

    def test_settings_for_large_policies_are_a_preset_and_not_the_default(self):
        large = type("Large", (own.Drift,), {"large_policies": {"batch": 32}, "presets": {}})
        assert list(method_named(large).presets) == ["default", "large-policies"]
        assert method_defaults(large, "arm").batch == 8
        assert method_defaults(large, "arm", "large-policies").batch == 32

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"tell": jedax.Method.tell}, r"^Bad: expected the attribute tell, got none; define it"),
            ({"ask": None}, r"^Bad: expected the attribute ask, got none; define it"),
            ({"Config": dict}, r"^Bad.Config: expected a class derived from jedax.MethodConfig, got <class 'dict'>"),
            (
                {"Config": jedax.MethodConfig, "presets": {}},
                r"^Bad.Config: expected a batch of at least 1, got None; give it a",
            ),
            ({"batch": 0}, r"^Bad.Config: expected a batch of at least 1, got 0; give it a"),
            ({"init": lambda *given: ()}, r"^Bad.init: expected a state with the field repertoire, got tuple"),
            ({"ask": lambda s, key, state: (jnp.zeros((8, 5)), state)}, r"^Bad.ask: expected shape \(8, 10\), got"),
            (
                {"ask": lambda s, key, state: jnp.zeros((8, 10))},
                r"^Bad.ask: expected genotypes and a state, got \w*Tracer",
            ),
            (
                {"init": lambda *given: Loose(0, 0)},
                r"^Bad.init: expected a state of arrays, got the object Loose; decor",
            ),
            ({"ask": remembering}, r"^Bad.number: expected no new attribute, because .*, got 1; keep what changes in"),
            (
                {"metrics": lambda s, state: [1]},
                r"^Bad.metrics: expected a dict of arrays with one .*, got list; return",
            ),
            ({"metrics": lambda s, state: {"x": 1.0}}, r"^Bad.metrics: .*, got x of shape \(\); correct x"),
            (
                {"metrics": lambda s, state: {"x": state.repertoire.fitness}},
                r"^Bad.metrics: .*, got x of shape \(1, \d+\)",
            ),
            ({"tell": lambda s, key, state, *found: state}, r"^Bad.tell: expected a state and an Insertion, got Drift"),
            ({"tell": lambda s, key, state, *found: (state, 0)}, r"^Bad.tell: expected a state of the next generation"),
            ({"tell": lambda s, key, state, *found: ((), 0)}, r"^Bad.tell: expected a state with the fields it had"),
            (
                {"tell": lambda s, key, state, *found: (replace(state, generation=state.generation + 1.0), 0)},
                r"^Bad.tell: state.generation: expected int32 of shape \(\), got float32 of shape \(\); keep shapes",
            ),
        ],
    )
    def test_a_class_that_lacks_something(self, changes, message):
        with pytest.raises(jedax.JedaxError, match=message):
            jedax.run(type("Bad", (own.Drift,), changes), "arm")

    def test_settings_without_a_method(self):
        with pytest.raises(
            jedax.JedaxError, match=r"^method: expected settings of a method, got .*; give the method's"
        ):
            jedax.run(Lonely(), "arm")
        with pytest.raises(jedax.JedaxError, match=r"^Lacking: expected the attribute Config, got none; define it"):
            jedax.run(type("Lacking", (jedax.Method,), {}), "arm")

    def test_settings_of_a_derived_method(self, arm):
        """They run that method, although they derive from the settings of another."""
        config = Doubled.Config(offspring=8, cells=16, boost=3.0)
        run = jedax.run(config, arm, evaluations=8 * 4)
        assert run.config.method == f"{__name__}:Doubled"
        assert float(run.repertoire.fitness.max()) > 0

    def test_settings_of_a_derived_class(self, small, arm):
        """A subclass of a method's settings belongs to that method."""
        config = FewLoops(**{name: value for name, value in small if name != "generations"})
        run = jedax.run(config, arm, evaluations=8 * 16, seed=5)
        assert run.config.method == "jedi-uniform"
        assert_same_bits(run.repertoire, jedax.run(small, arm, evaluations=8 * 16, seed=5).repertoire)
        optimizer = jedax.Optimizer(4, arm.descriptor_bounds, evaluations=80, method=config)
        assert type(optimizer.config) is FewLoops
        assert optimizer.ask().shape == (8, 4)


@pytest.mark.usefixtures("without_figures")
class TestCommand:
    TASK = ("run", f"{OWN}:Bowl", "--out", "r", "--cells", "16")

    def test_a_method_of_ones_own(self, here, capsys):
        words = f"--method {OWN}:Drift --step 0.2 --powers 0 1 --acceptance {OWN}:HALFWAY --seed 3 --max-seconds 1e-6"
        code, out, err = call(capsys, *self.TASK, *words.split())
        assert code == 0, err
        assert out.startswith(f"{OWN}:Drift searches {OWN}:Bowl with 160 evaluations\n")
        code, out, err = call(capsys, "run", "--resume", "r", "--max-seconds", "1000")
        assert code == 0, err
        expected = jedax.run(own.Drift, own.Bowl(), step=0.2, powers=(0, 1), acceptance=own.HALFWAY, seed=3, cells=16)
        assert_same_run(jedax.load("r"), expected)
        for words, is_described in (((), False), (("--trust",), True)):
            assert call(capsys, "report", "r", *words)[0] == 0
            page = (here / "r" / "report.html").read_text()
            assert ("Drift walked from elite to elite." in page) == is_described

    def test_parts_of_ones_own(self, here, capsys):
        words = f"--method cma-me --es {OWN}:Spherical --ranker {OWN}:farthest --population 4 --pool 2"
        code, _, err = call(capsys, *self.TASK, *words.split())
        assert code == 0, err
        parts = {"es": own.Spherical, "ranker": own.farthest, "population": 4, "pool": 2}
        assert_same_run(jedax.load("r"), jedax.run("cma-me", own.Bowl(), cells=16, **parts))

    def test_presets_and_help(self, here, capsys):
        code, out, err = call(capsys, *self.TASK, "--method", f"{OWN}:Drift", "--preset", "narrow", "--help-all")
        assert code == 0, err
        assert "Standard deviation around the centre. (default: 0.05)" in " ".join(out.split())
        code, _, err = call(capsys, *self.TASK, "--method", f"{OWN}:Drift", "--preset", "narow")
        assert (code, err) == (2, "jedax: preset: unknown name 'narow'; did you mean 'narrow'?\n")
        code, _, err = call(capsys, *self.TASK, "--method", f"{OWN}:Drift", "--alpha", "0.3")
        assert code == 2
        assert f"expected one that {OWN}:Drift has, got --alpha, which belongs to jedi, jedi-uniform" in err


@pytest.mark.usefixtures("without_figures", "programs_kept", "without_comparison_figures")
class TestBench:
    METHODS = (f"{OWN}:Drift,step=0.2", f"{OWN}:Drift,narrow", f"cma-me,es={OWN}:Spherical,population=4,pool=2")

    def test_by_name(self, here, capsys):
        command = ("bench", f"{OWN}:Bowl", "--methods", *self.METHODS, "map-elites", "--seeds", "2", "--out", "b")
        code, out, err = call(capsys, *command)
        assert code == 0, out + err
        labels = [method.replace(",", " ") for method in (*self.METHODS, "map-elites")]
        compared = jedax.compare("b", formats=())
        assert {entry.label for entry in compared.tables[0].entries} == {*labels}
        run = next(path for path in (here / "b").rglob("config.yaml") if "step" in str(path)).parent
        expected = jedax.run(own.Drift, own.Bowl(), step=0.2, replicas=2)
        assert_same_run(jedax.load(run), expected)
        code, out, _ = call(capsys, *command)
        assert code == 0
        assert out.startswith("0 runs done, 0 failed")

    def test_objects(self, tmp_path):
        entries = (Entry("drift", own.Drift, None, {"step": 0.2}), Entry("wide", own.Drift.Config(step=2.0)))
        outcome = bench(Grid("", (own.Bowl(),), entries, seeds=2), tmp_path)
        assert (outcome.done, outcome.failed) == (2, ())
        again = bench(Grid("", (f"{OWN}:Bowl",), entries, seeds=2), tmp_path)
        assert (again.done, again.before) == (0, 4)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package that registers names is installed."""
    (tmp_path / "own-1.dist-info").mkdir()
    (tmp_path / "own-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1\n")
    groups = {
        "methods": f"drift = {OWN}:Drift\njedi-x = {OWN}:Drift",
        "strategies": f"spherical = {OWN}:Spherical",
        "tasks": f"bowl = {OWN}:Bowl",
    }
    text = "\n".join(f"[jedax.{group}]\n{entry}" for group, entry in groups.items())
    (tmp_path / "own-1.dist-info" / "entry_points.txt").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for cached in (entry_points, methods):
        cached.cache_clear()
    yield
    monkeypatch.undo()
    for cached in (entry_points, methods):
        cached.cache_clear()


@pytest.mark.usefixtures("installed")
class TestEntryPoints:
    def test_names(self):
        assert method_named("drift").method is own.Drift
        assert method_named(own.Drift).name == method_named(own.Drift.Config()).name == "drift"
        assert next(iter(methods())) == "jedi-x"
        assert methods()["jedi-x"].method is jedax.JEDiX
        assert "bowl" in jedax.tasks.names()
        assert "spherical" in strategy_names()
        assert check_strategy("spherical") == "spherical"
        assert make_strategy("spherical", population=6) == own.Spherical(6)
        with pytest.raises(jedax.JedaxError, match=r"^es: unknown name 'spherica'; did you mean 'spherical'"):
            check_strategy("spherica")
        with pytest.raises(jedax.JedaxError, match=r"expected one that jedi-x has, got powers, which belongs to drift"):
            jedax.run("jedi-x", "arm", powers=(1,))

    def test_runs(self, here, capsys, without_figures):
        words = "--method drift --step 0.2 --cells 16 --out r"
        code, _, err = call(capsys, "run", "bowl", *words.split())
        assert code == 0, err
        loaded = jedax.load("r")
        assert (loaded.config.method, loaded.config.task) == ("drift", "bowl")
        assert_same_run(loaded, jedax.run(own.Drift, own.Bowl(), step=0.2, cells=16))
        assert json.loads((here / "r" / "environment.json").read_text())["code"]["method"]["file"] == own.__file__
        assert "drift         Samples around an elite" in call(capsys, "methods")[1]
        assert_same_run(jedax.resume("r"), loaded)

    def test_a_package_that_is_broken(self, tmp_path):
        """It does not keep others from working."""
        (tmp_path / "own-1.dist-info" / "entry_points.txt").write_text(
            f"[jedax.methods]\nbroken = no_such_module:Drift\nnone = {OWN}:Bowl\ndrift = {OWN}:Drift\n"
        )
        with pytest.warns(UserWarning, match=r"the method (broken|none) of a package .* is left out: ") as said:
            assert method_named("drift").method is own.Drift
        assert len(said) == 2


@pytest.mark.usefixtures("without_figures")
class TestCodeThatIsNotThere:
    """Runs whose method cannot be imported where they are read."""

    def test_a_class_of_a_function(self, tmp_path):
        class Local(own.Drift):
            pass

        with pytest.raises(jedax.JedaxError, match=r"Local has, got alpha, which belongs to jedi, jedi-uniform"):
            jedax.run(Local, "arm", alpha=0.3)
        run = jedax.run(Local, "arm", evaluations=8 * 12, cells=16, out=tmp_path / "r", max_seconds=1e-6)
        assert run.config.method.startswith("custom:TestCodeThatIsNotThere.test_a_class_of_a_function")
        message = rf"^method: expected the class .*Local, defined in {__file__}, got none; pass it as method="
        with pytest.raises(jedax.JedaxError, match=message):
            jedax.resume(tmp_path / "r")
        assert_same_run(jedax.load(tmp_path / "r"), run)
        assert jedax.write_report(tmp_path / "r").exists()
        with pytest.raises(jedax.JedaxError, match=r"^method: "):
            jedax.resume(tmp_path / "r", method=jedax.JEDi)
        while run.summary["status"] == "time":
            run = jedax.resume(tmp_path / "r", method=Local)
        assert_same_run(run, jedax.run(own.Drift, "arm", evaluations=8 * 12, cells=16))

    def test_a_class_of_the_main_module(self, here):
        (here / "main.py").write_text(
            f"import jedax\nfrom {OWN} import Drift\n\n\nclass Mine(Drift):\n    pass\n\n\n"
            "run = jedax.run(Mine, 'arm', evaluations=96, cells=16, out='r')\n"
            "print(run.config.method, jedax.resume('r', method=Mine).summary['status'])\n"
        )
        done = subprocess.run([sys.executable, "main.py"], capture_output=True, text=True, env=ENVIRONMENT)
        assert done.stdout == "custom:Mine finished\n", done.stderr[-2000:]
        assert_same_run(jedax.load("r"), jedax.run(own.Drift, "arm", evaluations=96, cells=16))
        code = json.loads((here / "r" / "environment.json").read_text())["code"]["method"]
        assert code == {"name": "custom:Mine", "class": "__main__:Mine", "file": str(here / "main.py")}
        with pytest.raises(jedax.JedaxError, match=rf"expected the class Mine, defined in {here / 'main.py'}, got"):
            jedax.resume("r")

    def test_an_optimizer(self, tmp_path):
        class Local(own.Drift):
            pass

        optimizer = jedax.Optimizer(3, ([-1, -1], [1, 1]), evaluations=80, method=Local, cells=16)
        genotypes = optimizer.ask()
        optimizer.tell(genotypes, np.zeros(8), genotypes[:, :2])
        optimizer.save(tmp_path / "o")
        with pytest.raises(jedax.JedaxError, match=r"custom:.*Local"):
            jedax.Optimizer.load(tmp_path / "o")
        np.testing.assert_array_equal(jedax.Optimizer.load(tmp_path / "o", method=Local).ask(), optimizer.ask())

    def test_a_module_that_was_left_behind(self, tmp_path, monkeypatch):
        """Opened elsewhere, the directory can be read; to go on, the code is missed by its file."""
        (tmp_path / "elsewhere.py").write_text(f"from {OWN} import Drift\n\n\nclass Mine(Drift):\n    pass\n")
        with monkeypatch.context() as patch:
            patch.syspath_prepend(tmp_path)
            run = jedax.run("elsewhere:Mine", "arm", evaluations=8 * 12, cells=16, out=tmp_path / "r", max_seconds=1e-6)
            del sys.modules["elsewhere"]
        file = tmp_path / "elsewhere.py"
        file.rename(tmp_path / "hidden.py")
        loaded = jedax.load(tmp_path / "r")
        assert loaded.config.method == "elsewhere:Mine"
        assert loaded.config.method_config.step == 0.5
        assert_same_run(loaded, run)
        assert jedax.write_report(tmp_path / "r").exists()
        message = rf"module elsewhere .*The run was made with the class elsewhere:Mine, defined in {file}\.$"
        with pytest.raises(jedax.JedaxError, match=message):
            jedax.resume(tmp_path / "r")
        while run.summary["status"] == "time":
            run = jedax.resume(tmp_path / "r", method=own.Drift)
        assert_same_run(run, jedax.run(own.Drift, "arm", evaluations=8 * 12, cells=16))
        assert jedax.compare(tmp_path / "r", formats=()).tables[0].entries[0].label == "elsewhere:Mine"


class Steady(jedax.JEDi):
    """JEDi with a constant alpha."""

    def start_loop(self, key, state, progress, prediction=None):
        state = super().start_loop(key, state, progress, prediction)
        return replace(state, alpha=jax.numpy.float32(0.25))


class Doubled(MapElites):
    """MAP-Elites that changes the sign of the fitness and multiplies it."""

    class Config(MapElitesConfig):
        """Settings of MAP-Elites and one more."""

        boost: float = 2.0

    def tell(self, key, state, genotypes, evaluation):
        return super().tell(key, state, genotypes, replace(evaluation, fitness=-self.config.boost * evaluation.fitness))


class Lonely(jedax.MethodConfig):
    """Settings of no method."""


class FewLoops(jedax.JediConfig):
    """Settings of JEDi with another default."""

    generations: int = 5


def test_parts_whose_module_is_missing_elsewhere(tmp_path, monkeypatch):
    """A run whose strategy cannot be imported is loaded; to resume it takes the module."""
    (tmp_path / "vanishing_es.py").write_text(
        "from jedax.es import SepCMAES\n\n\nclass Mine(SepCMAES):\n    pass\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    run = jedax.run(
        "jedi-uniform", "arm", es="vanishing_es:Mine", evaluations=64, cells=16, out=tmp_path / "run", draw=None
    )
    code = json.loads((tmp_path / "run" / "environment.json").read_text())["code"]
    assert code["es"]["file"] == str(tmp_path / "vanishing_es.py")
    sys.path.remove(str(tmp_path))
    del sys.modules["vanishing_es"]
    loaded = jedax.load(tmp_path / "run")
    assert loaded.best().fitness == run.best().fitness
    assert loaded.method is None
    with pytest.raises(jedax.JedaxError, match=r"es: expected a module vanishing_es that can be imported"):
        jedax.resume(tmp_path / "run")


class Silent(own.Spherical):
    """Returns nothing from `tell`."""

    def tell(self, key, state, genotypes, scores):
        pass


class Lone(own.Spherical):
    """Returns no state from `ask`."""

    def ask(self, key, state):
        return super().ask(key, state)[0]


class Listing(own.Spherical):
    """Returns a list instead of a state from `ask`."""

    def ask(self, key, state):
        return super().ask(key, state)[0], [state]


class Flat(own.Spherical):
    """Returns a state of another shape from `tell`."""

    def tell(self, key, state, genotypes, scores):
        return jax.tree.map(lambda leaf: leaf.mean(), super().tell(key, state, genotypes, scores))


class Thin(own.Spherical):
    """Has a mean of one parameter too few."""

    def mean(self, state):
        return super().mean(state)[1:]


class Lacking(jedax.es.Strategy):
    """Has no `mean`, and no `tell`."""

    def init(self, key, mean):
        return mean

    def ask(self, key, state):
        return state[None], state


@pytest.mark.parametrize(
    ("method", "settings"), [("es", {}), ("cma-me", {"pool": 1}), ("jedi-x", {"pool": 1, "scouts": 1})]
)
@pytest.mark.parametrize(
    ("es", "message"),
    [
        (Silent, r"^Silent.tell: expected the next state, a \w+, got NoneType; correct what Silent.tell returns"),
        (Lone, r"^Lone.ask: expected samples and a state, got \w*Tracer; return both"),
        (Listing, r"^Listing.ask: expected the next state, a \w+, got list; correct what Listing.ask returns"),
        (Flat, r"^Flat.tell: state.*: expected shape \(\d+,\), as before, got shape \(\); keep the shape"),
        (Thin, r"^Thin.mean: expected shape \(4,\), got shape \(3,\); return the centre of the samples"),
        (Lacking, r"es: expected a class with init, ask, tell and mean, got Lacking, .*; define mean and tell"),
    ],
)
def test_strategies_that_return_something_else(method, settings, es, message):
    with pytest.raises(jedax.JedaxError, match=message):
        jedax.run(method, jedax.tasks.make("arm", joints=4), evaluations=64, cells=16, population=8, es=es, **settings)


def test_a_ranker_that_returns_nothing():
    with pytest.raises(jedax.JedaxError, match=r"^ranker: expected one score per solution, .*, got NoneType; return"):
        jedax.run("cma-me", "arm", evaluations=64, cells=16, population=8, pool=1, ranker=lambda outcome: None)


class Short(own.Drift):
    """Asks for a solution too few."""

    def ask(self, key, state):
        genotypes, state = super().ask(key, state)
        return genotypes[1:], state


class Nested(own.Spherical):
    """Asks for a population within another one."""

    def ask(self, key, state):
        genotypes, state = super().ask(key, state)
        return genotypes[None], state


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        (Short, {}, r"Short.ask: expected shape \(8, 4\), got shape \(7, 4\); correct Short.ask"),
        ("es", {"es": Nested, "population": 8}, r"Nested.ask: expected 8 rows of parameters, got shape \(1, 8, 4\)"),
    ],
)
def test_a_generation_of_another_shape_names_its_author(method, settings, message):
    with pytest.raises(jedax.JedaxError, match=message):
        jedax.run(method, jedax.tasks.make("arm", joints=4), evaluations=64, cells=16, **settings)
