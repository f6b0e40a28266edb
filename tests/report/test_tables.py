"""Tables: what is bold, underlined and starred, odd names, and CSV that reads back to the last digit."""

import csv
import io
import math
import re
import shutil
import subprocess

import pytest
from tests.bench.synthetic import BASELINE, write_run

from jedax.bench.comparison import compare
from jedax.report import tables

ODD = ["a|b", "a_b*c", "<script>alert(1)</script>", "50%_$x^2$ & {y}~#\\z", "α=0.3", "`code`[x](y)"]


@pytest.fixture
def bench(tmp_path):
    write_run(tmp_path / "tuned", [-120.0, -130, -110, -140], label="tuned", method="jedi")
    write_run(tmp_path / "decay", [-119.0, -129, -109, -139, -260], label="decay", method="jedi")
    write_run(tmp_path / "far", [-280.0, -290, -285, -282], label="far", method=BASELINE)
    write_run(tmp_path / "near", [-121.0, -131, -111, -141], label="near", method=BASELINE)
    write_run(tmp_path / "bump", [1.0, 2], task="custom:bump", label="near", method=BASELINE, budget=10_000)
    write_run(tmp_path / "open", [1.0, 2], label="near", status=None)
    return tmp_path


@pytest.fixture
def odd(tmp_path):
    for number, label in enumerate(ODD):
        write_run(
            tmp_path / str(number), [number - 3.0, number - 4.0], task="custom:t|_<b>", label=label, method=BASELINE
        )
    return compare(tmp_path, reference=ODD[0])


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_main_table(bench):
    lines = tables.main_table(compare(bench)).splitlines()
    assert cells(lines[0]) == ["task", "decay", "tuned", "far", "near"]
    assert cells(lines[2]) == ["maze-a", "-129.0", "**-125.0**", "-283.5 (0.029)", "<ins>-126.0</ins> (0.686) ≈"]
    assert cells(lines[3]) == ["bump", "-", "-", "-", "**1.500**"]
    assert len(lines) == 4


def test_the_page(bench):
    page = tables.markdown(compare(bench, fitness=[-115.0]), ["figures/convergence.png"])
    rows = {cells(line)[0]: cells(line) for line in page.splitlines() if line.startswith("| ") and "of" in line}
    assert rows["far"] == ["far", "4", "-283.5", "-290.0 to -280.0 (range)", "-290.0", "-280.0", "0 of 4", "0% to 49%",
                           "0.029", "0.057", "0.00", "25%", "- (0 of 4)", "- (0 of 4)"]  # fmt: skip
    assert rows["decay"][6:] == ["4 of 5", "38% to 96%", "-", "-", "-", "25%", "1 k (4 of 5)", "- (1 of 5)"]
    assert "Budget 10,000 evaluations, goal -250, reference: tuned." in page
    assert "Budget 10,000 evaluations, no goal, reference: none." in page
    assert "![convergence](figures/convergence.png)" in page
    assert "No p-values on bump: no JEDi there, and no reference was chosen." in page
    assert "open: no summary.json: it has not ended" in page.replace("\\_", "_")
    assert "Mann-Whitney" in page


def test_a_page_without_tests_does_not_explain_them(tmp_path):
    write_run(tmp_path / "a", [-120.0, -130])
    page = tables.markdown(compare(tmp_path))
    assert "Mann-Whitney" not in page
    assert "p-value" not in tables.plain_table(compare(tmp_path))
    assert "Left out" not in page
    assert "## Figures" not in page


@pytest.mark.parametrize(("seeds", "kind"), [(4, "range"), (5, "95 % bootstrap")])
def test_ranges_of_few_seeds_are_named(tmp_path, seeds, kind):
    write_run(tmp_path / "a", [-120.0 - seed for seed in range(seeds)])
    found = compare(tmp_path)
    is_range = kind == "range"
    (entry,) = found.tables[0].entries
    assert tables.details(entry, 1)["interval"] == f"-{119 + seeds}.0 to -120.0{' (range)' * is_range}"
    assert ("Of fewer than 5 seeds the range of the fitness is shown" in tables.markdown(found)) == is_range
    assert ("of fewer than 5 seeds the range, least to greatest" in tables.latex(found)) == is_range
    assert next(csv.DictReader(io.StringIO(tables.csv_files(found)["table"])))["median_interval"] == kind


def test_every_table_of_the_page_has_as_many_cells_as_its_head(odd):
    widths = None
    for line in tables.markdown(odd).splitlines():
        if not line.startswith("|"):
            widths = None
            continue
        widths = widths or len(cells(line))
        assert len(cells(line)) == widths
    assert len(cells(tables.main_table(odd).splitlines()[0])) == 1 + len(ODD)


