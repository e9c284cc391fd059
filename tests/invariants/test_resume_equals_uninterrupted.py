"""Invariant 11: killed anywhere and run again, `sync` and `lagged` end as if nothing had happened."""

import json

import pytest

from async_rollout.config.model import WarmStartConfig
from async_rollout.learner.learner import Learner
from async_rollout.learner.warm_start import warm_start
from async_rollout.runners import one_process
from async_rollout.runners.generator import Generator
from async_rollout.runtime import checkpoint
from tiny_cells import cell_config, run_tiny

TIMES = {"seconds", "step_sec", "wait_sec"}
UPDATES, EVERY = 8, 3
COUNTS = (
    "samples",
    "tokens",
    "groups",
    "staleness_histogram",
    "mixed_version_samples",
    "updates",
    "kl",
    "entropy",
)


class Killed(BaseException):
    """Nothing of ours catches it."""


def config(mode, **blocks):
    k = 2 if mode == "lagged" else 0
    changed = {"train": {"updates": UPDATES, "save_model": True}, "checkpoint": {"every": EVERY}}
    return cell_config(**{"mode": mode, "k": k, "evaluation": {"every": 4}} | changed | blocks)


def left_behind(cell):
    """All that a run ends with, without its times."""
    rows = [{k: v for k, v in row.items() if k not in TIMES} for row in cell.rows("metrics.jsonl")]
    evals = [{k: v for k, v in row.items() if k not in TIMES} for row in cell.rows("evals.jsonl")]
    model = {p.name: p.read_bytes() for p in sorted((cell.out / "model").iterdir())}
    return {
        "weights": model,
        "results": (cell.out / "results.jsonl").read_text().splitlines(),
        "metrics": rows,
        "evals": evals,
        "counts": {name: cell.summary[name] for name in COUNTS},
    }


@pytest.fixture(scope="module", params=["sync", "lagged"])
def uninterrupted(request, tmp_path_factory):
    return run_tiny(config(request.param), tmp_path_factory.mktemp(request.param))


def kill_in(patch, owner, name, version, of):
    """Killed when `name` is called at a version, which `of` tells from its arguments."""
    real = getattr(owner, name)

    def dies(*arguments):
        if of(*arguments) == version:
            raise Killed
        return real(*arguments)

    patch.setattr(owner, name, dies)


def run_until_killed(how, version, settings, directory, model=None):
    with pytest.MonkeyPatch.context() as patch:
        how(patch, version)
        with pytest.raises(Killed):
            run_tiny(settings, directory, model)


def while_generating(patch, version):
    kill_in(patch, Generator, "batch", version, lambda self, at: at)


def while_training(patch, version):
    kill_in(patch, Learner, "step", version, lambda self, groups, at: at)


def while_evaluating(patch, version):
    kill_in(patch, one_process, "load_snapshot", f"v{version}", lambda path, policy: path.stem)


def in_mid_checkpoint(patch, version):
    """The files are there, the manifest is not."""
    kill_in(patch, checkpoint, "finish", version, lambda out, state, sums: state.version)


def after_a_checkpoint(patch, version):
    """Rows and files of the next step are written, and its own checkpoint is not due."""
    kill_in(patch, one_process.Loop, "keep", version + 1, lambda self, *drawn: self.version)


@pytest.mark.parametrize(
    ("how", "version", "from_version"),
    [
        (while_training, 2, 0),
        (in_mid_checkpoint, 3, 0),
        (while_generating, 3, 3),
        (after_a_checkpoint, 3, 3),
        (in_mid_checkpoint, 6, 3),
        (while_training, 7, 6),
    ],
)
def test_killed_anywhere_it_ends_the_same(uninterrupted, tmp_path, how, version, from_version):
    run_until_killed(how, version, uninterrupted.config, tmp_path)
    cut = (tmp_path / "cell" / "metrics.jsonl").read_text().splitlines()
    resumed = run_tiny(uninterrupted.config, tmp_path)
    assert left_behind(resumed) == left_behind(uninterrupted)
    assert resumed.summary["attempts"] == 2
    undone = [json.loads(line) for line in cut[from_version:]]
    assert [row["version"] for row in resumed.rows("metrics.jsonl.attempt1")] == [
        r["version"] for r in undone
    ]
    assert resumed.summary["lost_sec"] == pytest.approx(sum(r["step_sec"] + r["wait_sec"] for r in undone))
    assert not (resumed.out / "checkpoint").exists(), "of no use any more"


def test_killed_again_and_again(uninterrupted, tmp_path):
    """Also in mid-evaluation, and before the first new checkpoint."""
    for how, version in ((while_training, 4), (while_generating, 4), (while_training, 7)):
        if how is while_generating and uninterrupted.config.mode == "lagged":
            version = 5
        run_until_killed(how, version, uninterrupted.config, tmp_path)
    run_until_killed(while_evaluating, 4, uninterrupted.config, tmp_path)
    resumed = run_tiny(uninterrupted.config, tmp_path)
    assert left_behind(resumed) == left_behind(uninterrupted)
    assert resumed.summary["attempts"] == 5


def test_a_transformer_with_moments_and_a_window_of_rewards(tmp_path):
    """AdamW's moments, warm-up, running-mean advantages and an initial policy for the KL penalty."""
    small = {"hidden_size": 16, "layers": 1, "heads": 2, "kv_heads": 2, "intermediate_size": 32, "steps": 5}
    warm_start(WarmStartConfig(**small), tmp_path / "model")
    settings = config(
        "sync",
        algorithm="running_mean",
        model={"backend": "causal_lm"},
        advantage={"name": "running_mean"},
        batch={"groups": 8, "group_size": 1},
        kl={"coef": 0.1, "reference": "initial"},
        optim={"lr": 0.003, "warmup_updates": 6},
        rollout={"slots": 5},
    )
    whole = run_tiny(settings, tmp_path / "whole", tmp_path / "model")
    run_until_killed(while_training, 4, settings, tmp_path / "cut", tmp_path / "model")
    resumed = run_tiny(settings, tmp_path / "cut", tmp_path / "model")
    assert left_behind(resumed) == left_behind(whole)
    assert resumed.summary["attempts"] == 2
