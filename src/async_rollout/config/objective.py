"""The loss, the advantages and the KL penalty (docs/design.md, section 6; docs/objectives.md)."""

from typing import Literal

from async_rollout.config.block import Block, key


class ObjectiveConfig(Block):
    """The loss; its formulas are in docs/design.md, section 6."""

    name: Literal["axis", "live", "behavior", "decoupled", "dis", "gspo", "cispo"] = key(
        "axis",
        "which loss, see docs/objectives.md; `axis` leaves it to the sweep key `decoupled` "
        "(1: decoupled, 0: live)",
    )
    clip_low: float = key(
        0.2, "ε below 1: the ratio is clipped at 1 − ε", env="CLIP_EPS", theirs="0.2", ge=0, le=1
    )
    clip_high: float = key(
        0.2, "ε above 1: the ratio is clipped at 1 + ε", env="CLIP_EPS", theirs="0.2", ge=0
    )
    dual_clip: float | None = key(
        None, "c > 1: with a negative advantage the loss is at most −c·A (off when empty)", gt=1
    )
    proximal: Literal["recompute", "interpolate", "behavior"] = key(
        "recompute", "where π_prox of the decoupled loss comes from"
    )
    weight: Literal["exact", "clamp", "mask", "omit"] = key(
        "mask", "what becomes of w = π_prox/π_behav above `weight_limit`; `omit` drops w altogether"
    )
    weight_limit: float = key(5.0, "limit of `clamp` and `mask`", gt=0)
    band: Literal["paper", "closed_03_5"] = key(
        "paper",
        "ratios π_θ/π_behav that `dis` keeps: `paper` 0.7 < r < 6 (1 − 0.3, 1 + 5), `closed_03_5` "
        "0.3 ≤ r ≤ 5, as public re-implementations read it",
    )
    detach: bool = key(True, "`dis`: the ratio only weights the gradient; false differentiates it too")
    aggregation: Literal["token_mean", "seq_mean", "constant"] = key(
        "token_mean", "mean over all action tokens of a minibatch, over sequences first, or sum ÷ constant"
    )


_CLIPPING = frozenset({"behavior", "decoupled", "gspo"})
READERS = {  # objectives that read a key; any other key of the block is read by all
    "objective.clip_low": _CLIPPING,
    "objective.clip_high": _CLIPPING | {"cispo"},
    "objective.dual_clip": _CLIPPING,
    "objective.proximal": frozenset({"decoupled"}),
    "objective.weight": frozenset({"decoupled"}),
    "objective.weight_limit": frozenset({"decoupled"}),
    "objective.band": frozenset({"dis"}),
    "objective.detach": frozenset({"dis"}),
}


class AdvantageConfig(Block):
    """How rewards become advantages, once per batch."""

    name: Literal["group", "batch", "running_mean", "gae"] = key(
        "group",
        "normalised by the prompt's own samples, by all trajectories of the batch, minus the mean of "
        "the last `window` rewards before the batch (0 before the first), or from a critic's values",
    )
    window: int = key(128, "rewards that `running_mean` looks back on", unit="samples", ge=1)
    epsilon: float = key(1e-4, "added to the standard deviation", gt=0)
    alpha: float = key(1.5, "`gae`: λ = 1 − 1/(α·l) in [0, 1], l the sample's own tokens", gt=0)
    whiten: Literal["batch", "none"] = key(
        "batch", "`gae`: advantages are normalised over the batch's tokens"
    )
    bootstrap: bool = key(
        False,
        "`gae`: a sample cut at max_new_tokens ends with the value of its last state; off: with 0, as the "
        "limit is part of the task",
    )
    truncated: Literal["train", "mask", "zero"] = key(
        "train", "samples cut at max_new_tokens: as any other, out of the loss, or with reward 0"
    )


class KlConfig(Block):
    """Penalty that holds the policy near a reference (k3's gradient is biased, see the docs)."""

    coef: float = key(
        0.0,
        "coefficient of the penalty; keep 0 in a sweep over K",
        env="KL_COEF",
        theirs="0.02",
        why="with it, the pull towards stale behaviour would grow with K",
        ge=0,
    )
    reference: Literal["behavior", "initial"] = key("behavior", "the policy to stay near")
    estimator: Literal["k3", "k2"] = key("k3", "Schulman's estimators")
