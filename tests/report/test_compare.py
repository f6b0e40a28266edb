"""`compare`: from directories to tables and figures."""

import csv
import os
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas
import pytest
from tests.bench.synthetic import BASELINE, write_run
from tests.commands import call

from jedax import JedaxError
from jedax.report import tables
from jedax.report.comparisons import compare, folder_for, outcome

TABLES = ["reached.csv", "seeds.csv", "table.csv", "table.md", "table.tex"]


@pytest.fixture
def bench(tmp_path):
    rng = np.random.default_rng(0)
    for number, label in enumerate(["alpha=0", "alpha=0.5", "a|b/c", "<b> & $x$", "_hidden"]):
        curves = np.sort(rng.uniform(-300, -100, (3, 4)), axis=1)
        cells = (rng.uniform(-300, -100, (3, 9)), rng.integers(0, 9, (3, 9))) if number < 2 else None
        for task in ("maze-a", "custom:odd/name $"):
            method = "jedi" if number < 2 else BASELINE
            write_run(tmp_path / f"{number}{task[:4]}", curves, task=task, label=label, method=method,
                      cells=cells, reports=[10, 20, 30, 40])  # fmt: skip
    return tmp_path


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_everything_is_written(bench):
    found = compare(bench)
    assert files(bench / "compare") == sorted([*TABLES, "figures"])
    names = ["ablation-alpha", "cells-maze-a", "convergence", "coverage", "evaluations-to-fitness", "final-fitness"]
    assert files(bench / "compare" / "figures") == [f"{name}.{kind}" for name in names for kind in ("pdf", "png")]
    for name in names:
        pixels = plt.imread(bench / "compare" / "figures" / f"{name}.png")[..., :3]
        assert min(pixels.shape[:2]) > 300
        assert pixels.std() > 0.05
        assert (bench / "compare" / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    page = (bench / "compare" / "table.md").read_text()
    assert "![convergence](figures/convergence.png)" in page
    said = outcome(found, bench / "compare")
    assert f"tables and figures are in {bench / 'compare'}" in said
    assert said.startswith(tables.plain_table(found))


def test_again_it_is_the_same_and_what_is_stale_goes(bench):
    compare(bench, formats=["png"])
    before = {path: path.read_bytes() for path in (bench / "compare").rglob("*") if path.is_file()}
    (bench / "compare" / "figures" / "ablation-old.png").write_bytes(b"")
    (bench / "compare" / "figures" / "notes.txt").write_text("mine")
    compare([bench], formats=["png"])
    after = {path: path.read_bytes() for path in (bench / "compare").rglob("*") if path.is_file()}
    assert after == before | {bench / "compare" / "figures" / "notes.txt": b"mine"}


def test_elsewhere_and_one_run_only(tmp_path):
    write_run(tmp_path / "run", [-1.0], task="custom:t")
    compare([tmp_path / "run"], out=tmp_path / "deep" / "out", formats=["png"], band="std")
    assert files(tmp_path / "deep" / "out" / "figures") == ["convergence.png", "coverage.png", "final-fitness.png"]
    assert "compare" not in files(tmp_path / "run")


def test_where_it_goes(tmp_path):
    (tmp_path / "x.csv").write_text("")
    assert folder_for(tmp_path) == tmp_path / "compare"
    assert folder_for(tmp_path / "x.csv") == tmp_path / "compare"
    write_run(tmp_path / "run", [-1.0], task="custom:t")
    assert folder_for(tmp_path / "run") == tmp_path / "compare"
    assert folder_for(tmp_path, "there").as_posix() == "there"


def test_results_of_a_comparison_are_no_foreign_results(tmp_path):
    write_run(tmp_path / "a", [-1.0, -2.0])
    first = compare(tmp_path, formats=["png"], fitness=[-3.0])
    assert len(compare(tmp_path, formats=["png"]).records.records) == len(first.records.records) == 2


def test_left_out_runs_are_counted(tmp_path):
    write_run(tmp_path / "a", [-1.0, -2.0])
    write_run(tmp_path / "b", [-1.0], status=None)
    found = compare(tmp_path, formats=[])
    assert "runs that have not ended, left out: 1" in outcome(found, tmp_path / "compare")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"band": "iqr"}, "band: unknown name 'iqr'"),
        ({"formats": ["jpg"]}, "formats: unknown name 'jpg'"),
        ({"cells": ["alpha=1"]}, "cells: unknown name 'alpha=1'; did you mean 'alpha="),
        ({"reference": "x"}, "reference: unknown name 'x'"),
    ],
)
def test_unknown_names(bench, options, message):
    with pytest.raises(JedaxError, match=message):
        compare(bench, **options)
    assert not (bench / "compare").exists()


