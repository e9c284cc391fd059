"""Keys that nothing reads are found, and only those."""

from pathlib import Path

import pytest

from async_rollout.config.inert import inert_keys
from async_rollout.config.load import load_sweep, sweep_from_dict

ROOT = Path(__file__).parents[2]


def inert(**content: object) -> list[str]:
    return inert_keys(sweep_from_dict({"experiment": "x", "seeds": [0], "modes": ["areal"], **content}))


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ({"objective": {"band": "closed_03_5"}}, ["objective.band"]),
        ({"objective": {"band": "closed_03_5"}, "algorithms": ["grpo", "grpo_dis"]}, []),
        ({"objective": {"clip_low": 0.1}, "decoupled": [0]}, ["objective.clip_low"]),
        ({"objective": {"clip_low": 0.1}}, []),
        ({"objective": {"clip_low": 0.1}, "decoupled": [0], "arms": {"a": {"objective.name": "gspo"}}}, []),
        ({"objective": {"weight": "exact", "weight_limit": 2}}, ["objective.weight_limit"]),
        ({"advantage": {"window": 9}}, ["advantage.window"]),
        ({"advantage": {"window": 9}, "algorithms": ["running_mean"]}, []),
        ({"kl": {"reference": "initial"}}, ["kl.reference"]),
        ({"kl": {"reference": "initial", "coef": 0.1}}, []),
        ({"collapse": {"share": 0.2}}, ["collapse.share"]),
        ({"rollout": {"workers": 2}, "modes": ["lagged", "sync"]}, ["rollout.workers"]),
        ({"rollout": {"workers": 2}, "modes": ["lagged", "areal"]}, []),
        ({"model": {"id": "a/b"}, "warm_start": {"steps": 1}}, ["warm_start.steps"]),
        ({"sampling": {"allow_biased": True}}, ["sampling.allow_biased"]),
        (
            {"arms": {"a": {"kl.coef": 0.1, "objective.band": "closed_03_5"}}},
            ["arms.a.objective.band"],
        ),
    ],
)
def test_inert_keys(content: dict, found: list[str]) -> None:
    assert inert(**content) == found


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda path: path.stem)
def test_no_file_in_config_sets_a_key_that_nothing_reads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert inert_keys(load_sweep(path)) == []
