"""What a release promises: public names, formats that say their version, and one version everywhere."""

import csv
import importlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from tests.conftest import forget_checksums

import jedax
from jedax.store import files

HERE = Path(__file__).parent.parent
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
OLDEST_JAX = HERE / ".github" / "oldest-jax.txt"

# `__all__` of every package and module that has one. Names may be added here at any time. Removing one is a change that
# a user notices: see CONTRIBUTING.md.
NAMES = {
    "jedax": [
        "Choice", "Evaluation", "Integer", "Interrupted", "JEDi", "JEDiX", "JedaxError", "JediConfig", "JediXConfig",
        "Method", "MethodConfig", "Optimizer", "Real", "Repertoire", "Report", "Run", "Solution", "Space",
        "__version__", "compare", "load", "minimize", "reevaluate", "resume", "run", "tasks", "write_report",
    ],
    "jedax.search.engines": ["Engine", "Failure", "Job", "LocalEngine", "NAMES", "make"],
    "jedax.es": [
        "CMAES", "EvosaxStrategy", "LMMAES", "SepCMAES", "Strategy", "check_strategy", "make_strategy",
        "strategy_names",
    ],
    "jedax.gp": [
        "FittedGP", "GPData", "GPSettings", "Hyperparameters", "Posterior", "Prediction", "condition", "fit",
        "one_by_one", "posterior", "predict",
    ],
    "jedax.native": ["choose", "status"],
    "jedax.repertoire": ["Acceptance", "Cells", "HARD", "Repertoire"],
    "jedax.report.plots": [
        "LAYERS", "best", "cell_outlines", "cell_values", "convergence", "distances", "gp_parameters", "layer",
        "paper_style", "phase_times", "replay", "save", "targets",
    ],
    "jedax.rl": ["PPO", "PPOState", "Policy", "ReplayBuffer", "TD3", "TD3State", "TwinCritic"],
    "jedax.space": ["Choice", "Integer", "Real", "Space"],
    "jedax.targets": ["choose_bucb", "choose_pareto", "choose_ucb", "choose_uniform", "pareto_rank"],
    "jedax.tasks": [
        "AntMaze", "ConfiguredTask", "Locomotion", "Maze", "PlanarArm", "Rastrigin", "Sphere", "Task", "TaskConfig",
        "TaskEntry", "make", "names",
    ],
    "jedax.search.tracking": ["About", "TRACKERS", "Tracker", "Tracking", "make", "names"],
    "jedax.types": [
        "Array", "Bool", "Bounds", "Evaluation", "Float", "IMPROVED", "Insertion", "Int", "NEW", "NOT_ADDED",
        "PRNGKeyArray", "Shaped", "Transitions",
    ],
    "jedax.search.workers.pool": ["FAILURES", "Stopped", "Worker", "WorkerPool"],
}  # fmt: skip


def promising():
    """Return the packages and modules that say what they promise."""
    files = (HERE / "src").rglob("*.py")
    parts = [f.relative_to(HERE / "src").with_suffix("").parts for f in files if "\n__all__ = " in f.read_text("utf-8")]
    return sorted(".".join(part).removesuffix(".__init__") for part in parts)


class TestNames:
    def test_parts_are_imported_on_first_use(self):
        """In a new process: here other tests have imported them."""
        code = "import jedax; jedax.rankers.Outcome, jedax.report.plots, jedax.report.comparisons.curves"
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_all_are_listed(self):
        assert sorted(NAMES) == promising()

    @pytest.mark.parametrize("package", NAMES)
    def test_names_of_a_package(self, package):
        module = importlib.import_module(package)
        assert sorted(module.__all__) == NAMES[package] == sorted(NAMES[package])
        assert [name for name in NAMES[package] if getattr(module, name, None) is None] == []


@pytest.fixture(scope="module")
def whole(tmp_path_factory, small, arm, without_figures):
    path = tmp_path_factory.mktemp("release") / "run"
    jedax.run(small, "arm", evaluations=8 * 6, out=path)
    return path


@pytest.fixture
def copied(whole, tmp_path):
    path = shutil.copytree(whole, tmp_path / "run")
    forget_checksums(path)
    return path