def test_markdown_shows_odd_names_as_they_are(odd):
    head = tables.main_table(odd).splitlines()[0]
    assert "<script>" not in tables.markdown(odd)
    assert "&lt;script&gt;" in head
    unescaped = [re.sub(r"\\([^\w\s]|_)", r"\1", cell) for cell in cells(head)[1:]]
    shown = [cell.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") for cell in unescaped]
    assert sorted(shown) == sorted(ODD)


def test_csv_reads_back_to_the_last_digit(tmp_path):
    write_run(tmp_path / "a", [-120.1 / 3, -130.7 / 7, -1 / 3], label='a,"b"')
    write_run(tmp_path / "b", [-1.0, -2.0], label="b", method=BASELINE)
    found = compare(tmp_path, fitness=[-19.0])
    rows = list(csv.DictReader(io.StringIO(tables.csv_files(found)["table"])))
    entries = found.tables[0].entries
    assert [row["label"] for row in rows] == ['a,"b"', "b"]
    for row, entry in zip(rows, entries, strict=True):
        assert float(row["median"]) == entry.median
        assert float(row["median_low"]) == entry.interval[0]
        assert float(row["success_high"]) == entry.success_interval[1]
    assert (rows[0]["p"], float(rows[1]["p"])) == ("", entries[1].p)
    assert float(rows[1]["vargha_delaney_a"]) == entries[1].effect
    seeds = list(csv.DictReader(io.StringIO(tables.csv_files(found)["seeds"])))
    assert [(row["label"], int(row["seed"])) for row in seeds] == [('a,"b"', n) for n in range(3)] + [
        ("b", 0),
        ("b", 1),
    ]
    assert tuple(float(row["final_fitness"]) for row in seeds[:3]) == entries[0].final
    assert [(row["source"], row["replica"]) for row in seeds[3:]] == [
        (str(tmp_path / "b"), "0"),
        (str(tmp_path / "b"), "1"),
    ]
    reached = list(csv.DictReader(io.StringIO(tables.csv_files(found)["reached"])))
    assert len(reached) == 2 * 5  # the goal and -19, for 5 seeds
    assert [float(row["evaluations"]) for row in reached if row["fitness"] == "-19.0" and row["label"] != "b"] == [
        math.inf, 10_000, 1000,
    ]  # fmt: skip


def test_csv_without_anything_to_reach(tmp_path):
    write_run(tmp_path / "a", [-1.0], task="custom:t")
    assert tables.csv_files(compare(tmp_path))["reached"] == ""


def test_plain_table(bench):
    lines = tables.plain_table(compare(bench)).splitlines()
    assert lines[0].split() == ["maze-a", "bump"]
    assert [line.split() for line in lines[1:5]] == [
        ["decay", "-129.0", "-"],
        ["tuned", ">-125.0", "-"],
        ["far", "-283.5", "(0.029)", "-"],
        ["near", "-126.0", "(0.686)", ">1.500"],
    ]
    assert lines[5] == "median final best fitness; > best of the task; (p-value against its reference)"


def test_latex_rows(bench):
    text = tables.latex(compare(bench))
    assert r"Task & decay & tuned & far & near \\" in text
    assert (
        r"maze-a & $-129.0$ & $\mathbf{-125.0}$ & $-283.5$ (0.029) & \underline{$-126.0$} (0.686) $\approx$ \\" in text
    )
    assert r"bump & -- & -- & -- & $\mathbf{1.500}$ \\" in text
    assert r" & far & 4 & $-283.5$ & $-290.0$ to $-280.0$ (range) & 0 of 4 & 0.029 & 0.057 & 0.00 & 25\% \\" in text
    assert r"bump & near & 2 & $1.500$ & $1.000$ to $2.000$ (range) & -- & -- & -- & -- & 25\% \\" in text


def test_latex_escapes():
    assert tables.latex_text("a_b & 50%") == r"a\_b \& 50\%"
    assert tables.latex_text("{$#~^<>|\\}") == (
        r"\{\$\#\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}\textbar{}\textbackslash{}\}"
    )
    assert tables.latex_text("α=0.3, λ\nο") == r"$\alpha$=0.3, $\lambda$ o"


def balanced(text):
    """Braces, dollars and environments of a LaTeX text close in order; every row has as many cells as columns."""
    plain = re.sub(r"\\[\\{}$%&#_]", "", text)
    depth = 0
    for character in plain:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    assert all(line.count("$") % 2 == 0 for line in plain.splitlines())
    opened = []
    for kind, name in re.findall(r"\\(begin|end)\{([^}]*)\}", text):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []
    for spec, body in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", text, flags=re.DOTALL):
        for line in body.splitlines():
            if line.endswith(r"\\"):
                assert len(re.findall(r"(?<!\\)&", line)) == len(spec) - 1
    return True


def test_latex_is_balanced(bench, odd):
    assert balanced(tables.latex(compare(bench)))
    assert balanced(tables.latex(odd))
    assert "Mann--Whitney" in tables.latex(odd)


def test_latex_of_minus_infinity_and_of_one_seed(tmp_path):
    path = write_run(tmp_path / "a", [-1.0], task="custom:t")
    (path / "metrics.csv").write_text("evaluations,replica,max_fitness\n10000,0,-inf\n")
    text = tables.latex(compare(tmp_path))
    assert r"t & $-\infty$ \\" in text
    assert r"t & jedi & 1 & $-\infty$ & -- & -- & -- & -- & -- & -- \\" in text
    assert "Mann--Whitney U test" not in text


def test_latex_of_small_numbers(tmp_path):
    for method, value in (("jedi", -3e-10), ("map-elites", -1.2e-9)):
        write_run(tmp_path / method, [value] * 2, task="custom:t", method=method)
    text = tables.latex(compare(tmp_path))
    assert r"$\mathbf{-3 \times 10^{-10}}$" in text
    assert r"\underline{$-1.2 \times 10^{-9}$}" in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles(odd, tmp_path):
    (tmp_path / "table.tex").write_text(tables.latex(odd), encoding="utf-8")
    document = r"\documentclass{article}\usepackage{booktabs}\begin{document}\input{table.tex}\end{document}"
    (tmp_path / "paper.tex").write_text(document)
    done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"], cwd=tmp_path,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000
