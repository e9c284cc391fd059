"""The `tabular` backend: a trainable categorical policy over candidate answers.

Each task has its right answer and one wrong answer of each kind (candidates.py). The logits of
a task are a bias by kind, shared by all tasks, plus the task's own row; so tasks that are
never trained improve too. The log-probability of the choice sits on the response's first
token; the characters that spell it out have log-probability 0.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from async_rollout.config.run import RunConfig
from async_rollout.policy.answer_engine import AnswerEngine
from async_rollout.policy.candidates import KINDS, candidates
from async_rollout.policy.char_codec import CharCodec
from async_rollout.policy.interface import Scores, ScoringBatch
from async_rollout.policy.sampling import NonFiniteLogit, Sampler
from async_rollout.tasks.prompts import prompt_text
from async_rollout.tasks.task import Task
from async_rollout.types import SampleRequest

FILE = "tabular.safetensors"


class TabularPolicy:
    """Policy (see interface.py) whose weights are two small tables."""

    def __init__(self, config: RunConfig, tasks: Sequence[Task], device: str = "cpu") -> None:
        self.codec = CharCodec()
        self._sampling = config.sampling
        self._responses: dict[str, list[np.ndarray]] = {}  # prompt: response ids by kind
        for task, texts in zip(tasks, candidates(tasks), strict=True):
            responses = [self.codec.encode_response(text) for text in texts]
            self._check_lengths(task, responses)
            self._responses[prompt_text(task, config.prompt)] = responses
        self._row = {prompt: row for row, prompt in enumerate(self._responses)}
        self._bias = torch.nn.Parameter(torch.zeros(KINDS, device=device))
        self._rows = torch.nn.Parameter(torch.zeros(len(self._row), KINDS, device=device))
        if (saved := Path(config.model.id) / FILE).exists():
            for name, value in load_file(saved).items():
                self.parameters()[name].data.copy_(value)

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """`bias` (kinds,) and `rows` (tasks, kinds)."""
        return {"bias": self._bias, "rows": self._rows}

    def score(self, batch: ScoringBatch, temperature: float) -> Scores:
        """The choice's log-probability and entropy on each first token, 0 elsewhere.

        Raises ValueError for a response that is none of its task's candidates.
        """
        rows, kinds = [], []
        for i in range(len(batch.prompt_ids)):
            prompt = self.codec.decode(batch.prompt_ids[i][batch.prompt_mask[i]])
            rows.append(self._row[prompt])
            kinds.append(self._kind(prompt, batch.response_ids[i][batch.response_mask[i]]))
        device = self._bias.device
        logits = self._bias + self._rows[torch.tensor(rows, device=device)]
        logprobs = (logits / temperature).log_softmax(dim=-1)
        chosen = logprobs.gather(-1, torch.tensor(kinds, device=device)[:, None])
        with torch.no_grad():
            entropy = -(logprobs.exp() * logprobs).sum(dim=-1, keepdim=True)
        padding = (0, batch.response_ids.shape[1] - 1)
        return Scores(torch.nn.functional.pad(chosen, padding), torch.nn.functional.pad(entropy, padding))

    def value_model(self, *, freeze_attention: bool) -> NoReturn:
        """Raises ValueError: there is no backbone to copy."""
        raise ValueError("the backends dummy and tabular have no backbone for a critic; use causal_lm")

    def engine(self, *, slots: int, seed: int, version: int, greedy: bool = False) -> AnswerEngine:
        """An engine that draws a candidate and spells it."""
        sampling = self._sampling
        sampler = Sampler(sampling.temperature, sampling.top_k, sampling.top_p, greedy)

        @torch.inference_mode()
        def choose(request: SampleRequest, noise: float) -> tuple[np.ndarray, float]:
            prompt = self.codec.decode(request.prompt_ids)
            logits = (self._bias + self._rows[self._row[prompt]])[None]
            try:
                kinds, logprobs = sampler.draw(logits, np.array([noise]))
            except NonFiniteLogit as error:
                raise FloatingPointError(f"{error} (a kind of answer), for {request.id}") from error
            return self._responses[prompt][kinds[0]], float(logprobs[0])

        return AnswerEngine(choose, slots=slots, seed=seed, version=version)

    def save(self, directory: Path) -> None:
        """Write both tables."""
        directory.mkdir(parents=True, exist_ok=True)
        save_file({name: p.detach() for name, p in self.parameters().items()}, directory / FILE)

    def _kind(self, prompt: str, response: np.ndarray) -> int:
        for kind, candidate in enumerate(self._responses[prompt]):
            if np.array_equal(candidate, response):
                return kind
        raise ValueError(f"{self.codec.decode(response)!r} is no candidate answer of the task {prompt!r}")

    def _check_lengths(self, task: Task, responses: list[np.ndarray]) -> None:
        longest = max(map(len, responses))
        if longest > self._sampling.max_new_tokens:
            raise ValueError(
                f"sampling.max_new_tokens = {self._sampling.max_new_tokens}: an answer to {task.task_id} "
                f"takes {longest} characters with its stop, and the tabular backend needs room for all of it"
            )
