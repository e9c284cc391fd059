"""Rows and totals of a run: every sample counted where it ends, every token by its age."""

import json
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from async_rollout.runtime.recorder import Recorder, _runs
from async_rollout.types import Group, Sample, SampleId, Trajectory, UpdateMetrics, Verdict
from learning import groups, trajectory

RNG = np.random.default_rng(0)


def metrics(**values) -> UpdateMetrics:
    """All 0 but for what is given."""
    return UpdateMetrics(**{f.name: 0 for f in fields(UpdateMetrics)} | {"staleness": {}} | values)


@pytest.fixture
def recorder(tmp_path):
    recorder = Recorder(tmp_path, {f"task-{n}": f"prompt {n}" for n in range(5)})
    yield recorder
    recorder.close()


def rows(tmp_path, name: str) -> list[dict]:
    return [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]


def commit(recorder: Recorder, version: int, batch: list[Group], **how):
    return recorder.committed(
        version, metrics(**how), batch, waiting=2, running=3, wait_sec=0.25, step_sec=0.5
    )


@given(st.lists(st.integers(0, 5), max_size=30).map(sorted))
def test_runs_are_the_versions_in_short(versions):
    runs = _runs(np.array(versions, np.int32))
    assert [v for v, n in runs for _ in range(n)] == versions
    assert all(n > 0 for _, n in runs)
    assert all(a[0] < b[0] for a, b in pairwise(runs))


def test_a_commit_writes_its_samples_and_one_row(recorder, tmp_path):
    batch = groups(versions=(3, 5))
    row = commit(recorder, 6, batch, staleness={0: 4, 2: 4}, reward_mean=0.375, trained_tokens=8)
    results = rows(tmp_path, "results.jsonl")
    assert len(results) == 8
    for result, sample in zip(results, [s for g in batch for s in g.samples], strict=True):
        versions = sample.trajectory.versions
        assert result["trained_at"] == 5  # the trainer's version when the step began
        assert result["staleness"] == 5 - versions.min()
        assert result["versions"] == _runs(versions)
        assert result["tokens"] == len(versions)
        assert result["dropped"] is None
        assert result["prompt"] == f"prompt {result['group']}"
        assert result["reward"] == sample.verdict.reward
    (written,) = rows(tmp_path, "metrics.jsonl")
    assert written["version"] == row.version == 6
    assert written["groups"] == [0, 1]
    assert (written["correct"], written["incorrect"]) == (3, 5)
    assert (written["staleness_mean"], written["staleness_max"]) == (1.0, 2)
    assert written["staleness"] == {"0": 4, "2": 4}
    assert (written["waiting_groups"], written["running_groups"]) == (2, 3)
    mixed = sum(len(set(s.trajectory.versions.tolist())) > 1 for g in batch for s in g.samples)
    assert written["mixed_version_samples"] == recorder.totals.mixed_version_samples == mixed > 0


def test_turns_are_written_and_interruptions_inside_them_counted(recorder, tmp_path):
    """Actions under versions 3 3 | 4 5 | 5, with observations of two and one tokens between them."""
    talk = Trajectory(
        id=SampleId(0, 0),
        prompt_ids=np.zeros(2, np.int32),
        response_ids=np.arange(8, dtype=np.int32),
        behavior_logprobs=np.zeros(8, np.float32),
        versions=np.array([3, 3, 3, 3, 4, 5, 5, 5], np.int32),
        action_mask=np.array([1, 1, 0, 0, 1, 1, 0, 1], bool),
        finish_reason="stop",
    )
    sample = Sample(talk, "", Verdict(1.0, "pass"))
    commit(recorder, 6, [Group(0, "task-0", (sample,))])
    (row,) = rows(tmp_path, "results.jsonl")
    assert row["turns"] == [[2, 2], [2, 1], [1, 0]]
    assert row["tokens"] == 8
    assert row["staleness"] == 2
    assert (recorder.totals.turns, recorder.totals.interrupted_turns) == (3, 1)
    assert recorder.totals.tokens["trained"] == 5
    assert recorder.totals.ages["trained"] == {2: 2, 1: 1, 0: 2}


def test_ages_are_counted_by_token(recorder):
    """Independently: ages of all action tokens of the batch."""
    batch = groups(versions=(1, 4))
    commit(recorder, 6, batch)
    ages = np.concatenate([5 - s.trajectory.versions for g in batch for s in g.samples])
    expected = dict(zip(*np.unique(ages, return_counts=True), strict=True))
    assert recorder.totals.ages["trained"] == expected
    assert recorder.totals.tokens["trained"] == len(ages)
    assert recorder.totals.samples["trained"] == 8


def test_what_is_not_trained_is_counted_with_its_reason(recorder, tmp_path):
    batch = groups(versions=(0, 0))
    for sample in [s for g in batch for s in g.samples]:
        recorder.generated(sample.trajectory, 1)
    recorder.dropped(batch[0].samples, 0, "task-0", 3, "infrastructure")
    unjudged = Sample(batch[1].samples[0].trajectory, "", Verdict(float("nan"), "?", infrastructure=True))
    recorder.late(unjudged, "task-1", 2)
    totals = recorder.totals
    assert totals.groups == {"infrastructure": 1}
    assert totals.samples == {"generated": 8, "infrastructure": 4, "late": 1}
    tokens = sum(len(s.trajectory.versions) for s in batch[0].samples)
    late = len(unjudged.trajectory.versions)
    assert totals.tokens["infrastructure"] == tokens
    assert totals.ages["dropped"] == {3: tokens, 2: late}
    assert set(totals.ages["generated"]) == {1}
    *first, last = rows(tmp_path, "results.jsonl")
    assert [(r["dropped"], r["trained_at"], r["staleness"]) for r in first] == [
        ("infrastructure", None, 3)
    ] * 4
    assert (last["dropped"], last["reward"], last["staleness"]) == ("late", None, 2)


def test_observations_are_no_action_tokens(recorder):
    """They are in no token count and in no histogram."""
    seen = trajectory(RNG, SampleId(0, 0), length=4, versions=(0, 0))
    seen.action_mask[1:3] = False
    recorder.generated(seen, 0)
    assert recorder.totals.tokens["generated"] == 2
    assert recorder.totals.ages["generated"] == {0: 2}


def test_a_reload_is_an_interruption_only_if_samples_were_running(recorder):
    recorder.reloaded(0, 0, 0.5)
    recorder.reloaded(3, 40, 0.25)
    totals = recorder.totals
    assert (totals.interruptions, totals.resumed_samples, totals.recomputed_tokens) == (1, 3, 40)
    assert totals.recompute_sec == 0.75


def test_an_evaluation_is_placed_on_the_clock_of_its_commit(recorder, tmp_path):
    row = commit(recorder, 1, groups())
    recorder.evaluated(0, 0.25, 0.5, 8)
    recorder.evaluated(1, 0.5, 0.75, 8)
    first, second = rows(tmp_path, "evals.jsonl")
    assert (first["version"], first["seconds"], first["sampled"]) == (0, 0.0, 0.25)
    assert (second["version"], second["seconds"], second["greedy"]) == (1, row.seconds, 0.75)


def test_rows_are_on_disk_before_the_run_ends(recorder, tmp_path):
    """A killed run leaves what it did."""
    commit(recorder, 1, groups())
    assert len(rows(tmp_path, "results.jsonl")) == 8
    assert len(rows(tmp_path, "metrics.jsonl")) == 1
