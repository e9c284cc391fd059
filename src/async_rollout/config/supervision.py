"""Patience of the run with its own processes."""

from async_rollout.config.block import Block, key


class SupervisionConfig(Block):
    """Time limits of start-up, shutdown and judging."""

    setup_timeout_sec: float = key(
        900,
        "a worker that is not ready by then stops the run",
        unit="s",
        env="AREAL_SETUP_TIMEOUT_SEC",
        theirs="900",
        gt=0,
    )
    setup_poll_sec: float = key(
        5,
        "between two notices of who is not ready",
        unit="s",
        env="AREAL_SETUP_POLL_SEC",
        theirs="5",
        gt=0,
    )
    heartbeat_sec: float = key(
        5, "between two progress lines", unit="s", env="AREAL_HEARTBEAT_SEC", theirs="5", gt=0
    )
    shutdown_sec: float = key(5, "a worker gets to end by itself", unit="s", gt=0)


class RewardConfig(Block):
    """Who judges answers."""

    workers: int = key(1, "judging processes", ge=1)
    timeout_sec: float = key(10, "for one answer, then its worker is replaced", unit="s", gt=0)
    retries: int = key(2, "further tries after a failure of the judge itself", ge=0)
    max_failures: int = key(16, "answers that no try could judge, before the run stops", unit="samples", ge=0)
