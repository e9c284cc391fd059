"""Checks on the real model: what it samples is what the loss differentiates, and what is published."""

from collections.abc import Iterator

import numpy as np

from async_rollout.doctor.finding import Finding, judged
from async_rollout.doctor.probe import Probe, score

TOLERANCE = 1e-4  # of a ratio, in float32
_Z_LIMIT = 4.0  # standard errors; one honest sampler in 16,000 is further off


def model_checks(probe: Probe) -> Iterator[Finding]:
    """Sampler, ratio, stop ids, padding, weights."""
    yield _sampler(probe)
    yield _ratio(probe)
    yield _stops(probe)
    yield _padding(probe)
    yield _weights(probe)


def _sampler(probe: Probe) -> Finding:
    """A token's mean surprise −log π is the entropy if, and only if, the tokens come from π."""
    surplus = np.concatenate(
        [
            (-p - h)[t.action_mask]  # what an environment wrote was not sampled
            for p, h, t in zip(probe.logprobs, probe.entropies, probe.trajectories, strict=True)
        ]
    )
    spread = float(surplus.std(ddof=1)) / np.sqrt(len(surplus))
    z = float(surplus.mean()) / max(spread, 1e-12)
    sampling = probe.run.sampling
    off = [f"top_p {sampling.top_p}"] * (sampling.top_p < 1) + [f"top_k {sampling.top_k}"] * (
        sampling.top_k > 0
    )
    text = f"surprise is entropy {surplus.mean():+.4f} nats (z = {z:+.1f}, {len(surplus)} tokens)"
    return judged("sampler neutral", abs(z) < _Z_LIMIT and not off, "; ".join([text, *off]))


def _ratio(probe: Probe) -> Finding:
    """π_θ/π_behav on samples that this very policy has just drawn."""
    gaps = [
        np.abs(p - t.behavior_logprobs)[t.action_mask].max()
        for p, t in zip(probe.logprobs, probe.trajectories, strict=True)
    ]
    worst = float(np.expm1(max(gaps)))
    model = probe.run.model
    exact = (model.dtype, model.autocast) == ("float32", "none")
    text = f"within {worst:.1e} of 1 on {len(gaps)} fresh samples"
    if not exact:
        text += f" (model.dtype {model.dtype}, model.autocast {model.autocast}: 1e-4 is for float32)"
    return judged("ratio", worst < TOLERANCE, text, "fail" if exact else "warn")


def _stops(probe: Probe) -> Finding:
    """Responses can end, and end with a stop id."""
    stops = probe.policy.codec.stop_ids
    ended = [t for t in probe.trajectories if t.finish_reason == "stop"]
    wrong = sum(int(t.response_ids[-1]) not in stops for t in ended)
    text = f"ids {sorted(stops)}; {len(ended)} of {len(probe.trajectories)} samples stopped by themselves"
    if wrong or not stops:
        return Finding("fail", "stop ids", f"{text}, {wrong} of them without a stop id")
    return judged("stop ids", bool(ended), text, "warn")


def _padding(probe: Probe) -> Finding:
    """Scored alone and in the padded batch."""
    alone = [score(probe.policy, [t], probe.run.sampling.temperature)[0][0] for t in probe.trajectories]
    worst = max(float(np.abs(a - b).max()) for a, b in zip(alone, probe.logprobs, strict=True))
    lengths = sorted(len(t.response_ids) for t in probe.trajectories)
    text = f"invisible to {worst:.1e} nats (responses of {lengths[0]} to {lengths[-1]} tokens)"
    exact = (probe.run.model.dtype, probe.run.model.autocast) == ("float32", "none")
    return judged("padding", worst < TOLERANCE, text, "fail" if exact else "warn")


def _weights(probe: Probe) -> Finding:
    """Every parameter is published, and memory that two names share is published once."""
    parameters = probe.policy.parameters()
    places = {parameter.data_ptr() for parameter in parameters.values()}
    model = getattr(probe.policy, "model", None)
    missing = set() if model is None else {p.data_ptr() for p in model.parameters()} - places
    names = 0 if model is None else len(list(model.named_parameters(remove_duplicate=False)))
    size = sum(p.numel() for p in parameters.values())
    tied = f", {names - len(parameters)} tied names left out" if names > len(parameters) else ""
    text = f"{size:,} values in {len(parameters)} tensors{tied}"
    if missing:
        text += f"; {len(missing)} tensors of the model are not published"
    return judged("weights published once", len(places) == len(parameters) and not missing, text)
