"""`check_directory`: which files of a run are intact, and what can be rebuilt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jedax.errors import JedaxError, jedax_command
from jedax.store import files, guard
from jedax.store.directory import RunDirectory, has_ended
from jedax.store.lock import FILE as LOCK

State = Literal["intact", "damaged", "missing", "unknown"]
_NO_CHECKSUM = "it has no checksum"


@dataclass(frozen=True)
class Finding:
    """The state of a file or checkpoint of a run, and the reason in words where there is one.

    "unknown" are files without a checksum.
    """

    name: str
    state: State
    reason: str = ""


@dataclass(frozen=True)
class Checkup:
    """The state of a run's directory: each file, and in a sentence each what can be trusted and what to do."""

    path: Path
    findings: tuple[Finding, ...]
    advice: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is damaged or missing."""
        return not any(finding.state in ("damaged", "missing") for finding in self.findings)


def check_directory(path: str | Path) -> Checkup:
    """Return the state of each file of a run; nothing is changed, and no code that the run names is imported."""
    directory = RunDirectory.open(path)
    names = (*guard.KEPT, *guard.REBUILT)
    try:
        manifest = guard.read_manifest(directory.path)
        found = [_without(directory, name) if manifest is None else _with_manifest(directory.path, name, manifest)
                 for name in names]  # fmt: skip
        if manifest is not None:
            found.append(Finding(guard.MANIFEST, "intact"))
    except files.CorruptError as error:
        manifest = {}
        found = [Finding(name, "unknown", f"{guard.MANIFEST} is damaged") for name in names
                 if (directory.path / name).exists()]  # fmt: skip
        found.append(Finding(guard.MANIFEST, "damaged", str(error)))
    findings = [finding for finding in found if finding is not None]
    checkpoints = [_checkpoint(folder) for folder in directory.checkpoints()]
    known = {finding.name for finding in findings} | {"checkpoint", LOCK}
    others = sorted(entry.name for entry in directory.path.iterdir() if entry.name not in known)
    findings += [*checkpoints, *(Finding(name, "unknown", _NO_CHECKSUM) for name in others)]
    ended = manifest is not None or (
        not any(finding.name == "summary.json" and finding.state != "unknown" for finding in findings)
        and has_ended(directory.read_summary().get("status"))
    )
    return Checkup(directory.path, tuple(findings), tuple(_advice(directory.path, findings, checkpoints, ended)))


def _with_manifest(folder: Path, name: str, manifest: dict) -> Finding | None:
    wrong = guard.difference(folder / name, manifest.get(name))
    if wrong == "none":
        return Finding(name, "missing")
    if wrong:
        return Finding(name, "damaged", wrong)
    return Finding(name, "intact") if name in manifest else None


def _without(directory: RunDirectory, name: str) -> Finding | None:
    """Return the state of a file without a checksum: damaged if it cannot be read."""
    if not (directory.path / name).exists():
        return Finding(name, "missing") if name == "config.yaml" else None
    readers = {
        "config.yaml": directory.read_config,
        "start_genotypes.npy": directory.read_start_genotypes,
        "metrics.csv": directory.read_metrics,
        "summary.json": directory.read_summary,
        "environment.json": directory.read_environment,
        "repertoire.safetensors": lambda: files.read_tensors(directory.path / name, str(files.FORMAT)),
    }
    if name not in readers:
        return Finding(name, "unknown", _NO_CHECKSUM)
    try:
        readers[name]()
    except JedaxError as error:
        return Finding(name, "damaged", str(error))
    return Finding(name, "unknown", "it can be read, but has no checksum")


def _checkpoint(folder: Path) -> Finding:
    name = f"checkpoint/{folder.name}"
    try:
        guard.check_facts(folder, files.read_facts(folder))
        files.read_tree(folder)
    except files.CorruptError as error:
        return Finding(name, "damaged", str(error))
    return Finding(name, "intact")


def _advice(folder: Path, findings: list[Finding], checkpoints: list[Finding], ended: bool) -> list[str]:
    wrong = [finding.name for finding in findings if finding.state in ("damaged", "missing")]
    resume = jedax_command("run", "--resume", folder)
    lost = [name for name in wrong if name in guard.KEPT]
    rebuilt = [name for name in wrong if name in guard.REBUILT]
    whole = any(finding.state == "intact" for finding in checkpoints)
    advice = []
    if guard.MANIFEST in wrong:
        advice.append(f"Restore {guard.MANIFEST} from a copy to check the files, or remove it to go on without.")
    if lost:
        advice.append(f"Restore {', '.join(lost)} from a copy: nothing else in the directory holds the content.")
    if rebuilt and whole:
        advice.append(f"{'Then rebuild' if lost else 'Rebuild'} {', '.join(rebuilt)} with: {resume}")
    elif rebuilt:
        advice.append(f"Restore {', '.join(rebuilt)} from a copy: no checkpoint is whole.")
    if any(finding.state == "damaged" for finding in checkpoints):
        advice.append("Damaged checkpoints are needed only to resume, which takes the newest whole one."
                      if whole else "No checkpoint is whole: the run cannot be resumed.")  # fmt: skip
    if not ended:
        advice.append(f"The run has not ended; its checkpoints alone have checksums. Continue with: {resume}")
    elif not wrong:
        has_manifest = any(finding.name == guard.MANIFEST for finding in findings)
        advice.append("All results can be trusted." if has_manifest else
                      "All files can be read. An earlier version wrote them without checksums; "
                      f"to add those: {resume}")  # fmt: skip
    return advice
