"""Generalised advantage estimation (Schulman et al. 2016) over what the model itself wrote.

Always, as in SAO (arXiv:2607.07508): γ = 1; observations are skipped, so the last action of a turn
bootstraps from the first action of the next, whose value has read the observation; values and
targets carry no gradient. All in the dtype of the values, float64 where it matters.
"""

from typing import NamedTuple

import torch
from torch import Tensor

ALPHA = 1.5  # SAO's α


class Estimate(NamedTuple):
    """Of one trajectory, both (L,); 0 on observations."""

    advantages: Tensor
    returns: Tensor  # what the critic learns: advantages with λ = 1, plus values


def gae(values: Tensor, rewards: Tensor, actions: Tensor, lam: float, final: float = 0.0) -> Estimate:
    """A_t = δ_t + λ·A_t', δ_t = r_t + V_t' − V_t, where t' is the next action; V after the last is `final`.

    Args: `values` (L,), V_t as read at the position that predicts token t; `rewards` (L,), of which
    those on observations go to the action before; `actions` (L,) bool, at least one True;
    `final` is 0 for a sample that ended, V(s_T) for one that was cut and bootstraps.
    """
    v, r = values[actions], _on_actions(rewards, actions)
    following = torch.cat([v[1:], v.new_tensor([final])])
    delta = r + following - v
    return Estimate(
        advantages=_spread(_discounted(delta, lam), actions),
        returns=_spread(_discounted(delta, 1.0) + v, actions),
    )


def length_lambda(length: int, alpha: float = ALPHA) -> float:
    """λ = 1 − 1/(α·l), in [0, 1]: the longer a sample, the less its values are leant on (SAO).

    Args: `length` l >= 1, the sample's actions.
    """
    return min(1.0, max(0.0, 1.0 - 1.0 / (alpha * length)))


def whiten(values: Tensor, epsilon: float) -> Tensor:
    """(A − mean)/(std + ε) over all of `values`, ddof 0; all 0 if they are equal."""
    if (values == values[:1]).all():
        return torch.zeros_like(values)
    return (values - values.mean()) / (values.std(correction=0) + epsilon)


def _on_actions(rewards: Tensor, actions: Tensor) -> Tensor:
    """(actions,) rewards: each token's goes to the last action at or before it, else to the first action."""
    owner = (actions.long().cumsum(0) - 1).clamp(min=0)
    return rewards.new_zeros(int(actions.sum())).index_add(0, owner, rewards)


def _discounted(delta: Tensor, lam: float) -> Tensor:
    """A_t = δ_t + λ·A_(t+1), from the end."""
    found, following = [], 0.0
    for step in reversed(delta.tolist()):
        following = step + lam * following
        found.append(following)
    return delta.new_tensor(found[::-1])


def _spread(values: Tensor, actions: Tensor) -> Tensor:
    """(L,) with `values` on the actions and 0 elsewhere."""
    return values.new_zeros(len(actions)).masked_scatter(actions, values)
