"""`dummy`, `tabular` and the registry; what only they do."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from async_rollout.config.prompt import PromptConfig
from async_rollout.config.reward import RewardConfig
from async_rollout.learner.characters import build_tokenizer
from async_rollout.policy.candidates import KINDS, candidates
from async_rollout.policy.char_codec import CharCodec
from async_rollout.policy.interface import ScoringBatch
from async_rollout.policy.registry import build_codec, build_policy
from async_rollout.rewards.judge import build_judge
from async_rollout.tasks.prompts import prompt_text
from async_rollout.tasks.sort import generate
from async_rollout.tasks.task import Task
from async_rollout.types import SampleId, SampleRequest, Trajectory
from tiny_policy import drain, run_config, tiny_model, tiny_policy

TASKS = [
    *generate(20, 4, seed=0)[0],
    Task("g1", "one?", "gsm8k", "7"),
    Task("g2", "two?", "gsm8k", "1,250"),
    Task("g3", "three?", "gsm8k", "-12"),
]

judge = build_judge(RewardConfig(), ["sort", "gsm8k"])


def _policy(backend: str, tasks: list[Task] = TASKS, **blocks: dict):
    return build_policy(run_config(model={"backend": backend}, **blocks), device="cpu", tasks=tasks)


def _requests(policy, tasks: list[Task], each: int) -> list[SampleRequest]:
    prompts = [policy.codec.encode(prompt_text(task, PromptConfig())) for task in tasks]
    return [SampleRequest(SampleId(i, j), p, 16) for i, p in enumerate(prompts) for j in range(each)]


def _batch(trajectories: list[Trajectory]) -> ScoringBatch:
    def padded(rows: list[np.ndarray], left: bool) -> tuple[np.ndarray, np.ndarray]:
        width = max(map(len, rows))
        mask = np.array(
            [np.arange(width) >= width - len(r) if left else np.arange(width) < len(r) for r in rows]
        )
        ids = np.zeros(mask.shape, dtype=np.int64)
        ids[mask] = np.concatenate(rows)
        return ids, mask

    prompts = padded([t.prompt_ids for t in trajectories], left=True)
    return ScoringBatch(*prompts, *padded([t.response_ids for t in trajectories], left=False))


def test_only_the_first_candidate_is_right() -> None:
    for task, texts in zip(TASKS, candidates(TASKS), strict=True):
        assert len(set(texts)) == KINDS
        assert [judge(task, text).correct for text in texts] == [True] + [False] * (KINDS - 1)


def test_a_single_task_has_candidates_too() -> None:
    assert len(set(candidates([Task("t", "?", "sort", "#5")])[0])) == KINDS


def test_tasks_without_a_known_answer_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"task c1 \(coding\).*causal_lm"):
        candidates([Task("c1", "write f", "coding", reference_tests=("assert f() == 1",))])


def test_char_codec_round_trips_any_text() -> None:
    codec = CharCodec()
    text = "5391>\n#π ✓"
    response = codec.encode_response(text)
    assert codec.decode(response) == text
    assert response[-1] in codec.stop_ids
    assert codec.pad_id not in response


def test_dummy_is_right_in_three_of_four_and_spread_within_groups() -> None:
    policy = _policy("dummy")
    finished = drain(policy.engine(slots=50, seed=0, version=0), _requests(policy, TASKS, each=40))
    right = np.array([
        [judge(task, policy.codec.decode(finished[SampleId(i, j)].response_ids)).correct for j in range(40)]
        for i, task in enumerate(TASKS)
    ])  # fmt: skip
    assert abs(right.mean() - 0.75) < 0.05
    assert not right.all(axis=1).any()
    greedy = drain(policy.engine(slots=50, seed=0, version=0, greedy=True), _requests(policy, TASKS, each=1))
    assert all(
        judge(t, policy.codec.decode(greedy[SampleId(i, 0)].response_ids)).correct
        for i, t in enumerate(TASKS)
    )


def test_dummy_scores_are_finite_with_gradient_zero() -> None:
    policy = _policy("dummy")
    finished = drain(policy.engine(slots=9, seed=0, version=0), _requests(policy, TASKS[:3], each=3))
    scores = policy.score(_batch(list(finished.values())), 1.0)
    scores.logprobs.sum().backward()
    (parameter,) = policy.parameters().values()
    assert parameter.grad == 0
    assert scores.logprobs.isfinite().all()
    assert scores.entropy.isfinite().all()


def test_answers_span_versions_as_a_models_do() -> None:
    policy = _policy("dummy")
    engine = policy.engine(slots=2, seed=0, version=0)
    requests = _requests(policy, TASKS[:2], each=1)

    def publish(step: int) -> None:
        if step == 3:
            assert engine.weights_changed(1).resumed_samples == 2

    for trajectory in drain(engine, requests, publish).values():
        assert trajectory.versions.tolist() == [0] * 3 + [1] * (len(trajectory.response_ids) - 3)


def test_max_new_tokens_cuts_an_answer() -> None:
    policy = _policy("dummy")
    prompt = policy.codec.encode(prompt_text(TASKS[0], PromptConfig()))
    finished = drain(policy.engine(slots=1, seed=0, version=0), [SampleRequest(SampleId(0, 0), prompt, 3)])
    assert finished[SampleId(0, 0)].finish_reason == "length"
    assert len(finished[SampleId(0, 0)].response_ids) == 3


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_tabular_scores_against_a_float64_formula(temperature: float) -> None:
    policy = _policy("tabular", sampling={"temperature": temperature})
    with torch.no_grad():
        for i, p in enumerate(policy.parameters().values()):
            p += torch.randn(p.shape, generator=torch.Generator().manual_seed(i))
    bias, rows = (p.detach().double().numpy() for p in policy.parameters().values())
    finished = list(
        drain(policy.engine(slots=50, seed=0, version=0), _requests(policy, TASKS, each=4)).values()
    )
    batch = _batch(finished)
    scores = policy.score(batch, temperature)
    texts = candidates(TASKS)
    for i, trajectory in enumerate(finished):
        task = trajectory.id.group
        kind = texts[task].index(policy.codec.decode(trajectory.response_ids))
        z = (bias + rows[task]) / temperature
        logp = z - np.log(np.exp(z).sum())
        assert scores.logprobs[i, 0].item() == pytest.approx(logp[kind], abs=1e-5)
        assert scores.entropy[i, 0].item() == pytest.approx(-(np.exp(logp) * logp).sum(), abs=1e-5)
        assert trajectory.behavior_logprobs[0] == pytest.approx(logp[kind], abs=1e-5)
    assert (scores.logprobs[:, 1:] == 0).all()
    assert (scores.entropy[:, 1:] == 0).all()


def test_tabular_learns_and_held_out_tasks_profit() -> None:
    """REINFORCE on half of the tasks; the other half is right more often too, through the shared bias."""
    policy = _policy("tabular")
    trained, held_out = TASKS[:10], TASKS[10:20]
    optimizer = torch.optim.SGD(policy.parameters().values(), lr=2.0)

    def pass_rate(tasks: list[Task], seed: int) -> float:
        finished = drain(policy.engine(slots=80, seed=seed, version=0), _requests(policy, tasks, each=8))
        return float(
            np.mean(
                [
                    judge(tasks[n.group], policy.codec.decode(t.response_ids)).correct
                    for n, t in finished.items()
                ]
            )
        )

    assert pass_rate(held_out, 100) < 0.3
    for seed in range(30):
        finished = list(
            drain(policy.engine(slots=80, seed=seed, version=0), _requests(policy, trained, each=8)).values()
        )
        rewards = torch.tensor(
            [judge(trained[t.id.group], policy.codec.decode(t.response_ids)).reward for t in finished]
        )
        loss = -(policy.score(_batch(finished), 1.0).logprobs.sum(dim=1) * (rewards - rewards.mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert pass_rate(held_out, 100) > 0.7


def test_tabular_refuses_what_it_cannot_score_or_say() -> None:
    policy = _policy("tabular")
    prompt = policy.codec.encode(prompt_text(TASKS[0], PromptConfig())).astype(np.int64)[None]
    response = policy.codec.encode_response("nonsense").astype(np.int64)[None]
    with pytest.raises(ValueError, match="'nonsense' is no candidate answer"):
        policy.score(ScoringBatch(prompt, prompt > 0, response, response > 0), 1.0)
    with pytest.raises(ValueError, match=r"sampling\.max_new_tokens = 4: an answer to sort-"):
        _policy("tabular", sampling={"max_new_tokens": 4})


@pytest.mark.parametrize("backend", ["dummy", "tabular"])
def test_small_policies_come_back_from_their_directory(backend: str, tmp_path: Path) -> None:
    policy = _policy(backend)
    with torch.no_grad():
        for p in policy.parameters().values():
            p += torch.randn(p.shape)
    policy.save(tmp_path / "model")
    config = run_config(model={"backend": backend, "id": str(tmp_path / "model")})
    again = build_policy(config, device="cpu", tasks=TASKS)
    for name, p in policy.parameters().items():
        assert torch.equal(p, again.parameters()[name])


def test_causal_lm_comes_back_from_its_directory(tmp_path: Path) -> None:
    tiny_model().save_pretrained(tmp_path / "first")
    build_tokenizer().save_pretrained(tmp_path / "first")
    policy = build_policy(run_config(model={"id": str(tmp_path / "first")}), device="cpu")
    with torch.no_grad():
        for p in policy.parameters().values():
            p += 0.01
    policy.save(tmp_path / "second")
    config = run_config(model={"id": str(tmp_path / "second")})
    again = build_policy(config, device="cpu")
    assert list(policy.parameters()) == list(again.parameters())
    for name, p in policy.parameters().items():
        assert torch.equal(p, again.parameters()[name])
    assert build_codec(config).encode("12>").tolist() == policy.codec.encode("12>").tolist()
    assert build_codec(config).stop_ids == policy.codec.stop_ids


def test_missing_weights_are_an_error_not_random(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    tiny_model().save_pretrained(tmp_path)
    build_tokenizer().save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"no weights for model\.layers\.1\.mlp\.up_proj\.weight"):
        build_policy(run_config(model={"id": str(tmp_path)}), device="cpu")


def test_tied_parameters_are_listed_once() -> None:
    names = list(tiny_policy().parameters())
    assert "model.embed_tokens.weight" in names
    assert "lm_head.weight" not in names


@pytest.mark.parametrize("build", [lambda c: build_policy(c, device="cpu"), build_codec])
def test_embedded_must_have_been_resolved(build) -> None:
    with pytest.raises(ValueError, match=r"model\.id = embedded"):
        build(run_config())


def test_codec_without_a_model_needs_no_torch() -> None:
    code = (
        "import sys\n"
        "from async_rollout.policy.registry import build_codec\n"
        "from types import SimpleNamespace as N\n"
        "assert build_codec(N(model=N(backend='dummy'))).encode('1').size == 1\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
