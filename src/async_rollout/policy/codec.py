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
from transformers import AutoTokenizer, PreTrainedTokenizerBase
from transformers.utils.hub import cached_file


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

    def encode(self, prompt: str) -> np.ndarray:
        """Prompt ids (P,) int32: the chat template's if the tokenizer has one, else the plain text's."""
        if self.tokenizer.chat_template is None:
            ids = self.tokenizer(prompt)["input_ids"]
        else:
            text = self.tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
            )
            ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]  # the template has written them
        return np.array(ids, dtype=np.int32)

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
