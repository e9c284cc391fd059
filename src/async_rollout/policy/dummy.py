"""The `dummy` backend: knows every answer and gives it in three samples of four.

It measures the machinery: nothing is computed and nothing can be learned. Whether a sample
is right is decided by its noise, so groups have spread; log-probabilities are 0 on both
sides; the one parameter lets weights be published and committed.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from async_rollout.config.run import RunConfig
from async_rollout.policy.answer_engine import AnswerEngine
from async_rollout.policy.candidates import candidates
from async_rollout.policy.char_codec import CharCodec
from async_rollout.policy.interface import Scores, ScoringBatch
from async_rollout.tasks.prompts import prompt_text
from async_rollout.tasks.task import Task
from async_rollout.types import SampleRequest

FILE = "dummy.safetensors"
RIGHT = 0.75  # of samples; greedy ones are always right


class DummyPolicy:
    """Policy (see interface.py) that needs no model."""

    def __init__(self, config: RunConfig, tasks: Sequence[Task], device: str = "cpu") -> None:
        self.codec = CharCodec()
        self._weight = torch.nn.Parameter(torch.zeros((), device=device))
        self._answers = {
            self.codec.encode(prompt_text(task, config.prompt)).tobytes(): tuple(
                self.codec.encode_response(text) for text in texts
            )
            for task, texts in zip(tasks, candidates(tasks), strict=True)
        }
        if (saved := Path(config.model.id) / FILE).exists():
            self._weight.data.copy_(load_file(saved)["weight"])

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """One scalar, which nothing depends on."""
        return {"weight": self._weight}

    def score(self, batch: ScoringBatch, temperature: float) -> Scores:
        """All 0, with gradient 0."""
        zeros = torch.zeros(batch.response_ids.shape, device=self._weight.device)
        return Scores(zeros + 0 * self._weight, zeros)

    def value_model(self, *, freeze_attention: bool) -> NoReturn:
        """Raises ValueError: there is no backbone to copy."""
        raise ValueError("the backends dummy and tabular have no backbone for a critic; use causal_lm")

    def engine(self, *, slots: int, seed: int, version: int, greedy: bool = False) -> AnswerEngine:
        """An engine that spells known answers."""

        def choose(request: SampleRequest, noise: float) -> tuple[np.ndarray, float]:
            right, *wrong = self._answers[request.prompt_ids.tobytes()]
            if greedy or noise < RIGHT:
                return right, 0.0
            return wrong[int((noise - RIGHT) / (1 - RIGHT) * len(wrong))], 0.0

        return AnswerEngine(choose, slots=slots, seed=seed, version=version)

    def save(self, directory: Path) -> None:
        """Write the parameter."""
        directory.mkdir(parents=True, exist_ok=True)
        save_file({"weight": self._weight.detach()}, directory / FILE)
