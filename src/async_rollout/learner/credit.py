"""From a critic's values to what each token of a batch is credited with, once per batch.

Always: computed from the values before the critic's passes over this batch; advantages are
normalised over exactly the tokens in the loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from async_rollout.algorithms.gae import gae, length_lambda, whiten
from async_rollout.config.objective import AdvantageConfig
from async_rollout.learner.rows import Batch, Row


@dataclass(frozen=True, slots=True)
class Values:
    """V of one row: at the position that predicts each token, and after the last."""

    tokens: np.ndarray  # (L,) float32
    end: float


def credit(batch: Batch, values: Sequence[Values], config: AdvantageConfig) -> Batch:
    """The batch with each row's advantages, old values and returns (SAO: see algorithms/gae.py)."""
    rows = [
        _credit(row, value, float(reward), config)
        for row, value, reward in zip(batch.rows, values, batch.rewards.ravel(), strict=True)
    ]
    if config.whiten == "batch":
        rows = _whitened(rows, config.epsilon)
    silent = not any(row.has_signal for row in rows)
    return replace(batch, rows=rows, zero_variance=float(silent))


def _credit(row: Row, values: Values, reward: float, config: AdvantageConfig) -> Row:
    """Advantages with λ by length, returns with λ = 1. The reward comes with the last token of all."""
    trajectory = row.trajectory
    actions = torch.from_numpy(trajectory.action_mask)
    rewards = torch.zeros(len(actions), dtype=torch.float64)
    rewards[-1] = reward
    cut = config.bootstrap and trajectory.finish_reason == "length"
    estimate = gae(
        torch.from_numpy(values.tokens).double(),
        rewards,
        actions,
        length_lambda(int(actions.sum()), config.alpha),
        values.end if cut else 0.0,
    )
    return replace(
        row,
        advantages=estimate.advantages.numpy().astype(np.float32),
        values=values.tokens,
        returns=estimate.returns.numpy().astype(np.float32),
    )


def _whitened(rows: list[Row], epsilon: float) -> list[Row]:
    """Advantages normalised over all tokens in the loss; others stay as they are."""
    flat = np.concatenate([row.advantages[row.mask] for row in rows])
    if not len(flat):
        return rows
    white = whiten(torch.from_numpy(flat).double(), epsilon).numpy().astype(np.float32)
    parts = np.split(white, np.cumsum([row.tokens for row in rows])[:-1])
    done = []
    for row, part in zip(rows, parts, strict=True):
        advantages = row.advantages.copy()
        advantages[row.mask] = part
        done.append(replace(row, advantages=advantages))
    return done
