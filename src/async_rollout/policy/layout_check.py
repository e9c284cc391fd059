"""Models that the engine's KV layout does not fit are refused by name, before anything runs.

First by what the model says of itself; then by a trial: two samples of different lengths,
one joining late, an interruption between them, compared with plain forwards of each alone.
"""

import inspect

import numpy as np
import torch
from transformers import PreTrainedModel

from async_rollout.policy.engine import DecodingEngine
from async_rollout.policy.forward import Forward
from async_rollout.policy.sampling import Sampler
from async_rollout.types import SampleId, SampleRequest, Trajectory

TOLERANCE = {torch.float32: 1e-4, torch.float16: 5e-2, torch.bfloat16: 5e-1}  # nats
_NEEDED = ("position_ids", "attention_mask", "cache", "logits_to_keep")


class UnfitModel(ValueError):
    """A model that cannot be decoded or scored in this layout."""

    def __init__(self, name: str, model: PreTrainedModel, why: str) -> None:
        super().__init__(
            f"model.id = {name} ({type(model).__name__}) does not fit the decoding engine: {why}. "
            "Use a causal language model with full attention in every layer"
        )


def refuse_unfit(model: PreTrainedModel, name: str) -> None:
    """Raise UnfitModel for what the model's signature and config rule out."""
    parameters = inspect.signature(model.forward).parameters
    if missing := [p for p in _NEEDED if p not in parameters]:
        raise UnfitModel(name, model, f"its forward takes no {', '.join(missing)}")
    config = model.config.get_text_config()
    if others := set(getattr(config, "layer_types", None) or ()) - {"full_attention"}:
        raise UnfitModel(name, model, f"it has layers of type {', '.join(sorted(others))}")
    if window := getattr(config, "sliding_window", None):
        raise UnfitModel(name, model, f"its attention slides over a window of {window} tokens")


def check_layout(forward: Forward, name: str) -> None:
    """Raise UnfitModel if a ragged batch gives a sample other log-probabilities than it has alone."""
    model = forward.model
    worst = max(_error(model, trajectory) for trajectory in _ragged(forward))
    limit = TOLERANCE[model.dtype]
    if not worst <= limit:
        why = f"log-probabilities in a ragged batch are off by {worst:.2g} nats (limit {limit:g})"
        raise UnfitModel(name, model, why)


def _ragged(forward: Forward) -> list[Trajectory]:
    """Two greedy samples: a longer prompt joins a running shorter one, then the weights 'change'."""
    vocabulary = forward.model.get_input_embeddings().num_embeddings
    ids = np.random.default_rng(0).integers(vocabulary, size=10).astype(np.int32)
    engine = DecodingEngine(
        forward,
        slots=2,
        seed=0,
        version=0,
        sampler=Sampler(greedy=True),
        stop_ids=frozenset(),
        prefill_tokens=16,
    )
    engine.submit([SampleRequest(SampleId(0, 0), ids[:3], 5)])
    finished = engine.step()
    engine.submit([SampleRequest(SampleId(1, 0), ids[3:], 3)])
    finished += engine.step() + engine.step()  # it waits for one, then joins
    engine.weights_changed(0)
    while engine.running():
        finished += engine.step()
    return finished


@torch.inference_mode()
def _error(model: PreTrainedModel, trajectory: Trajectory) -> float:
    """Largest difference to a forward of this sample alone, without masks, positions or cache of ours."""
    ids = np.concatenate([trajectory.prompt_ids, trajectory.response_ids]).astype(np.int64)
    whole = torch.from_numpy(ids).to(model.device)
    logprobs = model(input_ids=whole[None], use_cache=False).logits[0].float().log_softmax(dim=-1)
    first = len(trajectory.prompt_ids)
    alone = logprobs[first - 1 : -1].gather(-1, whole[first:, None])[:, 0].cpu().numpy()
    return float(np.abs(alone - trajectory.behavior_logprobs).max())
