"""One version's evaluation, step by step, with a worker that may die; no process."""

import math
from types import SimpleNamespace

import pytest

from async_rollout.records.rows import EvalRow
from async_rollout.runtime import examiner as examiners
from async_rollout.runtime import messages as say
from async_rollout.runtime.examination import UnjudgedEvaluation
from async_rollout.runtime.examiner import Examiner
from async_rollout.runtime.snapshots import snapshot_path
from async_rollout.types import Prompt, SampleId, Verdict
from learning import run_config

PASS, FAIL = Verdict(1.0, "pass"), Verdict(0.0, "fail")
TASKS = [SimpleNamespace(task_id=f"task-{n}") for n in range(2)]


class Stage:
    """An examiner whose workers, judges and rows are lists."""

    def __init__(self, out, when="paused"):
        self.out, self.sent, self.submitted, self.killed = out, [], [], []
        self.recorder = SimpleNamespace(evaluations=[], evaluated=self.evaluated)
        supervisor = SimpleNamespace(
            send=lambda worker, message: self.sent.append((worker.role, message)), check_ready=lambda: None
        )
        rewards = SimpleNamespace(
            submit=lambda key, task_id, text: self.submitted.append((key, task_id, text))
        )
        config = run_config(train={"updates": 10}, evaluation={"every": 4, "when": when})
        prompts = [Prompt(task.task_id, None) for task in TASKS]
        self.examiner = Examiner(config, out, TASKS, prompts, supervisor, rewards, self.recorder)
        self.workers = [self.worker(0), self.worker(1)]

    def worker(self, number: int, ready: bool = True):
        kill = SimpleNamespace(kill=lambda: self.killed.append(number))
        return SimpleNamespace(role=f"rollout-{number}", ready=ready, process=kill)

    def evaluated(self, version, sampled, greedy, n):
        self.recorder.evaluations.append(EvalRow(version, version, 0.0, sampled, greedy, n))

    def asked(self) -> list[str]:
        return [role for role, message in self.sent if isinstance(message, say.Evaluate)]


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


def begin(stage: Stage, version: int = 4) -> None:
    stage.examiner.begin(version, stage.workers)
    for worker in stage.workers:
        stage.examiner.still(worker.role)
    stage.examiner.advance(stage.workers[0])


def test_which_versions_are_due_and_which_are_left(stage, tmp_path):
    assert [v for v in range(11) if stage.examiner.due(v)] == [0, 4, 8, 10]
    stage.evaluated(4, 0, 0, 2)
    assert [v for v in range(11) if stage.examiner.due(v)] == [0, 8, 10]
    assert stage.examiner.left(9) == [0, 8], "of a run that ended early"
    after = Stage(tmp_path, when="after").examiner
    assert not any(after.due(v) for v in range(11))
    assert after.left(10) == [0, 4, 8, 10]


def test_nobody_is_asked_before_all_stand_still(stage):
    stage.examiner.begin(4, [*stage.workers, stage.worker(2, ready=False)])
    assert [(role, message) for role, message in stage.sent] == [
        ("rollout-0", say.Pause()), ("rollout-1", say.Pause()),
    ]  # fmt: skip
    stage.examiner.still("rollout-0")
    stage.examiner.advance(stage.workers[0])
    assert not stage.examiner.all_still
    assert stage.asked() == []
    stage.examiner.still("rollout-1")  # or it has died
    assert stage.examiner.all_still
    for _ in range(3):
        stage.examiner.advance(stage.workers[0])
    assert stage.asked() == ["rollout-0"]
    assert stage.sent[-1][1].weights == str(snapshot_path(stage.out, 4))


def test_both_pass_rates_are_written_when_the_last_verdict_is_there(stage):
    begin(stage)
    assert not stage.examiner.judged(SampleId(0, 0), PASS), "the run's own"
    stage.examiner.heard(say.Evaluated(4, ("a", "b"), ("c", "d")))
    assert [(task, text) for _, task, text in stage.submitted] == [
        ("task-0", "a"), ("task-1", "b"), ("task-0", "c"), ("task-1", "d"),
    ]  # fmt: skip
    assert not stage.examiner.judged(SampleId(0, 1), PASS)
    for (key, _, _), verdict in zip(stage.submitted, (PASS, FAIL, PASS, PASS), strict=True):
        assert stage.examiner.version == 4
        assert stage.examiner.judged(key, verdict)
    assert stage.examiner.version is None
    assert stage.recorder.evaluations == [EvalRow(4, 4, 0.0, 0.5, 1.0, 2)]
    assert not stage.examiner.judged(key, PASS), "once only"


def test_an_answer_that_nobody_could_judge_is_no_pass_rate(stage):
    begin(stage)
    stage.examiner.heard(say.Evaluated(4, ("a", "b"), ("c", "d")))
    unjudged = Verdict(math.nan, "infrastructure", infrastructure=True)
    *others, (last, _, _) = stage.submitted
    for key, _, _ in others:
        stage.examiner.judged(key, unjudged)
    with pytest.raises(UnjudgedEvaluation, match="2 of 2 evaluation answers"):
        stage.examiner.judged(last, PASS)


def test_the_one_that_replaces_a_dead_worker_is_asked_when_it_is_ready(stage):
    begin(stage)
    another = stage.worker(0, ready=False)
    stage.examiner.advance(another)
    assert stage.asked() == ["rollout-0"]
    another.ready = True
    stage.examiner.advance(another)
    assert stage.asked() == ["rollout-0", "rollout-0"]
    stage.examiner.heard(say.Evaluated(4, ("a", "b"), ("c", "d")))
    stage.examiner.advance(stage.worker(0))
    assert len(stage.asked()) == 2, "there are answers"


def test_one_that_takes_too_long_is_killed(stage, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(examiners, "time", SimpleNamespace(monotonic=lambda: now[0]))
    begin(stage)
    now[0] += examiners.PATIENCE_SEC - 1
    stage.examiner.advance(stage.workers[0])
    assert stage.killed == []
    now[0] += 2
    stage.examiner.advance(stage.workers[0])
    assert stage.killed == [0]
