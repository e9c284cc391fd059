"""Runs that several test files look at; each is made once, when first asked for."""

import pytest
from hypothesis import settings

# How long an example takes says how busy the machine is.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


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
        patch.setattr(
            areal,
            "build_rewards",
            lambda paths, config, out: UnreliablePool(paths, config, trace=out / "trace"),
        )
        return run_tiny(config, tmp_path_factory.mktemp("areal"))


@pytest.fixture(scope="session")
def trainer_pair():
    """Call it with a function and its arguments: two trainers call it, their ranks first."""
    from trainers import two_trainers

    with two_trainers() as call:
        yield call


@pytest.fixture(scope="session")
def crashed_run(tmp_path_factory):
    """(what its attempts left and said, the run): mode areal, K = 2, ended at its third attempt."""
    from async_rollout.tasks.prepare import prepare
    from crashed import crash
    from runs import starting
    from tiny_cells import cell_config

    data = tmp_path_factory.mktemp("data")
    prepare("sort", cell_config().data, data)
    with starting(data, lambda: tmp_path_factory.mktemp("crashed")) as start:
        yield crash(start)
