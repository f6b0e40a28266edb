"""The scripts in results/: verdicts on claims, what pages say of the stored results, other readings of the GP."""

import json
import shutil
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pandas
import pytest
from tests.bench.synthetic import write_run
from tests.scripts import RESULTS, script

from jedax import networks
from jedax.bench.comparison import compare, compare_records
from jedax.bench.grids import Entry
from jedax.bench.reading import Records
from jedax.methods.jedi import JediConfig
from jedax.store.files import write_json
from jedax.tasks import make

if not RESULTS.exists():
    pytest.skip("an unpacked source distribution holds no results", allow_module_level=True)


claims = script("claims")


@pytest.fixture
def stored(monkeypatch):
    """Return a function that replaces the stored seeds by given values per (maze, label)."""

    def store(values):
        rows = [
            {
                "task": task,
                "label": label,
                "seed": n,
                "final_fitness": v,
                "mean_coverage": 0.5,
                "evaluations": 100.0 + n,
            }
            for (task, label), each in values.items()
            for n, v in enumerate(each)
        ]
        table = pandas.DataFrame(rows)
        monkeypatch.setattr(claims, "rows", lambda folder: table if folder == "paper-mazes" else table.iloc[:0])

    return store


HIGH, LOW = np.linspace(-120, -110, 12), np.linspace(-320, -300, 12)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ((HIGH, HIGH, HIGH, HIGH), (LOW, LOW, LOW, LOW), "**holds**"),
        ((HIGH, HIGH, HIGH, HIGH), (LOW, LOW, HIGH, LOW), "holds in part (A >, B >, C ≈, Quad B >)"),
        ((HIGH, HIGH, HIGH, HIGH), (HIGH, HIGH, HIGH, HIGH), "**not shown** (A ≈, B ≈, C ≈, Quad B ≈)"),
        ((LOW, HIGH, HIGH, HIGH), (HIGH, LOW, LOW, LOW), "**fails** (A <, B >, C >, Quad B >)"),
    ],
)
def test_verdicts(stored, ours, theirs, expected):
    mazes = claims.MAZES
    stored({(maze, "jedi decay"): each for maze, each in zip(mazes, ours, strict=True)}
           | {(maze, "es"): each for maze, each in zip(mazes, theirs, strict=True)})  # fmt: skip
    found = [test for test in claims.tests("jedi decay") if test.other == "es"]
    assert claims.verdict(found) == expected
    assert claims.verdict([]) == "not tested"


def test_p_values_are_corrected_for_all_tests_of_a_method(stored):
    stored({(maze, label): HIGH + (3.5 if label == "jedi-x" else 0) for maze in claims.MAZES
            for label in ("jedi-x", "es", "es-restart", "map-elites", "cma-mae")})  # fmt: skip
    found = claims.tests("jedi-x")
    assert len(found) == 4 * 2 + 4 + 3 + 1 + 4 + 4  # ES, MAP-Elites twice, CMA-MAE twice, evaluations, coverage
    smallest = min(found, key=lambda test: test.p)
    assert smallest.p_holm == pytest.approx(min(1, smallest.p * len(found)))
    assert all(test.p_holm >= test.p for test in found)


def test_seeds_that_arrive_are_compared_apart_from_their_fitness(stored):
    half = np.where(np.arange(12) < 6, HIGH, LOW)
    stored({(maze, label): half if label == "jedi decay" else HIGH for maze in claims.MAZES
            for label in ("jedi decay", "map-elites")} | {("maze-a", "es"): LOW})  # fmt: skip
    found = claims.arrivals_compared("jedi decay")
    assert [test.p for test in found if test.other == "map-elites"] == pytest.approx([0.0137297] * 4, rel=1e-4)
    assert all(test.outcome == claims.ALIKE for test in found)  # after the correction for five tests
    uncorrected = {"jedi decay": [claims.replace(test, p_holm=test.p) for test in found]}
    assert claims._outcomes("arrivals", uncorrected).splitlines() == [
        "| arrivals, against | jedi decay |",
        "|---|---|",
        "| es | > |",
        "| map-elites | < < < < |",
    ]


def test_the_mean_of_a_curve_is_the_area_below_it_over_its_evaluations():
    assert claims.mean_of_curve([0.0, 1.0, 1.0], np.array([10.0, 20.0, 60.0])) == pytest.approx((5 + 40) / 50)


