"""How many tasks a data source gives."""

from async_rollout.config.block import Block, key


class DataConfig(Block):
    """Sizes, splits and their seed; the source itself is the sweep key `datasets`."""

    seed: int = key(0, "seed of the procedural tasks and of splits", ge=0)
    train_size: int = key(
        1024,
        "tasks to train on",
        unit="tasks",
        env="TRAIN_SIZE",
        theirs="128",
        why="60 updates without seeing a task twice",
        ge=1,
        le=10_000_000,
    )
    eval_size: int = key(
        256,
        "held-out tasks",
        unit="tasks",
        env="EVAL_SIZE",
        theirs="64",
        why="standard error of a pass rate below 0.04",
        ge=1,
        le=10_000_000,
    )
    revision: str = key("main", "branch, tag or commit of a dataset on the hub")
    task_limit: int | None = key(
        None, "use only the first n tasks of each split, in memory", unit="tasks", env="TASK_LIMIT", ge=1
    )
