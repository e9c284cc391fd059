"""When and on what the policy is evaluated."""

from typing import Literal

from async_rollout.config.block import Block, key


class EvaluationConfig(Block):
    """Held-out pass rates of the policy as the run went on; they take no time from it."""

    when: Literal["after", "paused"] = key(
        "after",
        "weights are set aside while the run goes on and evaluated after its last commit, or the whole run "
        "pauses, its clock stopped, and evaluates at once",
    )
    every: int = key(
        10, "updates between two evaluations; version 0 and the last are always there", unit="updates", ge=1
    )
    seed: int = key(0, "seed of the evaluation's own sampling streams", ge=0)
