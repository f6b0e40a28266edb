"""The page of a comparison, in a real browser."""

import csv
import io
import shutil

import numpy as np
import pytest
from tests.bench.synthetic import BASELINE, write_run
from tests.report.pages import opened, saved

from jedax.bench.comparison import compare
from jedax.bench.statistics import ranking
from jedax.report import pages
from jedax.report.pages import write_report

NASTY = "<script>alert(1)</script>"
LABELS = ["jedi", "a|b/c", NASTY]


@pytest.fixture(scope="module")
def bench(tmp_path_factory, maze_run):
    folder = tmp_path_factory.mktemp("bench")
    rng = np.random.default_rng(0)
    for number, label in enumerate(LABELS):
        for task in ("maze-a", "maze-b"):
            curves = np.sort(rng.uniform(-300, -100, (5, 4)), axis=1) - 30 * number
            method = "jedi" if number == 0 else BASELINE
            write_run(folder / f"{task}-{number}", curves, task=task, label=label, method=method,
                      reports=[100, 200, 300, 400])  # fmt: skip
    # A method with a run that has a page, and one that has not ended.
    write_run(folder / "odd #%" / "own", [[-280.0, -200.0]], task="maze-a", label="own", method="map-elites",
              reports=[100, 400])  # fmt: skip
    (folder / "odd #%" / "own" / "report.html").write_text("<title>own</title>")
    write_run(folder / "late", [[-280.0, -200.0]], label="late", reports=[100, 400], status=None)
    return folder


@pytest.fixture(scope="module")
def found(bench):
    return compare(bench)


@pytest.fixture(scope="module")
def page(browser, bench):
    with opened(browser, write_report(bench).as_uri()) as page:
        page.wait_for_selector('.task[data-task="1"] [data-chart=coverage] .main-svg')
        yield page


def traces(page, task, chart, what):
    script = f"""document.querySelector('.task[data-task="{task}"] [data-chart={chart}]').data.map((t) => {what})"""
    return page.evaluate(script)


def test_the_table_is_that_of_compare(page, found):
    for row, table in zip(page.locator("#table tbody tr").all(), found.tables, strict=True):
        cells = row.locator("th, td").all_inner_texts()
        assert cells[0] == table.task
        for text, label in zip(cells[1:], found.labels, strict=True):
            entry = table.entry(label)
            if entry is None:
                assert text == "–"
                continue
            assert float(text.split()[0]) == pytest.approx(entry.median, abs=0.051)
            assert ("≈" in text) == entry.similar
            assert f"{entry.successes} of {len(entry.seeds)} reached the goal" in text


def test_violins_hold_every_seed(page, found):
    for number, table in enumerate(found.tables):
        shown = traces(page, number, "final", "[...t.x]")
        assert [sorted(values) for values in shown] == [sorted(entry.final) for entry in table.entries]
    texts = traces(page, 0, "final", "[...t.text]")
    assert texts[0][:2] == ["seed 0", "seed 1"]


def test_a_point_links_to_the_page_of_its_run(page, found):
    labels = [entry.label for entry in found.tables[0].entries]
    links = dict(zip(labels, traces(page, 0, "final", "t.customdata[0].link"), strict=True))
    assert links == {"jedi": None, "a|b/c": None, NASTY: None, "own": "odd%20%23%25/own/report.html#seed=0"}
    chart = page.locator('.task[data-task="0"] [data-chart=final]')
    with page.context.expect_page() as opening:
        chart.evaluate("(c, link) => c.emit('plotly_click', { points: [{ customdata: { link } }] })", links["own"])
    assert opening.value.title() == "own"
    opening.value.close()


def test_pages_of_runs_are_links_too(page):
    """For whoever has no pointer."""
    assert page.locator(".runs").count() == 1
    page.click(".runs summary")
    link = page.locator(".runs a")
    assert (link.inner_text(), link.get_attribute("href")) == ("seed 0", "odd%20%23%25/own/report.html#seed=0")
    assert page.inner_text(".runs p").startswith("own:")


def test_a_method_whose_seeds_all_failed_stays(page):
    """Plotly leaves out a violin without points."""
    script = """() => {
        const { comparison } = jedax, [table] = comparison.data.tables, [entry] = table.entries, { final } = entry;
        entry.final = final.map(() => null);
        comparison.draw();
        const chart = document.querySelector('.task[data-task="0"] [data-chart=final]'), { yaxis } = chart._fullLayout;
        const found = [yaxis._categories, yaxis.range, chart.textContent];
        entry.final = final;
        comparison.draw();
        return found;
    }"""
    categories, limits, text = page.evaluate(script)
    assert len(categories) == 4
    assert limits == [3.5, -0.5]
    assert "5 of 5 seeds: no solution" in text


def test_bands_have_the_colour_of_their_line(browser, bench):
    """Also where black becomes white."""
    with opened(browser, write_report(bench).as_uri(), color_scheme="dark") as page:
        script = """() => {
            const { comparison } = jedax, [label] = comparison.data.labels, { color } = comparison.data.styles[label];
            comparison.data.styles[label].color = "#222222";
            const [low, high, line] = comparison.bands(comparison.data.tables[0].entries, "fitness");
            comparison.data.styles[label].color = color;
            return [high.fillcolor, line.line.color];
        }"""
        assert page.evaluate(script) == ["rgba(232,234,237,.15)", "#e8eaed"]


