"""Mode `sync`: generate B groups, have them judged, train, repeat; one process, one policy.

Every token is sampled by the policy that is about to be trained.
"""

from pathlib import Path

from async_rollout.config.run import RunConfig
from async_rollout.runners.one_process import Loop, run_in_one_process
from async_rollout.runners.outcome import Outcome
from async_rollout.runtime.keeper import Keeper
from async_rollout.runtime.progress import Progress
from async_rollout.runtime.recorder import Recorder


def run(
    config: RunConfig, out: Path, data: Path, recorder: Recorder, progress: Progress, keeper: Keeper
) -> Outcome:
    """Run to the last commit, then evaluate the snapshots."""
    return run_in_one_process(config, out, data, recorder, progress, keeper, schedule)


def schedule(loop: Loop) -> None:
    """Each batch is trained by the policy that drew it."""
    while not loop.done:
        loop.train(loop.generate())
        loop.keep()
