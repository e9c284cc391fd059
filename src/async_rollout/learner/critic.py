"""The critic: values of a batch's tokens, and its own training on what the samples turned out to be worth.

Always: what it learns from (old values and returns) is fixed before its first pass over a batch;
its passes come before the policy's steps; nothing of it is shared with the policy.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from async_rollout.algorithms.ratio import NonFiniteError
from async_rollout.algorithms.value_loss import clipped_value_loss
from async_rollout.config.run import RunConfig
from async_rollout.learner.batching import MicroBatch, micro_batches, split
from async_rollout.learner.credit import Values
from async_rollout.learner.optimizer import Optimizer
from async_rollout.learner.ranks import ALONE, Alone
from async_rollout.learner.rows import Row
from async_rollout.learner.shards import part_like, shard
from async_rollout.policy.interface import Policy
from async_rollout.types import CriticMetrics

_PASSES = 1  # word of the random stream that keeps the critic's minibatches apart from the policy's


class Critic:
    """A value model beside one policy, copied from it as it is when this is built.

    `between` is called before each micro-batch.
    """

    def __init__(
        self,
        config: RunConfig,
        policy: Policy,
        device: torch.device,
        ranks: Alone = ALONE,
        between: Callable[[], None] = lambda: None,
    ):
        self._config = config
        self._ranks = ranks
        self._between = between
        self._pad_id = policy.codec.pad_id
        self._model = policy.value_model(freeze_attention=config.critic.freeze_attention)
        if ranks.sharded:
            shard(self._model.backbone, self._model.head)
        lr = config.optim.lr * config.critic.lr_factor
        self._optimizer = Optimizer(
            config.optim.model_copy(update={"lr": lr}),
            self._model.parameters(),
            device=device,
            scaled=config.model.autocast == "float16",
            ranks=ranks,
        )

    @torch.no_grad()
    def values(self, rows: Sequence[Row]) -> list[Values]:
        """V of each row, under the weights as they are; zeros for a row without a token in the loss."""
        found = {i: np.zeros(len(row.mask) + 1, np.float32) for i, row in enumerate(rows)}
        for indices, micro in self._micros(rows):
            values = self._model.values(micro.scoring).cpu().numpy()
            for i, row in zip(indices, values[: len(indices)], strict=True):
                found[i] = row[: len(found[i])]
        return [Values(row[:-1], float(row[-1])) for row in self._ranks.join(found).values()]

    def train(self, rows: Sequence[Row], version: int) -> CriticMetrics | None:
        """N_c passes of M minibatches over rows as credit.py leaves them; None if all are masked."""
        rows = [row for row in rows if row.tokens]
        if not rows:
            return None
        config = self._config
        losses, norms, clipped = [], [], 0
        for number in range(config.critic.passes):
            for chosen in split(len(rows), config.batch.minibatches, config.seed, version, _PASSES + number):
                loss, over = self._accumulate([rows[i] for i in chosen])
                step = self._optimizer.step(version)
                losses.append(loss)
                clipped += over
                norms += [] if step is None else [step.norm]
        *losses, clipped = self._ranks.total(torch.tensor([*losses, clipped], dtype=torch.float64)).tolist()
        tokens = sum(row.tokens for row in rows)
        return CriticMetrics(
            loss=sum(losses) / len(losses),
            clip_fraction=clipped / (tokens * config.critic.passes),
            explained_variance=_explained(rows),
            grad_norm=sum(norms) / max(1, len(norms)),
            optimizer_steps=len(norms),
        )

    def _accumulate(self, rows: Sequence[Row]) -> tuple[float, int]:
        """Add this rank's share of a minibatch's gradient; returns its share of the loss, which is a mean
        over tokens, and how many were clipped.
        """
        tokens = sum(row.tokens for row in rows)
        total, clipped = 0.0, 0
        for _, micro in self._micros(rows):
            values = self._model.values(micro.scoring)[:, :-1]
            before, returns, mask = (
                torch.from_numpy(a).to(values.device) for a in (micro.values, micro.returns, micro.mask)
            )
            result = clipped_value_loss(values, before, returns, mask, self._config.critic.clip)
            loss = result.loss.sum() / tokens
            if not torch.isfinite(loss):
                raise NonFiniteError("the loss of the critic is not finite")
            self._optimizer.backward(loss)
            total += float(loss.detach())
            clipped += int(result.clipped.sum())
        return total, clipped

    def _micros(self, rows: Sequence[Row]) -> Iterator[tuple[list[int], MicroBatch]]:
        """As `micro_batches`, with this run's budget."""
        for chosen in micro_batches(rows, self._config.train.microbatch_tokens, self._pad_id, self._ranks):
            self._between()
            yield chosen

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """Trainable parameters by name."""
        return self._model.parameters()

    def state_dict(self) -> dict:
        """Weights and moments."""
        return {"model": self._model.state_dict(), "optimizer": self._optimizer.state_dict()}

    def load_state_dict(self, state: dict) -> None:
        """Go on from a `state_dict`, whose tensors are whole."""
        own = self._model.state_dict()
        self._model.load_state_dict({name: part_like(v, own[name]) for name, v in state["model"].items()})
        self._optimizer.load_state_dict(state["optimizer"])


def _explained(rows: Sequence[Row]) -> float | None:
    """1 − var(R − V_old)/var(R) over tokens in the loss; None where all returns are equal."""
    returns, values = (
        np.concatenate([getattr(row, name)[row.mask] for row in rows]).astype(np.float64)
        for name in ("returns", "values")
    )
    spread = float(returns.var())
    return 1 - float((returns - values).var()) / spread if spread > 0 else None
