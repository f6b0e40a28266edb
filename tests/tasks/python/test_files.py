"""A Python file in the place of a task's name."""

import pytest

from jedax import JedaxError
from jedax.tasks.registry import task_entry

FILE = """
raise SystemExit("this file is read, not run")
from jedax.tasks import Task

def fly(genotypes): ...
def crash(genotypes, speed=1.0): ...
def _hidden(genotypes): ...
def add(one, other): ...
def nothing(): ...
def keyed(genotypes, *, speed): ...
class Drone(jedax.tasks.ConfiguredTask): ...
class Heavy(Drone): ...
class Other: ...
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sims").mkdir()
    for name in ("drone.py", "sims/drone.py"):
        (tmp_path / name).write_text(FILE)
    (tmp_path / "broken.py").write_text("def f(:")
    return tmp_path


@pytest.mark.parametrize(("name", "remedy"), [
    ("drone.py", "try: drone:Drone or drone:Heavy or drone:fly."),
    ("./drone.py", "try: drone:Drone or drone:Heavy or drone:fly."),
    ("drone.py:fly", "try: drone:Drone or drone:Heavy or drone:fly."),
    ("drone", "try: drone:Drone or drone:Heavy or drone:fly."),
    ("sims/drone.py", "try: sims.drone:Drone or sims.drone:Heavy or sims.drone:fly."),
    ("broken.py", "try: broken:NAME, of a function that it defines."),
    ("nowhere.py", "got nowhere.py, where there is no file; check the path."),
    ("dron", "task: unknown name 'dron'; choose one of ant"),
    ("x" * 5000, "task: unknown name 'xxx"),
])  # fmt: skip
def test_what_the_file_defines_is_offered(folder, name, remedy):
    with pytest.raises(JedaxError) as caught:
        task_entry(name)
    assert remedy in str(caught.value)


def test_a_file_elsewhere_names_its_directory(folder):
    with pytest.raises(JedaxError, match=rf"try in {folder}/sims: drone:Drone or "):
        task_entry(str(folder / "sims" / "drone.py"))
