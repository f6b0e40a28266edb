"""The examples of the README run as they stand there, with smaller budgets."""

import re
from pathlib import Path

import pytest

import jedax
from jedax.tasks.maze.settings import load_maze_file

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
YAML = re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("block", PYTHON, ids=[block.strip().splitlines()[-1][:40] for block in PYTHON])
def test_python_examples(block, tmp_path, monkeypatch, capsys, undrawn):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(re.sub(r"evaluations=[\d_]+", "evaluations=640", block), names)
    if "print(" in block:
        assert capsys.readouterr().out.strip()
    if "action" in names:
        assert names["action"].shape == (2,)


def test_the_spring_is_as_light_as_it_says(capsys):
    (block,) = [block for block in PYTHON if "def weight" in block]
    said = re.search(r"print\(.*  # ([\d.]+) after a few seconds", block)
    exec(block, {})
    assert float(capsys.readouterr().out.split()[0]) == pytest.approx(float(said[1]), abs=1e-6)


def test_the_maze_file_is_the_maze_in_python(tmp_path):
    (tmp_path / "mine.yaml").write_text(YAML[0])
    expected = jedax.tasks.Maze(walls=[(0, 0.5, 0.7, 0.5)], start=(0.2, 0.2, 0), target=(0.2, 0.8), hidden=(16,))
    assert load_maze_file(tmp_path / "mine.yaml") == expected.config.replace(name="mine")
    assert "target=(0.2, 0.8), hidden=(16,)" in README


def test_files_it_links_to_are_there():
    here = Path(__file__).parent.parent
    if not (here / "results").exists():
        pytest.skip("an unpacked source distribution holds no results")
    links = set(re.findall(r"\]\(([^)#:]+)\)", README)) | set(re.findall(r'src="([^"]+)"', README))
    assert len(links) > 10
    assert [link for link in links if not (here / link).exists()] == []
