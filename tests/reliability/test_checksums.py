"""A finished run whose files were damaged is refused by name, or gives the numbers of the whole one."""

import json
import os
import re
import shutil

import numpy as np
import pytest
from tests.conftest import assert_same_bits, forget_checksums, seal, without_seconds

import jedax
from jedax.bench.reading import read
from jedax.bench.trials import is_finished
from jedax.cli.doctor import check_directories
from jedax.repertoire.cells import make_cells
from jedax.store import files
from jedax.store.checkup import check_directory
from jedax.store.directory import RunDirectory
from jedax.store.packing import unpack

pytestmark = pytest.mark.usefixtures("without_figures")

COVERED = ("config.yaml", "environment.json", "history.jsonl", "metrics.csv", "repertoire.safetensors",
           "start_genotypes.npy", "summary.json")  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory, without_figures):
    path = tmp_path_factory.mktemp("whole") / "run"
    jedax.run("jedi-uniform", "arm", evaluations=8 * 20, report_every=1, replicas=2, out=path, population=4, pool=2,
              generations=5, cells=64, start_genotypes=np.zeros((2, 10), np.float32))  # fmt: skip
    return path


@pytest.fixture
def path(tmp_path, whole):
    return shutil.copytree(whole, tmp_path / "run")


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def cut_to_a_third(path):
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: 1 + len(lines) // 3]))


def refused(attempt):
    with pytest.raises(jedax.JedaxError) as caught:
        attempt()
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_the_manifest_covers_every_file_that_readers_use(whole):
    manifest = json.loads((whole / "manifest.json").read_text())
    assert manifest["format"] == 1
    assert sorted(manifest["files"]) == sorted(COVERED)
    for name, entry in manifest["files"].items():
        assert entry["size"] == (whole / name).stat().st_size
    assert check_directory(whole).advice == ("All results can be trusted.",)


