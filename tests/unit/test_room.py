"""A prompt that leaves no room for its response is told of before anything is trained or drawn."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from transformers import GPT2Config

from async_rollout.config.errors import ConfigError
from async_rollout.config.model import WarmStartConfig
from async_rollout.doctor.prompts import prompts_check
from async_rollout.learner.characters import build_tokenizer
from async_rollout.learner.warm_start import build_model
from async_rollout.policy.room import check_room, most_positions
from async_rollout.runners import areal, lagged, sync
from async_rollout.runners.model_evaluation import evaluate_model
from async_rollout.tasks.jsonl import write_tasks
from async_rollout.tasks.prepare import prepare
from async_rollout.tasks.splits import read_splits, split_paths
from async_rollout.types import Prompt
from tiny_cells import cell_config

POSITIONS = 4096  # of the embedded model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The embedded model's directory; it has learned nothing."""
    path = tmp_path_factory.mktemp("model")
    small = {"hidden_size": 16, "layers": 1, "heads": 2, "kv_heads": 2, "intermediate_size": 32}
    tokenizer = build_tokenizer()
    build_model(WarmStartConfig(**small), tokenizer).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(params=["train", "held_out"])
def data(request, tmp_path):
    """Tasks on disk; the last one of one split is too long."""
    path = tmp_path / "data"
    prepare("sort", cell_config().data, path)
    splits = read_splits(path, cell_config().data)
    for file, tasks in zip(split_paths(path), (splits.train, splits.held_out), strict=True):
        long = replace(tasks[-1], task_id="too-long", prompt="1 " * (POSITIONS // 2))
        write_tasks(file, [*tasks[:-1], long] if tasks is getattr(splits, request.param) else tasks)
    return path


def config_of(model, response: int, **blocks):
    """A run of the model with responses of at most so many tokens."""
    sampling = {"max_new_tokens": response}
    return cell_config(model={"backend": "causal_lm", "id": str(model)}, sampling=sampling, **blocks)


def prompt(task_id: str, length: int) -> Prompt:
    return Prompt(task_id, np.ones(length, np.int32))


def test_the_last_position_may_be_used_and_no_more(model):
    fits, over = prompt("fits", POSITIONS - 10), prompt("over", POSITIONS - 9)
    run = config_of(model, 10)
    assert "task fits" in check_room([prompt("short", 3), fits], run)
    with pytest.raises(ConfigError) as raised:
        check_room([fits, over, prompt("short", 3)], run)
    (problem,) = raised.value.problems
    assert (problem.key, problem.value) == ("sampling.max_new_tokens", 10)
    assert "task over, a prompt of 4087 tokens, may need 4097 positions" in problem.what
    assert "the model has 4096 (so for 1 of 3 prompts)" in problem.what
    assert problem.fix.startswith("at most 9,")


def test_the_limit_is_the_models_own(model, tmp_path):
    GPT2Config(n_positions=77).save_pretrained(tmp_path)  # which has another name for it
    assert most_positions(config_of(model, 1).model) == POSITIONS
    assert most_positions(config_of(tmp_path, 1).model) == 77
    assert most_positions(cell_config().model) is None
    check_room([prompt("long", 10_000)], cell_config())


class Crew:
    """Stands in for the supervisor: nothing is spawned, and nobody may be waited for."""

    def __init__(self, *_):
        pass

    def start(self, role, *_, **__):
        return role

    def stop(self):
        pass

    def wait_ready(self):
        raise AssertionError("the run went on")


@pytest.mark.parametrize("runner", [sync, lagged, areal])
def test_no_run_begins(monkeypatch, tmp_path, model, data, runner):
    """Whichever split has the long prompt, and in whatever mode."""
    mode = runner.__name__.rpartition(".")[2]
    monkeypatch.setattr(areal, "start_trainers", lambda *_: "trainer-0")
    keeper = SimpleNamespace(version=0, place=None, state=None)
    crew = {"crew": Crew} if runner is areal else {}
    with pytest.raises(ConfigError, match="task too-long, a prompt of 4"):
        runner.run(config_of(model, 16, mode=mode, k=0), tmp_path, data, None, None, keeper, **crew)
    assert not (tmp_path / "snapshots").exists()


def test_no_evaluation_begins(tmp_path, model, data):
    """The split that is asked for counts."""
    for split, name in (("train", "train.jsonl"), ("eval", "eval.jsonl")):
        if "too-long" in (data / name).read_text():
            with pytest.raises(ConfigError, match="task too-long, a prompt of 4"):
                evaluate_model(config_of(model, 16), data, tmp_path, split=split, kind="greedy", samples=1)


def test_the_doctor_tells_it_too(model):
    fits, over = prompts_check(config_of(model, 16)), prompts_check(config_of(model, POSITIONS))
    assert (fits.check, fits.level, over.level) == ("prompts", "ok", "fail")
    assert "of the model's 4096" in fits.text
    assert "sampling.max_new_tokens = 4096: task " in over.text
    assert "Fix: at most " in over.text
