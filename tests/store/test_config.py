"""The file that keeps all settings of a run: there and back, and what is refused."""

import hashlib

import pytest
import yaml

from jedax.errors import JedaxError
from jedax.methods.cma_me import CMAMEConfig
from jedax.methods.jedi import JEDi, JediConfig
from jedax.methods.jedi_x import JediXConfig
from jedax.methods.registry import method_defaults, methods
from jedax.store.config import FullConfig, RunConfig, UnknownSettings, method_of
from jedax.tasks import make
from jedax.tasks.functions.settings import FunctionConfig
from jedax.tasks.maze.settings import MazeConfig
from jedax.tasks.registry import entries


def parse(text):
    return FullConfig.parse(text, where="run/config.yaml")


class TestRoundTrip:
    @pytest.mark.parametrize("method", methods())
    @pytest.mark.parametrize("task", entries())
    def test_defaults(self, task, method):
        config = FullConfig(
            task=task,
            task_config=entries()[task].config(),
            method=method,
            method_config=method_defaults(method, task),
        )
        again = parse(config.dump())
        assert again == config
        assert type(again.task_config) is type(config.task_config)
        assert type(again.method_config) is type(config.method_config)
        assert again.dump() == config.dump()

    def test_everything_changed(self):
        config = FullConfig(
            task="maze-b",
            task_config=entries()["maze-b"].config().replace(hidden=(4, 4), laser_noise=1e-7, walls=()),
            method="jedi",
            method_config=JediConfig(alpha=1 / 3, es="lm-ma-es", cells=64, gp_noise_floor=1e-9),
            run=RunConfig(
                evaluations=2**31 - 1, seed=2**32 - 3, replicas=3, stop_fitness=-250.0, max_seconds=1.5,
                start_from="Anfänge.npy", report_every=7, checkpoint_seconds=0,
            ),
        )  # fmt: skip
        assert parse(config.dump()) == config

    def test_a_maze_file_comes_back_without_the_file(self):
        maze = MazeConfig(name="mine", walls=[(0, 0.5, 0.7, 0.5)], steps=99)
        config = FullConfig(task="gone/mine.yaml", task_config=maze)
        again = parse(config.dump())
        assert again == config
        assert again.task_config == maze

    def test_a_custom_task_has_no_settings(self):
        config = FullConfig(task="custom:mine.Task")
        again = parse(config.dump())
        assert again == config
        assert again.task_config is None

    def test_the_dump_names_every_setting(self):
        config = FullConfig(task="maze-a", task_config=entries()["maze-a"].config())
        values = yaml.safe_load(config.dump())
        assert set(values) == {"format", "task", "task_config", "method", "method_config", "label", "run"}
        assert set(values["task_config"]) == set(MazeConfig.model_fields)
        assert set(values["method_config"]) == set(JediXConfig.model_fields)
        assert set(values["run"]) == set(RunConfig.model_fields)
        assert values["format"] == 3


