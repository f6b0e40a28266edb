"""Plain functions and classes of the user's by name."""

import inspect
import re
from pathlib import Path

import jax
import numpy as np
import pytest
from tests.search.workers.work import sphere
from tests.tasks.own import Bump

import jedax
from jedax.bench.grids import Entry
from jedax.cli import main
from jedax.errors import JedaxError
from jedax.methods.jedi_x import JEDiX
from jedax.store.config import FullConfig, defaults_for
from jedax.tasks import Task, make
from jedax.tasks.python.settings import PythonFunctionConfig
from jedax.tasks.registry import is_task

WORK = "tests.search.workers.work"


def test_settings_come_from_the_functions_attributes():
    task = make(f"{WORK}:sphere")
    assert task.num_params == 3
    assert task.descriptor_bounds == ((-1.0, -1.0), (1.0, 1.0))
    assert task.goal_fitness is None
    assert make(f"{WORK}:sphere", num_params=5, goal_fitness=-0.1).num_params == 5
    genotypes = jax.vmap(task.init)(jax.random.split(jax.random.key(1), 2000))
    assert abs(float(genotypes.std()) - 1) < 0.05
    found = task.evaluate_batch(jax.random.key(0), genotypes[:9])
    expected = sphere(np.asarray(genotypes[:9], np.float64))
    np.testing.assert_array_equal(found.fitness, expected[0])
    np.testing.assert_array_equal(found.descriptor, expected[1])
    np.testing.assert_array_equal(task.evaluate(jax.random.key(0), genotypes[4]).fitness, expected[0][4])


def test_measured_bounds(tmp_path):
    """Descriptors are 7 x + 100 and 7 y - 3; the first of each chunk is not finite."""
    run = jedax.run("map-elites", f"{WORK}:measured", evaluations=32, offspring=16, cells=16, out=tmp_path / "run")
    task = make(f"{WORK}:measured")
    drawn = np.array(jax.vmap(task.init)(jax.random.split(jax.random.key(0), 64)))[np.arange(64) % 16 > 0]
    seen = 7 * drawn[:, :2] + [100, -3]
    margin = 0.1 * np.ptp(seen, axis=0)
    np.testing.assert_allclose(run.task.descriptor_bounds[0], seen.min(axis=0) - margin, rtol=1e-3)
    np.testing.assert_allclose(run.task.descriptor_bounds[1], seen.max(axis=0) + margin, rtol=1e-3)
    assert run.summary["num_failed"] == 2
    assert jedax.load(tmp_path / "run").task.descriptor_bounds == run.task.descriptor_bounds
    assert jedax.load(tmp_path / "run", trust=True).task == run.task


class TestFewEvaluations:
    """The defaults of a method on a function are those for few evaluations, from every place that makes settings."""

    def test_in_python_commands_files_and_benches(self, tmp_path):
        expected = {"population": 12, "pool": 1, "es": "cma-es", "growth": JEDiX.few_evaluations(10, None)["growth"]}
        task = make(f"{WORK}:sphere", num_params=10)
        run = jedax.run("jedi-x", task, evaluations=24, cells=16, out=tmp_path / "python")
        given = f"{WORK}:sphere --num-params 10 --evaluations 24 --cells 16 --out".split()
        main(["run", *given, str(tmp_path / "command")])
        made = [run.config.method_config, jedax.load(tmp_path / "command").config.method_config]
        text = f"task: {WORK}:sphere\ntask_config: {{num_params: 10}}\nmethod: jedi-x\n"
        made.append(FullConfig.parse(text, "here").method_config)
        made.append(Entry("x", "jedi-x").config(f"{WORK}:sphere", task.config))
        for config in made:
            assert {name: getattr(config, name) for name in expected} == expected

    def test_settings_given_take_precedence(self):
        config = Entry("x", "jedi-x", changes={"pool": 2}).config(f"{WORK}:sphere")
        assert (config.pool, config.population) == (2, 8)

    def test_other_tasks_and_methods_keep_theirs(self):
        assert defaults_for("jedi-x", "maze-a")[0].pool == 2
        assert defaults_for("map-elites", f"{WORK}:sphere")[0] == defaults_for("map-elites", "maze-a")[0]


