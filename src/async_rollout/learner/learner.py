"""One training step: a batch of judged groups in, new weights and metrics out.

Always: advantages and the proximal and initial log-probabilities are computed once per batch,
before its first optimizer step; loss and gradient do not depend on how a minibatch is packed
into micro-batches, nor on how many ranks share it; a batch without signal leaves the weights as
they are.
"""

import copy
from collections import deque
from collections.abc import Callable, Iterator, Sequence
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
from async_rollout.learner.metrics import Tally, over_ranks, summarize
from async_rollout.learner.optimizer import Optimizer, Step
from async_rollout.learner.ranks import ALONE, Alone
from async_rollout.learner.rows import Row, make_batch
from async_rollout.learner.shards import Mirror, gathered, shard
from async_rollout.policy.interface import Policy, Scores
from async_rollout.types import Group, UpdateMetrics

_COMPARE_EVERY = 50  # updates


class Learner:
    """Trains one policy in place. Build it before a checkpoint's weights are loaded.

    Until then the policy holds its initial weights, which a KL reference `initial` and a critic copy here.
    Of several ranks each has a learner; they are given the same batches, and do everything together.
    `between` is called before each micro-batch, so that a long step can show that it goes on.
    """

    def __init__(
        self,
        config: RunConfig,
        policy: Policy,
        device: str,
        ranks: Alone = ALONE,
        between: Callable[[], None] = lambda: None,
    ):
        self.config = config
        self.policy = policy
        self.device = torch.device(device)
        self.ranks = ranks
        self._between = between
        ranks.compare(policy.parameters())
        frozen = config.kl.coef > 0 and config.kl.reference == "initial"
        self._initial = copy.deepcopy(policy) if frozen else None
        critic = config.advantage.name == "gae"
        self._critic = Critic(config, policy, self.device, ranks, between) if critic else None
        self._mirror = Mirror(policy, keep=ranks.rank == 0) if ranks.sharded else None
        if ranks.sharded:  # after the copies, before the optimizer: parameters become other objects
            for each in (policy, self._initial):
                if each is not None:
                    shard(each.model)
        self.optimizer = Optimizer(
            config.optim,
            policy.parameters(),
            device=self.device,
            scaled=config.model.autocast == "float16",
            measure_cosine=config.train.gradient_cosine,
            ranks=ranks,
        )
        self._rewards: deque[float] = deque(maxlen=config.advantage.window)  # of earlier batches
        self._loss = Loss(config.objective, config.kl)

    def step(self, groups: Sequence[Group], version: int) -> UpdateMetrics:
        """Train on one batch; `version` is the policy version before it.

        Raises StalenessError for a token older than K, NonFiniteError naming what was not finite,
        ReplicasDiffer if ranks have come apart.
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
        tallies = over_ranks(tallies, self.ranks)
        if (version + 1) % _COMPARE_EVERY == 0:
            self._compare()
        metrics = summarize(batch, tallies, steps, empty=not train and not warming_up)
        return replace(metrics, critic=learned, critic_only=warming_up)

    def accumulate(self, rows: Sequence[Row], *, backward: bool = True) -> Tally | None:
        """Add this rank's share of the gradient of one minibatch's loss, if `backward`.

        Returns its share of the sums; None if no token at all is in the loss.
        """
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
        return reduce(add, tallies) if tallies else Tally.nothing(self.device)

    def whole(self) -> Policy | None:
        """The policy with all its weights as they are, on rank 0 at least; every rank must ask."""
        return self.policy if self._mirror is None else self._mirror.refresh()

    def state_dict(self) -> dict:
        """What a checkpoint needs besides the weights, on rank 0 at least; every rank must ask.

        Raises ReplicasDiffer rather than keep the weights of one rank for those of all.
        """
        self._compare()
        state = {
            "optimizer": self.optimizer.state_dict(),
            "rewards": list(self._rewards),
            "critic": None if self._critic is None else self._critic.state_dict(),
        }
        return gathered(state, keep=self.ranks.rank == 0) if self.ranks.sharded else state

    def load_state_dict(self, state: dict) -> None:
        """Go on from a `state_dict`."""
        self.optimizer.load_state_dict(state["optimizer"])
        self._rewards.clear()
        self._rewards.extend(state["rewards"])
        if self._critic is not None:
            self._critic.load_state_dict(state["critic"])

    def _compare(self) -> None:
        critic = {} if self._critic is None else self._critic.parameters()
        self.ranks.compare(self.policy.parameters() | {f"critic.{n}": p for n, p in critic.items()})

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
        found = {i: np.zeros(len(row.mask), np.float32) for i, row in enumerate(rows) if row.tokens}
        for indices, micro in self._micros(rows):
            logprobs = self._score(policy, micro).logprobs.cpu().numpy().astype(np.float32)
            for i, values in zip(indices, logprobs[: len(indices)], strict=True):
                found[i] = values[: len(found[i])]
        found = self.ranks.join(found)
        return [replace(row, **{field: found[i]}) if i in found else row for i, row in enumerate(rows)]

    def _micros(self, rows: Sequence[Row]) -> Iterator[tuple[list[int], MicroBatch]]:
        """As `micro_batches`, with this run's budget."""
        budget, pad_id = self.config.train.microbatch_tokens, self.policy.codec.pad_id
        for chosen in micro_batches(rows, budget, pad_id, self.ranks):
            self._between()
            yield chosen

    def _score(self, policy: Policy, micro: MicroBatch) -> Scores:
        return policy.score(micro.scoring, self.config.sampling.temperature)
