"""The interruptible decoding engine for causal language models.

One `step` is one forward over all running samples: each is fed its newest token and gets
the next one. The weights' version is read at that forward and stamps every token sampled
from its logits. New weights discard the KV cache; the running prefixes are computed again
before the next step, so every token is conditioned on its full prefix under the weights of
its version, while earlier tokens keep the log-probabilities they were sampled with.
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
from async_rollout.policy.prefill import distinct, prefill
from async_rollout.policy.sampling import NonFiniteLogit, Sampler
from async_rollout.policy.slots import Slots
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
    ) -> None:
        self.version = version
        self._forward = forward
        self._sampler = sampler
        self._stop_ids = np.array(sorted(stop_ids), dtype=np.int32)
        self._budget = prefill_tokens
        self._slots = Slots(slots, seed)
        self._cache = SlotCache(slots)
        self._most_positions = getattr(forward.model.config, "max_position_embeddings", None)

    @property
    def slots(self) -> int:
        """Samples that can be decoded at once."""
        return self._slots.size

    @property
    def free_slots(self) -> int:
        """Slots that `submit` can still fill."""
        return self.slots - int(self._slots.busy.sum())

    def running(self) -> list[SampleId]:
        """Samples that hold a slot."""
        return self._slots.running()

    def submit(self, requests: Iterable[SampleRequest]) -> None:
        """Give requests to free slots; they are prefilled in the next step."""
        requests = list(requests)
        if len(requests) > self.free_slots:
            raise ValueError(f"{len(requests)} samples submitted to {self.free_slots} free slots")
        for request in requests:
            self._check(request)
        self._slots.place(requests)

    def cancel(self, groups: set[int]) -> list[SampleId]:
        """Forget running samples of these groups; returns what was cancelled."""
        held = [(row, r.id) for row, r in enumerate(self._slots.requests) if r and r.id.group in groups]
        self._slots.release(np.array([row for row, _ in held], dtype=np.int64))
        return [sample_id for _, sample_id in held]

    @torch.inference_mode()
    def step(self) -> list[Trajectory]:
        """Sample one token for every running sample (prefilling new ones); returns the finished."""
        state = self._slots
        moves = state.close_holes()
        if moves[0].size:
            self._cache.move_rows(*moves)
        n = state.top
        if not n:
            return []
        cached, fresh = state.cached[:n], state.fresh[:n]
        self._cache.reserve(int(cached.max()), kept=int(cached[~fresh].max(initial=0)))
        if fresh.any():
            self._prefill(fresh.nonzero()[0])
        tokens, logprobs = self._draw(self._decode(n, cached), uniforms(state.streams[:n], state.count[:n]))
        state.append(n, tokens, logprobs, self.version)
        return self._collect(n, tokens)

    @torch.inference_mode()
    def weights_changed(self, version: int) -> Recompute:
        """The parameters now hold this version: recompute the KV cache of the running prefixes."""
        started = time.perf_counter()
        state = self._slots
        state.close_holes()  # the cache that would have to follow is discarded
        self.version = version
        self._cache.clear()
        rows = (state.busy & ~state.fresh).nonzero()[0]
        cached = state.cached[rows]
        self._cache.reserve(int(cached.max(initial=0)), kept=0)
        self._prefill(rows)
        return Recompute(len(rows), int(cached.sum()), time.perf_counter() - started)

    def _prefill(self, rows: np.ndarray) -> None:
        prefixes = distinct((row, self._slots.prefix(row)) for row in rows.tolist())
        prefill(self._forward, self._cache, prefixes, self._budget)
        self._slots.fresh[rows] = False

    def _decode(self, n: int, cached: np.ndarray) -> torch.Tensor:
        """Logits (n, V) that follow each row's newest token."""
        inputs = torch.from_numpy(np.stack([self._slots.last[:n], cached])).to(self._forward.device)
        ids, lengths = inputs[0], inputs[1]
        visible = masks.newest(lengths, int(cached.max()) + 1)
        logits = self._forward(ids[:, None], lengths[:, None], visible, keep=1, cache=self._cache)
        self._cache.advance()
        return logits[:, -1]

    def _draw(self, logits: torch.Tensor, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        try:
            return self._sampler.draw(logits, noise)
        except NonFiniteLogit as error:
            sample = self._slots.requests[error.row].id
            position = self._slots.count[error.row]
            raise FloatingPointError(
                f"{error} under policy version {self.version}, for response token {position} of {sample}"
            ) from error

    def _collect(self, n: int, tokens: np.ndarray) -> list[Trajectory]:
        state = self._slots
        stopped = np.isin(tokens, self._stop_ids)
        done = (stopped | (state.count[:n] >= state.limit[:n])).nonzero()[0]
        finished = [state.finish(row, "stop" if stopped[row] else "length") for row in done.tolist()]
        state.release(done)
        return finished

    def _check(self, request: SampleRequest) -> None:
        if not len(request.prompt_ids):
            raise ValueError(f"the prompt of {request.id} is empty")
        if request.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens of {request.id} is {request.max_new_tokens}; at least 1")
        needed = len(request.prompt_ids) + request.max_new_tokens
        if self._most_positions is not None and needed > self._most_positions:
            raise ValueError(
                f"{request.id} may need {needed} positions, the model has {self._most_positions}: "
                "shorten the prompt or sampling.max_new_tokens"
            )
