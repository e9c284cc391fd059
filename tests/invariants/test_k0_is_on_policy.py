"""Without staleness the trainer's log-probabilities are the sampler's, token by token."""

import json
from pathlib import Path

import numpy as np
import pytest

from async_rollout.learner.characters import build_tokenizer
from async_rollout.policy.codec import TokenizerCodec
from async_rollout.policy.interface import Policy, ScoringBatch
from async_rollout.policy.registry import build_policy
from async_rollout.tasks.task import Task
from async_rollout.types import SampleId, SampleRequest, Trajectory
from tiny_policy import DEVICE, drain, run_config, sample_requests, tiny_model, tiny_policy


def _score_one(policy: Policy, trajectory: Trajectory, temperature: float) -> np.ndarray:
    prompt, response = (
        trajectory.prompt_ids[None].astype(np.int64),
        trajectory.response_ids[None].astype(np.int64),
    )
    real = np.ones_like
    batch = ScoringBatch(prompt, real(prompt, dtype=bool), response, real(response, dtype=bool))
    return policy.score(batch, temperature).logprobs[0].detach().cpu().numpy()


def _largest_gap(policy: Policy, trajectories: list[Trajectory], temperature: float) -> float:
    return max(np.abs(_score_one(policy, t, temperature) - t.behavior_logprobs).max() for t in trajectories)


@pytest.mark.parametrize("sampling", [{"temperature": 1.0}, {"temperature": 0.7}])
@pytest.mark.parametrize("kind", ["qwen2", "gpt2"])
def test_engine_and_trainer_agree(kind: str, sampling: dict) -> None:
    """max |log π_θ − log π_behav| < 1e-4 in float32; dropout (GPT-2 has it) never plays a part."""
    policy = tiny_policy(kind, sampling=sampling)
    assert not policy.model.training
    finished = drain(policy.engine(slots=6, seed=0, version=0), sample_requests(12))
    assert _largest_gap(policy, list(finished.values()), sampling["temperature"]) < 1e-4


def test_biased_sampling_still_reports_the_distribution_of_the_loss() -> None:
    """Top-k and top-p restrict what is drawn; log-probabilities stay those of the full softmax."""
    biased = {"temperature": 0.8, "top_k": 5, "top_p": 0.9, "allow_biased": True}
    policy = tiny_policy(sampling=biased)
    finished = drain(policy.engine(slots=6, seed=0, version=0), sample_requests(8))
    assert _largest_gap(policy, list(finished.values()), 0.8) < 1e-4


def test_generation_config_is_ignored_but_for_its_stop_ids(tmp_path: Path) -> None:
    """A checkpoint that asks for penalties, top-k 1 and temperature 0.1 is sampled as if it did not."""
    tiny_model().save_pretrained(tmp_path)
    build_tokenizer().save_pretrained(tmp_path)
    hostile = {
        "do_sample": True,
        "top_k": 1,
        "temperature": 0.1,
        "repetition_penalty": 1.9,
        "eos_token_id": [2, 9],
    }
    (tmp_path / "generation_config.json").write_text(json.dumps(hostile))
    policy = build_policy(run_config(model={"id": str(tmp_path)}), device=DEVICE)
    assert policy.codec.stop_ids == {2, 9}
    assert isinstance(policy.codec, TokenizerCodec)
    prompt = np.array([4, 5, 6], dtype=np.int32)
    requests = [SampleRequest(SampleId(0, i), prompt, 8) for i in range(32)]
    finished = list(drain(policy.engine(slots=32, seed=0, version=0), requests).values())
    assert _largest_gap(policy, finished, 1.0) < 1e-4
    assert len({t.response_ids[0] for t in finished}) > 5  # top-k 1 would give one


@pytest.mark.parametrize("backend", ["dummy", "tabular"])
def test_backends_without_a_model_agree_with_themselves(backend: str) -> None:
    """Their engines and their scores tell the same log-probabilities."""
    tasks = [Task(f"t{i}", f"{i}31>", "sort", f"#13{i}") for i in range(3, 7)]
    policy = build_policy(run_config(model={"backend": backend}), device="cpu", tasks=tasks)
    requests = [
        SampleRequest(SampleId(i, j), policy.codec.encode(t.prompt), 16)
        for i, t in enumerate(tasks)
        for j in range(4)
    ]
    finished = drain(policy.engine(slots=3, seed=0, version=0), requests)
    assert _largest_gap(policy, list(finished.values()), 1.0) < 1e-6