@pytest.mark.parametrize("how", ["flip", "truncate", "remove", "folder"])
@pytest.mark.parametrize("name", COVERED)
def test_a_damaged_file_is_refused_by_name(path, whole, name, how):
    file = path / name
    if how == "flip":
        flip(file, file.stat().st_size // 2)
    elif how == "truncate":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    else:
        file.unlink()
        if how == "folder":
            file.mkdir()

    def everything():
        found = jedax.load(path)
        assert found.history is not None
        _ = RunDirectory.open(path).start_genotypes

    said = refused(everything)
    assert name in said
    if name == "config.yaml" or how == "folder":
        assert refused(lambda: jedax.load(path, partial=True))
        return
    found = jedax.load(path, partial=True)
    assert name == "start_genotypes.npy" or any(name in sentence for sentence in found.missing)
    good = jedax.load(whole)
    assert found.repertoire is None or np.array_equal(found.repertoire.fitness, good.repertoire.fitness)
    assert found.rows in ([], good.rows)
    assert found.summary in ({}, good.summary)


def test_a_bit_of_the_repertoire_is_noticed(path, whole):
    """The last bytes are numbers: the file is read as well with them changed."""
    good = jedax.load(whole).best()
    flip(path / "repertoire.safetensors", -2)
    assert "repertoire.safetensors: expected the file that the run wrote, got one with another checksum" in refused(
        lambda: jedax.load(path)
    )
    found = jedax.load(path, partial=True)
    assert found.repertoire is None
    assert found.missing[0].startswith("No solutions: ")
    jedax.resume(path)
    assert_same_bits(jedax.load(path).best().genotype, good.genotype)


@pytest.mark.parametrize("version", ["new", "earlier"])
def test_cut_metrics_give_no_other_comparison(path, version):
    if version == "earlier":
        forget_checksums(path)
    assert len(read([path]).records) == 2
    cut_to_a_third(path / "metrics.csv")
    for attempt in (lambda: read([path]), lambda: jedax.load(path), lambda: jedax.resume(path)):
        assert "metrics.csv" in refused(attempt)
    assert jedax.load(path, partial=True).rows == []


@pytest.mark.parametrize("version", ["new", "earlier"])
def test_a_cut_config_drops_no_replica(path, version):
    if version == "earlier":
        forget_checksums(path)
    config = path / "config.yaml"
    config.write_text(config.read_text().partition("\nrun:")[0] + "\n")
    said = refused(lambda: read([path]))
    assert "config.yaml" in said
    assert refused(lambda: jedax.load(path))


def test_a_summary_that_is_missing_is_no_run_that_has_not_ended(path):
    (path / "summary.json").unlink()
    assert "summary.json: expected the file that the run wrote, got none" in refused(lambda: read([path]))


def test_changed_facts_of_a_checkpoint_are_noticed(path):
    for manifest in path.glob("checkpoint/*/manifest.json"):
        manifest.write_text(manifest.read_text().replace('"finished"', '"callback"').replace('"running"', '"finished"'))
    found = check_directory(path)
    assert [f.state for f in found.findings if f.name.startswith("checkpoint/")] == ["damaged"] * 2
    assert "expected facts with their checksum" in refused(lambda: jedax.resume(path))


@pytest.mark.parametrize(
    "changes", [{"arrivals": 5}, {"arrivals": ["x", "y"]}, {"arrivals": [[1], [2]]}, {"arrivals": [2**70, 1]},
                {"status": "running"}]
)  # fmt: skip
def test_facts_that_cannot_be_are_refused(path, changes):
    (path / "manifest.json").unlink()
    for manifest in path.glob("checkpoint/*/manifest.json"):
        found = json.loads(manifest.read_text())
        manifest.write_text(json.dumps(found | {"facts": found["facts"] | changes}))
    seal(path)
    refused(lambda: jedax.resume(path))


def test_doctor_knows_a_run_that_lost_its_settings(path, capsys):
    (path / "config.yaml").unlink()
    with pytest.raises(jedax.JedaxError, match="files are damaged or missing"):
        check_directories([str(path.parent)])
    assert "missing  config.yaml" in capsys.readouterr().out


def test_doctor_says_what_it_has_read(path):
    forget_checksums(path)
    (path / "start_genotypes.npy").write_bytes(b"garbage")
    (path / "history.jsonl").write_bytes(b"garbage")
    found = {finding.name: (finding.state, finding.reason) for finding in check_directory(path).findings}
    assert found["start_genotypes.npy"][0] == "damaged"
    assert found["history.jsonl"] == ("unknown", "it has no checksum")
    assert "start_genotypes.npy: expected genotypes, got no array in numpy's format" in refused(
        lambda: jedax.resume(path)
    )


@pytest.mark.parametrize(("old", "new"), [("max_fitness", "other"), (r",0\.\d+", "," + "9" * 30)])
def test_the_page_of_a_run_with_strange_metrics(path, old, new):
    (path / "manifest.json").unlink()
    (path / "summary.json").unlink()
    (path / "repertoire.safetensors").unlink()
    shutil.rmtree(path / "checkpoint")
    metrics = path / "metrics.csv"
    metrics.write_text(re.sub(old, new, metrics.read_text()))
    assert new in metrics.read_text()
    assert jedax.write_report(path).is_file()


def test_a_changed_status_goes_back_to_the_older_checkpoint(tmp_path, small, arm):
    path = tmp_path / "run"
    jedax.run(small, arm, evaluations=8 * 60, out=path, checkpoint_seconds=0, report_every=1,
              callbacks=[lambda report: report.evaluations >= 8 * 30])  # fmt: skip
    newest = RunDirectory(path).checkpoints()[0]
    manifest = newest / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"callback"', '"finished"'))
    run = jedax.resume(path, task=arm)
    assert (run.status, run.evaluations) == ("finished", 8 * 60)
    assert_same_bits(run.repertoire, jedax.run(small, arm, evaluations=8 * 60, report_every=1).repertoire)


def test_runs_of_an_earlier_version_are_read_and_get_checksums(path, whole):
    forget_checksums(path)
    found, good = jedax.load(path), jedax.load(whole)
    assert_same_bits(found.repertoire, good.repertoire)
    assert (found.summary, found.rows) == (good.summary, good.rows)
    assert is_finished(path)
    assert "without checksums" in check_directory(path).advice[0]
    jedax.resume(path)
    assert check_directory(path).advice == ("All results can be trusted.",)


def test_death_before_the_manifest_leaves_a_run_that_resume_completes(path, whole):
    (path / "manifest.json").unlink()
    assert not is_finished(path)
    assert jedax.load(path).status == "running"
    assert "has not ended" in refused(lambda: read([path]))
    run = jedax.resume(path)
    good = jedax.load(whole)
    assert run.status == "finished"
    assert_same_bits(run.repertoire, good.repertoire)
    assert without_seconds(run.rows) == without_seconds(good.rows)
    assert is_finished(path)
    assert check_directory(path).is_sound


def test_a_run_that_goes_on_has_no_manifest_until_its_end(tmp_path, small, arm):
    path = tmp_path / "run"
    jedax.run(small, arm, evaluations=8 * 60, out=path, report_every=1, max_seconds=1e-9)
    assert (path / "manifest.json").exists()
    seen = []
    jedax.resume(path, task=arm, max_seconds=1e9,
                 callbacks=[lambda report: seen.append((path / "manifest.json").exists())])  # fmt: skip
    assert seen
    assert not any(seen)
    assert jedax.load(path).status == "finished"
    assert check_directory(path).is_sound


def test_resume_does_not_bless_damage(path):
    cut_to_a_third(path / "history.jsonl")
    before = (path / "manifest.json").read_bytes()
    assert "history.jsonl" in refused(lambda: jedax.resume(path))
    assert (path / "manifest.json").read_bytes() == before
    assert "history.jsonl" in refused(lambda: jedax.load(path).history)


def test_what_is_written_beside_a_finished_run_changes_no_checksum(path):
    jedax.reevaluate(path, cells="best")
    (path / "figures").mkdir(exist_ok=True)
    (path / "figures" / "mine.png").write_bytes(b"x")
    (path / "wandb").mkdir()
    (path / "wandb" / "latest").symlink_to("run-1")
    jedax.compare(path, formats=("png",))
    assert jedax.load(path).status == "finished"
    assert check_directory(path).is_sound


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 1, "files": {}, "sha256": "x"}', '{"format": 99}',
                                  '{"format": 1, "files": {"summary.json": {"size": 1}}, "sha256": "x"}'])  # fmt: skip
