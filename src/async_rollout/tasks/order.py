"""The order in which prompts are handed out: a fresh seeded permutation each epoch.

Which task submission n uses is a function of (tasks, seed, n) alone, so nothing but n need be
remembered to go on after a crash. Within an epoch every task comes up exactly once.
"""

import numpy as np


class TaskOrder:
    """Endless order over `tasks` tasks; a batch may span two epochs."""

    def __init__(self, tasks: int, seed: int):
        if tasks < 1:
            raise ValueError(f"an order needs at least one task, not {tasks}")
        self._tasks = tasks
        self._seed = seed
        self._epoch = -1
        self._permutation = np.empty(0, dtype=np.int64)

    def index(self, n: int) -> tuple[int, int]:
        """(epoch, index of the task) of submission n, both from 0."""
        epoch, place = divmod(n, self._tasks)
        if epoch != self._epoch:
            self._permutation = np.random.default_rng([self._seed, epoch]).permutation(self._tasks)
            self._epoch = epoch
        return epoch, int(self._permutation[place])
