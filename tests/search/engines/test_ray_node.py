"""Directories as mappings and back: the same files, and no file anywhere else."""

import os
import subprocess
import sys

import pytest

import jedax
from jedax.search.engines import ray_node
from jedax.search.engines.ray_node import read_files, write_files
from jedax.store.files import put_back

FILES = {"config.yaml": b"task: arm\n", "checkpoint/000000000008/state.safetensors": bytes(range(256)) * 1000}


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "here" / "seeds-0-9"
    (folder / "checkpoint" / "000000000008").mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    return folder


def test_there_and_back(run, tmp_path):
    assert read_files(run) == FILES
    write_files(FILES, tmp_path / "there" / "seeds-0-9")
    assert read_files(tmp_path / "there" / "seeds-0-9") == FILES
    assert os.listdir(tmp_path / "there") == ["seeds-0-9"]


def test_an_old_directory_is_replaced_as_a_whole(tmp_path):
    there = tmp_path / "seeds-0-9"
    there.mkdir()
    (there / "log.txt").write_text("old")
    (tmp_path / ".seeds-0-9.arriving").mkdir()
    (tmp_path / ".seeds-0-9.arriving" / "junk").write_text("of a command that was killed")
    write_files(FILES, there)
    assert read_files(there) == FILES
    assert os.listdir(tmp_path) == ["seeds-0-9"]


KILLED = """
import os, sys
from pathlib import Path
from jedax.search.engines.ray_node import write_files

rename, left = Path.rename, [int(sys.argv[2])]

def killed(self, target):
    left[0] -= 1
    if not left[0]:
        os._exit(9)
    return rename(self, target)

Path.rename = killed
write_files({"config.yaml": b"new"}, Path(sys.argv[1]))
"""


@pytest.mark.parametrize("step", [1, 2])
def test_a_kill_between_two_renames_loses_nothing(run, step):
    assert subprocess.run([sys.executable, "-c", KILLED, run, str(step)]).returncode == 9
    put_back(run.parent)
    assert read_files(run) == FILES
    write_files({"config.yaml": b"new"}, run)
    assert read_files(run) == {"config.yaml": b"new"}
    assert os.listdir(run.parent) == ["seeds-0-9"]


def test_links_and_special_files_are_left_out(run, tmp_path):
    (tmp_path / "secret").write_text("mine")
    (run / "link").symlink_to(tmp_path / "secret")
    (run / "folder").symlink_to(tmp_path)
    os.mkfifo(run / "pipe")
    assert read_files(run) == FILES


@pytest.mark.parametrize("bad", ["../outside", "a/../../outside", "/tmp/jedax-outside", "..", ".", ""])
def test_a_path_that_leads_elsewhere_is_refused_and_changes_nothing(run, tmp_path, bad):
    before = read_files(tmp_path)
    with pytest.raises(jedax.JedaxError, match="files: expected paths below their own directory"):
        write_files({"config.yaml": b"new", bad: b"bad"}, run)
    assert read_files(tmp_path) == before
    assert not os.path.exists("/tmp/jedax-outside")
    assert os.listdir(run.parent) == ["seeds-0-9"]


def test_a_full_disk_leaves_the_old_directory(run, tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ray_node, "write_atomic", full)
    with pytest.raises(jedax.JedaxError, match="No space left on device"):
        write_files({"config.yaml": b"new"}, run)
    assert read_files(tmp_path / "here") == {f"seeds-0-9/{name}": content for name, content in FILES.items()}
