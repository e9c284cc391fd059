"""Mode `async`: the parts of `areal` as threads of one process.

A producer decodes with its own copy of the weights and a learner trains; what they exchange
is the same, and the main thread, which has answers judged, bounds the queue between them by
the same rules. They share one interpreter: only what torch computes runs at the same time,
so this is fast where kernels are long and slower than two processes where they are short.
"""

from pathlib import Path

from async_rollout.config.run import RunConfig
from async_rollout.runners import areal
from async_rollout.runners.outcome import Outcome
from async_rollout.runtime.keeper import Keeper
from async_rollout.runtime.progress import Progress
from async_rollout.runtime.recorder import Recorder
from async_rollout.runtime.threads import Threads


def run(
    config: RunConfig, out: Path, data: Path, recorder: Recorder, progress: Progress, keeper: Keeper
) -> Outcome:
    """Run to the last commit, evaluate the snapshots, end every thread."""
    return areal.run(config, out, data, recorder, progress, keeper, crew=Threads)
