"""The interruptible decoding engine for causal language models.

One `step` is one forward over all running samples: each is fed its newest token and gets
the next one. The weights' version is read at that forward and stamps every token sampled
from its logits. New weights discard the KV cache; the running prefixes are computed again
before the next step, so every token is conditioned on its full prefix under the weights of
its version, while earlier tokens keep the log-probabilities they were sampled with.

Where a sample's turn ends, its environment may write tokens of its own: they join the row and
its cache in one forward of just these tokens, under the weights of that step, and count towards
`max_new_tokens`. An observation that would leave no room for a token after it ends the sample
instead (`length`), so a response never ends with an observation.

A prefill costs about as much as a step, however few prompts it takes. So submitted samples
wait until their idle slots have cost one step together (the ski-rental rule: never more
than twice the best that foresight could do), and take part in any recompute before that.
"""

import time
from collections.abc import Iterable

import numpy as np
import torch

from async_rollout.policy import masks
from async_rollout.policy.forward import Forward
from async_rollout.policy.interface import Recompute
from async_rollout.policy.kv_cache import SlotCache
from async_rollout.policy.noise import uniforms
from async_rollout.policy.prefill import Addition, append, distinct, prefill
from async_rollout.policy.sampling import NonFiniteLogit, Sampler
from async_rollout.policy.slots import Slots
from async_rollout.policy.turns import Observe
from async_rollout.types import SampleId, SampleRequest, Trajectory


