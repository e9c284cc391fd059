"""The configured loss of one micro-batch, as a function of its log-probabilities."""

from functools import partial

import torch
from torch import Tensor

from async_rollout.algorithms import kl, objectives, proximal, sequence, weighted
from async_rollout.algorithms.aggregate import numerator
from async_rollout.algorithms.diagnostics import diagnose
from async_rollout.algorithms.objectives import Objective, Tokens
from async_rollout.algorithms.ratio import NonFiniteError
from async_rollout.config.objective import KlConfig, ObjectiveConfig
from async_rollout.learner.batching import MicroBatch
from async_rollout.learner.metrics import Tally
from async_rollout.policy.interface import Scores


class Loss:
    """Objective plus KL penalty, as a share of its minibatch's loss."""

    def __init__(self, objective: ObjectiveConfig, penalty: KlConfig):
        self._config = objective
        self._penalty = penalty
        self._objective = build_objective(objective)

    def __call__(self, scores: Scores, micro: MicroBatch, denominator: int) -> tuple[Tensor, Tally]:
        """(loss to differentiate, sums to report); micro-batches of a minibatch add up in both.

        Args: `denominator` of the whole minibatch. Raises NonFiniteError naming what was not finite.
        """
        tokens = self._tokens(scores.logprobs, micro)
        result = self._objective(tokens)
        divergence = self._divergence(tokens, micro)
        per_token = result.loss + self._penalty.coef * divergence
        loss = numerator(per_token, tokens.mask, self._config.aggregation) / denominator
        if not torch.isfinite(loss):
            raise NonFiniteError(f"the loss of objective {self._config.name} is not finite")
        difference = torch.where(tokens.mask, scores.logprobs.detach() - tokens.behavior, 0.0)
        tally = Tally(
            loss=loss.detach(),
            kl=divergence.detach().sum(),
            entropy=torch.where(tokens.mask, scores.entropy, 0.0).sum(),
            logratio_max=difference.abs().max(),
            diagnostics=diagnose(result, tokens.mask),
        )
        return loss, tally

    def _tokens(self, logprobs: Tensor, micro: MicroBatch) -> Tokens:
        behavior = torch.from_numpy(micro.behavior).to(logprobs.device)
        return Tokens(
            logprobs=logprobs,
            behavior=behavior,
            advantages=torch.from_numpy(micro.advantages).to(logprobs.device),
            mask=torch.from_numpy(micro.mask).to(logprobs.device),
            proximal=self._proximal(logprobs, behavior, micro),
        )

    def _proximal(self, logprobs: Tensor, behavior: Tensor, micro: MicroBatch) -> Tensor | None:
        """log π_prox of `decoupled`. Not recomputed means: no step lies between it and π_θ."""
        if self._config.name != "decoupled":
            return None
        if self._config.proximal == "behavior":
            return behavior
        if self._config.proximal == "interpolate":
            staleness = torch.from_numpy(micro.staleness).to(logprobs.device)
            return proximal.interpolate(logprobs, behavior, staleness)
        if micro.proximal is None:
            return logprobs.detach()
        return torch.from_numpy(micro.proximal).to(logprobs.device)

    def _divergence(self, tokens: Tokens, micro: MicroBatch) -> Tensor:
        """KL per token against the reference; without a coefficient, against behavior, for the record."""
        how = self._penalty.estimator
        if micro.initial is not None:
            initial = torch.from_numpy(micro.initial).to(tokens.logprobs.device)
            return kl.to_initial(tokens.logprobs, tokens.behavior, initial, tokens.mask, how)
        return kl.to_behavior(tokens.logprobs, tokens.behavior, tokens.mask, how)


def needs_proximal_pass(config: ObjectiveConfig, minibatches: int) -> bool:
    """True if π_prox must be computed before the first of several optimizer steps."""
    return config.name == "decoupled" and config.proximal == "recompute" and minibatches > 1


def build_objective(config: ObjectiveConfig) -> Objective:
    """The loss that `objective.name` and its keys describe."""
    bounds = {"clip_low": config.clip_low, "clip_high": config.clip_high, "dual_clip": config.dual_clip}
    match config.name:
        case "live":
            return objectives.live
        case "behavior":
            return partial(objectives.behavior, **bounds)
        case "decoupled":
            cap = {"weight": config.weight, "weight_limit": config.weight_limit}
            return partial(objectives.decoupled, **bounds, **cap)
        case "dis":
            return partial(weighted.dis, band=weighted.BANDS[config.band], detach=config.detach)
        case "gspo":
            return partial(sequence.gspo, **bounds)
        case "cispo":
            return partial(weighted.cispo, clip_high=config.clip_high)
    raise ValueError(f"objective.name: {config.name!r} names no loss; `axis` must be resolved before")
