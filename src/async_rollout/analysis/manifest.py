"""`manifest.json`: every file that the analysis made or rests on, with its checksum and what it shows.

Paths are relative to the manifest, so that a directory that was copied whole can be checked.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal

from async_rollout.records.files import write_json

MANIFEST_FILE = "manifest.json"
VERSION = 1
Kind = Literal["report", "index", "figure", "points", "table", "data", "summary"]


@dataclass(frozen=True)
class Artifact:
    """One file. `path` is relative to the manifest's directory and has forward slashes."""

    path: str
    kind: Kind
    sha256: str
    bytes: int
    caption: str

    def below(self, directory: str) -> "Artifact":
        """The same file, seen from the parent of the directory that its path starts from."""
        return replace(self, path=f"{directory}/{self.path}")


class ManifestError(ValueError):
    """A manifest that is none, or that does not tell what lies there; the text says which file."""


def artifact(directory: Path, path: str, kind: Kind, caption: str) -> Artifact:
    """The entry of a file that lies at `path` below `directory`."""
    content = (directory / path).read_bytes()
    return Artifact(path, kind, hashlib.sha256(content).hexdigest(), len(content), caption)


def write_manifest(directory: Path, experiment: str, files: Iterable[Artifact]) -> None:
    """Write `manifest.json` in `directory`."""
    record = {"version": VERSION, "experiment": experiment, "files": [asdict(file) for file in files]}
    write_json(directory / MANIFEST_FILE, record)


def read_manifest(directory: Path) -> list[Artifact]:
    """The entries of a directory's manifest. Raises FileNotFoundError, or ManifestError if it is damaged."""
    path = directory / MANIFEST_FILE
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["version"] != VERSION:
            raise ManifestError(f"{path}: version {record['version']!r}, this program reads {VERSION}")
        files = [Artifact(**entry) for entry in record["files"]]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ManifestError(f"{path}: no manifest of this program ({error!r})") from None
    for file in files:
        if PurePosixPath(file.path).is_absolute() or ".." in PurePosixPath(file.path).parts:
            raise ManifestError(f"{path}: {file.path!r} lies outside of the directory")
    return files


def leave_out(directory: Path, ending: str) -> None:
    """Take files of this ending out of a manifest; those that stay are listed as they are now."""
    files = [
        artifact(directory, file.path, file.kind, file.caption)
        for file in read_manifest(directory)
        if not file.path.endswith(ending)
    ]
    experiment = json.loads((directory / MANIFEST_FILE).read_text(encoding="utf-8"))["experiment"]
    write_manifest(directory, experiment, files)


def check_files(directory: Path, files: Iterable[Artifact]) -> None:
    """Raise ManifestError if a listed file is missing or has changed since it was listed."""
    for file in files:
        try:
            found = artifact(directory, file.path, file.kind, file.caption)
        except FileNotFoundError:
            raise ManifestError(f"{directory / file.path}: listed in the manifest, but not there") from None
        if found != file:
            raise ManifestError(f"{directory / file.path}: has changed since the report was made")
