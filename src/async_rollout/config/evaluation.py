"""When and on what the policy is evaluated."""

from async_rollout.config.block import Block, key


class EvaluationConfig(Block):
    """Weights are set aside while the run goes on and evaluated after its last commit."""

    every: int = key(
        10, "updates between two evaluations; version 0 and the last are always there", unit="updates", ge=1
    )
    seed: int = key(0, "seed of the evaluation's own sampling streams", ge=0)