GIVEN = {"num_params": 3, "descriptor_lows": (-1, -1), "descriptor_highs": (1, 1)}
BAD = [
    ("not_callable", GIVEN, r"task: expected a function, a subclass of jedax.tasks.Task or an object of one, got"),
    ("nobody", GIVEN, r"task: expected 'nobody' in tests.search.workers.work, got none"),
    ("words", {}, r"num_params: expected the length of a genotype, got none; give num_params \(--num-params 10\)"),
    ("alone", GIVEN, r"work:alone: expected two results"),
    ("alone", {"num_params": 3}, r"^(?!.*run again).*, search with jedax\.minimize\.$"),
    ("strange_descriptors", {**GIVEN, "chunk": 16}, r"descriptors: expected shape \(2, 2\), got \(2, 3\)"),
    ("always_raises", GIVEN, r"always_raises: expected a finite fitness and descriptor for one of 64 random genotypes, "
                             r"got none; .* 64 evaluations failed 3 times: the evaluation raised "),
    ("constant", {"num_params": 3}, r"descriptor_lows: expected descriptors that differ .*, got 1 for all in"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings", "message"), BAD)
def test_what_is_refused(tmp_path, name, settings, message):
    out = tmp_path / "run"
    with pytest.raises(JedaxError, match=message):
        jedax.run("map-elites", make(f"{WORK}:{name}", **settings), evaluations=64, out=out)
    assert not out.exists()


class NeedsMore(Bump):
    def __init__(self, more):
        self.more = more


class Unfinished(Task):
    name = "unfinished"


class Other:
    pass


OWN = "tests.tasks.python.test_function"


def test_a_class_by_name(tmp_path):
    run = jedax.run("map-elites", "tests.tasks.own:Bump", offspring=16, cells=16, out=tmp_path / "run")
    same = jedax.run("map-elites", Bump(), offspring=16, cells=16)
    assert run.summary["evaluations"] == 48
    assert run.config.task == same.config.task == "tests.tasks.own:Bump"
    assert run.task.name == "bump"
    again = jedax.resume(tmp_path / "run")
    np.testing.assert_array_equal(again.repertoire.fitness, run.repertoire.fitness)
    np.testing.assert_array_equal(same.repertoire.fitness, run.repertoire.fitness)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Other", r"task: expected a subclass of jedax.tasks.Task, got tests.tasks.python.test_function:Other"),
        ("NeedsMore", r"task: expected a class that is made without arguments .*'more'"),
        ("Unfinished", r"task: expected a class .* has init and evaluate, got .*Unfinished \(.*abstract"),
    ],
)
def test_classes_that_are_no_tasks(name, message):
    with pytest.raises(JedaxError, match=message):
        make(f"{OWN}:{name}")


def test_names_of_descriptors():
    task = make(f"{WORK}:named")
    assert task.descriptor_names == ("speed", "height")
    assert make(f"{WORK}:named", descriptor_names=("a", "b")).descriptor_names == ("a", "b")
    assert make(f"{WORK}:sphere").descriptor_names == ()
    with pytest.raises(JedaxError, match=r"descriptor_names: expected one for each of the 2 descriptors, got \('a',\)"):
        make(f"{WORK}:named", descriptor_names=("a",))


def test_the_guide_lists_all_attributes_of_functions():
    guide = (Path(__file__).parents[3] / "docs" / "guides" / "tasks.md").read_text()
    rows = [line for line in guide.splitlines() if line.startswith("| `") and "| `--" in line]
    rows += [line for line in guide.splitlines() if line.startswith("| `space` | in a file or in Python")]
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert listed == set(PythonFunctionConfig.model_fields) - {"name"}


