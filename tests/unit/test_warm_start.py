"""The embedded model: its tokenizer, its determinism, and that it loads as any other model."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from async_rollout.config.model import WarmStartConfig
from async_rollout.learner.characters import build_tokenizer
from async_rollout.learner.curriculum import curriculum_of
from async_rollout.learner.warm_start import warm_start
from async_rollout.tasks.coding import HELD_OUT, TRAIN

FEW = WarmStartConfig(steps=4, batch=16)


@pytest.fixture(scope="module")
def model_directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("models") / "embedded"
    warm_start(FEW, directory)
    return directory


def weights(directory) -> dict[str, torch.Tensor]:
    return AutoModelForCausalLM.from_pretrained(directory).state_dict()


def test_tokenizer_round_trips_one_token_a_character(model_directory):
    for tokenizer in (build_tokenizer(), AutoTokenizer.from_pretrained(model_directory)):
        assert len(tokenizer) == 99
        for text in ("5391807>", " #0135789", "a\nb  c , . don't ~", "".join(map(chr, range(32, 127)))):
            ids = tokenizer(text)["input_ids"]
            assert ids[0] == tokenizer.bos_token_id
            assert len(ids) == len(text) + 1
            assert tokenizer(text, add_special_tokens=False)["input_ids"] == ids[1:]
            assert tokenizer.decode(ids, skip_special_tokens=True) == text
        assert tokenizer.decode(tokenizer("é£")["input_ids"], skip_special_tokens=True) == "??"


def test_result_is_recorded_beside_the_model(model_directory):
    result = json.loads((model_directory / "warm_start.json").read_text())
    assert result["warm_start"] == FEW.model_dump(mode="json")
    assert result["parameters"] == sum(
        p.numel() for p in AutoModelForCausalLM.from_pretrained(model_directory).parameters()
    )
    assert 0 <= result["pass_rate_greedy"] <= 1
    assert 0 < result["loss"] < 10


def test_same_seed_same_bits_other_seed_other_weights(model_directory, tmp_path):
    torch.manual_seed(123)  # the caller's stream is neither used nor moved
    expected = torch.rand(3, generator=torch.Generator().manual_seed(123))
    warm_start(FEW, tmp_path / "again")
    assert torch.equal(torch.rand(3), expected)
    warm_start(FEW.model_copy(update={"seed": 1}), tmp_path / "other")
    first, again, other = (weights(d) for d in (model_directory, tmp_path / "again", tmp_path / "other"))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["model.embed_tokens.weight"], other["model.embed_tokens.weight"])


def test_training_lowers_the_loss(tmp_path):
    losses = []
    config = WarmStartConfig(steps=40, batch=16)
    warm_start(config, tmp_path / "model", progress=lambda step, loss: losses.append(loss))
    assert len(losses) == 40
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])


def test_directory_is_replaced_whole_or_not_at_all(tmp_path):
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "stale.txt").write_text("old")

    def fail(step: int, loss: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        warm_start(FEW, directory, progress=fail)
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert (directory / "stale.txt").exists()
    warm_start(FEW, directory)
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert not (directory / "stale.txt").exists()
    assert (directory / "config.json").exists()


def test_programs_are_learned_from_demonstrations_of_training_problems_alone(tmp_path):
    curriculum = curriculum_of(WarmStartConfig(task="coding", corrupted_share=0.0))
    pairs = curriculum.draw(np.random.default_rng(0), 200)
    right = {program for problem in TRAIN for program in problem.programs(right=True)}
    assert {program for _, (program,) in pairs} <= right
    assert not {prompt for prompt, _ in pairs} & {question.prompt for question in curriculum.questions}
    longest = max(len(program) for problem in (*TRAIN, *HELD_OUT) for program in problem.programs(right=True))
    assert longest < curriculum.answer_tokens
    losses = []
    config = WarmStartConfig(task="coding", steps=12, batch=8)
    result = warm_start(config, tmp_path / "model", progress=lambda step, loss: losses.append(loss))
    assert (result["held_out"], len(losses)) == (6, 12)
    assert losses[-1] < losses[0]


def test_the_dataset_decides_what_is_shown_unless_the_sweep_does():
    shown = {name: WarmStartConfig().on(name).task for name in ("sort", "coding", "calculator", "gsm8k")}
    assert shown == {"sort": "sort", "coding": "coding", "calculator": "calculator", "gsm8k": "sort"}
    assert WarmStartConfig(task="coding").on("sort").task == "coding"
