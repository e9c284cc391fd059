import json
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.config.data import DataConfig
from async_rollout.config.prompt import PromptConfig
from async_rollout.config.reward import RewardConfig
from async_rollout.rewards.judge import build_judge
from async_rollout.tasks.convert import convert
from async_rollout.tasks.jsonl import read_tasks, write_tasks
from async_rollout.tasks.number import parse_number
from async_rollout.tasks.prepare import prepare
from async_rollout.tasks.prompts import prompt_text
from async_rollout.tasks.sources import load_source
from async_rollout.tasks.split import split
from async_rollout.tasks.task import AVAILABLE, Task, TaskError

WORD_PROBLEMS = Path(__file__).parents[1] / "data" / "word_problems.jsonl"


def some(prompts):
    return [Task(f"t{i}", prompt, "sort", "#1") for i, prompt in enumerate(prompts)]


@given(
    prompts=st.lists(st.sampled_from("abcdefghij"), min_size=2, max_size=30),
    eval_size=st.integers(1, 12),
    seed=st.integers(0, 5),
)
def test_a_split_loses_nothing_and_shares_no_prompt(prompts, eval_size, seed):
    tasks = some(prompts)
    try:
        train, held_out = split(tasks, eval_size, seed)
    except TaskError:
        smallest = min(prompts.count(p) for p in prompts)
        assert eval_size < smallest or eval_size >= len(prompts) - max(prompts.count(p) for p in prompts)
        return
    assert sorted(t.task_id for t in train + held_out) == sorted(t.task_id for t in tasks)
    assert not {t.prompt for t in train} & {t.prompt for t in held_out}
    assert 1 <= len(held_out) <= eval_size


def test_a_split_is_exact_where_prompts_are_distinct_and_ignores_the_order_of_lines():
    tasks = some(map(str, range(50)))
    train, held_out = split(tasks, 12, seed=4)
    assert (len(train), len(held_out)) == (38, 12)
    assert split(tasks[::-1], 12, seed=4) == (train, held_out)
    assert split(tasks, 12, seed=5) != (train, held_out)


def test_prompts_that_differ_in_whitespace_alone_stay_together():
    for seed in range(20):
        train, held_out = split(some(["a  b", "a b\n", "c", "d", "e"]), 2, seed)
        assert {"a  b", "a b\n"} <= {t.prompt for t in train} or {"a  b", "a b\n"} <= {
            t.prompt for t in held_out
        }


def test_a_split_that_leaves_nothing_to_train_on_is_refused():
    with pytest.raises(
        TaskError, match=r"3 tasks .* eval_size 3: train would be empty; set data.eval_size to at most 2,"
    ):
        split(some("abc"), 3, seed=0)


def test_a_file_is_a_dataset(tmp_path):
    write_tasks(tmp_path / "own.jsonl", some(map(str, range(30))))
    data = DataConfig(train_size=15, eval_size=10)
    source = load_source(f"jsonl:{tmp_path / 'own.jsonl'}", data)
    assert (len(source.train), len(source.held_out)) == (15, 10)
    assert not {t.prompt for t in source.train} & {t.prompt for t in source.held_out}


@pytest.mark.parametrize(
    ("dataset", "problem"),
    [
        ("sorted", r"`sorted` does not exist; available: sort, gsm8k, math, .*jsonl:"),
        ("math:algebra", "does not exist"),
        ("jsonl:", "does not exist"),
        ("jsonl:/nowhere/tasks.jsonl", "/nowhere/tasks.jsonl: cannot be read"),
    ],
)
def test_a_source_that_is_not_there_is_refused_by_name(dataset, problem):
    with pytest.raises(TaskError, match=problem):
        load_source(dataset, DataConfig())


def test_prepare_writes_both_splits_and_a_true_manifest(tmp_path):
    data = DataConfig(seed=3, train_size=40, eval_size=8)
    prepare("sort", data, tmp_path / "out")
    files = {name: read_tasks(tmp_path / "out" / name) for name in ("train.jsonl", "eval.jsonl")}
    source = load_source("sort", data)
    assert (files["train.jsonl"], files["eval.jsonl"]) == (source.train, source.held_out)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["source"], manifest["seed"], manifest["left_out"]) == ("sort", 3, 0)
    for name, entry in manifest["files"].items():
        assert entry["tasks"] == len(files[name])
        assert entry["sha256"] == sha256((tmp_path / "out" / name).read_bytes()).hexdigest()
    assert {p.name for p in (tmp_path / "out").iterdir()} == {*files, "manifest.json"}


def test_word_problems_convert_split_and_are_judged_right(tmp_path):
    judge = build_judge(RewardConfig(), ["gsm8k"])
    assert convert("gsm8k", WORD_PROBLEMS, tmp_path / "tasks.jsonl") == (20, 0)
    tasks = read_tasks(tmp_path / "tasks.jsonl")
    for task, row in zip(tasks, map(json.loads, WORD_PROBLEMS.read_text().splitlines()), strict=True):
        assert task.prompt == row["question"]
        assert judge(task, row["answer"]).correct
        assert not judge(task, row["answer"] + "1").correct
        assert parse_number(task.gold_answer).denominator == 1
    source = load_source(f"jsonl:{tmp_path / 'tasks.jsonl'}", DataConfig(eval_size=6))
    assert (len(source.train), len(source.held_out)) == (14, 6)


def test_the_arithmetic_of_the_word_problems_is_right():
    for row in map(json.loads, WORD_PROBLEMS.read_text().splitlines()):
        steps = [step.split(">>")[0].rpartition("=") for step in row["answer"].split("<<")[1:]]
        assert steps
        for formula, _, value in steps:
            assert eval(formula, {"__builtins__": {}}) == int(value)
        assert int(steps[-1][2]) == parse_number(row["answer"].rpartition("####")[2])


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"question": "q"}, "`answer` is missing"),
        ({"question": 1, "answer": "#### 2"}, "`question` is missing or not a string"),
        ({"question": "q", "answer": "it is 2"}, "no `####`"),
        ({"question": "q", "answer": "#### two"}, "'two' is not a number"),
    ],
)
def test_a_bad_row_of_gsm8k_is_named(tmp_path, row, problem):
    source = tmp_path / "test.jsonl"
    source.write_text(json.dumps({"question": "q", "answer": "#### 1"}) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(TaskError) as error:
        convert("gsm8k", source, tmp_path / "out.jsonl")
    assert str(error.value).startswith(f"{source}:2: ")
    assert problem in str(error.value)
    assert not (tmp_path / "out.jsonl").exists()


def test_every_task_type_has_its_instruction_and_any_can_be_replaced():
    told = PromptConfig()
    for kind in AVAILABLE:
        assert prompt_text(Task("a", "the question", kind, "1"), told).endswith("the question")
    assert prompt_text(Task("a", "213>", "sort", "#123"), told) == "213>"
    assert "####" in prompt_text(Task("a", "2 + 3?", "gsm8k", "5"), told)
    assert "boxed" in prompt_text(Task("a", "2 + 3?", "math", "5"), told)
    assert prompt_text(Task("a", "2 + 3?", "math", "5"), PromptConfig(math="Hi.")) == "Hi.\n\n2 + 3?"
    assert prompt_text(Task("a", "2 + 3?", "math", "5"), PromptConfig(math="")) == "2 + 3?"
