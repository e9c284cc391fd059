"""Word problems go the whole way with a small model: it learns nothing there, and nothing breaks.

The public GSM8K files take the same way where they are at hand.
"""

from pathlib import Path

import pytest

from async_rollout.config.axes import dataset_slug
from async_rollout.config.model import WarmStartConfig
from async_rollout.learner.warm_start import warm_start
from async_rollout.tasks.convert import convert
from tiny_cells import cell_config, run_tiny

ROOT = Path(__file__).parents[2]
OURS = ROOT / "tests" / "data" / "word_problems.jsonl"
PUBLIC = ROOT.parent / "shared" / "data" / "gsm8k" / "train.jsonl"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """An untrained embedded model: what it says is noise."""
    directory = tmp_path_factory.mktemp("model") / "embedded"
    small = {"hidden_size": 16, "layers": 1, "heads": 2, "kv_heads": 2, "intermediate_size": 32, "steps": 0}
    warm_start(WarmStartConfig(**small), directory)
    return directory


def five_updates(source: Path, directory: Path, model: Path) -> dict:
    """Convert, then run five updates of mode areal on the tasks; the summary."""
    tasks = directory / "tasks.jsonl"
    convert("gsm8k", source, tasks)
    config = cell_config(
        dataset=f"jsonl:{tasks}",
        model={"backend": "causal_lm"},
        data={"train_size": 64, "eval_size": 6},
        batch={"groups": 3, "group_size": 2, "minibatches": 2},
        train={"updates": 5},
        sampling={"max_new_tokens": 12},
        evaluation={"every": 5},
    )
    assert dataset_slug(config.dataset) == "tasks"
    return run_tiny(config, directory, model).summary


def test_five_updates_on_word_problems(tmp_path, model):
    summary = five_updates(OURS, tmp_path, model)
    assert (summary["updates"], summary["samples"]["trained"]) == (5, 30)
    assert summary["staleness_max"] <= 4
    assert summary["infrastructure_failures"] == 0


@pytest.mark.skipif(not PUBLIC.exists(), reason="the public GSM8K files are not at hand")
def test_five_updates_on_public_gsm8k(tmp_path, model):
    summary = five_updates(PUBLIC, tmp_path, model)
    assert (summary["updates"], summary["samples"]["trained"]) == (5, 30)