class TestPartial:
    def test_a_task_is_enough(self):
        config = parse("task: maze-c")
        run = RunConfig(evaluations=2_000_000)
        assert config == FullConfig(task="maze-c", task_config=entries()["maze-c"].config(), run=run)
        assert (config.method, config.method_config, config.run) == ("jedi-x", JediXConfig(), run)

    def test_a_task_may_be_given_beside_the_settings(self):
        expected = parse("task: maze-c\nmethod: es")
        for text in ("method: es", "task:\nmethod: es", "task: sphere\ntask_config: {dimensions: 4}\nmethod: es"):
            assert FullConfig.parse(text, "c.yaml", "maze-c") == expected
        own = "task: maze-c\ntask_config: {steps: 99}"
        assert FullConfig.parse(own, "c.yaml", "maze-c") == parse(own)

    def test_what_is_left_out_keeps_the_default_of_its_task_and_method(self):
        config = parse(
            "task: maze-quad-b\nmethod: jedi\ntask_config: {steps: 100}\n"
            "method_config: {alpha: 0.5}\nrun: {replicas: 2}\n"
        )
        assert config.task_config == entries()["maze-quad-b"].config().replace(steps=100)
        assert config.method_config == JediConfig(targets="pareto", alpha=0.5)
        assert config.run == RunConfig(evaluations=2_000_000, replicas=2)

    def test_an_earlier_name_of_a_method(self):
        assert parse("task: maze-c\nmethod: jedi-paper") == parse("task: maze-c\nmethod: jedi")

    def test_an_empty_section_is_none(self):
        config = parse("task: sphere\ntask_config:\nmethod_config:\nrun:\n")
        run = RunConfig(evaluations=FunctionConfig().evaluations)
        assert config == FullConfig(task="sphere", task_config=FunctionConfig(), run=run)

    def test_a_maze_file_is_read_where_the_settings_do_not_bring_the_maze(self, tmp_path):
        path = tmp_path / "mine.yaml"
        path.write_text("walls: [[0, 0.5, 0.7, 0.5]]\nsteps: 99")
        config = parse(f"task: {path}\ntask_config: {{hidden: [4]}}")
        assert config.task_config == MazeConfig(name="mine", walls=[(0, 0.5, 0.7, 0.5)], steps=99, hidden=(4,))


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("task: [", r"^run/config\.yaml: expected YAML, got a syntax error in line 1; correct the file\.$"),
            ("task: !!python/object/apply:os.getcwd []", r"^run/config\.yaml: expected YAML"),
            ("", r"^run/config\.yaml: expected settings with the key 'task'.*got NoneType; start"),
            ("- task", r"^run/config\.yaml: expected settings with the key 'task'.*got list"),
            ("method: jedi", r"^run/config\.yaml: expected settings with the key 'task'"),
            (
                "task: sphere\nformat: 4",
                r"^run/config\.yaml: format: expected a number up to 3, got 4; read it with the version",
            ),
            (
                "task: sphere\nmethod: es\nmethod_config: {alpha: 0.3}",
                r"^run/config\.yaml: setting: expected one that es has, got alpha, which belongs to jedi, jedi-un",
            ),
            ("task: sphree", r"^run/config\.yaml: task: unknown name 'sphree'; did you mean 'sphere'\?$"),
            ("task: nofile.yaml", r"^nofile\.yaml: expected a readable maze file"),
            (
                "task: sphere\nmethod: jedi-unform",
                r"^run/config\.yaml: method: unknown name 'jedi-unform'; did you mean 'jedi-uniform'",
            ),
            (
                "task: sphere\nmethod_config: {alpha: 0.3}",
                r"^run/config\.yaml: setting: expected one that jedi-x has, got alpha, which belongs to jedi, jedi-un",
            ),
            (
                "task: sphere\nmethod: no_such_module:Mine",
                r"^run/config\.yaml: method: expected a module no_such_module that can be imported",
            ),
            (
                "task: sphere\nruns: {}",
                r"^run/config\.yaml: parameter: unknown name 'runs'; did you mean 'run'\?$",
            ),
            ("task: sphere\nrun: 7", r"^run/config\.yaml: run: expected parameters and values, got 7; mend"),
            ("task: sphere\nformat: '1'", r"format: expected a number up to 3, got '1'; read"),
            ("task: sphere\nformat: true", r"format: expected a number up to 3, got True; read"),
            ("task: sphere\n7: 1", r"^run/config\.yaml: expected names as keys, got .*'7'"),
            ("task: sphere\nrun: {7: 1}", r"^run/config\.yaml: run: expected parameters and values, got {7: 1}"),
            ("task: sphere\nmethod_config: {7: 1}", r"method_config: expected parameters and values, got {7: 1}"),
            *(
                (f"task: sphere\nrun: {empty}", r"^run/config\.yaml: run: expected parameters and values")
                for empty in ("0", "[]", "false", "''")
            ),
            ("task: custom:mine\ntask_config: {a: 1}", r"task_config: expected none for a task defined in Python"),
            (
                "task: sphere\nrun: [seed]",
                r"^run/config\.yaml: run: expected parameters and values, got \['seed'\]",
            ),
            (
                "task: sphere\nrun: {sed: 1}",
                r"^run/config\.yaml: parameter: unknown name 'sed'; did you mean 'seed'",
            ),
            (
                "task: sphere\nrun: {seed: -1}",
                r"^run/config\.yaml: seed: expected greater than or equal to 0, got -1",
            ),
            (
                "task: sphere\nrun: {evaluations: many}",
                r"^run/config\.yaml: evaluations: .*got 'many'; change it, or leave it out to get the default\.$",
            ),
            ("task: sphere\nmethod: jedi\nmethod_config: {alpha: 2}", r"^run/config\.yaml: alpha: .*'decay'.*got 2"),
            ("task: sphere\ntask_config: {walls: []}", r"^run/config\.yaml: parameter: unknown name 'walls'"),
            (
                "task: maze-a\ntask_config: {target: [2, 2]}",
                r"^run/config\.yaml: target: expected a point within",
            ),
            (
                "task: m.yaml\ntask_config: {walls: [[0]]}",
                r"^run/config\.yaml: walls\[0\]: expected 4 values, got 1",
            ),
        ],
    )
    def test_texts(self, text, message):
        with pytest.raises(JedaxError, match=message):
            parse(text)

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (
                {"evaluations": 0},
                r"^evaluations: expected greater than or equal to 1, got 0; change it, or leave it out to get the",
            ),
            (
                {"evaluations": 2**31},
                "^evaluations: expected less than or equal to 2147483647, got 2147483648",
            ),
            ({"seed": 2**32}, "^seed: expected less than 4294967296"),
            ({"replicas": 0}, "^replicas: expected greater"),
            ({"stop_fitness": float("nan")}, "^stop_fitness: expected a finite number, got nan"),
            ({"max_seconds": float("inf")}, "^max_seconds: expected a finite number, got inf"),
            ({"max_seconds": 0}, "^max_seconds: expected greater than 0, got 0"),
            ({"report_every": 0}, "^report_every: expected greater"),
            ({"checkpoint_seconds": -1}, "^checkpoint_seconds: expected greater"),
        ],
    )
    def test_run_values(self, values, message):
        with pytest.raises(JedaxError, match=message):
            RunConfig.build(values)


