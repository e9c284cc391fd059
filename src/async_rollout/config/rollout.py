"""Who samples."""

from typing import Literal

from async_rollout.config.block import Block, Device, key


class RolloutConfig(Block):
    """Rollout workers and their decoding engines."""

    workers: int = key(1, "rollout processes", ge=1)
    devices: list[Device] = key(
        lambda: ["cpu"],
        "devices, given to workers in turn",
        env="ROLLOUT_DEVICES",
        theirs="cuda:0",
        why="runs without a GPU",
        min_length=1,
    )
    slots: int | None = key(
        None,
        "samples that one worker decodes at once; when empty: all B·G in modes `sync` and `lagged`, a "
        "quarter of them (at least G) where generation and training overlap",
        unit="samples",
        ge=1,
    )
    prefetch_groups: int = key(
        1, "groups a worker holds beyond its free slots, so that it never waits for work", unit="groups", ge=0
    )
    min_decode_steps: int = key(
        8,
        "decode steps between two interruptions, so that a fast trainer cannot starve decoding",
        unit="steps",
        ge=1,
    )
    prefill_tokens: int = key(16384, "tokens of one prefill forward, padding included", unit="tokens", ge=16)
    threads: int = key(1, "compute threads a worker", ge=1)


class StalenessConfig(Block):
    """In which order complete groups are handed to the trainer."""

    order: Literal["deadline"] = key(
        "deadline",
        "`deadline`: the oldest complete groups, but waiting where otherwise something would have to "
        "be dropped",
    )
