"""Checkpoints: `checkpoint/v<N>/`, each a whole or not there at all, the last two kept.

A checkpoint is built under a temporary name and renamed when all of it is on disk. Its
manifest holds the SHA-256 of every file, checked before anything is read. It is taken only
between a commit and the next request for a batch, so that weights, optimizer, counters and
rows tell of the same moment.
"""

import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from async_rollout.records.files import sync_directory, write_json

if TYPE_CHECKING:
    from async_rollout.learner.learner import Learner
    from async_rollout.policy.interface import Policy

DIRECTORY = "checkpoint"
KEPT = 2
STATE, TRAINING, MANIFEST = "state.pickle", "training.pt", "manifest.json"


class CheckpointError(Exception):
    """No checkpoint can be trusted; the message says what to do."""


@dataclass(frozen=True, slots=True)
class RunState:
    """What a run needs to go on, weights and optimizer apart. Read only after its checksum was compared."""

    version: int
    seconds: float  # on the run's clock
    cpu_seconds: dict[str, float]  # by role, so far
    offsets: dict[str, int]  # bytes of each file of rows
    recorder: Any  # its counters
    work: Any  # drawn and not trained yet: batches of `lagged`, or the controller's groups


def stage(out: Path, version: int) -> Path:
    """An empty directory for the files of a new checkpoint; what an earlier try left is gone."""
    place = out / DIRECTORY / f".v{version}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


def finish(out: Path, state: RunState, sums: Mapping[str, str]) -> None:
    """Add the state to the staged files, whose checksums are given, and make the checkpoint appear."""
    place = out / DIRECTORY / f".v{state.version}"
    with checked_file(place / STATE) as file:
        pickle.dump(state, file, protocol=pickle.HIGHEST_PROTOCOL)
    write_json(place / MANIFEST, {**sums, STATE: file.checksum})
    sync_directory(place)
    final = out / DIRECTORY / f"v{state.version}"
    shutil.rmtree(final, ignore_errors=True)  # a damaged one that the run fell back from
    place.rename(final)
    sync_directory(final.parent)
    for old in checkpoints(out)[KEPT:]:
        leaving = old.with_name(f".{old.name}")
        shutil.rmtree(leaving, ignore_errors=True)  # what a removal that was cut off has left
        shutil.rmtree(old.rename(leaving))  # no checkpoint any more, however far this gets


def discard(out: Path) -> None:
    """Remove unfinished checkpoints: they would fill a disk that is full already."""
    for place in (out / DIRECTORY).glob(".v*"):
        shutil.rmtree(place, ignore_errors=True)


def remove(out: Path) -> None:
    """Remove them all: the run has ended well."""
    shutil.rmtree(out / DIRECTORY, ignore_errors=True)


def checkpoints(out: Path) -> list[Path]:
    """Finished checkpoints, the newest first."""
    found = [p for p in (out / DIRECTORY).glob("v*") if p.name[1:].isdecimal()]
    return sorted(found, key=lambda p: -int(p.name[1:]))


def damage(place: Path) -> str | None:
    """What is wrong with a checkpoint, compared with its manifest; None if nothing is."""
    try:
        manifest = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
        for name in (STATE, TRAINING):
            with (place / name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != manifest[name]:
                    return f"{name} is not what was written"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def read_state(place: Path) -> RunState:
    """The state of a checkpoint without damage."""
    with (place / STATE).open("rb") as file:
        return pickle.load(file)


def write_training(place: Path, policy: "Policy", learner: "Learner") -> dict[str, str]:
    """Weights, optimizer and what else learns, into a staged checkpoint; returns the checksums.

    The policy's weights are whole; other ranks take part in the learner's `state_dict`.
    """
    import torch

    weights = {name: parameter.detach() for name, parameter in policy.parameters().items()}
    with checked_file(place / TRAINING) as file:
        torch.save({"weights": weights, "learner": learner.state_dict()}, file)
    return {TRAINING: file.checksum}


def load_training(place: Path, policy: "Policy", learner: "Learner") -> None:
    """Put a checkpoint's weights into the policy, in place, and its moments into the learner.

    Every rank loads it; what a rank holds only a part of is cut anew, whatever their number was.
    """
    import torch

    from async_rollout.learner.shards import part_like

    whole_on = "cpu" if learner.ranks.sharded else learner.device
    saved = torch.load(place / TRAINING, map_location=whole_on, weights_only=True)
    with torch.no_grad():
        for name, parameter in policy.parameters().items():
            parameter.copy_(part_like(saved["weights"][name], parameter))
    learner.load_state_dict(saved["learner"])


class _CheckedFile:
    """A file that sums up what is written to it, and remembers why a write failed."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._sum = hashlib.sha256()
        self.failure: OSError | None = None

    def write(self, data: bytes) -> int:
        """Write all of `data`."""
        try:
            self._file.write(data)
        except OSError as error:
            self.failure = error
            raise
        self._sum.update(data)
        return len(data)

    def flush(self) -> None:
        """Hand what is buffered to the system."""
        self._file.flush()

    @property
    def checksum(self) -> str:
        """SHA-256 of everything written, in hex."""
        return self._sum.hexdigest()


@contextmanager
def checked_file(path: Path) -> Iterator[_CheckedFile]:
    """A new file that is on disk when the block ends. OSError if it cannot be, whoever wrote."""
    with path.open("wb") as file:
        checked = _CheckedFile(file)
        try:
            yield checked
            checked.flush()
            os.fsync(file.fileno())
        except BaseException as error:
            path.unlink()  # a full disk has room again
            if isinstance(error, RuntimeError) and checked.failure is not None:  # torch's, for our `write`
                raise checked.failure from error
            raise
