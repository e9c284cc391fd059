"""When a run that has lost what it knew is ended early."""

from async_rollout.config.block import Block, key


class CollapseConfig(Block):
    """Ends a cell, with status `collapsed`, whose training pass rate stays far below its start.

    The start is the pass rate of the first `window` updates; every later `window` updates are judged.
    """

    windows: int = key(
        0, "successive windows below the share that end the run; 0: never ended", unit="windows", ge=0
    )
    window: int = key(10, "updates of a window", unit="updates", ge=1)
    share: float = key(0.5, "share of the pass rate at the start", gt=0, lt=1)