class DecodingEngine:
    """Engine (see interface.py) over the current weights of one model."""

    def __init__(
        self,
        forward: Forward,
        *,
        slots: int,
        seed: int,
        version: int,
        sampler: Sampler,
        stop_ids: frozenset[int],
        prefill_tokens: int,
        observe: Observe | None = None,  # needed by requests with an environment
    ) -> None:
        self.version = version
        self._forward = forward
        self._sampler = sampler
        self._stop_ids = np.array(sorted(stop_ids), dtype=np.int32)
        self._budget = prefill_tokens
        self._observe = observe
        self._state = Slots(slots, seed)
        self._cache = SlotCache(slots)
        self._waiting: list[SampleRequest] = []
        self._idle = 0.0  # steps' worth of slots that waiting samples have left idle
        self._most_positions = getattr(forward.model.config, "max_position_embeddings", None)

    @property
    def slots(self) -> int:
        """Samples that can be decoded at once."""
        return self._state.size

    @property
    def free_slots(self) -> int:
        """Slots that `submit` can still fill."""
        return self.slots - int(self._state.busy.sum()) - len(self._waiting)

    def running(self) -> list[SampleId]:
        """Samples that hold a slot, waiting ones included."""
        return self._state.running() + [request.id for request in self._waiting]

    def submit(self, requests: Iterable[SampleRequest]) -> None:
        """Give requests to free slots; a later step prefills them."""
        requests = list(requests)
        if len(requests) > self.free_slots:
            raise ValueError(f"{len(requests)} samples submitted to {self.free_slots} free slots")
        for request in requests:
            self._check(request)
        self._waiting += requests

    def cancel(self, groups: set[int]) -> list[Trajectory]:
        """Forget running samples of these groups; returns what they had, those without a token left out."""
        state = self._state
        rows = [row for row in state.rows if state.requests[row].id.group in groups]
        cancelled = [state.trajectory(row, "cancelled") for row in rows if state.count[row]]
        state.release(np.array(rows, dtype=np.int64))
        self._waiting = [request for request in self._waiting if request.id.group not in groups]
        return cancelled

    @torch.inference_mode()
    def step(self) -> list[Trajectory]:
        """Sample one token for every sample whose prompt is prefilled; returns the finished."""
        if self._waiting and self._worth_a_prefill():
            self._admit()
        elif not self._waiting:
            self._cache.move_rows(*self._state.close_holes())
        rows = self._state.rows
        if not rows.size:
            return []
        logits = self._decode(rows)
        tokens, logprobs = self._draw(logits, rows)
        self._state.append(rows, tokens, logprobs, self.version)
        return self._collect(rows, tokens)

    @torch.inference_mode()
    def weights_changed(self, version: int, *, keep_cache: bool = False) -> Recompute:
        """The parameters now hold this version: recompute the KV cache of the running prefixes.

        `tokens` counts running prefixes only, not the waiting prompts that are prefilled along.
        With `keep_cache` the running samples go on with keys and values of the old weights.
        """
        started = time.perf_counter()
        self.version = version
        resumed = self._state.cached[self._state.rows]
        if keep_cache:
            return Recompute(len(resumed), 0, 0.0)
        if self._waiting:
            self._state.place(self._waiting)
            self._waiting, self._idle = [], 0.0
        rows = self._state.rows
        self._cache.reserve(int(self._state.cached[rows].max(initial=0)), kept=0)
        self._prefill(rows)
        return Recompute(len(resumed), int(resumed.sum()), time.perf_counter() - started)

    def _worth_a_prefill(self) -> bool:
        """Count this step's idle slots; True once they add up to a step (at once if nothing runs)."""
        waiting = len(self._waiting)
        self._idle += waiting / (waiting + int(self._state.busy.sum()))
        return self._idle >= 1.0

    def _admit(self) -> None:
        kept = int(self._state.cached[self._state.rows].max(initial=0))
        rows = self._state.place(self._waiting)
        self._waiting, self._idle = [], 0.0
        self._cache.reserve(max(kept, int(self._state.cached[rows].max())), kept)
        self._prefill(rows)

    def _prefill(self, rows: np.ndarray) -> None:
        prefixes = distinct((row, self._state.prefix(row)) for row in rows.tolist())
        prefill(self._forward, self._cache, prefixes, self._budget)

    def _decode(self, rows: np.ndarray) -> torch.Tensor:
        """Logits (rows, V) that follow each busy row's newest token."""
        n, cached = int(rows[-1]) + 1, self._state.cached
        past = int(cached[rows].max())
        self._cache.reserve(past, kept=past)
        inputs = torch.from_numpy(np.stack([self._state.newest[:n], cached[:n]])).to(self._forward.device)
        ids, lengths = inputs[0], inputs[1]
        visible = masks.newest(lengths, past + 1)
        logits = self._forward(ids[:, None], lengths[:, None], visible, keep=1, cache=self._cache)[:, -1]
        self._cache.advance()
        return logits if len(rows) == n else logits[torch.from_numpy(rows).to(logits.device)]

    def _draw(self, logits: torch.Tensor, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        state = self._state
        try:
            return self._sampler.draw(logits, uniforms(state.streams[rows], state.count[rows]))
        except NonFiniteLogit as error:
            row = rows[error.row]
            raise FloatingPointError(
                f"{error} under policy version {self.version}, "
                f"for response token {state.count[row]} of {state.requests[row].id}"
            ) from error

    def _collect(self, rows: np.ndarray, tokens: np.ndarray) -> list[Trajectory]:
        state = self._state
        stopped = (tokens[:, None] == self._stop_ids).any(axis=1)
        full = state.count[rows] >= state.limit[rows]
        observed = self._observations(rows[state.conversing[rows] & ~stopped & ~full])
        crowded = [row for row, ids in observed.items() if state.count[row] + len(ids) >= state.limit[row]]
        done = (stopped | full | np.isin(rows, crowded)).nonzero()[0]
        finished = [state.trajectory(rows[i], "stop" if stopped[i] else "length") for i in done.tolist()]
        state.release(rows[done])
        self._go_on({row: ids for row, ids in observed.items() if state.busy[row]})
        return finished

    def _observations(self, rows: np.ndarray) -> dict[int, np.ndarray]:
        """What environments write after the newest tokens of these rows, where they write anything."""
        state = self._state
        found = {
            row: self._observe(state.requests[row].environment, state.response(row)) for row in rows.tolist()
        }
        return {row: ids for row, ids in found.items() if ids is not None}

    def _go_on(self, observed: dict[int, np.ndarray]) -> None:
        """Append observations to their rows and, with the token before them, to the cache."""
        if not observed:
            return
        state = self._state
        kept = int(state.cached[state.rows].max())
        for row, ids in observed.items():
            state.observe(row, ids, self.version)
        self._cache.reserve(int(state.cached[state.rows].max()), kept)
        additions = [
            Addition(state.prefix(row)[-len(ids) :], row, int(state.cached[row]))
            for row, ids in observed.items()
        ]
        append(self._forward, self._cache, additions, self._budget)

    def _check(self, request: SampleRequest) -> None:
        if not len(request.prompt_ids):
            raise ValueError(f"the prompt of {request.id} is empty")
        if request.environment and self._observe is None:
            raise ValueError(f"{request.id} has environment {request.environment}, and the engine knows none")
        if request.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens of {request.id} is {request.max_new_tokens}; at least 1")
        needed = len(request.prompt_ids) + request.max_new_tokens
        if self._most_positions is not None and needed > self._most_positions:
            raise ValueError(
                f"{request.id} may need {needed} positions, the model has {self._most_positions}: "
                "shorten the prompt or sampling.max_new_tokens"
            )
