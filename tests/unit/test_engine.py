import numpy as np
import pytest
import torch

from async_rollout.types import SampleId, SampleRequest
from tiny_policy import STOP, VOCABULARY, drain, sample_requests, solo_logprobs, tiny_policy


def _request(group: int, limit: int = 5, prompt: int = 4) -> SampleRequest:
    ids = np.random.default_rng(group).integers(3, VOCABULARY, size=prompt).astype(np.int32)
    return SampleRequest(SampleId(group, 0), ids, limit)


def test_finish_reasons_and_lengths() -> None:
    policy = tiny_policy()
    requests = {r.id: r for r in sample_requests(40, longest=30)}
    finished = drain(policy.engine(slots=8, seed=0, version=3), list(requests.values()))
    assert finished.keys() == requests.keys()
    reasons = {t.finish_reason for t in finished.values()}
    assert reasons == {"stop", "length"}
    for name, t in finished.items():
        arrays = (t.response_ids, t.behavior_logprobs, t.versions, t.action_mask)
        assert len({len(a) for a in arrays}) == 1
        assert [a.dtype for a in arrays] == [np.int32, np.float32, np.int32, np.bool_]
        assert t.action_mask.all()
        assert (t.versions == 3).all()
        assert STOP not in t.response_ids[:-1]
        if t.finish_reason == "stop":
            assert t.response_ids[-1] == STOP
        else:
            assert len(t.response_ids) == requests[name].max_new_tokens
            assert t.response_ids[-1] != STOP


def test_every_stop_id_stops() -> None:
    stops = frozenset(range(3, 15))
    policy = tiny_policy(stop_ids=stops)
    finished = drain(policy.engine(slots=8, seed=0, version=0), sample_requests(40, longest=30))
    ends = {int(t.response_ids[-1]) for t in finished.values() if t.finish_reason == "stop"}
    assert len(ends) > 3
    assert ends <= stops


def test_cancelled_slots_are_refilled_and_the_others_go_on() -> None:
    policy = tiny_policy(stop_ids=())
    engine = policy.engine(slots=4, seed=0, version=0)
    engine.submit([_request(g, limit=9) for g in range(4)])
    for _ in range(3):
        engine.step()
    cancelled = engine.cancel({0, 2, 77})
    assert [(t.id.group, t.finish_reason, len(t.response_ids)) for t in cancelled] == [
        (0, "cancelled", 3),
        (2, "cancelled", 3),
    ]
    assert engine.free_slots == 2
    assert set(engine.running()) == {SampleId(1, 0), SampleId(3, 0)}
    engine.step()
    engine.submit([_request(4, prompt=20), _request(5)])
    assert engine.free_slots == 0
    assert engine.cancel({5}) == []  # while it waits it has nothing
    assert engine.free_slots == 1
    finished = drain(engine, [_request(6, prompt=1)])
    assert {name.group for name in finished} == {1, 3, 4, 6}
    for trajectory in finished.values():
        np.testing.assert_allclose(trajectory.behavior_logprobs, solo_logprobs(policy, trajectory), atol=1e-4)
    undisturbed = drain(policy.engine(slots=1, seed=0, version=0), [_request(3, limit=9)])
    assert finished[SampleId(3, 0)].response_ids.tolist() == undisturbed[SampleId(3, 0)].response_ids.tolist()


def test_idle_engine() -> None:
    engine = tiny_policy().engine(slots=3, seed=0, version=0)
    assert (engine.slots, engine.free_slots, engine.running(), engine.step()) == (3, 3, [], [])
    engine.submit([])
    assert engine.cancel({1}) == []


def test_waiting_samples_start_at_once_when_nothing_runs_and_soon_otherwise() -> None:
    engine = tiny_policy(stop_ids=()).engine(slots=4, seed=0, version=0)
    engine.submit([_request(0, limit=100)])
    engine.step()
    engine.submit([_request(1, limit=1)])  # one idle slot beside a busy one: due in the second step
    assert engine.free_slots == 2
    assert engine.step() == []
    assert [t.id.group for t in engine.step()] == [1]


def test_equal_prompts_are_prefilled_once() -> None:
    policy = tiny_policy(stop_ids=())
    widths = []
    hook = policy.model.get_input_embeddings().register_forward_hook(
        lambda module, args, output: widths.append(tuple(args[0].shape))
    )
    engine = policy.engine(slots=8, seed=0, version=0)
    prompt = _request(0).prompt_ids
    engine.submit([SampleRequest(SampleId(0, i), prompt, 3) for i in range(8)])
    engine.step()
    hook.remove()
    assert widths == [(1, 3), (8, 1)]


def test_prefill_keeps_to_its_token_budget() -> None:
    policy = tiny_policy(stop_ids=(), rollout={"prefill_tokens": 32})
    sizes = []
    hook = policy.model.get_input_embeddings().register_forward_hook(
        lambda module, args, output: sizes.append(args[0].numel())
    )
    engine = policy.engine(slots=8, seed=0, version=0)
    engine.submit([_request(g, prompt=5 + 2 * g) for g in range(8)])
    engine.step()
    engine.weights_changed(1)
    hook.remove()
    assert max(sizes) <= 32
    assert len(sizes) > 3


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        ([_request(g) for g in range(3)], "3 samples submitted to 2 free slots"),
        ([SampleRequest(SampleId(0, 0), np.zeros(0, dtype=np.int32), 4)], "prompt of .* is empty"),
        ([_request(0, limit=0)], "max_new_tokens of .* is 0"),
        ([_request(0, limit=510)], "514 positions, the model has 512"),
    ],
)
def test_requests_that_cannot_run_are_refused(requests: list[SampleRequest], message: str) -> None:
    engine = tiny_policy().engine(slots=2, seed=0, version=0)
    with pytest.raises(ValueError, match=message):
        engine.submit(requests)
    assert engine.free_slots == 2


def test_non_finite_logits_name_token_sample_and_version() -> None:
    policy = tiny_policy()
    engine = policy.engine(slots=2, seed=0, version=0)
    engine.submit([_request(7, limit=50)])
    engine.step()
    with torch.no_grad():
        policy.model.get_input_embeddings().weight[0] = float("nan")
    engine.weights_changed(3)
    with pytest.raises(
        FloatingPointError, match=r"token 0 is nan under policy version 3.*token 1 of .*group=7"
    ):
        engine.step()
