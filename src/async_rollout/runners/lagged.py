"""Mode `lagged`: as `sync`, but a batch is trained exactly K versions after it was drawn.

A queue is filled with K batches by version 0; then each version draws a batch, and trains the
oldest. So batch n, trained at version n, is min(n, K) versions old: the first K batches are
younger, since there is no policy before version 0. Nothing depends on the machine's speed, and
K = 0 is `sync` bit for bit. What is drawn is trained: the last K versions draw nothing.
"""

from collections import deque
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
    """A first-in, first-out queue of K batches between drawing and training."""
    updates, lag = loop.config.train.updates, int(loop.config.k)
    queue = deque(loop.kept)
    if loop.version == 0:
        queue.extend(loop.generate() for _ in range(min(lag, updates)))
    while not loop.done:
        if loop.version + lag < updates:
            queue.append(loop.generate())
        groups = queue.popleft()
        loop.train(groups, waiting=sum(map(len, queue)))
        loop.keep(queue)
