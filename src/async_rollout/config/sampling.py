"""How tokens are drawn."""

from async_rollout.config.block import Block, key


class SamplingConfig(Block):
    """Sampling at temperature 1 from the full vocabulary, unless biased sampling is allowed."""

    temperature: float = key(
        1.0,
        "logits are divided by it, in rollouts and in the loss",
        env="TEMPERATURE",
        theirs="0.9",
        why="samples come from the very policy that the loss differentiates",
        gt=0,
    )
    top_p: float = key(
        1.0,
        "nucleus; below 1 needs `allow_biased`",
        env="TOP_P",
        theirs="0.95",
        why="a cut tail is a distribution that no log-probability describes",
        gt=0,
        le=1,
    )
    top_k: int = key(0, "0 is off; above 0 needs `allow_biased`", ge=0)
    allow_biased: bool = key(
        False, "accept that samples come from another distribution than the one the loss differentiates"
    )
    max_new_tokens: int = key(
        16,
        "longest response",
        unit="tokens",
        env="MAX_NEW_TOKENS",
        theirs="128",
        why="enough for `sort`; raise it for word problems",
        ge=1,
        le=1_000_000,
    )
