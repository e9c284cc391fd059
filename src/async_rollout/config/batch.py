"""What one training step consumes."""

from async_rollout.config.block import Block, key


class BatchConfig(Block):
    """B prompt groups of G samples, in M minibatches."""

    groups: int = key(
        16,
        "B: prompt groups a training step consumes",
        unit="groups",
        env="UPDATE_BATCH",
        theirs="4",
        why="16 groups x 8 = 128 samples, theirs counts samples: advantages need whole groups",
        ge=1,
        le=65_536,
    )
    group_size: int = key(8, "G: samples drawn for one prompt", unit="samples", ge=1, le=4096)
    minibatches: int = key(2, "M: optimizer steps a batch is split into", unit="steps", ge=1)
