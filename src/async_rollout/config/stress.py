"""Delays injected on purpose."""

from async_rollout.config.block import Block, key


class StressConfig(Block):
    """Delays injected on purpose, to press a run's schedule; what is trained stays right, only later."""

    judge_sec: float = key(
        0.0, "mean time that a verdict is held back, drawn from an exponential distribution", unit="s", ge=0
    )
    decode_sec: float = key(0.0, "pause after each decode step", unit="s", ge=0)
    commit_sec: float = key(0.0, "pause before each commit", unit="s", ge=0)
