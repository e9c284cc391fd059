"""The samples that are being decoded, one row of numpy arrays each.

Busy rows all have their prefix in the KV cache. Rows below `top` that are not busy are
holes: a forward computes them in vain, so they are filled by the next samples or closed by
moving the last ones down. What a free row still holds is stale but valid input.
"""

from collections.abc import Sequence

import numpy as np

from async_rollout.policy.noise import stream_keys
from async_rollout.types import FinishReason, SampleId, SampleRequest, Trajectory


class Slots:
    """State of the running samples; rows are arrays of row numbers throughout."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seed = seed
        self.requests: list[SampleRequest | None] = [None] * size
        self.busy = np.zeros(size, dtype=bool)
        self.conversing = np.zeros(size, dtype=bool)  # an environment may answer
        self.streams = np.zeros(size, dtype=np.uint64)
        self.prompt_length = np.ones(size, dtype=np.int64)
        self.count = np.zeros(size, dtype=np.int64)  # response tokens so far
        self.limit = np.zeros(size, dtype=np.int64)  # and at most
        self.newest = np.zeros(size, dtype=np.int64)  # token that the next forward is fed
        self.tokens = np.zeros((size, 0), dtype=np.int32)
        self.logprobs = np.zeros((size, 0), dtype=np.float32)
        self.versions = np.zeros((size, 0), dtype=np.int32)
        self.observed = np.zeros((size, 0), dtype=bool)  # written by an environment

    @property
    def rows(self) -> np.ndarray:
        """The busy rows, ascending."""
        return self.busy.nonzero()[0]

    @property
    def cached(self) -> np.ndarray:
        """Tokens of each row that belong in the KV cache: all but the newest."""
        return self.prompt_length + self.count - 1

    def place(self, requests: Sequence[SampleRequest]) -> np.ndarray:
        """Give each request the first free row; returns the rows."""
        rows = (~self.busy).nonzero()[0][: len(requests)]
        self._widen(max(request.max_new_tokens for request in requests))
        self.streams[rows] = stream_keys(self.seed, [request.id for request in requests])
        self.prompt_length[rows] = [len(request.prompt_ids) for request in requests]
        self.newest[rows] = [request.prompt_ids[-1] for request in requests]
        self.limit[rows] = [request.max_new_tokens for request in requests]
        self.conversing[rows] = [bool(request.environment) for request in requests]
        self.count[rows] = 0
        self.busy[rows] = True
        for row, request in zip(rows.tolist(), requests, strict=True):
            self.requests[row] = request
        return rows

    def close_holes(self) -> tuple[np.ndarray, np.ndarray]:
        """Move the last samples down into free rows; returns (source, target) rows."""
        n = int(self.busy.sum())
        source = n + self.busy[n:].nonzero()[0]
        target = (~self.busy[:n]).nonzero()[0]
        if source.size:
            for array in (
                self.conversing, self.streams, self.prompt_length, self.count, self.limit,
                self.newest, self.tokens, self.logprobs, self.versions, self.observed,
            ):  # fmt: skip
                array[target] = array[source]
            for old, new in zip(source.tolist(), target.tolist(), strict=True):
                self.requests[new] = self.requests[old]
            self.busy[target] = True
            self.release(source)
        return source, target

    def append(self, rows: np.ndarray, tokens: np.ndarray, logprobs: np.ndarray, version: int) -> None:
        """One more response token for each of these rows."""
        at = self.count[rows]
        self.tokens[rows, at] = tokens
        self.logprobs[rows, at] = logprobs
        self.versions[rows, at] = version
        self.observed[rows, at] = False
        self.newest[rows] = tokens
        self.count[rows] += 1

    def observe(self, row: int, tokens: np.ndarray, version: int) -> None:
        """What an environment wrote after a row's newest token; a certainty, so log-probabilities are 0."""
        place = slice(self.count[row], self.count[row] + len(tokens))
        self.tokens[row, place] = tokens
        self.logprobs[row, place] = 0.0
        self.versions[row, place] = version
        self.observed[row, place] = True
        self.newest[row] = tokens[-1]
        self.count[row] += len(tokens)

    def response(self, row: int) -> np.ndarray:
        """(L,) ids of the response so far, observations included."""
        return self.tokens[row, : self.count[row]]

    def prefix(self, row: int) -> np.ndarray:
        """Prompt and response so far, without the newest token."""
        return np.concatenate([self.requests[row].prompt_ids, self.response(row)])[:-1]

    def trajectory(self, row: int, reason: FinishReason) -> Trajectory:
        """What a finished row holds; the row stays until released."""
        request, n = self.requests[row], self.count[row]
        return Trajectory(
            id=request.id,
            prompt_ids=request.prompt_ids,
            response_ids=self.tokens[row, :n].copy(),
            behavior_logprobs=self.logprobs[row, :n].copy(),
            versions=self.versions[row, :n].copy(),
            action_mask=~self.observed[row, :n],
            finish_reason=reason,
        )

    def release(self, rows: np.ndarray) -> None:
        """Free rows."""
        self.busy[rows] = False
        for row in rows.tolist():
            self.requests[row] = None

    def running(self) -> list[SampleId]:
        """Ids of the busy rows."""
        return [request.id for request in self.requests if request is not None]

    def _widen(self, width: int) -> None:
        missing = width - self.tokens.shape[1]
        if missing > 0:
            self.tokens, self.logprobs, self.versions, self.observed = (
                np.pad(array, ((0, 0), (0, missing)))
                for array in (self.tokens, self.logprobs, self.versions, self.observed)
            )
