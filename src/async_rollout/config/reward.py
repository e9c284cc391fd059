"""Who judges answers, and how strictly."""

from async_rollout.config.block import Block, key


class RewardConfig(Block):
    """The judges."""

    workers: int = key(1, "judging processes", ge=1)
    timeout_sec: float = key(10, "for one answer, then its worker is replaced", unit="s", gt=0)
    retries: int = key(2, "further tries after a failure of the judge itself", ge=0)
    max_failures: int = key(16, "answers that no try could judge, before the run stops", unit="samples", ge=0)
    strict: bool = key(
        False, "a numeric answer must be marked (`####`, a box or `<answer>`); else the last number counts"
    )
    math_timeout_sec: float = key(
        3, "to compare one MATH answer with the gold answer, then it is wrong", unit="s", gt=0
    )
