"""One training step: a batch of judged groups in, new weights and metrics out.

Always: advantages and the proximal and initial log-probabilities are computed once per batch,
before its first optimizer step; loss and gradient do not depend on how a minibatch is packed
into micro-batches; a batch without signal leaves the weights as they are.
"""

import copy
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Literal

import numpy as np
import torch

from async_rollout.algorithms.aggregate import denominator
from async_rollout.config.run import RunConfig
from async_rollout.learner.batching import MicroBatch, micro_batches, split
from async_rollout.learner.credit import credit
from async_rollout.learner.critic import Critic
from async_rollout.learner.loss import Loss, needs_proximal_pass
from async_rollout.learner.metrics import Tally, summarize
from async_rollout.learner.optimizer import Optimizer, Step
from async_rollout.learner.rows import Row, make_batch
from async_rollout.policy.interface import Policy, Scores
from async_rollout.types import Group, UpdateMetrics


class Learner:
    """Trains one policy in place. Build it before a checkpoint's weights are loaded.

    Until then the policy holds its initial weights, which a KL reference `initial` and a critic copy here.
    """

    def __init__(self, config: RunConfig, policy: Policy, device: str):
        self.config = config
        self.policy = policy
        self.device = torch.device(device)
        self.optimizer = Optimizer(
            config.optim,
            policy.parameters(),
            device=self.device,
            scaled=config.model.autocast == "float16",
            measure_cosine=config.train.gradient_cosine,
        )
        self._rewards: deque[float] = deque(maxlen=config.advantage.window)  # of earlier batches
        self._loss = Loss(config.objective, config.kl)
        frozen = config.kl.coef > 0 and config.kl.reference == "initial"
        self._initial = copy.deepcopy(policy) if frozen else None
        self._critic = Critic(config, policy, self.device) if config.advantage.name == "gae" else None

    def step(self, groups: Sequence[Group], version: int) -> UpdateMetrics:
        """Train on one batch; `version` is the policy version before it.

        Raises StalenessError for a token older than K, NonFiniteError naming what was not finite.
        """
        config = self.config
        batch = make_batch(groups, config.advantage, version, config.staleness_bound, self._rewards)
        self._rewards.extend(batch.rewards.ravel().tolist())
        learned = None
        if self._critic is not None:
            batch = credit(batch, self._critic.values(batch.rows), config.advantage)
            learned = self._critic.train(batch.rows, version)
        warming_up = self._critic is not None and version < config.critic.warmup_updates
        train = self._trainable(batch.rows) and not warming_up
        rows = self._with_references(batch.rows, train)
        tallies: list[Tally] = []
        steps: list[Step] = []
        for chosen in split(len(rows), config.batch.minibatches, config.seed, version):
            tally = self.accumulate([rows[i] for i in chosen], backward=train)
            if tally is None:
                continue
            tallies.append(tally)
            step = self.optimizer.step(version) if train else None
            steps.extend([] if step is None else [step])
        metrics = summarize(batch, tallies, steps, empty=not train and not warming_up)
        return replace(metrics, critic=learned, critic_only=warming_up)

    def accumulate(self, rows: Sequence[Row], *, backward: bool = True) -> Tally | None:
        """Add the gradient of one minibatch's loss, if `backward`; None if no token is in the loss."""
        objective = self.config.objective
        count = denominator(
            [row.tokens for row in rows], objective.aggregation, self.config.sampling.max_new_tokens
        )
        if count == 0:
            return None
        tallies = []
        for _, micro in self._micros(rows):
            with torch.set_grad_enabled(backward):
                loss, tally = self._loss(self._score(self.policy, micro), micro, count)
            if backward:
                self.optimizer.backward(loss)
            tallies.append(tally)
        return reduce(add, tallies)

    def state_dict(self) -> dict:
        """What a checkpoint needs besides the weights."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "rewards": list(self._rewards),
            "critic": None if self._critic is None else self._critic.state_dict(),
        }

    def load_state_dict(self, state: dict) -> None:
        """Go on from a `state_dict`."""
        self.optimizer.load_state_dict(state["optimizer"])
        self._rewards.clear()
        self._rewards.extend(state["rewards"])
        if self._critic is not None:
            self._critic.load_state_dict(state["critic"])

    def _trainable(self, rows: Sequence[Row]) -> bool:
        penalized = self.config.kl.coef > 0 and any(row.tokens for row in rows)
        return penalized or any(row.has_signal for row in rows)

    def _with_references(self, rows: list[Row], train: bool) -> list[Row]:
        """Rows with the log-probabilities that must be fixed before the first optimizer step."""
        if train and needs_proximal_pass(self.config.objective, self.config.batch.minibatches):
            rows = self._annotate(rows, self.policy, "proximal")
        if self._initial is not None:
            rows = self._annotate(rows, self._initial, "initial")
        return rows

    @torch.no_grad()
    def _annotate(self, rows: list[Row], policy: Policy, field: Literal["proximal", "initial"]) -> list[Row]:
        """Rows whose `field` holds the log-probabilities of `policy`."""
        done = list(rows)
        for indices, micro in self._micros(rows):
            logprobs = self._score(policy, micro).logprobs.cpu().numpy().astype(np.float32)
            for i, values in zip(indices, logprobs, strict=True):
                done[i] = replace(rows[i], **{field: values[: len(rows[i].mask)]})
        return done

    def _micros(self, rows: Sequence[Row]) -> Iterator[tuple[list[int], MicroBatch]]:
        """As `micro_batches`, with this run's budget."""
        return micro_batches(rows, self.config.train.microbatch_tokens, self.policy.codec.pad_id)

    def _score(self, policy: Policy, micro: MicroBatch) -> Scores:
        return policy.score(micro.scoring, self.config.sampling.temperature)
