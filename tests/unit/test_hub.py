"""Datasets of the hub, with `datasets` replaced: no network here."""

import sys
from types import SimpleNamespace

import pytest

from async_rollout.config.data import DataConfig
from async_rollout.tasks.sources import load_source
from async_rollout.tasks.task import TaskError

COMMIT = "0123456789" * 4
ROWS = {
    "gsm8k": lambda i: {"question": f"q{i}", "answer": f"so <<{i}>> #### {i}"},
    "math": lambda i: {"problem": f"q{i}", "solution": rf"so \boxed{{{i}}}", "level": "Level 1"},
}


def hub(monkeypatch, train, test):
    asked = []

    def builder(*place, revision):
        asked.append((*place, revision))
        return SimpleNamespace(base_path=f"hf://datasets/x/y@{COMMIT}", hash="h")

    datasets = SimpleNamespace(
        load_dataset=lambda *place, revision: {"train": train, "test": test}, load_dataset_builder=builder
    )
    monkeypatch.setitem(sys.modules, "datasets", datasets)
    return asked


@pytest.mark.parametrize(
    ("dataset", "place"),
    [("gsm8k", ("openai/gsm8k", "main")), ("math", ("DigitalLearningGmbH/MATH-lighteval", None))],
)
def test_the_splits_of_the_hub_are_kept_apart_cut_and_shuffled_by_the_seed(monkeypatch, dataset, place):
    rows = [ROWS[dataset](i) for i in range(60)]
    asked = hub(monkeypatch, [*rows[:40], rows[50]], rows[40:])
    source = load_source(dataset, DataConfig(train_size=30, eval_size=20, revision="v1"))
    assert asked == [(*place, "v1")]
    assert (len(source.train), len(source.held_out), source.revision) == (30, 20, COMMIT)
    assert {int(t.prompt[1:]) for t in source.train} < set(range(40))
    assert {t.prompt for t in source.held_out} == {f"q{i}" for i in range(40, 60)}
    assert all(t.gold_answer == t.prompt[1:] and t.task_type == dataset for t in source.train)
    again = load_source(dataset, DataConfig(train_size=30, eval_size=20))
    other = load_source(dataset, DataConfig(train_size=30, eval_size=20, seed=1))
    assert again.train == source.train != other.train


def test_a_prompt_of_both_splits_is_held_out_only(monkeypatch):
    rows = [ROWS["gsm8k"](i) for i in range(5)]
    hub(monkeypatch, rows, rows[3:])
    source = load_source("gsm8k", DataConfig())
    assert {t.prompt for t in source.train} == {"q0", "q1", "q2"}


def test_what_no_judge_can_judge_is_left_out_and_counted(monkeypatch):
    rows = [ROWS["math"](i) for i in range(8)]
    rows[2]["solution"] = "no box"
    rows[3]["solution"] = r"\boxed{(}"
    hub(monkeypatch, rows[:6], rows[6:])
    source = load_source("math", DataConfig())
    assert {t.prompt for t in source.train} == {"q0", "q1", "q4", "q5"}
    assert source.left_out == 2


def test_without_the_package_one_line_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(TaskError) as error:
        load_source("math", DataConfig())
    assert "pip install -e '.[hub]'" in str(error.value)
    assert "async-rollout prepare math --from FILE" in str(error.value)
    assert "\n" not in str(error.value)


def test_without_network_and_cache_one_line_says_what_to_do(monkeypatch):
    def offline(*place, revision):
        raise ConnectionError("no\nroute")

    monkeypatch.setitem(
        sys.modules, "datasets", SimpleNamespace(load_dataset=offline, load_dataset_builder=offline)
    )
    with pytest.raises(
        TaskError, match="openai/gsm8k at revision main is neither cached nor reachable"
    ) as error:
        load_source("gsm8k", DataConfig())
    assert "ConnectionError: no route" in str(error.value)
    assert "prepare it once where there is a network" in str(error.value)
    assert "\n" not in str(error.value)