def test_a_damaged_manifest_is_refused(path, text):
    (path / "manifest.json").write_text(text)
    assert "manifest.json" in refused(lambda: jedax.load(path))
    found = check_directory(path)
    assert not found.is_sound
    assert {f.name for f in found.findings if f.state == "damaged"} == {"manifest.json"}


def test_a_missing_config_is_named(path):
    (path / "config.yaml").unlink()
    states = {finding.name: finding.state for finding in check_directory(path).findings}
    assert (states["config.yaml"], states["metrics.csv"]) == ("missing", "intact")
    assert "config.yaml: expected the file that the run wrote, got none" in refused(lambda: jedax.load(path))


def test_checkup_says_what_can_be_rebuilt(path):
    flip(path / "repertoire.safetensors", -1)
    (path / "summary.json").unlink()
    found = check_directory(path)
    states = {finding.name: finding.state for finding in found.findings}
    assert (states["repertoire.safetensors"], states["summary.json"]) == ("damaged", "missing")
    assert states["metrics.csv"] == "intact"
    assert states["log.txt"] == "unknown"
    assert found.advice == (f"Rebuild repertoire.safetensors, summary.json with: jedax run --resume {path}",)
    jedax.resume(path)
    assert check_directory(path).is_sound
    cut_to_a_third(path / "metrics.csv")
    assert check_directory(path).advice[0].startswith("Restore metrics.csv from a copy")


