"""Evaluation in the middle of a run: the same pass rates as after it, and no time of the run's."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from async_rollout.policy.respond import respond
from async_rollout.records.cells import read_summary
from async_rollout.records.events import Events
from async_rollout.runners import areal, one_process
from async_rollout.runtime import messages as say
from async_rollout.runtime.examiner import Examiner
from async_rollout.runtime.recorder import Recorder
from async_rollout.runtime.rollout_worker import RolloutWorker
from async_rollout.runtime.snapshots import snapshot_path, write_snapshot
from async_rollout.types import Prompt
from tiny_cells import cell_config, run_tiny
from tiny_policy import perturb, run_config, sample_requests, tiny_policy

PAUSE_SEC = 0.4


@pytest.fixture
def slow(monkeypatch):
    """Evaluations take longer than all that the run does; in threads and in one process."""
    evaluate, respond = RolloutWorker.evaluate, one_process.respond

    def slowly(*arguments, **names):
        time.sleep(PAUSE_SEC)
        return evaluate(*arguments, **names)

    def slowly_too(*arguments, **names):
        time.sleep(PAUSE_SEC / 2)  # sampled and greedy
        return respond(*arguments, **names)

    monkeypatch.setattr(RolloutWorker, "evaluate", slowly)
    monkeypatch.setattr(one_process, "respond", slowly_too)


def config(mode: str, when: str, **blocks):
    shared = {"mode": mode, "k": 0 if mode == "sync" else 2, "train": {"updates": 12}}
    rollout = {"slots": 8, "weights": "disk" if mode == "areal" else "shared_memory"}
    return cell_config(**shared, evaluation={"every": 3, "when": when}, rollout=rollout, **blocks)


@pytest.mark.parametrize("mode", ["sync", "lagged", "async"])
def test_it_takes_no_time_and_comes_at_once(mode, tmp_path, slow):
    cell = run_tiny(config(mode, "paused"), tmp_path)
    summary = read_summary(cell.out / "summary.json")
    versions = [point.version for point in summary.eval_pass_rate]
    assert versions == [0, 3, 6, 9, 12]
    pauses = 5 if mode != "async" else 4  # there the last one comes when the run is over
    states = cell.rows("states.jsonl")
    assert [row["state"] for row in states].count("evaluating") == pauses + 1
    begun = next(row["time"] for row in states if row["state"] == "running")
    ended = [row["time"] for row in states if row["state"] == "evaluating"][-1]
    assert summary.wall_clock_sec < ended - begun - pauses * PAUSE_SEC + 0.1
    assert summary.evaluation_wall_clock_sec > 5 * PAUSE_SEC
    first, *later = cell.rows("metrics.jsonl")  # the first wait begins while others build their parts
    assert sum(r["wait_sec"] + r["step_sec"] for r in later) <= summary.wall_clock_sec
    assert min(r["wait_sec"] for r in later) >= 0
    seconds = [row["seconds"] for row in (first, *later)]
    assert seconds == sorted(seconds)
    assert seconds[-1] <= summary.wall_clock_sec
    assert [row["state"] for row in states[-2:]] == ["evaluating", "done"]
    assert not (cell.out / "snapshots").exists()


@pytest.mark.parametrize("mode", ["sync", "lagged"])
def test_the_run_and_its_pass_rates_are_those_of_evaluation_afterwards(mode, tmp_path):
    """Bit for bit, where runs repeat themselves."""
    rows = {}
    for when in ("after", "paused"):
        (tmp_path / when).mkdir()
        cell = run_tiny(config(mode, when), tmp_path / when)
        rows[when] = [(r["version"], r["sampled"], r["greedy"], r["n"]) for r in cell.rows("evals.jsonl")]
        rows[when] += [(r["version"], r["loss"], r["reward_mean"]) for r in cell.rows("metrics.jsonl")]
    assert rows["paused"] == rows["after"]


@pytest.mark.parametrize("mode", ["async", "areal"])
def test_pass_rates_are_those_of_the_same_weights_afterwards(mode, tmp_path, monkeypatch):
    """A run that pauses is evaluated again when it is over: its weights are still there."""
    agree = []

    class Twice(areal.Controller):
        def evaluate(self):
            super().evaluate()
            recorder: Recorder = self._recorder
            first, recorder.evaluations = recorder.evaluations, []
            super().evaluate()
            second, recorder.evaluations = recorder.evaluations, first
            agree.extend(
                (a.version, a.sampled, a.greedy) == (b.version, b.sampled, b.greedy)
                for a, b in zip(first, second, strict=True)
            )

    monkeypatch.setattr(areal, "Controller", Twice)
    cell = run_tiny(config(mode, "paused"), tmp_path)
    assert agree == [True] * 5
    summary = read_summary(cell.out / "summary.json")
    assert [point.version for point in summary.eval_pass_rate] == [0, 3, 6, 9, 12]
    assert summary.eval_pass_rate[-1].sampled != summary.eval_pass_rate[0].sampled
    assert summary.staleness_max <= 2
    assert summary.samples.abandoned == 0


def test_samples_that_run_go_on_as_if_nothing_had_been(tmp_path):
    """Under their own weights and with their own cache, though others were evaluated in between."""
    config = run_config(rollout={"slots": 3}, sampling={"max_new_tokens": 12})
    drawn = []
    for disturbed in (False, True):
        policy, sent = tiny_policy(), []
        channel = SimpleNamespace(send=sent.append, unsent=False)
        store = SimpleNamespace(version=0, forget=lambda reader: None)
        events = Events(tmp_path / "events.jsonl", "rollout-0")
        worker = RolloutWorker(0, channel, store, config, policy, events)
        other = tiny_policy()
        perturb(other, 1)
        write_snapshot(tmp_path, 7, other)
        worker.accept(say.Work(0, tuple(sample_requests(6, longest=12, shortest=9))))
        for step in range(40):
            if disturbed and step == 5:
                prompts = tuple(Prompt(str(n), np.array([n + 3], np.int32)) for n in range(4))
                answers = worker.evaluate(say.Evaluate(7, str(snapshot_path(tmp_path, 7)), prompts))
            if worker.busy:
                worker.advance()
        assert not worker.busy
        samples = [t for m in sent if isinstance(m, say.Finished) for t, _ in m.samples]
        drawn.append({t.id: (t.response_ids.tolist(), t.behavior_logprobs.tolist()) for t in samples})
    assert drawn[0] == drawn[1]
    prompts = [Prompt(str(n), np.array([n + 3], np.int32)) for n in range(4)]
    assert list(answers.greedy) == respond(other, prompts, config, greedy=True)
    assert list(answers.sampled) == respond(other, prompts, config, greedy=False)
    assert list(answers.greedy) != respond(policy, prompts, config, greedy=True)


@pytest.mark.parametrize("when", [pytest.param("after", marks=pytest.mark.long), "paused"])
def test_a_worker_that_dies_in_an_evaluation_is_replaced_and_changes_nothing(when, tmp_path, monkeypatch):
    """Killed as soon as it was asked, twice; then all is evaluated again in peace."""
    killed, agree, advance = [], [], Examiner.advance

    def deadly(self, worker):
        asked = self._asked
        advance(self, worker)
        if self._asked is not asked and self._asked is worker and self.version == 3 and len(killed) < 2:
            killed.append(worker.process.pid)
            worker.process.kill()

    class Twice(areal.Controller):
        def evaluate(self):
            super().evaluate()
            first, self._recorder.evaluations = self._recorder.evaluations, []
            super().evaluate()
            second, self._recorder.evaluations = self._recorder.evaluations, first
            agree.extend(
                (a.sampled, a.greedy) == (b.sampled, b.greedy) for a, b in zip(first, second, strict=True)
            )

    monkeypatch.setattr(Examiner, "advance", deadly)
    monkeypatch.setattr(areal, "Controller", Twice)
    cell = run_tiny(config("areal", when), tmp_path)
    assert len(killed) == 2
    assert cell.summary["restarts"] == 2
    assert agree == [True] * 5
    assert [r["version"] for r in cell.rows("metrics.jsonl")] == list(range(1, 13))
    assert cell.summary["samples"]["abandoned"] == 0
    assert not (cell.out / "weights").exists()


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_run_that_goes_on_is_evaluated_at_each_version_once(mode, tmp_path, monkeypatch):
    """Killed after an evaluation that its checkpoint has, and after one that it has not."""

    class Killed(BaseException):
        pass

    def dies(self, version, *arguments, **names):
        if version == 8:
            raise Killed
        return real(self, version, *arguments, **names)

    real, settings = Recorder.committed, config(mode, "paused", checkpoint={"every": 4})
    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "committed", dies)
        with pytest.raises(Killed):
            run_tiny(settings, tmp_path)
    cell = run_tiny(settings, tmp_path)
    assert cell.summary["attempts"] == 2
    assert [r["version"] for r in cell.rows("evals.jsonl")] == [0, 3, 6, 9, 12]
    assert [r["version"] for r in cell.rows("evals.jsonl.attempt1")] == [6]
    assert [p["version"] for p in cell.summary["eval_pass_rate"]] == [0, 3, 6, 9, 12]
    assert [r["version"] for r in cell.rows("metrics.jsonl")] == list(range(1, 13))
