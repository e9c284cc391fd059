"""Mode lagged without lag is mode sync: same tokens, same losses, same final weights, bit for bit."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from async_rollout.config.model import WarmStartConfig
from async_rollout.config.run import RunConfig
from async_rollout.learner.warm_start import warm_start
from tiny_cells import FinishedCell, cell_config, run_tiny

CLOCK = {"seconds", "step_sec", "wait_sec"}  # all else that a run writes is repeatable
SMALL = {  # solves a quarter of its tasks after four seconds
    "hidden_size": 32,
    "heads": 2,
    "kv_heads": 2,
    "intermediate_size": 64,
    "steps": 200,
    "lr": 8e-3,
    "marked_share": 1.0,
    "corrupted_share": 0.0,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("warm") / "model"
    warm_start(WarmStartConfig(**SMALL), directory)
    return directory


def config(mode: str, k: int, seed: int = 0) -> RunConfig:
    return cell_config(
        mode=mode,
        k=k,
        seed=seed,
        model={"backend": "causal_lm"},
        train={"updates": 6, "save_model": True},
        optim={"lr": 1e-3},
        evaluation={"every": 3},
    )


def repeatable(cell: FinishedCell, name: str) -> list[dict]:
    return [{key: value for key, value in row.items() if key not in CLOCK} for row in cell.rows(name)]


def assert_same(a: FinishedCell, b: FinishedCell) -> None:
    for name in ("results.jsonl", "metrics.jsonl", "evals.jsonl"):
        assert repeatable(a, name) == repeatable(b, name)
    ours, theirs = (load_file(cell.out / "model" / "model.safetensors") for cell in (a, b))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_lagged_k0_equals_sync(model: Path, tmp_path: Path) -> None:
    sync, lagged = (run_tiny(config(mode, 0), tmp_path / mode, model) for mode in ("sync", "lagged"))
    assert_same(sync, lagged)
    assert sum(row["optimizer_steps"] for row in sync.rows("metrics.jsonl")) > 3  # something was learned


def test_a_seed_repeats_lagged_and_another_does_not(model: Path, tmp_path: Path) -> None:
    first, again, other = (
        run_tiny(config("lagged", 2, seed), tmp_path / name, model)
        for name, seed in (("first", 0), ("again", 0), ("other", 1))
    )
    assert_same(first, again)
    assert other.rows("results.jsonl") != first.rows("results.jsonl")


@pytest.mark.parametrize("k", [0, 1, 4, 9])
def test_a_batch_is_exactly_k_versions_old(k: int, model: Path, tmp_path: Path) -> None:
    """Batch n, trained at version n, was drawn by version n − min(n, K): also where K exceeds the run."""
    cell = run_tiny(config("lagged", k), tmp_path, model)
    for n, row in enumerate(cell.rows("metrics.jsonl")):
        assert row["staleness"] == {str(min(n, k)): row["trained_tokens"]}
        assert row["waiting_groups"] == 4 * (min(n + k, 5) - n)
    assert all(row["staleness"] == min(row["trained_at"], k) for row in cell.rows("results.jsonl"))
    summary = cell.summary
    assert summary["samples"] == {"generated": 96, "trained": 96, "dropped": {}, "abandoned": 0}
    assert summary["staleness_max"] == min(k, 5)