def test_no_directory():
    with pytest.raises(JedaxError, match="directories: expected at least one, got none"):
        compare([])


def test_out_that_cannot_be_written(bench):
    (bench / "file").write_text("")
    with pytest.raises(JedaxError, match="out: expected a directory that can be written"):
        compare(bench, out=bench / "file" / "below")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_out_without_permission(bench):
    (bench / "closed").mkdir(mode=0o500)
    with pytest.raises(JedaxError, match="out: expected a directory that can be written"):
        compare(bench, out=bench / "closed" / "out")


def test_names_cannot_control_a_terminal_or_a_spreadsheet(tmp_path, capsys):
    """Neither those of a CSV file nor those of a run, in what is printed, in tables, and in errors."""
    evil = ["\x1b[31mred\x07", "\u202etxet", '=HYPERLINK("http://x","y")', "+1", "-1", "@SUM(1)"]
    rows = [[name, "=1+1\x1b[2J", seed, 64, -seed - 1.0, 0.5] for name in evil for seed in range(3)]
    frame = pandas.DataFrame(rows, columns=["method", "task", "seed", "evaluations", "max_fitness", "coverage"])
    frame.to_csv(tmp_path / "results.csv", index=False)
    write_run(tmp_path / "run", [-120.0, -130], label="\x1b[1mbold", method=BASELINE)
    code, out, _ = call(capsys, "compare", tmp_path)
    assert code == 0
    pages = {path.name: path.read_text() for path in (tmp_path / "compare").iterdir() if path.is_file()}
    for text in (out, *pages.values()):
        assert not re.search("[\x1b\x07\u202e]", text)
    assert "\\x1b[31mred\\x07" in out
    assert "\\u202etxet" in out
    assert "\\x1b[1mbold" in out
    for name in ("table.csv", "seeds.csv", "reached.csv"):
        for row in csv.reader(pages[name].splitlines()):
            assert [cell for cell in row if cell.startswith(("=", "+", "@")) or re.match(r"-\D", cell)] == []
    labels = {row["label"] for row in csv.DictReader(pages["table.csv"].splitlines())}
    assert {'\'=HYPERLINK("http://x","y")', "'+1", "'-1", "'@SUM(1)", "\\u202etxet"} <= labels
    assert "-1.0" in pages["seeds.csv"]  # numbers are numbers
    code, out, err = call(
        capsys, "compare", tmp_path / "results.csv", "--out", tmp_path / "no", "--reference", "\x1b[1m"
    )
    assert (code, out) == (2, "")
    assert "\x1b" not in err


def test_a_link_in_the_place_of_the_figures(bench, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "figures").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JedaxError, match="figures, a link or"):
        compare(bench, out=tmp_path / "out")
    assert files(tmp_path / "elsewhere") == []
    (tmp_path / "mine").symlink_to(tmp_path / "elsewhere")  # the user's own
    compare(bench, out=tmp_path / "mine", formats=["png"])
    assert files(tmp_path / "elsewhere") == sorted([*TABLES, "figures"])


def test_what_others_wrote_is_spared(bench, tmp_path_factory):
    folder = tmp_path_factory.mktemp("thesis")
    (folder / "figures").mkdir()
    drawn = folder / "figures" / "coverage-by-hand.pdf"
    drawn.write_text("mine")
    with pytest.raises(JedaxError, match=r"out: expected a new directory, .* with figures/coverage-by-hand.pdf"):
        compare(bench, out=folder, formats=())
    drawn.rename(folder / "table.tex")
    with pytest.raises(JedaxError, match=r"out: expected a new directory, .* with table.tex"):
        compare(bench, out=folder, formats=())
    assert (folder / "table.tex").read_text() == "mine"
    with pytest.raises(JedaxError, match=r"out: expected a new directory, or that of an earlier comparison, .*, a run"):
        compare(bench, out=bench / "0maze", formats=())


def test_a_comparison_that_was_stopped_is_made_again(bench):
    compare(bench, formats=())
    for name in ("table.md", "table.tex", "seeds.csv"):
        (bench / "compare" / name).unlink()
    compare(bench, formats=())
    assert (bench / "compare" / "table.md").exists()


def test_fitness_levels_that_are_alike(bench):
    found = compare(bench, fitness=[-1234567.5, -1234567.25], formats=())
    assert [name for name in tables.details(found.tables[0].entries[0], 1) if name.startswith("evaluations")] == [
        "evaluations to -250", "evaluations to -1234567.5", "evaluations to -1234567.25",
    ]  # fmt: skip