class Branches(Bump):
    def evaluate(self, key, genotype):
        return jedax.Evaluation(genotype[0] if genotype[0] > 0 else genotype[1], genotype[:2])


class Converts(Bump):
    def evaluate(self, key, genotype):
        return jedax.Evaluation(float(genotype[0]), genotype[:2])


class UsesNumPy(Bump):
    def evaluate(self, key, genotype):
        return jedax.Evaluation(np.sin(genotype).sum(), genotype[:2])


class Selects(Bump):
    def evaluate(self, key, genotype):
        return jedax.Evaluation(genotype[genotype > 0].sum(), genotype[:2])


class DrawsOutside(Bump):
    def init(self, key):
        return np.asarray(jax.random.uniform(key, (3,)))


@pytest.mark.parametrize(("kind", "method", "error"), [
    (Branches, "evaluate", "TracerBoolConversionError"),
    (Converts, "evaluate", "ConcretizationTypeError"),
    (UsesNumPy, "evaluate", "TracerArrayConversionError"),
    (Selects, "evaluate", "NonConcreteBooleanIndexError"),
    (DrawsOutside, "init", "TracerArrayConversionError"),
])  # fmt: skip
def test_what_jax_cannot_trace(kind, method, error):
    line = inspect.getsourcelines(getattr(kind, method))[1] + 1
    name = kind.__name__
    message = (
        rf"{name}.{method}: expected code that JAX can trace: .* tracers, .* got {error} in line {line}, which asks .* "
    )
    for task in (lambda: make(f"{OWN}:{name}"), lambda: jedax.run("map-elites", kind(), evaluations=16)):
        with pytest.raises(JedaxError, match=rf"{message}jnp.where .* jedax run module:function\.$") as caught:
            task()
        assert type(caught.value.__cause__).__name__ == error


class Mistaken(Bump):
    def evaluate(self, key, genotype):
        return jedax.Evaluation(genotype.reshape(2, 2).sum(), genotype[:2])


def test_a_mistake_in_a_class_is_named():
    line = inspect.getsourcelines(Mistaken.evaluate)[1] + 1
    with pytest.raises(
        JedaxError, match=rf"Mistaken.evaluate: expected no error, got TypeError in line {line}: .*\(2, 2\)"
    ):
        make(f"{OWN}:Mistaken")


@pytest.mark.parametrize(("least", "most"), [(101_310.0, 101_340.0), (-0.81234, 1.9031), (1999.0, 2026.0)])
def test_measured_bounds_hold_what_was_measured(least, most):
    task = make(f"{WORK}:sphere", descriptor_lows=(), descriptor_highs=())
    found = np.array([[least, 0.0], [most, 1.0], [(least + most) / 2, 0.5]])
    (low, _), (high, _) = task.settled(lambda genotypes: (np.zeros(3), found)).descriptor_bounds
    assert least - 0.11 * (most - least) < low < least
    assert most < high < most + 0.11 * (most - least)


def test_bounds_that_are_given_need_one_solution_of_many_that_does_not_fail():
    """Two genotypes are tried first, then as many as bounds are measured on."""
    task, calls = make(f"{WORK}:sphere", descriptor_lows=(-1, -1), descriptor_highs=(1, 1)), []

    def evaluate(genotypes):
        calls.append(len(genotypes))
        return np.where(np.arange(len(genotypes)) < 9, np.nan, 1.0), np.zeros((len(genotypes), 2))

    assert task.settled(evaluate) is task
    assert calls == [2, task.config.measured_on]
    with pytest.raises(JedaxError, match="expected a finite fitness and descriptor for one of 64 random genotypes"):
        task.settled(lambda genotypes: (np.full(len(genotypes), np.nan), np.zeros((len(genotypes), 2))))


def test_names_of_modules_in_any_script():
    assert is_task("übung:f")
    assert not is_task("7:f")
