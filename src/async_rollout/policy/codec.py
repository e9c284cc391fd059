"""Text to ids and back with a model's own tokenizer; needs no weights.

The stop ids are a set: the tokenizer's end of sequence and all that the model's
generation_config names. Nothing else of generation_config is ever used. The padding id may
be a stop id: what is padding is said by masks, never by ids.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from jinja2 import TemplateError
from transformers import AutoTokenizer, PreTrainedTokenizerBase
from transformers.utils.hub import cached_file

from async_rollout.tasks.prompts import plain


@dataclass(frozen=True, slots=True)
class TokenizerCodec:
    """Codec (see interface.py) over a Hugging Face tokenizer."""

    tokenizer: PreTrainedTokenizerBase
    stop_ids: frozenset[int]
    pad_id: int

    @classmethod
    def load(cls, model_id: str, trust_remote_code: bool = False) -> Self:
        """From a local directory or a hub id. Raises ValueError if nothing ends a response."""
        tokenizer = AutoTokenizer.from_pretrained(model_id, trust_remote_code=trust_remote_code)
        stops = as_ids(tokenizer.eos_token_id) | _generation_stops(model_id)
        if not stops:
            raise ValueError(
                f"model.id = {model_id}: neither its tokenizer nor its generation_config names an "
                "end-of-sequence token, so no response could end; set eos_token_id in generation_config.json"
            )
        pad = tokenizer.pad_token_id
        return cls(tokenizer, stops, min(stops) if pad is None else pad)

    def render(self, system: str, user: str) -> str:
        """The chat template's text if the tokenizer has one, else the plain text.

        A template that takes no system turn gets the instruction at the head of the user's.
        """
        if self.tokenizer.chat_template is None:
            return plain(system, user)
        asked = {"role": "user", "content": user}
        if not system:
            return self._templated([asked])
        try:
            return self._templated([{"role": "system", "content": system}, asked])
        except TemplateError:
            return self._templated([{"role": "user", "content": plain(system, user)}])

    def encode(self, prompt: str) -> np.ndarray:
        """Ids (P,) int32 of a text from `render`; special tokens are added where no template wrote them."""
        written = self.tokenizer.chat_template is not None
        return np.array(self.tokenizer(prompt, add_special_tokens=not written)["input_ids"], dtype=np.int32)

    def _templated(self, turns: list[dict[str, str]]) -> str:
        return self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)

    def encode_observation(self, text: str) -> np.ndarray:
        """Ids (n,) int32 of what an environment writes into a response; no special tokens."""
        return np.array(self.tokenizer(text, add_special_tokens=False)["input_ids"], dtype=np.int32)

    def decode(self, response_ids: Sequence[int]) -> str:
        """Text of a response without stop and padding tokens."""
        skipped = self.stop_ids | {self.pad_id}
        ids = [int(i) for i in response_ids if int(i) not in skipped]
        return self.tokenizer.decode(ids, clean_up_tokenization_spaces=False)


def as_ids(value: int | list[int] | None) -> frozenset[int]:
    """`eos_token_id` as configs write it (nothing, one id, a list) as a set."""
    if value is None:
        return frozenset()
    return frozenset([value] if isinstance(value, int) else value)


def _generation_stops(model_id: str) -> frozenset[int]:
    """Stop ids of generation_config.json or, as transformers reads it, of config.json where there is none."""
    for name in ("generation_config.json", "config.json"):
        path = cached_file(model_id, name, _raise_exceptions_for_missing_entries=False)
        if path is not None:
            with open(path, encoding="utf-8") as file:
                return as_ids(json.load(file).get("eos_token_id"))
    return frozenset()
