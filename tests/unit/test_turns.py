"""Decoding with an environment: observations in the middle of a response, interruptions around them."""

import itertools

import numpy as np
import pytest

from async_rollout.policy.engine import DecodingEngine
from async_rollout.policy.sampling import Sampler
from async_rollout.policy.turns import Turns
from async_rollout.types import SampleId, SampleRequest, Trajectory
from tiny_policy import (
    STOP,
    VOCABULARY,
    IdCodec,
    drain,
    perturb,
    sample_requests,
    snapshot,
    solo_logprobs,
    tiny_policy,
)

ENDS = range(3, 9)  # ids that end a turn


def observe(environment: str, response_ids: np.ndarray) -> np.ndarray | None:
    """One to six ids, by the token that ended the turn; the environment `quiet` says nothing."""
    last = int(response_ids[-1])
    if environment == "quiet" or last not in ENDS:
        return None
    return (10 + (len(response_ids) + np.arange(last - 2)) % (VOCABULARY - 10)).astype(np.int32)


def engine_of(policy, *, slots: int, seed: int = 1, budget: int = 48, environment=observe) -> DecodingEngine:
    return DecodingEngine(
        policy._forward,
        slots=slots,
        seed=seed,
        version=0,
        sampler=Sampler(),
        stop_ids=policy.codec.stop_ids,
        prefill_tokens=budget,
        observe=environment,
    )


def requests_of(
    n: int, *, longest: int = 40, seed: int = 0, environment: str = "talk"
) -> list[SampleRequest]:
    return [
        SampleRequest(r.id, r.prompt_ids, r.max_new_tokens, environment)
        for r in sample_requests(n, longest=longest, shortest=12, seed=seed)
    ]


def segments(trajectory: Trajectory) -> list[tuple[bool, slice]]:
    """(actions?, place) of each run of the action mask."""
    runs = [(key, len(list(run))) for key, run in itertools.groupby(trajectory.action_mask.tolist())]
    ends = list(itertools.accumulate(n for _, n in runs))
    return [(key, slice(end - n, end)) for (key, n), end in zip(runs, ends, strict=True)]


def check_shape(trajectory: Trajectory, limit: int) -> None:
    """Observations are what the environment says at that place, certain, and never last."""
    ids, mask = trajectory.response_ids, trajectory.action_mask
    assert len({len(a) for a in (ids, mask, trajectory.behavior_logprobs, trajectory.versions)}) == 1
    assert mask[0]
    assert mask[-1]
    assert len(ids) <= limit
    assert (trajectory.behavior_logprobs[~mask] == 0).all()
    at = 0
    while at < len(ids):  # walk through the response as the environment would
        assert mask[at]
        wanted = observe("talk", ids[: at + 1])
        at += 1
        if wanted is not None and at + len(wanted) < limit and at < len(ids):
            assert ids[at : at + len(wanted)].tolist() == wanted.tolist()
            assert not mask[at : at + len(wanted)].any()
            assert (trajectory.versions[at : at + len(wanted)] == trajectory.versions[at - 1]).all()
            at += len(wanted)


@pytest.mark.parametrize("kind", ["qwen2", "qwen2-eager", "gpt2"])
def test_logprobs_of_every_action_are_those_of_a_fresh_forward(kind):
    policy = tiny_policy(kind)
    requests = {r.id: r for r in requests_of(24)}
    finished = drain(engine_of(policy, slots=5), list(requests.values()))
    assert finished.keys() == requests.keys()
    assert sum(len(segments(t)) > 4 for t in finished.values()) > 5
    assert {t.finish_reason for t in finished.values()} == {"stop", "length"}
    for name, t in finished.items():
        check_shape(t, requests[name].max_new_tokens)
        expected = np.where(t.action_mask, solo_logprobs(policy, t), 0)
        np.testing.assert_allclose(t.behavior_logprobs, expected, atol=1e-4)


@pytest.mark.parametrize("kind", ["qwen2", "gpt2"])
def test_interruptions_inside_and_between_turns(kind):
    """Each action's log-probability is that of the policy of its version on the full prefix."""
    policy = tiny_policy(kind)
    engine = engine_of(policy, slots=5)
    weights = {0: snapshot(policy)}

    def interrupt(step: int) -> None:
        if step % 3 == 2:
            version = len(weights)
            weights[version] = perturb(policy, version)
            engine.weights_changed(version)

    finished = drain(engine, requests_of(24), interrupt)
    inside = between = 0
    for t in finished.values():
        alone = {v: solo_logprobs(policy, t, weights=weights[v]) for v in set(t.versions.tolist())}
        expected = np.array(
            [alone[v][i] if a else 0 for i, (v, a) in enumerate(zip(t.versions, t.action_mask, strict=True))]
        )
        np.testing.assert_allclose(t.behavior_logprobs, expected, atol=1e-4)
        turns = [t.versions[place] for actions, place in segments(t) if actions]
        inside += sum(len(set(turn.tolist())) > 1 for turn in turns)
        between += sum(a[-1] != b[0] for a, b in itertools.pairwise(turns))
    assert inside > 5
    assert between > 5


