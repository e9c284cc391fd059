"""Which versions are set aside for evaluation, and that they come back bit for bit."""

import pytest
import torch

from async_rollout.runtime.snapshots import due_versions, is_due, load_snapshot, snapshot_path, write_snapshot
from learning import BigramPolicy, run_config


@pytest.mark.parametrize(
    ("updates", "every", "due"),
    [(10, 4, [0, 4, 8, 10]), (8, 4, [0, 4, 8]), (3, 100, [0, 3]), (2, 1, [0, 1, 2])],
)
def test_the_first_every_nth_and_the_last(updates, every, due):
    run = run_config(train={"updates": updates}, evaluation={"every": every})
    assert due_versions(run, updates) == due
    assert [v for v in range(updates + 1) if is_due(v, run)] == due


def test_of_a_run_that_stopped_early_only_what_there_is():
    assert due_versions(run_config(train={"updates": 100}, evaluation={"every": 4}), 6) == [0, 4]


def test_what_is_written_comes_back(tmp_path):
    source, target = BigramPolicy(seed=1), BigramPolicy(seed=2)
    write_snapshot(tmp_path, 3, source)
    load_snapshot(snapshot_path(tmp_path, 3), target)
    assert torch.equal(source.table, target.table)
    assert [p.name for p in (tmp_path / "snapshots").iterdir()] == ["v3.safetensors"]


def test_a_snapshot_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    import safetensors.torch

    def torn(tensors, path):
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(safetensors.torch, "save_file", torn)
    with pytest.raises(OSError, match="disk full"):
        write_snapshot(tmp_path, 3, BigramPolicy())
    assert not snapshot_path(tmp_path, 3).exists()