def test_problems_led_and_lost_are_counted_with_and_without_a_correction():
    text = script("beyond").balance([1, 1, 1, -1, -1], [0.001, 0.04, 0.2, 0.03, 0.012])
    assert text == (
        "Of the 5 problems that it was not developed on, JEDi-X has the best median on 3 (2 with p < 0.05, 1 after "
        "Holm's correction), and is behind on 2 (2 with p < 0.05, 1 after Holm's correction).\n"
    )


def test_pages_say_what_the_stored_results_say():
    for (page, name), text in claims.parts().items():
        found = page.read_text(encoding="utf-8").partition(f"<!-- begin {name} -->\n")[2]
        assert found.partition(f"<!-- end {name} -->")[0] == text, f"{page}: run python results/claims.py"


def test_curves_are_thinned_and_can_be_compared_again(tmp_path):
    reports = list(range(10, 5010, 10))
    curve = np.minimum.accumulate(np.linspace(-100, -300, 500))[::-1].tolist()
    write_run(tmp_path / "run", [curve, curve], reports=reports, budget=5000)
    text = script("keeping").curves(compare(tmp_path).records.records)
    (tmp_path / "curves.csv").write_text(text)
    again = compare(tmp_path / "curves.csv")
    (entry,) = again.tables[0].entries
    assert entry.final == (-100, -100)
    rows = pandas.read_csv(tmp_path / "curves.csv")
    assert rows.groupby("seed").size().between(80, 100).all()
    assert (rows.groupby("seed").evaluations.nth(5) == reports[5]).all()  # dense at the beginning
    each = rows[rows.seed == 0]
    np.testing.assert_allclose(each.max_fitness, np.array(curve)[each.evaluations // 10 - 1], rtol=1e-5)


def _finished(path, curves, **options):
    """Write a finished run of five replicas and return its folder."""
    path = write_run(path, curves, budget=10_000, **options)
    summary = {"status": "finished", "wall_seconds": 7200.0, "replicas": len(curves), "goal_evaluations": None}
    write_json(path / "summary.json", summary)
    write_json(path / "environment.json", {"started": path.name, "git_revision": f"rev {path.name}", "command": "-"})
    return path


def test_what_is_kept_of_a_grid_stays_without_its_runs(tmp_path):
    keeping, folder = script("keeping"), tmp_path / "kept"
    fitness = np.array([-260.123456789, -240, -230, -220, -210])
    first = _finished(tmp_path / "runs" / "a", fitness, label="jedi one")
    _finished(tmp_path / "runs" / "b", fitness - 50, label="es", method="es", settings={})
    before = keeping.keep(tmp_path / "runs", folder, "make it")
    files = {file.name: file.read_text() for file in folder.iterdir() if file.is_file() and file.suffix != ".json"}
    again = keeping.keep(tmp_path / "none", folder, "make it")  # without any run
    assert {name: (folder / name).read_text() for name in files} == files
    assert again.tables == before.tables
    assert again.tables[0].reference == "jedi one"
    environment = json.loads((folder / "environment.json").read_text())
    assert environment["hours"] == 4
    assert environment["revisions"] == ["rev a", "rev b"]
    assert environment["evaluations"] == 10 * 10_000

    shutil.rmtree(first)  # one trial is repeated, one stays without a run, and one is new
    shutil.rmtree(tmp_path / "runs" / "b")
    _finished(tmp_path / "runs" / "c", fitness - 20, label="es", method="es")
    _finished(tmp_path / "runs" / "d", fitness[:2], task="maze-b", label="es", method="es")
    found = keeping.keep(tmp_path / "runs", folder, "make it")
    a, b = found.tables
    assert a.entry("jedi one") == before.tables[0].entry("jedi one")
    assert a.entry("es").median == -250
    assert b.entry("es").seeds == (0, 1)
    rows = pandas.read_csv(folder / "seeds.csv")
    assert dict(zip(rows.label + rows.task, rows.revision, strict=True)) == {
        "jedi onemaze-a": "rev a", "esmaze-a": "rev c", "esmaze-b": "rev d"
    }  # fmt: skip
    with pytest.raises(SystemExit, match="found none"):
        keeping.keep(tmp_path / "none", tmp_path / "nothing", "make it")
    (folder / "curves.csv").unlink()
    with pytest.raises(SystemExit, match="expected the curves"):
        keeping.keep(tmp_path / "none", folder, "make it")


def test_what_is_kept_of_a_task_without_a_goal_can_be_read_again(tmp_path):
    keeping, folder = script("keeping"), tmp_path / "kept"
    _finished(tmp_path / "runs" / "a", np.array([1.0, 2, 3]), task="halfcheetah", label="jedi one")
    keeping.keep(tmp_path / "runs", folder, "make it", mapped=(), figures=False)
    assert not (folder / "reached.csv").exists()
    (table,) = keeping.keep(tmp_path / "none", folder, "make it", mapped=(), figures=False).tables
    assert table.entry("jedi one").final == (1, 2, 3)


@pytest.mark.parametrize(
    ("module", "table", "name", "folder"),
    [
        ("paper_mazes", "beside_the_paper", "paper-mazes", "paper-mazes"),
        ("paper_mazes", "medians", "ablation-targets", "ablations/targets"),
        ("paper_mazes", "medians", "ablation-alpha", "ablations/alpha"),
        ("paper_mazes", "medians", "ablation-generations", "ablations/generations"),
        ("paper_mazes", "medians", "ablation-pool", "ablations/pool"),
        ("paper_mazes", "medians", "ablation-learning-rate", "ablations/learning-rate"),
        ("readings", "table", "readings", "readings"),
        ("control", "table", "control-alpha", "ablations/halfcheetah-alpha"),
        ("control", "table", "control-targets", "ablations/halfcheetah-targets"),
        ("control", "table", "control-generations", "ablations/halfcheetah-generations"),
        ("control", "table", "control-pool", "ablations/halfcheetah-pool"),
        ("beyond", "tables", "beyond-development", "beyond/development"),
        ("beyond", "tables", "beyond-held-out", "beyond/held-out"),
        ("beyond", "tables", "beyond-late", "beyond/late"),
        ("beyond", "tables", "beyond-gymnasium", "beyond/gymnasium"),
        ("beyond", "losses_first", "beyond-frozen", "beyond/frozen"),
        ("beyond", "losses_first", "beyond-tuned", "beyond/tuned"),
        ("beyond", "tables", "beyond-paper-mazes", "beyond/paper-mazes"),
        ("beyond", "beside_the_shortest", "beyond-long", "beyond/long"),
    ],
)
def test_tables_of_the_page_are_those_of_the_stored_results(module, table, name, folder):
    keeping, code = script("keeping"), script(module)
    records = sorted(keeping.stored(RESULTS / folder), key=lambda r: (r.task, r.label, r.seed))
    reference = "jedi-x" if module == "beyond" else None
    text = getattr(code, table)(compare_records(Records(tuple(records), {}), reference=reference))
    page = RESULTS / "beyond" / "README.md" if module == "beyond" else RESULTS / "README.md"
    assert f"<!-- begin {name} -->\n{text}<!-- end {name} -->" in page.read_text()


@pytest.mark.parametrize(
    ("module", "table", "name", "rows", "page"),
    [
        ("map_elites", "table", "map-elites", "map-elites/variants.csv", "README.md"),
        ("stuck", "table", "stuck", "paper-mazes/stuck.csv", "README.md"),
        ("luck", "table", "luck", "robots/luck.csv", "README.md"),
        ("arrivals", "table", "arrivals", "beyond/arrivals.csv", "beyond/README.md"),
        ("arrivals", "table", "arrivals", "beyond/arrivals.csv", "../docs/explanation/jedi-x.md"),
        ("parts", "table", "parts", "parts/rows.csv", "../docs/explanation/jedi-x.md"),
    ],
)
def test_tables_of_the_pages_are_those_of_the_stored_rows(module, table, name, rows, page):
    text = getattr(script(module), table)(pandas.DataFrame(script("keeping").rows_of(RESULTS / rows)))
    assert f"<!-- begin {name} -->\n{text}<!-- end {name} -->" in (RESULTS / page).read_text()


def test_tables_of_the_robots_are_those_of_the_stored_rows():
    robots, page = script("robots"), (RESULTS / "README.md").read_text()
    found = robots.stored()
    assert robots.EVALUATIONS in found
    for budget, rows in found.items():
        assert f"<!-- begin robots-{budget} -->\n{robots.page(rows, budget)}<!-- end robots-{budget} -->" in page
    table = script("robot_claims").table(found)
    assert f"<!-- begin claims-control -->\n{table}<!-- end claims-control -->" in page
    page_of_ours = (RESULTS.parent / "docs" / "explanation" / "jedi-x.md").read_text()
    for name, text in {"robots": robots.beside_the_best(found), "robots-seeds": robots.every_seed(found)}.items():
        assert f"<!-- begin {name} -->\n{text}<!-- end {name} -->" in page_of_ours


def test_methods_are_compared_after_equal_minutes():
    """The slow method has made half of its evaluations when the quick one ends."""
    robots = script("robots")
    one = {"task": "halfcheetah", "seed": 0}
    rows = pandas.DataFrame([
        one | {"method": "jedi-x", "seconds": 1200, "curve": "64:1 100:2 200:3"},
        one | {"method": "es", "seconds": 600, "curve": "64:5 150:6 200:7"},
        one | {"method": "cma-mae", "seconds": 2400, "curve": "64:8 150:9"},
        one | {"method": "jedi decay", "seconds": 60, "curve": "64:0"},  # stood still for a while
        one | {"method": "td3", "seconds": 60, "curve": None},
    ])  # fmt: skip
    lines = robots.equal_minutes(rows, 200).splitlines()
    assert lines[2:] == ["| es | 10: 2 / 7 |", "| cma-mae | 20: 3 / 8 |"]


def test_tables_of_the_physics_are_those_of_the_stored_rows():
    text = script("physics").readable(RESULTS / "physics")
    assert f"<!-- begin physics -->\n{text}<!-- end physics -->" in (RESULTS / "README.md").read_text()


def test_claims_about_robots_are_judged_by_the_order_of_all_seeds():
    judge = script("robot_claims")

    def cells(**methods):
        rows = [
            {"task": task, "method": method.replace("_", " "), "seed": seed, "best": best, "coverage": best}
            for method, values in methods.items() for task in judge.CONTROL for seed, best in enumerate(values)
        ]  # fmt: skip
        table = judge.table({budget: pandas.DataFrame(rows) for budget in judge.BUDGETS.values()})
        return {line.split(" | ")[0][2:]: line.split(" | ")[1] for line in table.splitlines()[2:]}

    found = cells(**{"jedi_decay": [5, 6, 7], "cma-mae": [9], "es": [4.9, 6.5, 3]})
    assert found["ends above MAP-Elites"] == "not tested"
    assert found["ends above CMA-MAE"] == "not tested"  # one seed
    of_es = "ends above the ES, restarted or not, on HalfCheetah"
    assert found[of_es] == "**not shown** (halfcheetah ≈/–)"
    assert cells(**{"jedi_decay": [5, 6, 7], "es": [2, 3, 4.9], "es-restart": [0, 1, 2]})[of_es] == "**holds**"
    below = cells(**{"jedi_decay": [5, 6, 7], "es": [7.1, 8, 9], "es-restart": [0, 1, 2]})
    assert below[of_es] == "**fails** (halfcheetah </>)"
    level = "ends level with the ES on Walker2D and AntMaze"
    assert below[level] == "**fails** (walker2d </>, ant-maze </>)"
    assert cells(**{"jedi_decay": [5, 6, 7], "es": [5, 6, 9], "es-restart": [5, 6, 7]})[level] == "not contradicted"
    assert found["median on halfcheetah, walker2d, ant-maze (seeds)"] == "6 (3); 6 (3); 6 (3)"
    assert found["the paper's median, with its whole budget"] == "3,248; 3,916; -2,958"


def test_missing_rows_are_added_beside_those_of_others(tmp_path, monkeypatch):
    keeping = script("keeping")
    monkeypatch.setattr(keeping, "clean_revision", lambda *own: "abc")
    path = tmp_path / "folder" / "rows.csv"
    keys = [{"task": "a", "seed": 0}, {"task": "a", "seed": 1}, {"task": "b", "seed": 0}]

    def search(task, seed):
        if (task, seed) == ("a", 1):  # another process adds a row meanwhile
            rows = pandas.DataFrame([*keeping.rows_of(path), {"task": "c", "seed": 7, "best": 5.0, "revision": "def"}])
            rows.to_csv(path, index=False)
        if task == "b":  # another process makes this very row meanwhile
            rows = [*keeping.rows_of(path), {"task": task, "seed": seed, "best": 0.5, "revision": "ghi"}]
            pandas.DataFrame(rows).to_csv(path, index=False)
        return {"best": seed + 0.5}

    assert keeping.rows_of(path) == []
    keeping.add_rows(path, keys[:1], search)
    rows = keeping.add_rows(path, keys, search)
    assert list(rows.task + rows.seed.astype(str)) == ["a0", "c7", "a1", "b0"]
    assert list(rows.best) == [0.5, 5.0, 1.5, 0.5]
    assert list(rows.revision) == ["abc", "def", "abc", "ghi"]
    keeping.add_rows(path, keys, lambda **key: pytest.fail(f"{key} was there"))


def test_a_search_that_another_process_is_at_is_left_to_it(tmp_path, monkeypatch):
    keeping = script("keeping")
    monkeypatch.setattr(keeping, "clean_revision", lambda *own: "abc")

    def search(seed):
        if seed == 0:
            raise keeping.LockedError("another process writes here")
        return {"best": 1.5}

    rows = keeping.add_rows(tmp_path / "rows.csv", [{"seed": 0}, {"seed": 1}], search)
    assert list(rows.seed) == [1]


def test_parts_are_compared_with_the_whole_method():
    parts = script("parts")
    spread = np.linspace(0, 1, 10)
    rows = [
        {
            "part": part, "problem": problem, "revision": "a",
            "best": " ".join(map(str, -100 + spread - (part in worse) * loss)),
        }
        for problem, worse, loss in (
            ("maze-a", ("no variation",), 160), ("mazes-0", ("no variation",), 9), ("mazes-1", ("no scouts",), -9),
            ("mazes-2", (), 0), ("lunar-lander", ("no scouts",), 0.1),
        )
        for part in (parts.WHOLE, "no variation", "no scouts")
    ]  # fmt: skip
    lines = {line.split(" | ")[0][2:]: line for line in parts.table(pandas.DataFrame(rows)).splitlines()[2:]}
    lander = "-100 (-100 to -99) |"
    assert lines[parts.WHOLE] == f"| nothing | -99.5 |  |  |  | 3 problems |  |  | {lander}"
    assert lines["no variation"] == f"| no variation | -259.5 (0 of 10) < |  |  |  | 1 below, 0 above |  |  | {lander}"
    assert lines["no scouts"] == f"| no scouts | -99.5 |  |  |  | 0 below, 1 above |  |  | {lander}"


def test_parts_of_the_race_are_compared_by_the_level_of_the_leader():
    parts = script("parts")
    rows = pandas.DataFrame(
        {"part": part, "task": task, "seed": seed, "best": 9.0 + seed, "level": level + seed / 10}
        for part, task, level in (
            (parts.WHOLE, "walker2d", 5.0), ("no bold ES", "walker2d", 2.0), ("no variation", "walker2d", 5.03),
            (parts.WHOLE, "ant-maze", -7.0), ("no bold ES", "ant-maze", -4.0),
        )
        for seed in range(10)
    )  # fmt: skip
    head, _, whole, *others = parts.race_table(rows).splitlines()
    assert head == "| without | walker2d | ant-maze |"
    assert whole == "| nothing | 5, 14 (10) | -7, 14 (10) |"
    assert "| no bold ES | 2, 14 (10) < | -4, 14 (10) > |" in others
    assert "| no variation | 5, 14 (10) |  |" in others
    assert "| means of any length |  |  |" in others


def test_settings_that_are_tried_are_the_same_every_time_and_accepted():
    tuning = script("tuning")
    for name, method in tuning.METHODS.items():
        found = tuning.drawn(name, 100)
        assert tuning.drawn(name, 40) == found[:40]
        for changes in found:
            config = Entry(name, method, None, changes).config("maze-a")
            assert all(getattr(config, key) == value for key, value in changes.items())


def test_the_tuned_setting_has_the_lowest_mean_rank():
    tuning = script("tuning")
    titles = tuning._titles()
    rows = pandas.DataFrame([{"number": n, **dict.fromkeys(titles, float(-n))} for n in (3, 0, 2)])
    rows[titles[0]] = [5.0, 1.0, 2.0]  # number 3 leads on one problem, number 0 on the others
    assert dict(tuning.tuned("cma-me", rows).changes) == tuning.drawn("cma-me", 1)[0] == {}
    rows = rows[rows.number != 0]
    assert dict(tuning.tuned("cma-me", rows).changes) == tuning.drawn("cma-me", 3)[2]


def test_the_table_of_tuned_methods_is_that_of_the_stored_rows():
    page = (RESULTS / "beyond" / "README.md").read_text()
    assert f"<!-- begin tuning -->\n{script('tuning').table()}<!-- end tuning -->" in page


@pytest.fixture(scope="module")
def filled():
    """Values of 64 cells of which half are filled."""
    centroids = np.asarray(make_method("NeverFitted").cells.centroids)
    random = np.random.default_rng(0)
    is_filled = random.random(64) < 0.5
    descriptors = np.clip(centroids + random.normal(scale=0.01, size=centroids.shape), 0, 1)
    fitness = np.where(is_filled, random.uniform(-320, -150, 64), -np.inf)
    counts = np.where(is_filled, random.integers(1, 5000, 64), 0)
    values = {"descriptors": descriptors, "fitness": fitness, "counts": counts}
    return {key: value.astype(np.float32) for key, value in values.items()}, is_filled, centroids


def make_method(name):
    return getattr(script("readings"), name)(JediConfig(cells=64), make("maze-a"))


def fitted(name, filled):
    values, is_filled, _ = filled
    repertoire = SimpleNamespace(filled=jnp.asarray(is_filled), **{key: jnp.asarray(v) for key, v in values.items()})
    return make_method(name).fit_model(SimpleNamespace(repertoire=repertoire))[1]


def kernel(one, other, length_scale):
    return np.exp(-np.square(one[:, None] - other).sum(-1) / (2 * length_scale**2))


def test_the_reading_without_a_fit_is_a_gp_with_fixed_hyperparameters(filled):
    values, is_filled, centroids = filled
    x, fitness, counts = (values[key][is_filled].astype(float) for key in ("descriptors", "fitness", "counts"))
    y = (fitness - fitness.min()) / np.ptp(fitness)
    among, between = 0.25 * kernel(x, x, 0.2) + np.diag(1 / counts), 0.25 * kernel(centroids, x, 0.2)
    found = fitted("NeverFitted", filled)
    np.testing.assert_allclose(found.mean, between @ np.linalg.solve(among, y), atol=1e-4)
    variance = 0.25 - np.einsum("ij,ji->i", between, np.linalg.solve(among, between.T))
    np.testing.assert_allclose(found.variance, variance, atol=1e-5)


def test_the_reading_without_an_inverse_sums_the_kernel(filled):
    values, is_filled, centroids = filled
    x, fitness = values["descriptors"][is_filled], values["fitness"][is_filled].astype(float)
    y = (fitness - fitness.min()) / np.ptp(fitness)
    between = kernel(centroids, x, 0.4)
    found = fitted("WithoutInverse", filled)
    np.testing.assert_allclose(found.mean, y.mean() + between @ (y - y.mean()), atol=1e-4)
    np.testing.assert_allclose(found.variance - 64, 1 - np.square(between).sum(1), atol=1e-4)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "steps"), [("halfcheetah", 4), ("ant-maze", 150)])
def test_ppo_earns_what_the_searches_earn(name, steps):
    """Rounding may change by a few steps when an ant falls; then it pays for all steps left."""
    ppo, task = script("ppo"), make(name, steps=steps)
    genotypes = 2 * jax.vmap(task.init)(jax.random.split(jax.random.key(0), 64))
    lengths = np.asarray(jax.jit(task.rollout_batch)(jax.random.key(0), genotypes).length)
    number = int(lengths.argmin())  # an ant that falls
    assert (lengths[number] < steps) == (name == "ant-maze")
    layers = task.layers(genotypes[number])

    def policy(observation, key):
        return networks.forward(layers, observation[None], task.config.activation)[0], {}

    earned = ppo.episode(ppo.AsInTheSearches(task), policy)
    expected = jax.jit(task.evaluate_with_brax)(jax.random.key(0), genotypes[number]).fitness
    np.testing.assert_allclose(earned, expected, rtol=0.1)