class TestFormat1:
    """In format 1, `jedi` was the method with uniform targets and rankers had other names."""

    @pytest.mark.parametrize(
        ("method", "given", "name", "expected"),
        [
            ("jedi", "", "jedi-uniform", JediConfig(targets="uniform")),
            ("jedi", "targets: pareto, alpha: 0.3", "jedi-uniform", JediConfig(targets="pareto", alpha=0.3)),
            ("jedi-paper", "", "jedi", JediConfig()),
            ("jedi-paper", "targets: gp-ucb", "jedi", JediConfig(targets="gp-ucb")),
            ("jedi-x", "pool: 4", "jedi-x", JediXConfig(pool=4)),
            ("cma-me", "ranker: imp", "cma-me", CMAMEConfig(ranker="2imp")),
            ("cma-me", "ranker: opt", "cma-me", CMAMEConfig(ranker="obj")),
            ("cma-me", "ranker: rnd", "cma-me", CMAMEConfig(ranker="rd")),
            ("cma-me", "ranker: threshold, threshold_min: -inf", "cma-me", CMAMEConfig(ranker="2imp")),
            (
                "cma-mae",
                "ranker: threshold, threshold_min: task, learning_rate: 0.1",
                "cma-mae",
                CMAMEConfig(ranker="imp", threshold_min="task", learning_rate=0.1),
            ),
        ],
    )
    def test_is_read_under_the_present_names(self, method, given, name, expected):
        config = parse(f"format: 1\ntask: maze-a\nmethod: {method}\nmethod_config: {{{given}}}")
        assert (config.format, config.method, config.method_config) == (3, name, expected)
        assert parse(config.dump()) == config

    @pytest.mark.parametrize(
        ("label", "expected"),
        [("", ""), ("jedi", "jedi-uniform"), ("jedi-paper tuned", "jedi tuned"), ("cma-me opt", "cma-me opt")],
    )
    def test_labels(self, label, expected):
        assert parse(f"format: 1\ntask: maze-a\nlabel: {label}").label == expected

    @pytest.mark.parametrize("number", [1, 2])
    def test_a_setting_has_another_name(self, number):
        config = parse(f"format: {number}\ntask: maze-a\nmethod: jedi-x\nmethod_config: {{steps: [0.2, 0.4]}}")
        assert config.method_config.step_range == (0.2, 0.4)

    @pytest.mark.parametrize("number", [1, 2, 3])
    @pytest.mark.parametrize("scale", ["", ", scale: 2"])
    def test_genotypes_in_units_of_a_scale_were_shares_of_the_range_before(self, number, scale):
        space = f"{{a: {{low: 0, high: 9{scale}}}, b: {{low: 1, scale: 3}}, c: [x, y]}}"
        text = f"format: {number}\ntask: tests.search.workers.work:named\ntask_config: {{space: {space}}}"
        if number < 3 and scale:
            with pytest.raises(JedaxError, match=f"format: expected genotypes .*, got those of format {number}; read"):
                parse(text)
        else:
            assert parse(text).format == 3

    def test_the_checksum_is_that_of_the_file(self):
        """A search that an earlier version began goes on with its checkpoints."""
        written = FullConfig(
            task="arm", task_config=entries()["arm"].config(), method="jedi", method_config=JediConfig()
        )
        text = written.dump().replace("format: 3", "format: 1")
        config = parse(text)
        assert config.method == "jedi-uniform"
        run_without_devices = text.replace("  devices: 1\n", "")
        assert config.digest() == hashlib.sha256(run_without_devices.encode()).hexdigest()
        assert config.digest() != parse(config.dump()).digest()
        assert parse(text.replace("devices: 1", "devices: all")).digest() == config.digest()
        assert parse(text.replace("seed: 0", "seed: 1")).digest() != config.digest()


class TestMethodsFromOutside:
    TEXT = "task: arm\nmethod: no_such_module:Mine\nmethod_config: {cells: 16, mine: [1, 2]}"

    def test_settings_of_a_class_that_is_missing_are_kept(self):
        config = FullConfig.parse(self.TEXT, where="here", strict=False)
        assert isinstance(config.method_config, UnknownSettings)
        assert (config.method_config.cells, config.method_config.mine) == (16, [1, 2])
        assert FullConfig.parse(config.dump(), where="here", strict=False) == config
        with pytest.raises(JedaxError, match=r"The run was made with the class no_such_module:Mine, defined in m"):
            method_of(config, None, origin=", defined in mine.py")

    def test_a_custom_method_must_be_given(self):
        config = parse(self.TEXT.replace("no_such_module:Mine", "custom:Mine"))
        with pytest.raises(JedaxError, match=r"^method: expected the class Mine, defined in m.py, got none; pass"):
            method_of(config, None, origin=", defined in m.py")
        with pytest.raises(JedaxError, match=r"^method: parameter: unknown name 'mine'"):
            method_of(config, entries()["arm"], JEDi)
        config = parse("task: arm\nmethod: custom:Mine\nmethod_config: {alpha: 0.3}")
        assert method_of(config, make("arm"), JEDi) == JEDi(JediConfig(alpha=0.3), make("arm"))
