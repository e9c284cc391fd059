"""Who samples."""

from typing import Literal

from async_rollout.config.block import Block, Device, key


class RolloutConfig(Block):
    """Rollout workers and their decoding engines."""

    workers: int = key(1, "rollout processes", ge=1, le=250)
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
        "samples that one worker decodes at once; when empty: all B·G in modes `sync` and `lagged`, "
        "three eighths of them (at least G) where generation and training overlap",
        unit="samples",
        ge=1,
        le=65_536,
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
    update: Literal["interrupt", "drain", "keep_kv"] = key(
        "interrupt",
        "what newer weights do to running samples: `interrupt` (they go on, their cache computed anew), "
        "`drain` (they end under the old weights, and no slot is refilled before), `keep_kv` (they go on "
        "with the old cache: cheap, but no policy's distribution)",
    )
    max_recompute_share: float = key(
        0.5,
        "largest share of a worker's time that reloading may take: after a reload of c seconds the next "
        "is at least c·(1/share - 1) seconds away",
        gt=0,
        le=1,
    )
    sample_timeout_sec: float = key(
        1800,
        "a sample that takes longer since it was handed out is drawn again, with another stream; a worker "
        "that was silent all that time is replaced",
        unit="s",
        gt=0,
    )
    sample_attempts: int = key(
        3, "times that a sample is drawn, when it is late or lost, before its group is rejected", ge=1
    )
    prefill_tokens: int = key(16384, "tokens of one prefill forward, padding included", unit="tokens", ge=16)
    threads: int = key(1, "compute threads a worker", ge=1)
    weights: Literal["shared_memory", "disk"] = key(
        "shared_memory",
        "how new weights reach the workers: through memory that they share with the trainer, or as a file "
        "for workers that share only a file system",
    )


Order = Literal["deadline", "completed", "strict"]


class StalenessConfig(Block):
    """In which order complete groups are handed to the trainer."""

    order: Order = key(
        "deadline",
        "`deadline`: the oldest complete groups, but waiting where otherwise something would have to "
        "be dropped; `completed`: the oldest complete groups at once, dropping what gets too old (biased "
        "towards short answers); `strict`: in order of submission",
    )
