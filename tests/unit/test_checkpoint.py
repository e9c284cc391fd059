"""Checkpoints: whole or not there, verified, the last two kept; a full disk leaves the good ones."""

import errno
import json
import os
import pickle
import subprocess

import numpy as np
import pytest
import torch

from async_rollout.learner.learner import Learner
from async_rollout.runtime import checkpoint
from async_rollout.runtime.checkpoint import RunState
from learning import BigramPolicy, groups, run_config


def state(version: int) -> RunState:
    return RunState(version, 1.5 * version, {"sync": 2.0}, {"metrics.jsonl": 0}, None, [version])


def learner(seed: int = 0) -> Learner:
    return Learner(run_config(), BigramPolicy(seed), "cpu")


def keep(out, version, trained=None) -> None:
    trained = trained or learner()
    sums = checkpoint.write_training(checkpoint.stage(out, version), trained.policy, trained)
    checkpoint.finish(out, state(version), sums)


def test_what_is_kept_comes_back(tmp_path):
    """Into a learner that started elsewhere: its next step is the same, bit for bit."""
    one, other = learner(0), learner(1)
    one.step(groups(), 0)
    keep(tmp_path, 1, one)
    (place,) = checkpoint.checkpoints(tmp_path)
    assert checkpoint.damage(place) is None
    assert checkpoint.read_state(place) == state(1)
    checkpoint.load_training(place, other.policy, other)
    assert one.step(groups(1), 1) == other.step(groups(1), 1)
    assert torch.equal(one.policy.table, other.policy.table)


def test_the_last_two_are_kept_the_newest_first(tmp_path):
    for version in (8, 9, 10, 11):
        keep(tmp_path, version)
    assert [place.name for place in checkpoint.checkpoints(tmp_path)] == ["v11", "v10"]
    assert sorted(p.name for p in (tmp_path / "checkpoint").iterdir()) == ["v10", "v11"]
    checkpoint.remove(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_removal_that_is_cut_off_leaves_no_half_of_a_checkpoint(tmp_path, monkeypatch):
    for version in (1, 2):
        keep(tmp_path, version)

    def killed(path, **how):
        if (path / checkpoint.STATE).exists():
            (path / checkpoint.STATE).unlink()
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint.shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            keep(tmp_path, 3)
    assert [(p.name, checkpoint.damage(p)) for p in checkpoint.checkpoints(tmp_path)] == [
        ("v3", None),
        ("v2", None),
    ]
    keep(tmp_path, 4)
    assert [place.name for place in checkpoint.checkpoints(tmp_path)] == ["v4", "v3"]


@pytest.mark.parametrize("name", [checkpoint.STATE, checkpoint.TRAINING, checkpoint.MANIFEST])
@pytest.mark.parametrize("how", ["gone", "cut", "flipped", "empty"])
def test_any_damage_is_seen(tmp_path, name, how):
    keep(tmp_path, 1)
    (place,) = checkpoint.checkpoints(tmp_path)
    content = (place / name).read_bytes()
    if how == "gone":
        (place / name).unlink()
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        (place / name).write_bytes({"cut": content[:-1], "flipped": flipped, "empty": b""}[how])
    if (name, how) == (checkpoint.MANIFEST, "cut"):
        assert checkpoint.damage(place) is None, "its last byte is a newline"
    else:
        assert checkpoint.damage(place)


def test_one_that_is_cut_off_leaves_the_others_and_is_no_checkpoint(tmp_path):
    keep(tmp_path, 1)
    trained = learner()
    checkpoint.write_training(checkpoint.stage(tmp_path, 2), trained.policy, trained)
    assert [place.name for place in checkpoint.checkpoints(tmp_path)] == ["v1"]
    checkpoint.discard(tmp_path)
    assert [p.name for p in (tmp_path / "checkpoint").iterdir()] == ["v1"]


@pytest.mark.parametrize("room", [0, 500, 1500])
def test_a_full_disk_is_told_as_such(tmp_path, monkeypatch, room):
    """Wherever it fills up; torch would call it something else."""
    keep(tmp_path, 1)
    place = checkpoint.stage(tmp_path, 2)

    class Disk:
        """A file on a disk with little room."""

        def __init__(self):
            self.left = room

        def write(self, data):
            if len(data) > self.left:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.left -= len(data)
            return len(data)

    trained = learner()
    real = checkpoint._CheckedFile.__init__
    monkeypatch.setattr(checkpoint._CheckedFile, "__init__", lambda self, file: real(self, Disk()))
    with pytest.raises(OSError, match="No space left"):
        checkpoint.write_training(place, trained.policy, trained)
    checkpoint.discard(tmp_path)
    (place,) = checkpoint.checkpoints(tmp_path)
    assert checkpoint.damage(place) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk to fill")
@pytest.mark.parametrize("size", ["400k", "2m"])  # of 400k, the trace takes up nothing that could be freed
def test_a_cell_on_a_full_disk_ends_with_its_last_checkpoint(tmp_path, size):
    """Really full: the run says why it ended, its checkpoint is sound, and with room again it goes on."""
    from tiny_cells import cell_config, run_tiny

    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode()}")
    try:
        config = cell_config(mode="sync", k=0, checkpoint={"every": 2}, train={"updates": 400})
        with pytest.raises(OSError, match="No space left"):
            run_tiny(config, disk)
        out = disk / "cell"
        newest = checkpoint.checkpoints(out)[0]
        assert checkpoint.damage(newest) is None
        assert checkpoint.read_state(newest).version >= 2
        assert not list((out / "checkpoint").glob(".v*"))
        assert not (out / "summary.json").exists()
        assert json.loads((out / "states.jsonl").read_text().splitlines()[-1])["reason"] == "disk_full"
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        again = run_tiny(config, disk)
        assert again.summary["updates"] == 400
        assert again.summary["attempts"] == 2
    finally:
        subprocess.run(["umount", disk], check=True)


def test_the_state_is_plain_data():
    """Groups, counters and numpy arrays: nothing of torch, so that the controller can read it."""
    whole = groups()
    (again,) = pickle.loads(pickle.dumps([whole]))
    assert [g.number for g in again] == [g.number for g in whole]
    assert np.array_equal(
        again[0].samples[0].trajectory.behavior_logprobs, whole[0].samples[0].trajectory.behavior_logprobs
    )
