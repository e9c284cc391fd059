"""What tables and report highlight. Changing it reruns no cell."""

from async_rollout.config.block import Block, key


class ReportConfig(Block):
    """Headlines and thresholds."""

    k_headline: int = key(
        4,
        "the K that the report's first sentences compare with sync",
        env="K_HEADLINE",
        theirs="2",
        why="the largest K of the demo",
        ge=0,
    )
    pass_threshold: dict[str, float] = key(
        lambda: {"sort": 0.6},
        "pass rate by dataset that counts as reached (others: 0.10)",
        env="PASS_THRESHOLD_GSM8K, PASS_THRESHOLD_CODING",
        theirs="0.10",
        why="by dataset in one key; `sort` starts above 0.10",
    )
    window: int | None = key(
        None,
        "updates a row of table `windowed_accuracy`; when empty: a tenth of the run",
        unit="updates",
        ge=1,
    )
