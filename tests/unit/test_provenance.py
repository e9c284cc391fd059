"""What a summary says of the sandbox in which a run's programs were judged."""

from pathlib import Path

import pytest

from async_rollout.config.model import WarmStartConfig
from async_rollout.config.reward import RewardConfig
from async_rollout.learner.warm_start import warm_start
from async_rollout.rewards.sandbox.client import LEVELS
from async_rollout.runners import provenance
from tiny_cells import cell_config, run_tiny


def test_judges_elsewhere_are_not_spoken_for():
    far = RewardConfig(backend="file_shards", hosts=["localhost", "node7"])
    assert provenance.sandbox_level(far) == "elsewhere"
    assert provenance.sandbox_level(RewardConfig(backend="file_shards", hosts=["localhost"])) in LEVELS
    assert provenance.sandbox_level(RewardConfig()) in LEVELS


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("model")
    warm_start(WarmStartConfig(steps=1, batch=2).on("coding"), directory)
    return directory


@pytest.mark.parametrize("dataset", ["coding", "sort"])
def test_only_a_run_with_programs_names_the_sandbox(tmp_path, model, dataset):
    config = cell_config(
        dataset=dataset,
        mode="sync",
        k=0,
        model={"id": "embedded"},
        batch={"groups": 2, "group_size": 2},
        train={"updates": 1},
        data={"train_size": 4, "eval_size": 1},
        evaluation={"every": 10},
    )
    told = run_tiny(config, tmp_path, model).summary["sandbox"]
    assert told in LEVELS if dataset == "coding" else told is None
