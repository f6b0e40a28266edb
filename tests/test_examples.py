"""The example and the page on tasks of one's own run as they stand there, with smaller budgets."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import jedax
from jedax import cli

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")])
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGE = (ROOT / "docs" / "guides" / "tasks.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def block(text):
    """Return the only block of the page that contains a text."""
    (found,) = [python for python in PYTHON if text in python]
    return found


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_examples(path, here, capsys, undrawn, without_comparison_figures, programs_kept):
    """Each stands on its own, is short, and says what came of it."""
    if path.stem == "cartpole":
        pytest.importorskip("gymnasium", reason="needs the extra [gym]")
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert f"python examples/{path.name}" in text
    shutil.copy(path, here)  # worker processes import functions from where the command was given
    runpy.run_path(path.name)["main"](evaluations=640, out=str(here / "out"))
    assert capsys.readouterr().out.strip()
    assert (here / "out").exists()


def test_the_example_of_a_task(here, capsys):
    """An arm at rest hangs down to the ground, and so the ball stays there."""
    example = runpy.run_path(str(ROOT / "examples" / "throw.py"))
    at_rest = example["Throw"]().evaluate(None, np.zeros(8, np.float32))
    np.testing.assert_allclose(at_rest.descriptor, [0, 0], atol=1e-6)
    assert float(at_rest.fitness) == pytest.approx(-np.hypot(2.5, 1.2), rel=1e-5)
    run = example["main"](evaluations=1280, out=here / "run")
    assert run.best().fitness > -1.5
    assert "The best throw misses the hoop by" in capsys.readouterr().out
    assert (here / "run" / "figures" / "best.png").exists()


def test_the_example_by_the_command(here, capsys, undrawn):
    (here / "throw.py").write_text((ROOT / "examples" / "throw.py").read_text())
    cli.main(["run", "throw:Throw", "--method", "map-elites", "--evaluations", "128", "--cells", "16"])
    assert "results are in runs/throw-Throw-map-elites-seed0" in capsys.readouterr().out
    assert jedax.load("runs/throw-Throw-map-elites-seed0").task.name == "throw"


def test_the_page_of_a_method(here, capsys, undrawn, without_comparison_figures, programs_kept):
    """From a folder outside the package, on a smaller task."""
    shutil.copy(ROOT / "examples" / "own_method.py", here)
    page = (ROOT / "docs" / "guides" / "own-method.md").read_text(encoding="utf-8")
    run, bench = re.findall(r"^jedax (.*own_method:Climbers.*)$", page, flags=re.MULTILINE)
    cli.main([*run.replace("maze-a", "arm").replace("50000", "640").split(), "--cells", "16"])
    found = jedax.load("runs/arm-own_method-Climbers-seed0")
    assert (found.config.method, found.config.method_config.step) == ("own_method:Climbers", 0.3)
    assert len(found.repertoire.best_fitness) == 2
    cli.main([*bench.replace("maze-a maze-b", "arm").replace("seeds 5", "seeds 1").split(), "--evaluations", "640"])
    labels = {entry.label for entry in jedax.compare("runs/bench-arm", formats=()).tables[0].entries}
    assert labels == {"own_method:Climbers", "own_method:Climbers step=0.3", "map-elites"}


def test_the_page_of_a_class(capsys):
    exec(re.sub(r"evaluations=[\d_]+", "evaluations=640", PYTHON[0]), {})
    assert -2 < float(capsys.readouterr().out) <= 0


def test_the_page_of_a_function(here, capsys):
    (here / "mine.py").write_text(block("def simulate"))
    command = re.search(r"jedax (run mine:simulate .*)", PAGE)
    assert command is not None
    cli.main([*command[1].split(), "--evaluations", "64", "--method", "map-elites", "--cells", "16", "--workers", "1"])
    run = jedax.load("runs/mine-simulate-map-elites-seed0")
    assert run.task.num_params == 10
    assert run.task.descriptor_bounds == ((-1, -1), (1, 1))


def test_the_page_of_an_episode(here):
    pytest.importorskip("gymnasium", reason="needs the extra [gym]")
    (here / "mine.py").write_text(block("def how_it_moved"))
    task = jedax.tasks.make("gym:CartPole-v1", descriptor="mine:how_it_moved", hidden=(2,))
    low, high = task.evaluate(None, np.full(task.num_params, 0.1, np.float32)).descriptor
    assert -2.6 < low < high < 2.6


@pytest.mark.skipif(not (ROOT / "results").exists(), reason="an unpacked source distribution holds no results")
@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links(page):
    """Files that pages link to are there, and so are the headings within."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for path, anchor in re.findall(r"\]\((?!\w+:|/)([^)#\s]*)(?:#([^)\s]*))?\)", text):
        target = page.parent / path if path else page
        assert target.exists(), path
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), flags=re.MULTILINE)
            slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
            assert anchor in slugs, f"{path}#{anchor}"


