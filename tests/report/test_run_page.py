"""The page of a run, in a real browser."""

import json
import shutil

import numpy as np
import pytest
import yaml
from tests.conftest import forget_checksums, wait_until
from tests.failing import Failing
from tests.report.pages import keep_settings, opened, saved
from tests.report.test_numbers import CASES

import jedax
from jedax.methods.map_elites import MapElitesConfig
from jedax.report.numbers import colour_limits
from jedax.report.pages import run_page, write_report
from jedax.report.run_data import run_data
from jedax.store import files, history
from jedax.store.config import FORMAT
from jedax.store.directory import RunDirectory


class Spring(jedax.tasks.Task):
    """A design with a name and a unit for each parameter; names of descriptors are also those of others."""

    name = "spring"
    space = jedax.Space({"wire": (0.05, 2.0), "turns": jedax.Integer(2, 15), "metal": jedax.Choice("steel", "brass")})
    num_params = space.num_params
    descriptor_bounds = ((0.0, 0.0), (1.0, 1.0))
    descriptor_names = ("wire", "fitness")

    def init(self, key):
        return self.space.draw(key)

    def evaluate(self, key, genotype):
        return jedax.Evaluation(fitness=-genotype.sum(), descriptor=genotype[:2])


@pytest.fixture(scope="module")
def report(maze_run, tmp_path_factory):
    return write_report(maze_run, out=tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def run(maze_run):
    return jedax.load(maze_run)


@pytest.fixture(scope="module")
def page(browser, report):
    """The page of one window, for the tests that leave it as they found it."""
    with opened(browser, report.as_uri()) as page:
        yield page


def hover(page, cell):
    page.evaluate("document.getElementById('map').scrollIntoView({ block: 'center', behavior: 'instant' })")
    x, y = page.evaluate(f"jedax.explorer.screen({cell})")
    page.mouse.move(x, y)
    return x, y


def choose(page, cell):
    page.mouse.click(*hover(page, cell))
    page.mouse.move(2, 2)


def shown(page):
    return dict(zip(page.locator("#values dt").all_inner_texts(), page.locator("#values dd").all_inner_texts(),
                    strict=True))  # fmt: skip


def number(text):
    return float(text.split(" ")[0].replace(",", "").replace("−", "-"))


def test_it_is_one_file_of_a_few_megabytes(report, page):
    assert report.stat().st_size < 8e6
    assert page.title() == "maze-a, jedi, seed 4"


def test_the_header_says_what_came_out(page, run):
    text = page.inner_text("#head")
    best = run.repertoire.best_fitness.max()
    assert f"{best:.1f}" in text
    assert "did not reach the goal" in text
    assert "320 of 320 each" in " ".join(text.split())
    assert "4 to 5" in text
    coverage = np.median(np.isfinite(run.repertoire.fitness).mean(axis=1))
    assert f"{coverage:.0%}" in text


@pytest.mark.parametrize("replica", [0, 1])
def test_pointing_at_a_cell_shows_its_values(page, run, replica):
    page.select_option("#replica", str(replica))
    fitness, counts = run.repertoire.fitness[replica], run.repertoire.counts[replica]
    for cell in np.flatnonzero(np.isfinite(fitness))[:4]:
        hover(page, cell)
        lines = dict(line.split(": ") for line in page.inner_text("#tip").splitlines())
        assert lines["cell"] == str(cell)
        assert number(lines["fitness"]) == pytest.approx(fitness[cell], abs=0.06)
        assert number(lines["evaluations here"]) == counts[cell]
        assert number(lines["x"]) == pytest.approx(run.repertoire.descriptors[replica][cell][0], abs=1e-3)
        assert number(lines["GP mean"]) == pytest.approx(run.gp_mean[replica][cell], abs=0.06)
        assert number(lines["GP standard deviation"]) == pytest.approx(run.gp_std[replica][cell], rel=2e-3)
        assert number(lines["last improved at"]) == run.repertoire.improved_at[replica][cell]
    page.mouse.move(2, 2)
    assert page.is_hidden("#tip")


def test_choosing_a_cell_draws_the_path_that_ends_at_its_descriptor(page, run):
    page.select_option("#replica", "0")
    fitness = run.repertoire.fitness[0]
    for cell in np.flatnonzero(np.isfinite(fitness))[:5].tolist():
        choose(page, cell)
        assert number(shown(page)["fitness"]) == pytest.approx(fitness[cell], abs=0.06)
        points = np.array(page.evaluate("jedax.explorer.trace(jedax.explorer.cell).points"))
        descriptor = run.repertoire.descriptors[0][cell]
        assert np.abs(points[-2:] - descriptor).max(axis=1).min() < 2e-5
        rows = saved(page, "#path-csv")
        assert rows[0] == "point,x,y"
        np.testing.assert_allclose([float(v) for v in rows[1].split(",")[1:]], [0.15, 0.15], atol=2e-5)
        assert len(rows) == len(points) + 1
    # The longest path is painted where it leads.
    longest = max(np.flatnonzero(np.isfinite(fitness)).tolist(), key=lambda cell: len(
        page.evaluate(f"jedax.explorer.trace({cell}).points")))  # fmt: skip
    choose(page, longest)
    colour = page.evaluate("""() => {
        const { points } = jedax.explorer.trace(jedax.explorer.cell), scale = devicePixelRatio;
        const [x, y] = jedax.explorer.sceneView.to(points[Math.floor(points.length / 2)]);
        return [...jedax.explorer.scene.getContext("2d").getImageData(x * scale, y * scale, 1, 1).data];
    }""")
    np.testing.assert_allclose(colour[:3], [0, 0x72, 0xB2], atol=60)


def test_an_empty_cell_says_so(page, run):
    page.select_option("#replica", "0")
    empty = int(np.flatnonzero(~np.isfinite(run.repertoire.fitness[0]))[0])
    choose(page, empty)
    assert shown(page)["fitness"] == "empty"
    assert page.is_hidden("#path-csv")
    assert "empty" in page.get_attribute("#scene", "aria-label")


def test_layers(page, run):
    pictures = set()
    for layer, title in [("counts", "evaluations (log)"), ("gp_mean", "GP mean"), ("gp_std", "GP standard deviation"),
                         ("rank", "Pareto rank"), ("improved", "last improved"), ("fitness", "fitness")]:  # fmt: skip
        page.check(f"input[value={layer}]", force=True)
        assert page.inner_text("#map-title") == f"Behaviour space: {title}"
        pictures.add(page.evaluate("jedax.explorer.map.toDataURL()"))
    assert len(pictures) == 6


def test_pareto_ranks_against_their_definition(page, run):
    mean, std = run.gp_mean[0].astype(float), run.gp_std[0].astype(float)
    dominated = [((mean >= mean[c]) & (std >= std[c]) & ((mean > mean[c]) | (std > std[c]))).any() for c in range(64)]
    ranks = page.evaluate("jedax.data.replicas[0].layers.rank")
    assert [rank > 1 for rank in ranks] == dominated


def test_the_slider_plays_the_search_back(page, maze_run, run):
    page.select_option("#replica", "1")
    loops = run.history.loops
    assert page.get_attribute("#loop", "max") == str(len(loops)) == "8"
    pictures = set()
    for place, loop in enumerate(loops):
        page.locator("#loop").fill(str(place))
        label = page.inner_text("#loop-label")
        assert f"Loop {place + 1} · {loop.evaluations:,} to {loop.until:,} evaluations" in label
        assert "GP length scale" in label
        rows = page.locator("#loop-table tbody tr").all_inner_texts()
        assert len(rows) == 2
        for es, row in enumerate(rows):
            x, y = (float(part) for part in row.split("\t")[1].strip("()").split(", "))
            np.testing.assert_allclose([x, y], loop.targets[1, es], atol=6e-4)
            assert number(row.split("\t")[2]) == pytest.approx(loop.start_fitness[1, es], abs=0.06)
            assert number(row.split("\t")[3]) == pytest.approx(loop.end_fitness[1, es], abs=0.06)
        pictures.add(page.evaluate("jedax.explorer.map.toDataURL()"))
    assert len(pictures) == len(loops)
    page.evaluate("jedax.explorer.go(99)")
    assert page.is_hidden("#loop-table")


def test_a_cell_while_the_search_is_played_back(page, run):
    """What it held then, and what it holds at the end; the panel beside the map is of the end."""
    page.select_option("#replica", "0")
    page.evaluate("jedax.explorer.go(2)")
    assert page.inner_text("#detail-title").endswith(", at the end of the search")
    kept = [snapshot for snapshot in run.history.snapshots if snapshot.evaluations <= run.history.loops[2].until][-1]
    assert f"as they were after {kept.evaluations} evaluations" in page.inner_text("#map-note")
    then = kept.fitness[0]
    fitness = run.repertoire.fitness[0]
    filled = np.flatnonzero(np.isfinite(fitness) & np.isfinite(then))[0]
    for cell in (filled, np.flatnonzero(np.isfinite(fitness) & ~np.isfinite(then))[0]):
        hover(page, cell)
        first, second, *others = page.inner_text("#tip").splitlines()
        before = first.removeprefix("fitness then: ")
        assert (before == "empty") if cell != filled else number(before) == pytest.approx(then[cell], abs=0.06)
        assert second == "At the end of the search:"
        assert number(dict(line.split(": ") for line in others)["fitness"]) == pytest.approx(fitness[cell], abs=0.06)
    page.mouse.move(2, 2)
    page.click("#play")
    assert page.evaluate("Boolean(jedax.explorer.timer)")
    page.select_option("#replica", "1")
    page.select_option("#replica", "0")
    assert page.evaluate("[jedax.explorer.timer, jedax.explorer.loop]") == [None, None]
    page.click("#play")
    page.evaluate("jedax.explorer.go(99)")
    assert page.evaluate("[jedax.explorer.timer, jedax.explorer.loop]") == [None, None]
    assert not page.inner_text("#detail-title").endswith("of the search")


def test_pointing_paints_only_the_outlines(page):
    page.evaluate("() => { window.drawn = jedax.explorer.drawSpace; jedax.explorer.drawSpace = null; }")
    before = page.evaluate("jedax.explorer.map.toDataURL()")
    hover(page, 9)
    assert page.evaluate("jedax.explorer.map.toDataURL()") != before
    page.mouse.move(2, 2)
    assert page.evaluate("jedax.explorer.map.toDataURL()") == before
    page.evaluate("() => { jedax.explorer.drawSpace = window.drawn; }")


def test_an_update_leaves_the_keyboard_where_it_is(page):
    page.focus("input[value=counts]")
    page.evaluate("jedax.explorer.update(jedax.data)")
    assert page.evaluate("document.activeElement.value") == "counts"


@pytest.mark.parametrize(("low", "high"), [(-123_456, 123_456), (-0.001, 0.001), (0, 1)])
def test_numbers_of_the_upright_axis_have_room(page, low, high):
    script = """([low, high]) => {
        const { lows, highs } = jedax.data.space, before = [lows[1], highs[1]], { write } = jedax, found = [];
        jedax.write = (pen, text, x, y, align) => {
            if (align === "right") found.push([text, x - pen.measureText(text).width, x]);
        };
        [lows[1], highs[1]] = [low, high];
        jedax.explorer.drawMap();
        const { left } = jedax.explorer.view;
        [lows[1], highs[1]] = before;
        jedax.write = write;
        jedax.explorer.drawMap();
        return [left, ...found.slice(1)];
    }"""
    left, *numbers = page.evaluate(script, [low, high])
    assert [number(text) for text, _, _ in numbers] == pytest.approx([low, high], rel=1e-2)
    assert all(0 <= start < end < left for _, start, end in numbers)


@pytest.mark.parametrize(
    ("value", "text"),
    [("1.2e19", "1.20e+19"), ("-1e10", "-1.00e+10"), ("123456789", "123,456,789"), ("1e-7", "1.00e-7")],
)
def test_large_numbers_are_short(page, value, text):
    assert page.evaluate(f"jedax.number({value})") == text


def test_a_search_without_targets_plays_its_cells_back(browser, tmp_path, arm, undrawn):
    config = MapElitesConfig(offspring=8, cells=16)
    run = jedax.run(config, arm, evaluations=80, out=tmp_path / "run", report_every=3)
    with opened(browser, write_report(run.path).as_uri()) as page:
        assert page.get_attribute("#loop", "max") == "4"
        page.locator("#loop").fill("0")
        assert page.inner_text("#loop-label") == "After 8 evaluations"
        shown = page.evaluate("[...jedax.explorer.shown().values].map((v) => Number.isFinite(v))")
        assert 0 < sum(shown) <= 8
        assert page.is_hidden("#loop-table")
        # An arm, from its shoulder to its tip.
        points = np.array(page.evaluate("jedax.explorer.trace(jedax.explorer.cell).points"))
        np.testing.assert_allclose(points[0], 0, atol=1e-4)
        np.testing.assert_allclose(points[-1], run.best().descriptor, atol=1e-4)


def test_the_parameters_of_a_solution_have_names_and_units(browser, tmp_path, undrawn):
    config = MapElitesConfig(offspring=8, cells=16)
    run = jedax.run(config, Spring(), evaluations=80, out=tmp_path / "run", report_every=3)
    cell = int(np.argmax(run.repertoire.fitness[0]))
    known = Spring.space.dict_of(np.asarray(run.repertoire.genotypes[0, cell]))
    with opened(browser, write_report(run.path).as_uri()) as page:
        shown = page.inner_text("#values").splitlines()
        wire, turns, metal = (shown[len(shown) - 1 - shown[::-1].index(name) + 1] for name in known)
        assert float(wire) == pytest.approx(known["wire"], rel=1e-3)
        assert (turns, metal) == (str(known["turns"]), known["metal"])
        head, *rows = (line.split(",") for line in saved(page, "[data-csv=cells]"))
    cells = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    filled = {str(place) for place in np.flatnonzero(np.isfinite(run.repertoire.fitness[0]))}
    assert {place for place, row in cells.items() if row["metal"]} == filled
    best = cells[str(cell)]
    assert float(best["descriptor fitness"]) == pytest.approx(run.repertoire.descriptors[0, cell, 1], rel=1e-3)
    assert float(best["fitness"]) == pytest.approx(run.repertoire.fitness[0, cell], rel=1e-3)
    assert float(best["parameter wire"]) == pytest.approx(known["wire"], rel=1e-6)
    assert (best["turns"], best["metal"]) == (str(known["turns"]), known["metal"])


def test_parameters_that_have_no_room_are_those_of_the_worst(tmp_path, undrawn, monkeypatch):
    run = jedax.run(MapElitesConfig(offspring=8, cells=16), Spring(), evaluations=80)
    monkeypatch.setattr("jedax.report.run_data._MOST_EXACT", 3 * Spring.num_params)
    found = run_data(run)["replicas"][0]["parameters"]
    fitness = np.asarray(run.repertoire.fitness[0])
    assert found["cells"] == sorted(np.argsort(-fitness)[:3].tolist())
    monkeypatch.setattr("jedax.report.run_data._MOST_PARAMETERS", 2)
    assert run_data(run)["replicas"][0]["parameters"] is None


def test_who_searched_adds_up_to_the_generations(browser, tmp_path, arm, undrawn):
    config = jedax.JediXConfig(population=4, patience=3, cells=16, samples_per_evaluation=2)
    run = jedax.run(config, arm, evaluations=16 * 100, replicas=2, out=tmp_path / "run", report_every=7)
    with opened(browser, write_report(run.path).as_uri() + "#seed=1") as page:
        page.wait_for_selector("#chart-kinds .main-svg")
        lines = page.evaluate(
            "document.getElementById('chart-kinds').data.map((line) => [line.name, [...line.x], [...line.y]])"
        )
        text = page.content()
    metrics = run.metrics[run.metrics.replica == 1]
    generations = np.diff(metrics.evaluations) / 16
    last = metrics.iloc[-1]
    for name, total in ("variation", last.num_varied), ("scouts", last.num_scouted):
        _, x, shares = next(line for line in lines if line[0] == name)
        np.testing.assert_allclose(x, metrics.evaluations)
        assert total > 0
        assert np.dot(shares[1:], generations) == pytest.approx(total)
    np.testing.assert_allclose(sum(np.array(shares) for _, _, shares in lines), 1)
    assert "Small ES that start from random elites" in text


def test_arrow_keys_move_from_cell_to_cell(page):
    page.focus("#map")
    centroids = page.evaluate("jedax.explorer.centroids.map((axis) => [...axis])")
    page.evaluate("jedax.explorer.cell = 0; jedax.explorer.draw()")
    for key, axis, sign in [("ArrowRight", 0, 1), ("ArrowUp", 1, 1), ("ArrowLeft", 0, -1), ("ArrowDown", 1, -1)]:
        before = page.evaluate("jedax.explorer.cell")
        page.keyboard.press(key)
        after = page.evaluate("jedax.explorer.cell")
        assert after == before or sign * (centroids[axis][after] - centroids[axis][before]) > 0
    assert shown(page)["cell"] == str(after)


def test_curves_and_their_numbers(page, run):
    page.wait_for_selector("#chart-distance .main-svg")
    drawn = page.evaluate("document.getElementById('chart-best').data.map((line) => [...line.y])")
    metrics = run.metrics
    for replica in range(2):
        np.testing.assert_allclose(drawn[replica], metrics[metrics.replica == replica].max_fitness, rtol=1e-6)
    page.check("input[value=seconds]", force=True)
    across = page.evaluate("[...document.getElementById('chart-best').data[0].x]")
    np.testing.assert_allclose(across, metrics[metrics.replica == 0].seconds)
    page.check("input[value=evaluations]", force=True)
    rows = saved(page, "[data-csv=curves]")
    assert rows[0].split(",") == list(metrics.columns)
    assert len(rows) == len(metrics) + 1
    assert [float(v) for v in rows[1].split(",")] == pytest.approx(metrics.iloc[0].tolist())


def test_numbers_of_all_cells(page, run):
    page.select_option("#replica", "0")
    head, *rows = [line.split(",") for line in saved(page, "[data-csv=cells]")]
    assert len(rows) == 64
    fitness = np.array([float(row[head.index("fitness")] or "nan") for row in rows])
    expected = np.where(np.isfinite(run.repertoire.fitness[0]), run.repertoire.fitness[0], np.nan)
    np.testing.assert_allclose(fitness, expected, atol=2e-3)
    np.testing.assert_allclose([float(row[1]) for row in rows], run.cells.centroids[:, 0], atol=2e-5)


def test_numbers_of_all_loops(page):
    head, *rows = saved(page, "[data-csv=loops]")
    assert head.startswith("loop,evaluations,until,alpha,es,start_fitness,end_fitness,gp_signal")
    assert len(rows) == 8 * 2


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1400, "light")])
def test_it_fits_the_screen(browser, report, width, scheme):
    with opened(browser, report.as_uri(), viewport={"width": width, "height": 800}, color_scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == {"dark": "rgb(20, 23, 27)", "light": "rgb(255, 255, 255)"}[scheme]
        box = "(what) => document.querySelector(`#chart-gp ${what}`).getBoundingClientRect()"
        titled, explained = (page.evaluate(box, what) for what in (".gtitle", ".legend"))
        assert titled["bottom"] <= explained["top"] or explained["bottom"] <= titled["top"]
        phases = page.evaluate("jedax.data.phases")
        entries = page.locator("#phase-legend li").all_inner_texts()
        assert {text.split()[0] for text in entries} == {name for name, seconds in phases.items() if seconds > 0}


@pytest.mark.parametrize(
    ("width", "name", "shown"), [(300, "speed", "speed"), (100, "mass with its load", "mass with…")]
)
def test_a_long_name_of_an_axis_leaves_room_for_its_numbers(page, width, name, shown):
    script = """([name, room]) => {
        const pen = document.createElement("canvas").getContext("2d");
        pen.font = "12px monospace";
        pen.measureText = (text) => ({ width: 10 * text.length });
        return jedax.shortened(pen, name, room);
    }"""
    assert page.evaluate(script, [name, width]) == shown
    drawn = """(name) => {
        const { explorer } = jedax, names = jedax.data.space.names, { write } = jedax, found = [], [first] = names;
        jedax.write = (pen, text, x, y, align) => {
            const { width } = pen.measureText(text);
            found.push([text, align === "right" ? x - width : align === "center" ? x - width / 2 : x, width]);
        };
        names[0] = name;
        explorer.drawMap();
        [names[0], jedax.write] = [first, write];
        explorer.drawMap();
        return found.slice(0, 3).sort((one, other) => one[1] - other[1]);
    }"""
    (_, low, wide), (label, start, length), (_, high, _) = page.evaluate(drawn, f"{name} " * 40)
    assert label.endswith("…")
    assert low + wide < start < start + length < high


def test_an_address_names_a_seed(browser, report):
    with opened(browser, f"{report.as_uri()}#seed=5&layer=gp_std&cell=7") as page:
        explorer = page.evaluate("[jedax.explorer.replica, jedax.explorer.layer, jedax.explorer.cell]")
        assert explorer == [1, "gp_std", 7]
        for hash, cell in (("#cell=9", 9), ("#cell=", 9), ("#cell=1e1", 9), ("#cell=999", 9), ("#cell=0", 0)):
            page.evaluate(f"location.hash = '{hash}'")
            wait_until(lambda cell=cell: page.evaluate(f"jedax.explorer.cell === {cell}"))
        assert page.evaluate("[jedax.explorer.replica, jedax.explorer.layer]") == [1, "gp_std"]


NASTY = "<script>alert(1)</script>"


@pytest.fixture
def copy(maze_run, tmp_path):
    shutil.copytree(maze_run, tmp_path / "run")
    return tmp_path / "run"


def test_names_show_as_they_are(browser, copy):
    forget_checksums(copy)
    config = yaml.safe_load((copy / "config.yaml").read_text())
    config |= {"task": f"maze:{NASTY}", "label": "<b>&amp;</b>"}
    config["task_config"]["name"] = NASTY
    (copy / "config.yaml").write_text(yaml.safe_dump(config))
    (copy / "environment.json").write_text(json.dumps({"command": "run '</script><img src=x onerror=alert(2)>'"}))
    with opened(browser, write_report(copy).as_uri()) as page:
        page.on("dialog", lambda dialog: pytest.fail("a script of a name ran"))
        assert page.inner_text("h1") == f"{NASTY} <b>&amp;</b>"
        assert page.inner_text(".command code") == "run '</script><img src=x onerror=alert(2)>'"
        assert page.locator("h1 script, h1 b, img").count() == 0
        assert NASTY in page.title()


def test_control_characters_are_written_as_escapes(copy):
    forget_checksums(copy)
    config = yaml.safe_load((copy / "config.yaml").read_text())
    (copy / "config.yaml").write_text(yaml.safe_dump(config | {"label": "\x1b[31m \u202eevil"}))
    (copy / "summary.json").write_text(json.dumps({"phase_seconds": {"\u202esimulate": 1.0}}))
    text = run_page(copy)
    assert "\\x1b[31m \\u202eevil" in text
    assert not {"\x1b", "\u202e", "\\u001b"} & set(text)
    assert '"\\\\u202esimulate":1.0' in text


def test_curves_that_are_missing_are_left_out(browser, copy):
    forget_checksums(copy)
    rows = [row.split(",") for row in (copy / "metrics.csv").read_text().splitlines()]
    gone = [rows[0].index(name) for name in ("max_fitness", "seconds")]
    kept = [[cell for place, cell in enumerate(row) if place not in gone] for row in rows]
    (copy / "metrics.csv").write_text("\n".join(map(",".join, kept)) + "\n")
    with opened(browser, write_report(copy).as_uri()) as page:
        assert page.is_visible("#chart-coverage")
        assert page.locator("#chart-best").count() == 0
        assert page.is_hidden("#curve-axis")


def test_numbers_that_are_not_finite_are_dashes(copy):
    """No run stores them, but a file could."""
    forget_checksums(copy)
    path = copy / "repertoire.safetensors"
    arrays = files.read_tensors(path, str(files.FORMAT))
    arrays["best_descriptor"][:] = np.nan
    files.write_tensors(path, arrays, {"format": str(files.FORMAT)})
    assert '"descriptor":[null,null]' in run_page(copy)


def test_a_half_written_run_shows_what_is_there(browser, copy):
    forget_checksums(copy)
    for name in ("repertoire.safetensors", "summary.json", "environment.json", history.FILE):
        (copy / name).unlink()
    with opened(browser, write_report(copy).as_uri()) as page:
        text = page.inner_text(".notice")
        for name in ("summary.json", "environment.json", "history.jsonl"):
            assert f"{name} is missing or empty" in text
        # The solutions of the checkpoint.
        assert page.is_visible("#map")
        assert page.is_hidden("#replay")
        assert page.evaluate("Object.keys(jedax.data.replicas[0].layers)") == ["fitness", "counts", "improved"]


def test_only_curves(browser, copy):
    forget_checksums(copy)
    (copy / "repertoire.safetensors").unlink()
    shutil.rmtree(copy / "checkpoint")
    with opened(browser, write_report(copy).as_uri()) as page:
        assert "No solutions: run directory: expected a run that has saved something" in page.inner_text(".notice")
        assert page.is_hidden("#explorer")
        assert page.is_visible("#chart-best")


def test_only_settings(copy):
    keep_settings(copy)
    text = run_page(copy)
    assert "No curves: metrics.csv is missing or empty." in text
    assert "maze-a" in text


@pytest.mark.parametrize(("name", "damage", "said"), [
    ("summary.json", "{", "summary.json: expected the outcome of a run, got"),
    ("summary.json", "[]", "summary.json: expected the outcome of a run, got []"),
    ("metrics.csv", "evaluations\nx\n", "No curves: "),
    ("repertoire.safetensors", "nonsense", "expected arrays as safetensors"),
    (history.FILE, '{"at":"header","format":2}\n', "format: expected the number 1, got 2"),
])  # fmt: skip
def test_damaged_files_are_said(copy, name, damage, said):
    forget_checksums(copy)
    (copy / name).write_text(damage)
    assert said in run_page(copy)


def test_a_run_of_a_newer_format_is_refused(copy):
    forget_checksums(copy)
    text = (copy / "config.yaml").read_text()
    (copy / "config.yaml").write_text(text.replace(f"format: {FORMAT}", f"format: {FORMAT + 1}"))
    with pytest.raises(jedax.JedaxError, match=rf"format: expected .*{FORMAT}, got {FORMAT + 1}; read it with"):
        write_report(copy)


def test_no_run(tmp_path):
    with pytest.raises(jedax.JedaxError, match=r"report: expected the directory of a run or of several, got no run in"):
        write_report(tmp_path)
    with pytest.raises(jedax.JedaxError, match=r"no run in .*missing"):
        write_report(tmp_path / "missing")


def test_a_page_that_cannot_be_written(maze_run, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(jedax.JedaxError, match=r"out: expected a file that can be written, got .*report.html"):
        write_report(maze_run, out=tmp_path / "file" / "report.html")


def test_a_missing_extra_is_said(maze_run, monkeypatch):
    from jedax.report import pages

    pages.plotly_source.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "plotly", None)
    with pytest.raises(jedax.JedaxError, match=r"package plotly, .*pip install 'jedax\[report\]'"):
        write_report(maze_run)
    pages.plotly_source.cache_clear()


def test_more_than_two_descriptors_have_axes_to_choose(browser, tmp_path, undrawn):
    import jax
    import jax.numpy as jnp

    class Plain(jedax.tasks.Task):
        name = "plain"
        num_params = 4
        descriptor_bounds = ((0.0,) * 3, (1.0,) * 3)
        descriptor_names = ("first", "second", "third")
        qd_offset = 0.0

        def init(self, key):
            return jax.random.uniform(key, (4,))

        def evaluate(self, key, genotype):
            return jedax.Evaluation(-jnp.sum(genotype**2), genotype[:3])

    run = jedax.run(MapElitesConfig(offspring=8, cells=27), Plain(), evaluations=8 * 12, out=tmp_path / "run")
    with opened(browser, write_report(run.path, task=Plain()).as_uri()) as page:
        page.select_option("#axis-y", "2")
        assert "Cells lie over each other" not in page.inner_text("#map-note")  # as those of a grid do
        cell = page.evaluate("jedax.explorer.cell")
        assert page.evaluate("jedax.explorer.place(jedax.explorer.cell)") == pytest.approx(
            run.cells.centroids[cell][[0, 2]].tolist(), abs=1e-4)  # fmt: skip
        assert page.is_hidden("#scene-frame")
        assert "third" in page.inner_text("#values")
    # Without the task, which draws nothing, all is there.
    with opened(browser, write_report(run.path).as_uri()) as page:
        assert "Not all of this run" not in page.inner_text("body")
        hover(page, 3)
        assert "cell: 3" in page.inner_text("#tip")


def test_cells_that_lie_over_each_other(browser, tmp_path, undrawn):
    """The one that is seen is the one that is told and chosen; choosing again leads to those below it."""
    import jax
    import jax.numpy as jnp

    class Cube(jedax.tasks.Task):
        name = "cube"
        num_params = 3
        descriptor_bounds = ((0.0,) * 3, (1.0,) * 3)
        qd_offset = -3.0

        def init(self, key):
            return jax.random.uniform(key, (3,))

        def evaluate(self, key, genotype):
            return jedax.Evaluation(-jnp.sum(genotype**2), jnp.clip(genotype, 0, 1))

    config = MapElitesConfig(offspring=8, cell_layout="grid", dims=(3, 3, 3))
    run = jedax.run(config, Cube(), evaluations=8 * 12, out=tmp_path / "run")
    fitness, centroids = run.repertoire.fitness[0], np.round(run.cells.centroids, 3)
    with opened(browser, write_report(run.path).as_uri()) as page:
        assert "Cells lie over each other" in page.inner_text("#map-note")
        for place in np.unique(centroids[:, :2], axis=0):
            stack = np.flatnonzero((centroids[:, :2] == place).all(axis=1))
            stack = stack[np.argsort(-fitness[stack], kind="stable")]
            hover(page, stack[1])
            told = int(dict(line.split(": ") for line in page.inner_text("#tip").splitlines())["cell"])
            assert fitness[told] == fitness[stack].max()
        page.evaluate("jedax.explorer.cell = null")
        chosen = []
        for _ in range(3):
            choose(page, stack[0])
            chosen.append(page.evaluate("jedax.explorer.cell"))
        assert sorted(chosen) == sorted(stack.tolist())
        assert fitness[chosen].tolist() == sorted(fitness[chosen].tolist(), reverse=True)
        page.focus("#map")
        page.keyboard.press("Enter")
        assert page.evaluate("jedax.explorer.cell") == chosen[0]


def test_charts_whose_library_was_left_behind(browser, copy):
    """Such as when the page is sent without the file beside it."""
    write_report(copy, share=True)
    (copy / "plotly.min.js").unlink()
    page = browser.new_page()
    page.goto((copy / "report.html").as_uri())
    assert "plotly.min.js, which is not there" in page.inner_text("[role=alert]")
    page.close()


def test_a_directory_is_still_a_runs(maze_run, copy):
    write_report(copy, share=True)
    assert (copy / "plotly.min.js").is_file()
    assert (copy / "report.html").stat().st_size < 1e6
    RunDirectory.create(copy, overwrite=True).release()
    assert list(copy.iterdir()) == []


@pytest.mark.parametrize(("values", "lowest"), CASES)
def test_scales_begin_where_those_of_the_figures_do(page, values, lowest):
    given = json.dumps([None if not np.isfinite(value) else value for value in values])
    assert page.evaluate(f"jedax.lowestShown({given}).low") == lowest
    known = [value for value in values if np.isfinite(value)]
    low, high = page.evaluate(f"(({{low, high}}) => [low, high])(jedax.colourLimits({given}))")
    assert (low, high) == colour_limits(known, log=False)


def test_very_bad_solutions_flatten_neither_map_nor_curve(browser, copy):
    forget_checksums(copy)
    path = copy / "repertoire.safetensors"
    arrays = files.read_tensors(path, str(files.FORMAT))
    arrays["fitness"] = np.where(np.isfinite(arrays["fitness"]), arrays["fitness"], -np.inf)
    worst, other = np.flatnonzero(np.isfinite(arrays["fitness"][0]))[:2]
    arrays["fitness"][0, worst] = -1e6
    files.write_tensors(path, arrays, {"format": str(files.FORMAT)})
    head, *rows = (copy / "metrics.csv").read_text().splitlines()
    cells = rows[0].split(",")
    cells[head.split(",").index("max_fitness")] = "-1e6"
    (copy / "metrics.csv").write_text("\n".join([head, ",".join(cells), *rows[1:], ""]))
    with opened(browser, write_report(copy).as_uri()) as page:
        page.select_option("#replica", "0")
        low, _, lowest = page.evaluate("jedax.explorer.limits('fitness')")
        assert lowest == -1e6
        assert low > -1000
        assert page.inner_text("#scale-low").startswith("≤ ")
        assert "the lowest value is -1,000,000" in page.inner_text("#map-note")
        hover(page, other)
        lines = dict(line.split(": ") for line in page.inner_text("#tip").splitlines())
        assert number(lines["fitness"]) == pytest.approx(arrays["fitness"][0, other], abs=0.06)
        page.wait_for_selector("#chart-best .main-svg")
        assert page.evaluate("document.getElementById('chart-best').layout.yaxis.range[0]") > -1000
        assert "cut off below: down to -1,000,000" in page.text_content("#chart-best")
        assert "cut off" not in page.text_content("#chart-coverage")


def test_a_run_without_a_solution_shows_none(browser, tmp_path, undrawn):
    config = jedax.JediConfig(population=4, pool=2, generations=5, cells=16, gp_max_steps=2)
    jedax.run(config, Failing(), evaluations=8 * 40, out=tmp_path / "run")
    with opened(browser, write_report(tmp_path / "run", task=Failing()).as_uri()) as page:
        assert page.inner_text(".badge") == "no solution"
        assert "All evaluations failed" in page.inner_text(".lead")
        assert page.inner_text("#detail-title") == "No solution"
        assert page.evaluate("document.getElementById('chart-coverage').layout.yaxis.range[0]") == 0
        for place in ("#best-legend", "#cell-legend", "#show-best", "#replay"):
            assert page.is_hidden(place)
        assert page.inner_text("#scale-low") == page.inner_text("#scale-high") == ""
        assert page.evaluate("Object.keys(jedax.data.replicas[0].layers)") == ["fitness", "counts", "improved"]


def test_thick_walls_leave_the_labels_alone(browser, copy):
    """Walls as thick as those of the ant's maze, which reach beyond the box of the cells."""
    with opened(browser, write_report(copy).as_uri()) as page:
        inked = """(thick) => {
            jedax.data.scene.wall_width = thick;
            jedax.explorer.drawMap();
            const { left, bottom, height } = jedax.explorer.view, scale = devicePixelRatio;
            const { map } = jedax.explorer;
            const pen = new OffscreenCanvas(map.width, map.height).getContext("2d", { willReadFrequently: true });
            pen.drawImage(map, 0, 0);
            const beside = pen.getImageData(0, 0, (left - 4) * scale, height * scale).data;
            const below = pen.getImageData(0, (height - bottom + 4) * scale, map.width, bottom * scale).data;
            const opaque = (pixels) => pixels.filter((value, place) => place % 4 === 3 && value > 0).length;
            return [opaque(beside), opaque(below)];
        }"""
        assert page.evaluate(inked, 0.1) == page.evaluate(inked, 0)
