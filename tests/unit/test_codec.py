import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from async_rollout.policy.codec import TokenizerCodec

WORDS = ["<bos>", "<eos>", "<pad>", "<end>", "user:", "assistant:", "two", "plus", "three"]
TEMPLATE = "<bos> {% for m in messages %}{{ m['role'] }}: {{ m['content'] }} {% endfor %}assistant:"


def _save(
    path: Path, *, pad: str | None = None, eos: str | None = "<eos>", template: str | None = None
) -> None:
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<pad>"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.post_processor = TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 0)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<bos>", eos_token=eos, pad_token=pad
    )
    fast.chat_template = template
    fast.save_pretrained(path)


def _config(path: Path, name: str, **content: object) -> None:
    (path / name).write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("written", "expected"), [(3, {1, 3}), ([3, 1], {1, 3}), ([3, 7, 8], {1, 3, 7, 8}), (None, {1})]
)
def test_stop_ids_are_the_union_of_tokenizer_and_generation_config(
    tmp_path: Path, written: int | list[int] | None, expected: set[int]
) -> None:
    _save(tmp_path)
    _config(tmp_path, "generation_config.json", eos_token_id=written)
    _config(tmp_path, "config.json", eos_token_id=5)  # overruled by generation_config.json
    assert TokenizerCodec.load(str(tmp_path)).stop_ids == expected


def test_config_json_stands_in_for_a_missing_generation_config(tmp_path: Path) -> None:
    _save(tmp_path, eos=None)
    _config(tmp_path, "config.json", eos_token_id=[3])
    assert TokenizerCodec.load(str(tmp_path)).stop_ids == {3}


def test_a_model_that_cannot_stop_is_refused(tmp_path: Path) -> None:
    _save(tmp_path, eos=None)
    with pytest.raises(ValueError, match=r"model\.id = .*eos_token_id"):
        TokenizerCodec.load(str(tmp_path))


def test_padding_may_be_a_stop_token(tmp_path: Path) -> None:
    _save(tmp_path, pad="<eos>")
    codec = TokenizerCodec.load(str(tmp_path))
    assert codec.pad_id == 1
    assert codec.pad_id in codec.stop_ids


def test_a_stop_token_serves_as_padding_where_there_is_none(tmp_path: Path) -> None:
    _save(tmp_path, pad=None)
    _config(tmp_path, "generation_config.json", eos_token_id=[3, 1])
    assert TokenizerCodec.load(str(tmp_path)).pad_id == 1


def test_plain_prompts_get_the_tokenizers_special_tokens(tmp_path: Path) -> None:
    _save(tmp_path)
    codec = TokenizerCodec.load(str(tmp_path))
    assert codec.render("", "plus three") == "plus three"
    assert codec.render("two", "plus three") == "two\n\nplus three"
    assert codec.encode(codec.render("two", "plus three")).tolist() == [0, 6, 7, 8]


def test_chat_prompts_get_the_templates_special_tokens_once(tmp_path: Path) -> None:
    _save(tmp_path, template=TEMPLATE)
    codec = TokenizerCodec.load(str(tmp_path))
    assert codec.render("", "plus three") == "<bos> user: plus three assistant:"
    assert codec.render("two", "plus three") == "<bos> system: two user: plus three assistant:"
    assert codec.encode(codec.render("", "two plus three")).tolist() == [0, 4, 6, 7, 8, 5]


def test_a_template_without_system_turn_gets_the_instruction_in_the_users(tmp_path: Path) -> None:
    refuses = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}" + TEMPLATE
    )
    _save(tmp_path, template=refuses)
    codec = TokenizerCodec.load(str(tmp_path))
    assert codec.render("two", "plus three") == "<bos> user: two\n\nplus three assistant:"


def test_decoding_drops_stop_and_padding_only(tmp_path: Path) -> None:
    _save(tmp_path, pad="<pad>")
    _config(tmp_path, "generation_config.json", eos_token_id=[3])
    codec = TokenizerCodec.load(str(tmp_path))
    assert codec.decode([6, 7, 8, 3]).split() == ["two", "plus", "three"]
    assert codec.decode([6, 1, 2, 2]).split() == ["two"]
    assert codec.decode([0, 6]).split() == ["<bos>", "two"]  # what else the model wrote, it wrote
