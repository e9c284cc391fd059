"""Whole cells of mode async: threads of one process, bounded like areal's processes, and gone at the end."""

import gc
import os
import threading

import pytest

from async_rollout.records.cells import read_summary
from async_rollout.runtime.debt import WorkerHung
from async_rollout.runtime.supervisor import WorkerDied
from tiny_cells import cell_config, run_tiny


def async_config(**blocks):
    return cell_config(**{"mode": "async", "k": 2, "rollout": {"slots": 8, "min_decode_steps": 2}} | blocks)


def descriptors() -> int:
    gc.collect()  # a map of the weights holds one, and goes with the traceback that refers to it
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    return run_tiny(async_config(train={"updates": 30}), tmp_path_factory.mktemp("async"))


def test_it_reaches_its_end_within_the_bound_and_learns(cell):
    summary = read_summary(cell.out / "summary.json")
    assert summary.policy_version == summary.updates == 30
    assert 0 < summary.staleness_max <= 2
    assert summary.groups == {"submitted": 120, "trained": 120}
    assert summary.samples.abandoned == 0
    assert summary.pass_rate_last > summary.pass_rate_first + 0.3
    assert [point.version for point in summary.eval_pass_rate] == [0, 10, 20, 30]


def test_one_process_plays_every_part(cell):
    summary = cell.summary
    assert summary["cpu_seconds"].keys() == {"async", "reward"}
    assert summary["busy_fraction"].keys() == {
        "controller", "rollout", "trainer", "parameter_service", "reward",
    }  # fmt: skip
    rows = [row.split(",") for row in (cell.out / "resources.csv").read_text().splitlines()[1:]]
    assert {pid for _, role, pid, *_ in rows if role == "async-0"} == {str(os.getpid())}
    assert {role for _, role, *_ in rows} == {"async-0", "reward-0"}


@pytest.mark.parametrize(
    "blocks",
    [
        {"staleness": {"order": "completed"}},
        {"staleness": {"order": "strict"}},
        {"rollout": {"slots": 2, "update": "drain"}},  # fewer slots than G
        {"rollout": {"slots": 8, "update": "keep_kv", "min_decode_steps": 1}},
        {"k": 0, "rollout": {"slots": 3}},  # fewer than B·G
        {"rollout": {"slots": 8, "weights": "disk"}},
    ],
    ids=str,
)
def test_every_order_and_update_reaches_the_end_within_the_bound(blocks, tmp_path):
    """What is dropped is counted, and only `completed` drops."""
    cell = run_tiny(async_config(**{"k": 1, "train": {"updates": 15}} | blocks), tmp_path)
    summary = read_summary(cell.out / "summary.json")
    stale = summary.groups.pop("stale", 0)
    assert summary.groups == {"submitted": 60 + stale, "trained": 60}
    assert not stale or cell.config.staleness.order == "completed"
    assert summary.staleness_max <= cell.config.k
    assert summary.samples.abandoned == 0
    assert summary.samples.generated == summary.samples.trained + sum(summary.samples.dropped.values())
    assert not summary.interruptions or cell.config.rollout.update != "drain"


@pytest.mark.parametrize(
    "target",
    [
        "async_rollout.learner.learner.Learner.step",
        "async_rollout.policy.answer_engine.AnswerEngine.step",
        "async_rollout.runtime.parameter_service.ParameterService.answer",
        "async_rollout.policy.tabular.TabularPolicy.__init__",
    ],
)
def test_when_a_thread_fails_all_end_and_the_run_says_why(target, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise FloatingPointError("it is nan")

    before, open_before = threading.enumerate(), descriptors()
    monkeypatch.setattr(target, fail)
    with pytest.raises(WorkerDied, match="it is nan"):
        run_tiny(async_config(), tmp_path)
    assert threading.enumerate() == before
    assert descriptors() <= open_before
    assert not (tmp_path / "cell" / "summary.json").exists()
    assert "it is nan" in (tmp_path / "cell" / "stderr.log").read_text()


def test_an_exit_in_the_main_thread_ends_the_others(tmp_path, monkeypatch):
    """As a signal would: they are in the middle of their work."""
    before = threading.enumerate()

    def leave(*_, **__):
        raise SystemExit(143)

    monkeypatch.setattr("async_rollout.runtime.controller.Controller._committed", leave)
    with pytest.raises(SystemExit):
        run_tiny(async_config(), tmp_path)
    assert threading.enumerate() == before


def test_a_thread_that_hangs_is_named_and_not_waited_for(tmp_path, monkeypatch):
    """It ends with the process; here, when it is let go."""
    before, go = threading.enumerate(), threading.Event()
    monkeypatch.setattr("async_rollout.runtime.threads.GIVE_UP_SEC", 0.2)
    monkeypatch.setattr("async_rollout.learner.learner.Learner.step", lambda *_: go.wait())
    supervision = {"step_timeout_sec": 0.5, "shutdown_sec": 3.0}
    try:
        with pytest.raises(WorkerHung, match=r"trainer-0 .* hangs"):
            run_tiny(async_config(supervision=supervision), tmp_path)
        assert [t.name for t in threading.enumerate() if t not in before] == ["trainer-0"]
    finally:
        go.set()
        for thread in set(threading.enumerate()) - set(before):
            thread.join()
    assert "trainer-0" in (tmp_path / "cell" / "stderr.log").read_text()
