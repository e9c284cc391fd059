"""One part of a run, in a process and on cores of its own, that does what it is told and says how fast."""

import multiprocessing
import os
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection

import numpy as np
import torch

from async_rollout.config.run import RunConfig
from async_rollout.learner.learner import Learner
from async_rollout.policy.registry import build_policy
from async_rollout.types import Group, Sample, SampleId, SampleRequest, Trajectory, Verdict

_SPAWN = multiprocessing.get_context("spawn")


class Part:
    """A policy that generates and learns; lives in the stage's process."""

    def __init__(self, config: RunConfig, prompts: Sequence[str]):
        self.config = config
        self.policy = build_policy(config, device="cpu")
        self.learner = Learner(config, self.policy, "cpu")
        self.prompts = [self.policy.codec.encode(prompt) for prompt in prompts]
        self.batch: list[Group] = []

    def requests(self, groups: Sequence[int]) -> list[SampleRequest]:
        """The samples of these groups; a group's prompt and lengths depend on its number alone."""
        size, limit = self.config.batch.group_size, self.config.sampling.max_new_tokens
        return [
            SampleRequest(SampleId(number, i), self.prompts[number % len(self.prompts)], limit)
            for number in groups
            for i in range(size)
        ]

    def decode(self, queue: list[SampleRequest], slots: int, until: float = float("inf")) -> list[Trajectory]:
        """Decode a queue, refilling slots, until it is empty or time is up; what is unfinished comes too."""
        engine = self.policy.engine(slots=slots, seed=self.config.seed, version=0)
        finished: list[Trajectory] = []
        while (queue or engine.free_slots < slots) and time.perf_counter() < until:
            starting, queue = queue[: engine.free_slots], queue[engine.free_slots :]
            engine.submit(starting)
            finished += engine.step()
        return finished + engine.cancel({sample.group for sample in engine.running()})

    def record(self) -> int:
        """Draw the batch that is trained from now on, half of it right; returns its tokens."""
        size = self.config.batch.group_size
        drawn = sorted(self.decode(self.requests(range(self.config.batch.groups)), 64), key=lambda t: t.id)
        samples = [Sample(t, "", Verdict(float(i % 2), "recorded")) for i, t in enumerate(drawn)]
        self.batch = [
            Group(n, str(n), tuple(samples[n * size : (n + 1) * size])) for n in range(len(samples) // size)
        ]
        return sum(len(t.response_ids) for t in drawn)

    def generate(self, seconds: float, slots: int) -> float:
        """Tokens/s of slots that are always full."""
        begun = time.perf_counter()
        done = self.decode(self.requests(range(100_000, 101_000)), slots, begun + seconds)
        tokens = sum(len(t.response_ids) for t in done)
        return tokens / (time.perf_counter() - begun)

    def train(self, seconds: float) -> float:
        """Tokens/s of batch after batch, proximal pass and all."""
        begun, tokens = time.perf_counter(), 0
        while time.perf_counter() < begun + seconds:
            tokens += self.learner.step(self.batch, 0).trained_tokens
        return tokens / (time.perf_counter() - begun)

    def generate_batch(self, share: slice) -> float:
        """Seconds for this share of the batch's groups, every sample in a slot of its own."""
        begun = time.perf_counter()
        queue = self.requests(range(self.config.batch.groups)[share])
        self.decode(queue, len(queue))
        return time.perf_counter() - begun

    def train_batch(self, share: slice) -> float:
        """Seconds for this share of the batch's groups."""
        begun = time.perf_counter()
        self.learner.step(self.batch[share], 0)
        return time.perf_counter() - begun


class Stage:
    """The other end of a part: `begin` an order, `end` it."""

    def __init__(self, config: RunConfig, prompts: Sequence[str]):
        self._connection, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(theirs, config, prompts), daemon=True)
        self._process.start()
        self.cores: set[int] = set()

    def begin(self, cores: set[int], name: str, *arguments: object) -> "Stage":
        """Have the part do something on these cores, with a thread for each."""
        self._connection.send((cores, name, arguments))
        return self

    def end(self) -> float:
        """What came of it."""
        return self._connection.recv()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()


def _serve(connection: Connection, config: RunConfig, prompts: Sequence[str]) -> None:
    np.seterr(all="raise", under="ignore")
    part = Part(config, prompts)
    while True:
        cores, name, arguments = connection.recv()
        os.sched_setaffinity(0, cores)
        torch.set_num_threads(len(cores))
        connection.send(getattr(part, name)(*arguments))
