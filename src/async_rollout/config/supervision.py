"""Patience of the run with its own processes."""

from async_rollout.config.block import Block, key


class SupervisionConfig(Block):
    """Time limits of start-up and shutdown, and how often a worker may die."""

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
    step_timeout_sec: float = key(
        3600,
        "a trainer worker or parameter service that has not answered by then is hung: the run stops",
        unit="s",
        gt=0,
    )
    restarts: int = key(3, "rollout workers that may be replaced in a run when killed; then it stops", ge=0)