def test_names_are_no_templates(page):
    assert page.evaluate("jedax.plain('%{x} & <b>')") == "&#37;{x} &amp; &lt;b&gt;"


def test_curves_and_success_rates(page, found):
    table = found.tables[0]
    medians = [values for values, name in traces(page, 0, "fitness", "[[...t.y], t.name]") if name]
    for values, entry in zip(medians, table.entries, strict=True):
        curves = found.curves(table, entry.label, "max_fitness")
        np.testing.assert_allclose(values, np.median(curves, axis=1), rtol=1e-5)
    shares = traces(page, 0, "success", "t.y[0]")
    assert shares == [entry.successes / len(entry.seeds) for entry in table.entries]
    ends = traces(page, 0, "reached-0", "t.y.at(-1)")
    assert ends == [entry.reached[0].count / len(entry.seeds) for entry in table.entries]


def test_a_very_bad_start_does_not_flatten_the_curves(browser, tmp_path):
    write_run(tmp_path / "a", [[-1e7, -300.0, -270, -255]])
    with opened(browser, write_report(tmp_path).as_uri()) as page:
        chart = "document.querySelector('[data-chart=fitness]')"
        assert page.evaluate(f"{chart}.layout.yaxis.range") == [-307.5, -247.5]
        assert "cut off below: down to -10,000,000" in page.text_content("[data-chart=fitness]")


def test_methods_can_be_hidden(page, found):
    column = page.locator("#table thead th").nth(2)
    assert column.is_visible()
    before = len(traces(page, 0, "final", "1"))
    page.uncheck("input[name=method][value='1']", force=True)
    assert column.is_hidden()
    assert len(traces(page, 0, "final", "1")) == before - 1
    page.check("input[name=method][value='1']", force=True)
    assert column.is_visible()
    assert len(traces(page, 0, "final", "1")) == before


def test_ranks_over_tasks(page, found):
    ranks = ranking(found.medians)
    assert set(ranks.labels) == set(LABELS)  # the fourth lacks a task
    text = page.inner_text("[aria-labelledby=ranks-title]")
    assert f"critical difference at the 5 % level is {ranks.difference:.2f}" in text
    drawn = page.evaluate("document.getElementById('ranks').data.slice(0, 3).map((t) => t.x[0])")
    np.testing.assert_allclose(drawn, ranks.ranks)


def test_names_show_as_they_are(page):
    page.on("dialog", lambda dialog: pytest.fail("a script of a name ran"))
    assert NASTY in page.locator("#table thead").inner_text()
    assert page.locator("#table script, #methods script").count() == 0
    assert NASTY in page.locator('.task[data-task="0"] [data-chart=final] .yaxislayer-above').text_content()


def test_what_is_left_out_is_said(page, bench):
    assert f"Left out: {bench / 'late'}: no summary.json" in page.inner_text(".notice")


@pytest.mark.parametrize("name", ["table", "seeds", "reached", "curves"])
def test_numbers(page, found, name):
    rows = list(csv.DictReader(io.StringIO("\n".join(saved(page, f"[data-csv={name}]")))))
    entries = [entry for table in found.tables for entry in table.entries]
    counts = {"table": len(entries), "seeds": sum(len(e.seeds) for e in entries),
              "reached": sum(len(e.seeds) for e in entries)}  # fmt: skip
    assert len(rows) == counts.get(name, len(rows))
    if name == "table":
        assert [float(row["median"]) for row in rows] == [entry.median for entry in entries]
    if name == "curves":
        assert {row["column"] for row in rows} == {"fitness", "coverage"}


def test_it_fits_a_phone(browser, bench):
    with opened(browser, write_report(bench).as_uri(), viewport={"width": 390, "height": 800}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        widths = page.evaluate("[...document.querySelectorAll('#table td')].map((cell) => cell.clientWidth)")
        assert max(widths) < 150  # what stands below a number takes several lines


@pytest.mark.parametrize(("seeds", "is_clear"), [(9, True), (10, False)])
def test_few_seeds_have_no_density(browser, tmp_path, seeds, is_clear):
    write_run(tmp_path / "a", [[-300.0, final] for final in range(-290, -290 + seeds)])
    with opened(browser, write_report(tmp_path).as_uri()) as page:
        (colour,) = traces(page, 0, "final", "t.line.color")
        assert (colour == "rgba(0,0,0,0)") == is_clear


def test_pages_of_all_runs_share_the_charts_library(browser, maze_run, tmp_path, monkeypatch):
    looked, holds = [], pages._holds
    monkeypatch.setattr(pages, "_holds", lambda path, text: looked.append(path) or holds(path, text))
    shutil.copytree(maze_run, tmp_path / "bench" / "deep" / "run")
    (tmp_path / "bench" / "plotly.min.js").write_text("alert('somebody else')")
    report = write_report(tmp_path / "bench", runs=True)
    own = tmp_path / "bench" / "deep" / "run" / "report.html"
    assert looked == [tmp_path / "bench" / "plotly.min.js"]  # 5 MB, which need not be compared for each page
    assert (tmp_path / "bench" / "plotly.min.js").stat().st_size > 1e6
    assert own.stat().st_size < 1e6
    page = browser.new_page()
    page.goto(own.as_uri())
    page.wait_for_selector("#chart-best .main-svg")
    page.close()
    assert "deep/run/report.html#seed=4" in report.read_text()