HUGE = "9" * 400
CRAFTED = {
    "metrics.csv": [f"evaluations,replica,max_fitness\n{HUGE},0,1\n", f"evaluations,replica,max_fitness\n8,{HUGE},1\n",
                    f"evaluations,replica,max_fitness\n8,0,{HUGE}\n", "evaluations,replica,max_fitness\nnan,0,1\n",
                    "evaluations,replica,max_fitness\n8,inf,1\n", "evaluations,replica,max_fitness\n-8,0,1\n"],
    "summary.json": [f'{{"evaluations": {HUGE}}}', f'{{"wall_seconds": {HUGE}}}', '{"status": "\\ud800"}',
                     f'{{"phase_seconds": {{"io": {HUGE}}}}}', '{"evaluations": -1}'],
    "environment.json": ['{"command": "\\ud800"}', '{"\\udfff": 1}'],
    "config.yaml": ['task: "arm\\ud800"\n', 'task: arm\nlabel: "\\ud800"\n', f"task: arm\nrun: {{seed: {HUGE}}}\n",
                    f"task: arm\nrun: {{max_seconds: {HUGE}}}\n", f"task: arm\nformat: {HUGE}\n",
                    f"task: arm\nmethod_config: {{cells: {HUGE}}}\n"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in CRAFTED.items() for text in texts])
@pytest.mark.parametrize("sealed", [False, True])
def test_numbers_without_end_and_halves_of_letters(path, name, text, sealed):
    forget_checksums(path)
    (path / name).write_text(text)
    if sealed:  # as in a directory from somebody else
        RunDirectory(path).seal()
    said = refused(lambda: jedax.load(path))
    assert name in said
    said.encode()


@pytest.mark.parametrize(("old", "new"), [
    ('"seconds": ', f'"seconds": {HUGE}'), ('"io": ', f'"io": {HUGE}'), ('"config": "', '"config": "\\ud800'),
    ('"format": ', f'"format": {HUGE}'),
])  # fmt: skip
def test_such_numbers_in_a_checkpoint(path, old, new):
    forget_checksums(path)
    (path / "summary.json").unlink()
    (path / "repertoire.safetensors").unlink()
    for manifest in path.glob("checkpoint/*/manifest.json"):
        manifest.write_text(manifest.read_text().replace(old, new))
    refused(lambda: jedax.load(path)).encode()


@pytest.mark.parametrize("row", [
    f'{{"at": "start", "evaluations": {HUGE}}}', f'{{"at": "cells", "evaluations": 8, "fitness": [{HUGE}]}}',
    f'{{"at": "cells", "evaluations": 8, "fitness": [{{"low": {HUGE}, "high": 1, "data": ""}}]}}',
])  # fmt: skip
def test_such_numbers_in_a_history(path, row):
    forget_checksums(path)
    with open(path / "history.jsonl", "a") as file:
        file.write(row + "\n")
    said = ""
    try:
        found = jedax.load(path).history
        assert all(loop.evaluations <= 160 for loop in found.loops)
    except jedax.JedaxError as error:
        said = str(error)
    assert said == "" or "history.jsonl" in said


def test_pipes_and_devices_beside_results_are_not_opened(path):
    os.mkfifo(path.parent / "results.csv")
    (path.parent / "zero.csv").symlink_to("/dev/zero")
    assert len(read([path.parent]).records) == 2


def test_nothing_waits_for_a_pipe_in_the_place_of_a_file(path):
    for name in COVERED:
        (path / name).unlink()
        os.mkfifo(path / name)
    assert name in refused(lambda: is_finished(path))
    assert refused(lambda: read([path.parent]))


