"""Tasks of reasoning-gym and their verifiers (extra `reasoning`)."""

import json
import os
import sys
import time

import pytest

from async_rollout.config.data import DataConfig
from async_rollout.config.reward import RewardConfig
from async_rollout.rewards.judge import RewardError, build_judge
from async_rollout.rewards.reasoning import ReasoningJudge, extract
from async_rollout.rewards.sandbox import landlock
from async_rollout.tasks.jsonl import read_tasks, task_from_row
from async_rollout.tasks.prepare import prepare
from async_rollout.tasks.sources import load_source
from async_rollout.tasks.task import TaskError

NAMES = ("chain_sum", "gsm_symbolic", "countdown")


@pytest.fixture(scope="module")
def judge():
    pytest.importorskip("reasoning_gym")
    return ReasoningJudge([f"reasoning_gym:{name}" for name in NAMES], 2.0, strict=False)


def one(name):
    source = load_source(f"reasoning_gym:{name}", DataConfig(train_size=1, eval_size=1))
    return source.train[0], json.loads(source.train[0].gold_answer)["answer"]


@pytest.mark.parametrize("name", NAMES)
def test_the_gold_answer_passes_and_another_does_not(judge, name):
    task, gold = one(name)
    for text in (f"So <answer>{gold}</answer>.", f"<answer> {gold}", rf"\boxed{{{gold}}}", gold):
        assert judge(task, text).verdict == "pass"
    wrong = judge(task, f"<answer>{gold}</answer> or <answer>7 + 1</answer>")
    assert (wrong.verdict, wrong.correct, wrong.extracted) == ("fail", False, "7 + 1")
    assert 0.0 <= wrong.reward < 0.2
    assert judge(task, "").verdict == "no_answer"


@pytest.mark.parametrize("name", NAMES)
def test_tasks_are_different_and_repeat_with_the_seed(name):
    pytest.importorskip("reasoning_gym")
    few, more = (
        load_source(f"reasoning_gym:{name}", DataConfig(seed=3, train_size=n, eval_size=5)) for n in (8, 16)
    )
    assert (len(few.train), len(few.held_out), len(more.train)) == (8, 5, 16)
    assert more.train[:8] == few.train
    assert more.held_out == few.held_out
    assert len({t.prompt for t in more.train + more.held_out}) == 21
    assert few.revision.startswith("reasoning-gym ")


def test_they_are_written_and_read_as_any_other(judge, tmp_path):
    prepare("reasoning_gym:countdown", DataConfig(train_size=3, eval_size=2), tmp_path)
    tasks = read_tasks(tmp_path / "train.jsonl")
    assert all(judge(t, json.loads(t.gold_answer)["answer"]).correct for t in tasks)
    assert "reasoning-gym" in json.loads((tmp_path / "manifest.json").read_text())["revision"]


@pytest.mark.parametrize(
    "answer",
    [
        "__import__('os').system('touch {path}')",
        "open('{path}', 'w')",
        "exec(\"import os; os.system('touch {path}')\")",
        "9**9**9**9",
    ],
)
def test_an_answer_is_never_run_where_it_could_do_harm(judge, tmp_path, answer):
    path = tmp_path / "harm"
    for name in NAMES:
        begun = time.monotonic()
        assert not judge(one(name)[0], f"<answer>{answer.format(path=path)}</answer>").correct
        assert time.monotonic() - begun < 3.0
    confined = ReasoningJudge(["reasoning_gym:simple_integration"], 2.0, strict=False)
    task, _ = one("simple_integration")
    assert not confined(task, f"<answer>{answer.format(path=path)}</answer>").correct
    assert not path.exists()


def test_a_kernel_without_landlock_is_named(monkeypatch):
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    expected = rf"`reasoning_gym:chain_sum` are not scored here: this kernel \({os.uname().release}\) has no"
    with pytest.raises(RewardError, match=expected):
        build_judge(RewardConfig(), ["reasoning_gym:chain_sum"])


@pytest.mark.parametrize(
    ("text", "loose", "strict"),
    [
        ("<answer>1</answer> <ANSWER> 2 </ANSWER>", "2", "2"),
        ("<answer>1", "1", "1"),
        (r"\boxed{3}", "3", "3"),
        ("  4 ", "4", None),
    ],
)
def test_where_the_answer_stands(text, loose, strict):
    assert (extract(text, strict=False), extract(text, strict=True)) == (loose, strict)


def test_what_is_missing_is_said_in_one_line(monkeypatch):
    pytest.importorskip("reasoning_gym")
    with pytest.raises(TaskError, match="has no `sums`; it has "):
        load_source("reasoning_gym:sums", DataConfig())
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(TaskError, match=r"pip install -e '\.\[reasoning\]'$"):
        load_source("reasoning_gym:chain_sum", DataConfig())


def test_a_gold_answer_that_is_no_entry_is_refused():
    row = {"task_id": "a", "prompt": "p", "task_type": "reasoning_gym:chain_sum"}
    for gold in ("5", "[]", '{"answer": "5"}', "{"):
        with pytest.raises(TaskError, match="the JSON of the entry's answer and metadata"):
            task_from_row({**row, "gold_answer": gold})


def test_the_time_is_bounded_by_the_worker_s():
    assert RewardConfig(timeout_sec=1.0).math_seconds == 0.5
