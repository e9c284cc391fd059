"""Whole cells on the task of several turns: each mode, with and without a critic; and that it is learned."""

import numpy as np
import pytest

from async_rollout.config.model import WarmStartConfig
from async_rollout.learner.learner import Learner
from async_rollout.learner.warm_start import warm_start
from tiny_cells import cell_config, run_tiny

CLOCK = {"seconds", "step_sec", "wait_sec"}
FEW = WarmStartConfig(steps=70, batch=32, lr=8e-3, marked_share=1.0, corrupted_share=0.0)
LOSS = {
    "sao": ("dis", "gae", 16, 1),
    "grpo": ("decoupled", "group", 4, 4),
    "grpo_dis": ("dis", "group", 4, 4),
}


def calculator(mode: str, algorithm: str, k: int, **blocks):
    """Six updates of 16 samples, the first two for the critic alone; keyword arguments replace blocks."""
    objective, advantage, groups, size = LOSS[algorithm]
    defaults = {
        "mode": mode,
        "dataset": "calculator",
        "algorithm": algorithm,
        "k": k,
        "model": {},
        "objective": {"name": objective},
        "advantage": {"name": advantage},
        "critic": {"warmup_updates": 2},
        "batch": {"groups": groups, "group_size": size},
        "sampling": {"max_new_tokens": 40},
        "data": {"train_size": 120, "eval_size": 8},
        "train": {"updates": 6},
        "optim": {"lr": 1e-4},
        "evaluation": {"every": 6},
    }
    return cell_config(**defaults | blocks)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Knows what a call looks like, and hardly more."""
    directory = tmp_path_factory.mktemp("embedded") / "model"
    warm_start(FEW.on("calculator"), directory)
    return directory


def check_turns(cell) -> None:
    """What is recorded of turns fits the samples, token by token."""
    trained = [row for row in cell.rows("results.jsonl") if row["trained_at"] is not None]
    assert len(trained) == 16 * 6
    assert cell.summary["turns"] == sum(len(row["turns"]) for row in trained) > len(trained)
    for row in trained:
        assert sum(own + told for own, told in row["turns"]) == row["tokens"] <= 40
        assert all(own > 0 for own, _ in row["turns"])
        assert all(told > 0 for _, told in row["turns"][:-1])
        assert row["turns"][-1][1] == 0
    own = sum(own for row in trained for own, _ in row["turns"])
    assert cell.summary["tokens"]["trained"] == own
    assert sum(row["trained_tokens"] for row in cell.rows("metrics.jsonl")) == own
    assert sum(cell.summary["staleness_histogram"]["trained"].values()) == own


@pytest.mark.parametrize("algorithm", ["sao", "grpo"])
def test_sync_is_on_policy_and_lagged_without_lag_is_the_same(algorithm, model, tmp_path):
    sync = run_tiny(calculator("sync", algorithm, 0), tmp_path / "sync", model)
    lagged = run_tiny(calculator("lagged", algorithm, 0), tmp_path / "lagged", model)
    rows = [
        [{k: v for k, v in r.items() if k not in CLOCK} for r in c.rows("metrics.jsonl")]
        for c in (sync, lagged)
    ]
    assert rows[0] == rows[1]
    assert sync.rows("results.jsonl") == lagged.rows("results.jsonl")
    check_turns(sync)
    assert max(r["first_logratio_max"] for r in sync.rows("metrics.jsonl")) < 1e-4
    assert sync.summary["interrupted_turns"] == 0
    warm = [r["critic_only"] for r in sync.rows("metrics.jsonl")]
    assert warm == ([True] * 2 + [False] * 4 if algorithm == "sao" else [False] * 6)
    assert sync.summary["critic_updates"] == sum(warm)
    assert (sync.summary["value_loss"] is None) == (algorithm != "sao")


@pytest.mark.parametrize(
    "algorithm", ["sao", *(pytest.param(a, marks=pytest.mark.long) for a in ("grpo", "grpo_dis"))]
)
def test_turns_are_interrupted_in_areal(algorithm, model, tmp_path):
    """Few slots and a reload at every second step: some commit lands inside of a turn."""
    config = calculator("areal", algorithm, 4, rollout={"slots": 8, "min_decode_steps": 1})
    cell = run_tiny(config, tmp_path, model)
    check_turns(cell)
    summary = cell.summary
    assert summary["status"] == "done"
    assert summary["interruptions"] > 0
    assert 0 < summary["interrupted_turns"] <= summary["turns"]
    assert summary["staleness_max"] <= 4
    assert summary["critic_updates"] == (2 if algorithm == "sao" else 0)
    trained = [row for row in cell.rows("results.jsonl") if row["trained_at"] is not None]
    assert sum(count_interrupted(row) for row in trained) == summary["interrupted_turns"]


def count_interrupted(row: dict) -> int:
    """Turns with tokens of several versions, from the row's runs alone."""
    versions = np.repeat(*np.array(row["versions"]).T)
    found, at = 0, 0
    for own, told in row["turns"]:
        found += len(set(versions[at : at + own].tolist())) > 1
        at += own + told
    return found


def test_a_critic_goes_on_from_a_checkpoint_bit_for_bit(model, tmp_path, monkeypatch):
    """Killed in its fifth step, after a checkpoint at version 3: rows and rates are those of a whole run."""
    config = calculator("lagged", "sao", 1, checkpoint={"every": 3})
    whole = run_tiny(config, tmp_path / "whole", model)
    step = Learner.step

    def dies(self, groups, version):
        if version == 4:
            raise KeyboardInterrupt
        return step(self, groups, version)

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "step", dies)
        with pytest.raises(KeyboardInterrupt):
            run_tiny(config, tmp_path / "cut", model)
    resumed = run_tiny(config, tmp_path / "cut", model)
    for name in ("metrics.jsonl", "evals.jsonl"):
        one, other = (
            [{k: v for k, v in r.items() if k not in CLOCK} for r in c.rows(name)] for c in (whole, resumed)
        )
        assert one == other
    assert whole.rows("results.jsonl") == resumed.rows("results.jsonl")
    for field in (
        "turns",
        "interrupted_turns",
        "critic_updates",
        "value_loss",
        "explained_variance",
        "tokens",
    ):
        assert whole.summary[field] == resumed.summary[field]


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["sao", "grpo"])
def test_the_calculator_is_learned(algorithm, tmp_path):
    """From a tenth to more than a half of the held-out tasks, with the embedded model as it comes."""
    warm_start(WarmStartConfig().on("calculator"), tmp_path / "model")
    config = calculator(
        "sync",
        algorithm,
        0,
        batch={"groups": 128, "group_size": 1} if algorithm == "sao" else {"groups": 16, "group_size": 8},
        sampling={"max_new_tokens": 48},
        data={"train_size": 5120 if algorithm == "sao" else 640, "eval_size": 128},
        critic={},
        train={"updates": 40},
        evaluation={"every": 40},
    )
    first, last = run_tiny(config, tmp_path, tmp_path / "model").summary["eval_pass_rate"]
    assert first["sampled"] < 0.25
    assert last["sampled"] > 0.5
    assert last["greedy"] > 0.8
