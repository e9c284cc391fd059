"""The proximal policy without a forward of its own."""

from torch import Tensor


def interpolate(logprobs: Tensor, behavior: Tensor, staleness: Tensor) -> Tensor:
    """log π_prox = log π_behav + α · sg(log π_θ − log π_behav), α = d/(d + 1).

    A-3PO (arXiv:2512.06547). Args: all (n, L); `staleness` d >= 0 in versions. A fresh token
    (d = 0) gets the behaviour policy, a very stale one the current policy.
    """
    staleness = staleness.to(behavior.dtype)
    alpha = staleness / (staleness + 1)
    return behavior + alpha * (logprobs.detach() - behavior)
