"""A failure of ours is never a reward: it is tried again, counted apart, and in the end stops the run."""

import math
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing

import psutil
import pytest

from async_rollout.channels import poll
from async_rollout.config.reward import RewardConfig
from async_rollout.rewards.judge import RewardError
from async_rollout.rewards.pool import RewardPool
from async_rollout.tasks.jsonl import write_tasks
from async_rollout.tasks.task import Task

FAULTY, SLOW = "faulty_judges:faulty", "faulty_judges:slow"

PARENT = """
import sys, time
from pathlib import Path
from async_rollout.config.reward import RewardConfig
from async_rollout.rewards.pool import RewardPool

pool = RewardPool([Path(sys.argv[1])], RewardConfig(workers=2), judge="faulty_judges:faulty")
pool.start()
pool.wait_ready(60)
pool.submit(0, "a", "hang")
pool.submit(1, "a", "hang")
pool.poll()
time.sleep(0.2)
print(*pool.pids(), flush=True)
time.sleep(3600)
"""


@pytest.fixture
def pool_of(tmp_path):
    write_tasks(tmp_path / "tasks.jsonl", [Task(f"t{i}", f"say {i}", "gsm8k", str(i)) for i in range(200)])
    pools = []

    def start(judge, **config):
        pool = RewardPool([tmp_path / "tasks.jsonl"], RewardConfig(**config), judge=judge)
        pools.append(pool)
        pool.start()
        pool.wait_ready(60)
        return pool

    yield start
    for pool in pools:
        pids = pool.pids()
        pool.close()
        assert not any(psutil.pid_exists(pid) for pid in pids)


def verdicts(pool, n, meanwhile=lambda: None, limit=60):
    """The n verdicts by key; fails if a key comes twice or they take more than `limit` seconds."""
    found = {}
    begun = time.monotonic()
    while len(found) < n:
        assert time.monotonic() - begun < limit
        for key, verdict in pool.poll():
            assert key not in found
            found[key] = verdict
        meanwhile()
        poll(pool.waitables(), min(pool.patience(), 0.05))
    assert pool.pending == 0
    assert pool.poll() == []
    return found


def submit_right_and_wrong(pool, n, suffix=""):
    for i in range(n):
        pool.submit(i, f"t{i}", f"{i if i % 3 else i + 1}{suffix}")


def right_and_wrong(found, n):
    return all(found[i].reward == float(bool(i % 3)) and not found[i].infrastructure for i in range(n))


def test_every_answer_is_judged_once_whatever_the_batches(pool_of):
    pool = pool_of(FAULTY, workers=2)
    submit_right_and_wrong(pool, 200)
    assert right_and_wrong(verdicts(pool, 200), 200)
    assert (pool.failures, pool.replaced) == (0, 0)


@pytest.mark.parametrize("kind", ["raise", "none", "nan", "die", "hang"])
def test_what_no_try_can_judge_is_counted_apart_and_the_others_are_right(pool_of, kind):
    pool = pool_of(FAULTY, workers=1, timeout_sec=0.3, retries=1)
    submit_right_and_wrong(pool, 10)
    pool.submit("bad", "t50", kind)
    for i in range(10, 20):
        pool.submit(i, f"t{i}", f"{i if i % 3 else i + 1}")
    found = verdicts(pool, 21)
    assert right_and_wrong(found, 20)
    assert found["bad"].infrastructure
    assert math.isnan(found["bad"].reward)
    assert not found["bad"].correct
    assert pool.failures == 1
    assert pool.replaced == (2 if kind in ("die", "hang") else 0)  # the first try and one retry
    reason = {"die": "died", "hang": "more than 0.3 s"}.get(kind, "judge of `gsm8k`")
    assert reason in found["bad"].extracted


@pytest.mark.parametrize("kind", ["raise", "die", "hang"])
def test_what_fails_once_is_judged_on_the_next_try(pool_of, tmp_path, kind):
    pool = pool_of(FAULTY, workers=1, timeout_sec=0.3, retries=1)
    pool.submit("once", "t5", f"{kind} {tmp_path / 'failed'}")
    pool.submit("next", "t6", "6")
    found = verdicts(pool, 2)
    assert (tmp_path / "failed").exists()
    assert found["once"].reward == found["next"].reward == 1.0
    assert pool.failures == 0