class TestFormats:
    """What is written names its format; what is not of this one is refused in a sentence."""

    def test_settings(self, copied):
        file = copied / "config.yaml"
        settings = yaml.safe_load(file.read_text())
        assert settings["format"] == 3
        for other in (0, 4):
            file.write_text(yaml.safe_dump({**settings, "format": other}))
            message = rf"config\.yaml: format: expected a number up to 3, got {other}; read it with the version"
            for attempt in (jedax.load, jedax.resume):
                with pytest.raises(jedax.JedaxError, match=message):
                    attempt(copied)

    def test_settings_of_the_first_format_are_read(self, copied):
        file = copied / "config.yaml"
        settings = yaml.safe_load(file.read_text())
        file.write_text(yaml.safe_dump({**settings, "format": 1, "method": "jedi"}))
        config = jedax.load(copied).config
        assert (config.format, config.method, config.method_config.targets) == (3, "jedi-uniform", "uniform")

    def test_checkpoints(self, copied):
        (copied / "repertoire.safetensors").unlink()
        manifests = sorted((copied / "checkpoint").glob("*/manifest.json"))
        assert manifests
        assert jedax.load(copied).rows
        for other in (0, 2, None):
            for manifest in manifests:
                found = json.loads(manifest.read_text())
                manifest.write_text(json.dumps({**found, "format": other}))
            with pytest.raises(
                jedax.JedaxError, match=rf"expected format 1, got {other}; use the version that wrote it"
            ):
                jedax.load(copied)

    def test_repertoires(self, copied):
        with safe_open(copied / "repertoire.safetensors", "np") as file:
            assert file.metadata() == {"format": str(files.FORMAT)} == {"format": "1"}
        arrays = load_file(copied / "repertoire.safetensors")
        save_file(arrays, copied / "repertoire.safetensors", {"format": "2"})
        with pytest.raises(jedax.JedaxError, match=r"expected format 1, got '2'; use the version that wrote it"):
            jedax.load(copied)
        save_file(arrays, copied / "repertoire.safetensors")  # says nothing: taken for the first
        assert jedax.load(copied).rows

    def test_histories(self, copied):
        header = json.loads((copied / "history.jsonl").read_text().splitlines()[0])
        assert (header["at"], header["format"]) == ("header", 1)

    def test_optimizers(self, tmp_path):
        path = tmp_path / "search.safetensors"
        optimizer = jedax.Optimizer(3, ([-1, -1], [1, 1]), evaluations=640, cells=16)
        optimizer.save(path)
        with safe_open(path, "np") as file:
            kept = file.metadata()
        assert kept["format"] == "jedax optimizer 4"
        np.testing.assert_array_equal(jedax.Optimizer.load(path).ask(), optimizer.ask())
        save_file(load_file(path), path, {**kept, "format": "jedax optimizer 1"})
        with pytest.raises(jedax.JedaxError, match=r"got 'jedax optimizer 1'; use the version that wrote it"):
            jedax.Optimizer.load(path)
        save_file(load_file(path), path, {**kept, "format": "something else"})
        with pytest.raises(jedax.JedaxError, match=r"expected a saved optimizer, got another file; check the path"):
            jedax.Optimizer.load(path)


class TestVersion:
    def test_it_stands_in_one_place(self):
        assert PROJECT["project"]["dynamic"] == ["version"]
        assert "version" not in PROJECT["project"]
        (provider,) = PROJECT["tool"]["dynamic-metadata"]
        file = HERE / provider["input"]
        assert file == HERE / "src" / "jedax" / "_version.py"
        assert f'\n__version__ = "{jedax.__version__}"\n' in file.read_text(encoding="utf-8")

    def test_the_citation_agrees(self):
        citation = yaml.safe_load((HERE / "CITATION.cff").read_text(encoding="utf-8"))
        assert str(citation["version"]) == jedax.__version__

    def test_the_changelog_agrees(self):
        text = (HERE / "CHANGELOG.md").read_text(encoding="utf-8")
        headings = re.findall(r"^## \[(.+?)\](.*)$", text, flags=re.MULTILINE)
        numbered = [(name, rest) for name, rest in headings if name != "Unreleased"]
        assert numbered[0][0] == jedax.__version__
        assert all(re.fullmatch(r" - (unreleased|\d{4}-\d{2}-\d{2})", rest) for _, rest in numbered)


class TestBuild:
    def test_the_sdist_holds_what_builds_it(self):
        include = PROJECT["tool"]["scikit-build"]["sdist"]["include"]
        assert {"/src", "/CMakeLists.txt", "/pyproject.toml", "/README.md", "/LICENSE"} <= set(include)
        assert [path for path in include if not (HERE / path.removeprefix("/")).exists()] == []

    @pytest.mark.skipif(not OLDEST_JAX.exists(), reason="not a checkout")
    def test_wheels_are_built_with_the_oldest_jax(self):
        pinned = re.findall(r"^(\w+)==(\d+\.\d+)\.0$", OLDEST_JAX.read_text(), flags=re.MULTILINE)
        (promised,) = (entry for entry in PROJECT["project"]["dependencies"] if re.match(r"jax\W", entry))
        assert pinned == [("jax", promised.removeprefix("jax>=")), ("jaxlib", promised.removeprefix("jax>="))]
        assert promised in PROJECT["build-system"]["requires"]
        assert OLDEST_JAX.name in PROJECT["tool"]["cibuildwheel"]["environment"]["PIP_CONSTRAINT"]


def test_results_name_no_machines_paths():
    tables = sorted((HERE / "results").rglob("seeds.csv"))
    if not tables:
        pytest.skip("an unpacked source distribution holds no results")
    for table in tables:
        with table.open() as file:
            sources = {row["source"].split("/")[0] for row in csv.DictReader(file)}
        assert sources == {"runs"}, table
