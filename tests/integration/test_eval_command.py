"""`async-rollout eval`: a finished cell's model gets its own pass rates again; any other is scored alike."""

import json
import math

import pytest

from async_rollout.cli import main
from async_rollout.config.model import WarmStartConfig
from async_rollout.learner.warm_start import warm_start
from async_rollout.runners import one_process
from async_rollout.runners.evaluation import record_evaluation
from async_rollout.runners.model_evaluation import AnswerRow, score
from tiny_cells import cell_config, run_tiny


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    """A transformer's finished cell with its model, and the texts of its last evaluation."""
    directory, texts = tmp_path_factory.mktemp("saved"), {}
    small = {"hidden_size": 16, "layers": 1, "heads": 2, "kv_heads": 2, "intermediate_size": 32, "steps": 60}
    warm_start(WarmStartConfig(**small), directory / "model")
    config = cell_config(
        mode="sync",
        k=0,
        model={"backend": "causal_lm"},
        train={"updates": 3, "save_model": True},
        optim={"lr": 0.003},
        data={"train_size": 24, "eval_size": 40},
        evaluation={"every": 3, "seed": 5},
        rollout={"slots": 7},
    )

    def record(recorder, pool, tasks, version, sampled, greedy, tell):
        texts.update(sampled=sampled, greedy=greedy)
        return record_evaluation(recorder, pool, tasks, version, sampled, greedy, tell)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_process, "record_evaluation", record)
        return run_tiny(config, directory, directory / "model"), texts


@pytest.fixture
def rows(tmp_path, capsys):
    """Runs the command; what it wrote, and what it printed."""

    def run(*arguments: str) -> tuple[list[dict], list[str]]:
        out = tmp_path / "answers.jsonl"
        assert main(["eval", *arguments, "--out", str(out)]) == 0
        return [
            json.loads(line) for line in out.read_text().splitlines()
        ], capsys.readouterr().out.splitlines()

    return run


def test_a_cells_model_gets_its_own_evaluation_again(cell, rows):
    """Bit for bit: neither what was saved nor how it is asked differs."""
    finished, texts = cell
    last = finished.summary["eval_pass_rate"][-1]
    found, printed = rows(str(finished.out / "model"))
    for kind in ("sampled", "greedy"):
        answers = [r for r in found if r["kind"] == kind]
        assert [r["response"] for r in answers] == texts[kind]
        assert sum(r["verdict"] == "pass" for r in answers) / 40 == last[kind]
        (line,) = [line for line in printed if f" {kind}: " in line]
        error = math.sqrt(last[kind] * (1 - last[kind]) / 39)
        assert f"{last[kind]:.4f} ± {error:.4f} (40 tasks)" in line
    assert len(set(texts["sampled"])) > 20
    other, _ = rows(str(finished.out / "model"), "--seed", "6", "--sampled")
    assert [r["response"] for r in other] != texts["sampled"]


def test_several_samples_a_task_and_other_tasks(cell, rows):
    model = str(cell[0].out / "model")
    found, (line,) = rows(model, "--samples", "3", "--sampled", "--limit", "5", "--split", "train")
    assert [r["sample"] for r in found] == [0, 1, 2] * 5
    assert len({r["task_id"] for r in found}) == 5
    assert len({r["response"] for r in found[:3]}) > 1, "streams of their own"
    assert "(5 tasks, 3 answers each)" in line
    few = ("--greedy", "--limit", "4", "--max-new-tokens", "2")
    short, (line,) = rows(model, "--dataset", "calculator", *few)
    assert {(r["kind"], r["tokens"] <= 2) for r in short} == {("greedy", True)}
    assert line.startswith("calculator eval greedy: ")


def test_the_blocks_of_a_sweep_hold_where_it_is_named(cell, rows, tmp_path):
    """The same model, asked as this sweep asks: here, with the cell's own settings."""
    finished, texts = cell
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text(
        "experiment: other\nmodes: [sync]\nbatch: {groups: 4, group_size: 4}\nrollout: {slots: 7}\n"
        "data: {train_size: 24, eval_size: 40}\nevaluation: {seed: 5}\n"
    )
    model = str(finished.out / "model")
    found, _ = rows(model, "--dataset", "sort", "--config", str(sweep), "--sampled")
    assert [r["response"] for r in found] == texts["sampled"]


def test_the_standard_error_treats_a_tasks_samples_as_one():
    """Against the formula for means of clusters."""

    def answers(*counts: int) -> list[AnswerRow]:
        return [
            AnswerRow(str(task), "sampled", i, "", 1, "stop", 0.0, "pass" if i < n else "fail", None, None)
            for task, n in enumerate(counts)
            for i in range(4)
        ]

    found = score(answers(0, 4, 2, 1))
    assert found.rate == 7 / 16
    shares = [0, 1, 0.5, 0.25]
    expected = math.sqrt(sum((s - 7 / 16) ** 2 for s in shares) / 3 / 4)
    assert (found.error, found.tasks) == (pytest.approx(expected), 4)
    assert score(answers(4, 4)).error == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no/such/model"], "--dataset = None: missing"),
        (["no such model", "--dataset", "sort"], "model.id = 'no such model': no such directory"),
        (["m", "--dataset", "gsm9k"], "datasets.0 = 'gsm9k'"),
        (["m", "--dataset", "sort", "--samples", "0"], "--samples = 0"),
        (["m", "--dataset", "sort", "--limit", "0"], "data.task_limit = 0"),
        (["m", "--dataset", "sort", "--device", "tpu"], "train.devices.0 = 'tpu'"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["eval", *arguments]) == 2
    assert message in capsys.readouterr().err