def test_a_comparison_is_not_written_through_a_link(path, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (path.parent / "compare").symlink_to(outside)
    assert "a link" in refused(lambda: jedax.compare(path, formats=("png",)))
    (path.parent / "compare").unlink()
    (path.parent / "compare").mkdir()
    (path.parent / "compare" / "figures").symlink_to(outside)
    assert "a link" in refused(lambda: jedax.compare(path, formats=("png",)))
    assert list(outside.iterdir()) == []
    jedax.compare(path, out=tmp_path / "out", formats=("png",))


def test_checksums_of_facts_do_not_depend_on_the_order_or_layout():
    assert files.digest({"a": 1, "b": [1.5, None]}) == files.digest(json.loads('{ "b": [1.50, null], "a": 1}'))


def test_changed_settings_of_a_saved_optimizer_are_noticed(tmp_path):
    path = tmp_path / "optimizer.safetensors"
    jedax.Optimizer(num_params=2, descriptor_bounds=([-1], [1]), evaluations=100, cells=4, cell_layout="grid",
                    method="map-elites", offspring=2, seed=1).save(path)  # fmt: skip
    assert jedax.Optimizer.load(path).ask().shape == (2, 2)
    path.write_bytes(path.read_bytes().replace(rb"\"seed\": 1", rb"\"seed\": 0"))
    assert "expected settings with their checksum" in refused(lambda: jedax.Optimizer.load(path))


def test_doctor_prints_the_state_of_every_file(path, capsys):
    from jedax.cli import main

    (path / "odd\x1b[31m").touch()
    main(["doctor", str(path)])
    out = capsys.readouterr().out
    assert "All results can be trusted." in out
    assert "odd\\x1b[31m: it has no checksum" in out
    flip(path / "metrics.csv", -3)
    with pytest.raises(SystemExit):
        main(["doctor", str(path.parent)])
    said = capsys.readouterr()
    assert "metrics.csv" in said.out
    assert "damaged" in said.out
    assert "Restore metrics.csv from a copy" in said.out
    assert said.err == f"jedax: doctor: files are damaged or missing in {path}.\n"


def saved_optimizer(path):
    jedax.Optimizer(num_params=2, descriptor_bounds=([-1], [1]), evaluations=100, cells=4, cell_layout="grid",
                    method="map-elites", offspring=2, seed=1).save(path)  # fmt: skip
    return path


def test_a_pipe_in_the_place_of_a_saved_optimizer_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "expected a saved optimizer" in refused(lambda: jedax.Optimizer.load(tmp_path / "pipe"))


def test_a_renamed_setting_of_a_saved_optimizer_is_refused_by_the_name_of_the_file(tmp_path):
    path = saved_optimizer(tmp_path / "optimizer.safetensors")
    path.write_bytes(path.read_bytes().replace(b"facts_sha256", b"facts_sha257"))
    assert "optimizer.safetensors" in refused(lambda: jedax.Optimizer.load(path))


@pytest.mark.parametrize(("name", "old", "new"), [
    ("cvt_samples", "null", "1000000000000"), ("cvt_iterations", "20", "9" * 30), ("cells", "64", "9" * 80),
    ("population", "4", "9" * 40), ("pool", "2", "9" * 30),
    ("report_every", "1", "9" * 30),
])  # fmt: skip
def test_huge_settings_are_refused_by_name(path, name, old, new):
    config = path / "config.yaml"
    config.write_text(config.read_text().replace(f"  {name}: {old}\n", f"  {name}: {new}\n"))
    RunDirectory(path).seal()
    assert f"config.yaml: {name}: expected less than or equal to" in refused(lambda: jedax.load(path))


def test_another_number_of_cells_is_refused_before_they_are_made(path):
    config = path / "config.yaml"
    config.write_text(config.read_text().replace("  cells: 64\n", "  cells: 99999999\n"))
    RunDirectory(path).seal()
    assert "expected cells and genotypes of the task " in refused(lambda: jedax.load(path))


def test_goals_of_fewer_replicas_are_left_out(path):
    summary = json.loads((path / "summary.json").read_text())
    (path / "summary.json").write_text(json.dumps(summary | {"goal_evaluations": [], "reached_goal": [True]}))
    RunDirectory(path).seal()
    assert [record.goal_evaluations for record in read([path]).records] == [None, None]


def test_start_genotypes_that_float32_cannot_hold_are_refused(path):
    np.save(path / "start_genotypes.npy", np.full((2, 10), 1e300))
    RunDirectory(path).seal()
    assert "expected finite numbers that float32 holds, got 1e+300" in refused(lambda: jedax.resume(path))


def test_packed_numbers_without_bounds_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        unpack({"low": 0.0, "high": float("inf"), "data": ""})


def test_resuming_without_the_manifest_says_so(path):
    (path / "manifest.json").unlink()
    jedax.resume(path)
    assert "manifest.json is missing" in (path / "log.txt").read_text()


@pytest.mark.parametrize("high", [1e308, 1e39, float("inf")])
def test_bounds_that_float32_cannot_hold_are_refused(high):
    assert "descriptor_bounds" in refused(lambda: make_cells(((-1.0,), (high,)), 4, "grid"))