def test_the_strategy_of_the_page_on_methods(undrawn):
    page = (ROOT / "docs" / "guides" / "own-method.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    names = {}
    exec(block, names)
    run = jedax.run("jedi-x", "sphere", es=names["Greedy"], evaluations=640, cells=16)
    assert run.best().fitness > float(run.repertoire.fitness[0].min())


def test_the_page_on_optuna(here, capsys):
    pytest.importorskip("optuna", reason="needs the extra [optuna]")
    page = (ROOT / "docs" / "guides" / "optuna.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(example.replace("n_trials=300", "n_trials=40"), {})
    assert "found beside" in capsys.readouterr().out


def test_the_page_on_minimize(capsys):
    """The best tube of a fine grid is no lighter."""
    page = (ROOT / "docs" / "guides" / "minimize.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(example, names := {})
    found, weight, limits = names["found"], names["weight"], names["limits"]
    assert capsys.readouterr().out.startswith(f"{found.fun:.2f} kg")
    assert max(limits(found.parameters)) <= 0
    grid = {"radius": np.linspace(0.01, 0.1, 2001), "wall": np.geomspace(0.0005, 0.01, 2001)[:, None]}
    is_feasible = np.maximum(*limits(grid)) <= 0
    assert found.fun < 1.001 * np.where(is_feasible, weight(grid), np.inf).min()


def test_the_policies_of_the_page_on_tasks(undrawn, monkeypatch):
    """Their rewards sum to the fitness, and a method learns from them."""
    monkeypatch.setattr(jedax, "run", lambda *given, **settings: None)
    exec(block("class PointMass"), names := {"jax": jax, "jedax": jedax})
    monkeypatch.undo()
    task = names["PointMass"]()
    genotypes = jax.vmap(task.init)(jax.random.split(jax.random.key(0), 8))
    whole, alone = task.evaluate_with_transitions(None, genotypes), task.evaluate_batch(jax.random.key(0), genotypes)
    np.testing.assert_allclose(whole.transitions.rewards.sum(axis=1), alone.fitness, rtol=1e-5)
    np.testing.assert_allclose(whole.descriptor, alone.descriptor, rtol=1e-5)
    run = jedax.run("pga-me", task, evaluations=320, offspring=16, cells=16, critic_steps=4, gradient_steps=2)
    assert run.best().fitness > float(alone.fitness.min())


@pytest.mark.slow
def test_the_page_on_ask_and_tell_by_files(here, monkeypatch):
    page = (ROOT / "docs" / "guides" / "ask-tell-files.md").read_text(encoding="utf-8")
    (example,) = [sh for sh in re.findall(r"```sh\n(.*?)```", page, flags=re.DOTALL) if "--new" in sh]
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    small = example.replace("evaluations: 200", "evaluations: 24")
    done = subprocess.run(["sh", "-ec", small], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"evaluations": 24' in done.stdout
    assert '"wire"' in done.stdout
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(example, found := {})
    assert (found["search"].returncode, found["solutions"]) == (0, [])
    assert (here / "quick-spring" / "search.safetensors").exists()
