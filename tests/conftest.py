"""Runs that several test files look at; each is made once, when first asked for."""

import pytest


@pytest.fixture(scope="session")
def areal_cell(tmp_path_factory):
    """Mode areal, K = 2, two rollout workers, and judges that fail on some answers."""
    from async_rollout.runners import areal
    from tiny_cells import cell_config, run_tiny
    from unreliable_pool import UnreliablePool

    config = cell_config(
        k=2,
        train={"updates": 30},
        rollout={"workers": 2, "slots": 8, "min_decode_steps": 2},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(areal, "build_rewards", lambda paths, config, out: UnreliablePool(paths, config))
        return run_tiny(config, tmp_path_factory.mktemp("areal"))