def test_streams_depend_neither_on_slots_nor_on_the_budget():
    policy = tiny_policy()
    alone = drain(engine_of(policy, slots=1), requests_of(16))
    together = drain(engine_of(policy, slots=16, budget=16), requests_of(16))
    assert alone.keys() == together.keys()
    for name, t in alone.items():
        assert t.response_ids.tolist() == together[name].response_ids.tolist()
        np.testing.assert_allclose(t.behavior_logprobs, together[name].behavior_logprobs, atol=1e-4)


def test_the_prefix_is_not_computed_again_at_a_turns_end():
    """What a turn's end costs in tokens: the token before the observation, and all of it but its last."""
    policy = tiny_policy(stop_ids=())
    sizes = []
    hook = policy.model.get_input_embeddings().register_forward_hook(
        lambda module, args, output: sizes.append(args[0].numel())
    )
    finished = drain(
        engine_of(policy, slots=1), [SampleRequest(SampleId(0, 0), np.full(9, 11, np.int32), 40, "talk")]
    )
    hook.remove()
    (trajectory,) = finished.values()
    observed = [place.stop - place.start for actions, place in segments(trajectory) if not actions]
    assert len(observed) > 2
    assert sum(sizes) == 8 + len(trajectory.response_ids)
    assert sorted(n for n in sizes if n > 1) == sorted([8, *(n for n in observed if n > 1)])


def test_samples_with_and_without_an_environment_share_an_engine():
    policy = tiny_policy(stop_ids=())
    loud, quiet, plain = (requests_of(2, environment=name) for name in ("talk", "quiet", ""))
    quiet = SampleRequest(SampleId(7, 0), quiet[0].prompt_ids, 30, "quiet")
    mixed = [loud[0], quiet, plain[1]]
    finished = drain(engine_of(policy, slots=3), mixed)
    assert not finished[loud[0].id].action_mask.all()
    assert finished[SampleId(7, 0)].action_mask.all()
    assert finished[plain[1].id].action_mask.all()


def test_an_observation_that_leaves_no_room_ends_the_sample():
    """Limit 5: a turn that ends at the second token and is answered by three or more leaves no room."""
    policy = tiny_policy(stop_ids=())

    def long_answer(environment: str, response_ids: np.ndarray) -> np.ndarray | None:
        return np.full(room, 11, np.int32) if len(response_ids) == 2 else None

    request = SampleRequest(SampleId(0, 0), np.full(4, 12, np.int32), 5, "talk")
    lengths = {}
    for room in (1, 2, 3, 4):
        (trajectory,) = drain(engine_of(policy, slots=2, environment=long_answer), [request]).values()
        lengths[room] = len(trajectory.response_ids), int(trajectory.action_mask.sum())
        assert trajectory.finish_reason == "length"
    assert lengths == {1: (5, 4), 2: (5, 3), 3: (2, 2), 4: (2, 2)}


def test_an_environment_that_nobody_answers_for_is_refused():
    engine = engine_of(tiny_policy(), slots=2, environment=None)
    with pytest.raises(ValueError, match="has environment talk"):
        engine.submit(requests_of(1))


class Spelled(IdCodec):
    """Ids are the characters of a small alphabet."""

    alphabet = "  \n0123456789[]*+-;#?"

    def decode(self, response_ids) -> str:
        return "".join(self.alphabet[i] for i in response_ids if i != STOP)

    def encode_observation(self, text: str) -> np.ndarray:
        return np.array([self.alphabet.index(c) for c in text], dtype=np.int32)


def test_turns_read_the_text_only_where_a_turn_may_end():
    codec = Spelled()
    read = []
    codec_decode = codec.decode
    turns = Turns(codec)
    object.__setattr__(codec, "decode", lambda ids: read.append(len(ids)) or codec_decode(ids))
    ids = codec.encode_observation("[17*24]")
    assert [turns("calculator", ids[: n + 1]) is None for n in range(6)] == [True] * 6
    assert codec_decode(turns("calculator", ids)) == "408;"
    assert max(read[:-1]) == 1  # single tokens, each once
    assert read[-1] == 7
    before = len(read)
    assert turns("calculator", ids[:2]) is None
    assert len(read) == before
