"""Directories as bytes and back: the same files, and nothing anywhere else."""

import io
import os
import tarfile

import pytest

import jedax
from jedax.search.engines import transfer
from jedax.search.engines.transfer import pack, unpack


def tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "here" / "seeds-0-9"
    (folder / "checkpoint" / "000000000008").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "config.yaml").write_text("task: arm\n")
    (folder / "checkpoint" / "000000000008" / "state.safetensors").write_bytes(bytes(range(256)) * 1000)
    os.utime(folder / "config.yaml", (1e9, 1e9))
    return folder


def test_there_and_back(run, tmp_path):
    unpack(pack(run), tmp_path / "there" / "seeds-0-9")
    there = tmp_path / "there" / "seeds-0-9"
    assert tree(there) == tree(run)
    assert (there / "empty").is_dir()
    assert (there / "config.yaml").stat().st_mtime == 1e9
    assert os.listdir(tmp_path / "there") == ["seeds-0-9"]


def test_what_was_there_is_replaced_as_a_whole(run, tmp_path):
    there = tmp_path / "seeds-0-9"
    there.mkdir()
    (there / "log.txt").write_text("old")
    (tmp_path / ".seeds-0-9.arriving").mkdir()
    (tmp_path / ".seeds-0-9.arriving" / "junk").write_text("of a command that was killed")
    unpack(pack(run), there)
    assert tree(there) == tree(run)
    assert sorted(os.listdir(tmp_path)) == ["here", "seeds-0-9"]


def test_links_are_left_out(run, tmp_path):
    (tmp_path / "secret").write_text("mine")
    (run / "link").symlink_to(tmp_path / "secret")
    (run / "folder").symlink_to(tmp_path)
    os.mkfifo(run / "pipe")
    unpack(pack(run), tmp_path / "there")
    assert sorted(tree(tmp_path / "there")) == ["checkpoint/000000000008/state.safetensors", "config.yaml"]


def member(name, kind=tarfile.REGTYPE, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, target, 3 if kind == tarfile.REGTYPE else 0
    return info


@pytest.mark.parametrize(
    "bad",
    [
        [member("../outside")],
        [member("a/../../outside")],
        [member("/tmp/jedax-outside")],
        [member("..")],
        [member(".")],
        [member("link", tarfile.SYMTYPE, ".."), member("link/outside")],
        [member("link", tarfile.LNKTYPE, "../victim")],
        [member("pipe", tarfile.FIFOTYPE)],
        [member("device", tarfile.CHRTYPE)],
    ],
    ids=lambda members: members[0].name,
)
def test_what_leads_elsewhere_is_refused_and_changes_nothing(run, tmp_path, bad):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(member("config.yaml"), io.BytesIO(b"new"))
        for info in bad:
            archive.addfile(info, io.BytesIO(b"bad"))
    before = tree(tmp_path)
    with pytest.raises(jedax.JedaxError, match="archive: expected files and folders below its own directory"):
        unpack(buffer.getvalue(), run)
    assert tree(tmp_path) == before
    assert not os.path.exists("/tmp/jedax-outside")
    assert sorted(os.listdir(run.parent)) == ["seeds-0-9"]


@pytest.mark.parametrize("cut", [0, 700, 5000])
def test_what_is_no_whole_tar_is_refused(run, tmp_path, cut):
    before = tree(tmp_path)
    with pytest.raises(jedax.JedaxError, match="expected files that can be written"):
        unpack(pack(run)[:cut], run)
    assert tree(tmp_path) == before


def test_a_full_disk_leaves_the_old_one(run, tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    before, data = tree(tmp_path), pack(run)
    (run / "log.txt").write_text("more")
    before = tree(tmp_path)
    monkeypatch.setattr(transfer.os, "fsync", full)
    with pytest.raises(jedax.JedaxError, match="No space left on device"):
        unpack(data, run)
    assert tree(tmp_path) == before