@pytest.mark.parametrize("signal_sent", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_killed_or_stopped_from_outside_with_work_in_hand(pool_of, signal_sent):
    pool = pool_of(SLOW, workers=2, timeout_sec=1.0)
    victim = pool.pids()[0]
    submit_right_and_wrong(pool, 40, " 0.02")
    assert pool.poll() == []
    time.sleep(0.1)  # both have begun
    os.kill(victim, signal_sent)
    assert right_and_wrong(verdicts(pool, 40), 40)
    assert (pool.failures, pool.replaced) == (0, 1)
    assert victim not in pool.pids()
    assert not psutil.pid_exists(victim)


def test_random_kills_lose_and_double_nothing(pool_of):
    pool = pool_of(SLOW, workers=2, retries=20)
    dice = random.Random(0)
    kills = [0.1, 0.3, 1.2, 2.0]
    begun = time.monotonic()

    def kill_now_and_then():
        if kills and time.monotonic() - begun > kills[0]:
            kills.pop(0)
            os.kill(dice.choice(pool.pids()), signal.SIGKILL)

    submit_right_and_wrong(pool, 200, " 0.02")
    assert right_and_wrong(verdicts(pool, 200, kill_now_and_then), 200)
    assert pool.failures == 0
    assert pool.replaced > 0


def test_slow_is_not_hung_and_first_verdicts_do_not_wait_for_the_batch(pool_of):
    pool = pool_of(SLOW, workers=1, timeout_sec=0.8)
    submit_right_and_wrong(pool, 20, " 0.05")  # the batch takes longer than an answer may
    begun = time.monotonic()
    pool.poll()
    poll(pool.waitables(), 10)
    first = time.monotonic() - begun
    assert right_and_wrong(verdicts(pool, 20), 20)
    assert first < (time.monotonic() - begun) / 2
    assert pool.replaced == 0


def test_more_failures_than_allowed_stop_the_run(pool_of):
    pool = pool_of(FAULTY, workers=1, retries=0, max_failures=2)
    for i in range(3):
        pool.submit(i, "t7", "raise")
    with pytest.raises(RewardError, match=r"3 answers .*max_failures allows \(2\).*task t7: judge of"):
        verdicts(pool, 3)


def test_an_unknown_task_is_our_failure(pool_of):
    pool = pool_of(FAULTY, retries=0)
    pool.submit("a", "nobody", "5")
    assert verdicts(pool, 1)["a"].infrastructure


def test_submitting_to_a_stopped_worker_does_not_block(pool_of):
    pool = pool_of(FAULTY, workers=1, timeout_sec=3600)
    os.kill(pool.pids()[0], signal.SIGSTOP)
    begun = time.monotonic()
    for i in range(100):
        pool.submit(i, "t5", "5" + " " * 100_000)
        pool.poll()
    assert time.monotonic() - begun < 10
    os.kill(pool.pids()[0], signal.SIGCONT)
    assert all(v.correct for v in verdicts(pool, 100).values())


def test_workers_import_no_torch_and_leave_interrupts_to_the_parent(pool_of):
    pool = pool_of("faulty_judges:modules", workers=1)
    os.kill(pool.pids()[0], signal.SIGINT)
    pool.submit("a", "t5", "torch,transformers,async_rollout.rewards.worker")
    assert verdicts(pool, 1)["a"].extracted == "async_rollout.rewards.worker"
    assert pool.replaced == 0


def test_no_worker_outlives_a_killed_parent(tmp_path):
    write_tasks(tmp_path / "tasks.jsonl", [Task("a", "say 1", "gsm8k", "1")])
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, tmp_path / "tasks.jsonl"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    workers = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
    assert len(workers) == 2
    parent.kill()
    parent.wait()
    assert psutil.wait_procs(workers, timeout=10)[1] == []


def test_who_is_not_ready_in_time_is_named(tmp_path):
    with closing(RewardPool([tmp_path / "absent.jsonl"], RewardConfig(workers=2))) as pool:
        pool.start()
        with pytest.raises(RewardError, match=r"not ready after 0 s: reward-0, reward-1$"):
            pool.wait_ready(0.0)


def test_a_worker_that_cannot_start_says_why(tmp_path):
    with closing(RewardPool([tmp_path / "absent.jsonl"], RewardConfig())) as pool:
        pool.start()
        with pytest.raises(RewardError, match=r"could not start:[\s\S]*absent\.jsonl: cannot be read"):
            pool.wait_ready(60)
