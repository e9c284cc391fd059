"""Log-probabilities of given responses, with gradient.

Prompts are padded on the left and responses on the right, so every row's response starts
in the same column and the head runs on the response only. Padding is exactly 0 and sends
no gradient.
"""

import torch

from async_rollout.policy import masks
from async_rollout.policy.forward import Forward
from async_rollout.policy.interface import Scores, ScoringBatch


def score(
    forward: Forward, batch: ScoringBatch, temperature: float, autocast: torch.dtype | None = None
) -> Scores:
    """log softmax(logits / temperature) of each response token, and the entropy there.

    `autocast` is the type that the model computes in; softmax and entropy are float32 always.
    """
    device = forward.device
    prompt_ids, prompt_mask, response_ids, response_mask = (
        torch.from_numpy(array).to(device)
        for array in (batch.prompt_ids, batch.prompt_mask, batch.response_ids, batch.response_mask)
    )
    real = torch.cat([prompt_mask, response_mask], dim=1)
    ids = torch.cat([prompt_ids, response_ids], dim=1)
    length = response_ids.shape[1]
    with torch.autocast(device.type, dtype=autocast, enabled=autocast is not None):
        logits = forward(ids, masks.positions(real), masks.causal(real), keep=length + 1)
    # The logits at position t score token t + 1: the last prompt token's are the first, the last are unused.
    logits = logits[:, :-1].float() / temperature
    log_total = logits.logsumexp(dim=-1)
    chosen = logits.gather(-1, response_ids[..., None])[..., 0]
    logprobs = torch.where(response_mask, chosen - log_total, 0.0)
    with torch.no_grad():
        probabilities = (logits - log_total[..., None]).exp_()
        entropy = log_total - (probabilities * logits).sum(dim=-1)
        entropy = torch.where(response_mask, entropy, 0.0)
    return Scores(logprobs, entropy)
