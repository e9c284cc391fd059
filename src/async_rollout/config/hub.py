"""Where what comes from the hub is kept. Changing it reruns no cell."""

from async_rollout.config.block import Block, key


class HubConfig(Block):
    """Models and datasets are fetched once, before any cell runs; cells run with the hub switched off."""

    home: str | None = key(
        None,
        "directory of the hub's cache, as HF_HOME names it; when empty, that variable or its default",
        env="HF_HOME",
        min_length=1,
    )
