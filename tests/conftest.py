"""Runs that several test files look at; each is made once, when first asked for."""

from functools import partial

import pytest


@pytest.fixture(scope="session")
def areal_cell(tmp_path_factory):
    """Mode areal, K = 2, two rollout workers, and a judge that fails on some answers."""
    import unreliable_judge
    from async_rollout.rewards.pool import RewardPool
    from async_rollout.runners import areal
    from tiny_cells import cell_config, run_tiny

    config = cell_config(
        k=2,
        train={"updates": 30},
        rollout={"workers": 2, "slots": 8, "min_decode_steps": 2},
        reward={"retries": 0, "max_failures": 10**6},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(areal, "RewardPool", partial(RewardPool, judge=unreliable_judge.PATH))
        return run_tiny(config, tmp_path_factory.mktemp("areal"))
