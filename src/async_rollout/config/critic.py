"""The critic that `advantage.name: gae` needs (docs/design.md, section 6)."""

from async_rollout.config.block import Block, key


class CriticConfig(Block):
    """A copy of the initial policy's backbone with a scalar head, trained beside the policy."""

    passes: int = key(
        2, "N_c: passes over a batch, each in M minibatches, before the policy's own steps", ge=1
    )
    lr_factor: float = key(5.0, "its learning rate ÷ the policy's (`optim.lr`)", gt=0)
    clip: float = key(
        0.5, "a value moves at most so far from where the batch found it, as the loss sees it", gt=0
    )
    warmup_updates: int = key(
        10, "updates at the start that train the critic alone; each ends in a commit", unit="updates", ge=0
    )
    freeze_attention: bool = key(False, "keep the attention layers as they were copied")
