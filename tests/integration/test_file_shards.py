"""Reward workers that share nothing but files: killed, hung, silent, started anywhere."""

import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
from contextlib import closing

import psutil
import pytest

from async_rollout.cli import main
from async_rollout.config.reward import RewardConfig
from async_rollout.rewards.backend import build_rewards
from async_rollout.rewards.judge import RewardError
from async_rollout.rewards.pool import RewardPool
from async_rollout.rewards.shards import launch, layout, worker
from async_rollout.rewards.shards import pool as shards_pool
from async_rollout.rewards.shards.pool import ShardedRewards
from async_rollout.tasks.jsonl import write_tasks
from async_rollout.tasks.task import Task
from async_rollout.types import Verdict


@pytest.fixture
def started(tmp_path):
    write_tasks(tmp_path / "tasks.jsonl", [Task(f"t{i}", f"say {i}", "gsm8k", str(i)) for i in range(50)])
    made = []

    def start(**config):
        config = {"backend": "file_shards", "workers": 2, **config}
        rewards = ShardedRewards([tmp_path / "tasks.jsonl"], RewardConfig(**config), tmp_path / "shared")
        made.append(rewards)
        rewards.start()
        rewards.wait_ready(60)
        return rewards

    yield start
    for rewards in made:
        processes = [psutil.Process(pid) for pid in rewards.pids() if psutil.pid_exists(pid)]
        rewards.close()
        assert not psutil.wait_procs(processes, timeout=5)[1]


def verdicts(rewards, n, meanwhile=lambda: None, limit=60):
    found = {}
    begun = time.monotonic()
    while len(found) < n:
        assert time.monotonic() - begun < limit
        for key, verdict in rewards.poll():
            assert key not in found
            found[key] = verdict
        meanwhile()
        time.sleep(min(rewards.patience(), 0.05))
    assert rewards.pending == 0
    assert rewards.poll() == []
    return found


def submit(rewards, n):
    for i in range(n):
        rewards.submit(i, f"t{i % 50}", str(i % 50 if i % 3 else i % 50 + 1))


def right(found, n):
    return all(found[i].reward == float(bool(i % 3)) for i in range(n))


def test_every_answer_is_judged_once_and_nothing_is_left(started, tmp_path):
    rewards = started()
    submit(rewards, 100)
    assert right(verdicts(rewards, 100), 100)
    assert (rewards.failures, rewards.replaced) == (0, 0)
    rewards.close()
    assert not (tmp_path / "shared").exists()


def test_random_kills_lose_and_double_nothing(started):
    rewards = started(workers=3, retries=20)
    dice = random.Random(0)
    kills = [0.05, 0.3, 0.8, 1.5, 2.0]
    begun = time.monotonic()

    def kill_now_and_then():
        if kills and time.monotonic() - begun > kills[0]:
            kills.pop(0)
            os.kill(dice.choice(rewards.pids()), signal.SIGKILL)

    submit(rewards, 300)
    assert right(verdicts(rewards, 300, kill_now_and_then), 300)
    assert rewards.failures == 0
    assert rewards.replaced > 0


def test_a_stopped_worker_is_replaced_and_comes_back_to_nothing(started, monkeypatch):
    monkeypatch.setattr(shards_pool, "_GRACE_SEC", 0.5)
    rewards = started(workers=1, timeout_sec=0.5)
    os.kill(rewards.pids()[0], signal.SIGSTOP)
    submit(rewards, 20)
    assert right(verdicts(rewards, 20), 20)
    assert (rewards.failures, rewards.replaced) == (0, 1)


def test_what_kills_every_worker_is_counted_apart_in_the_end(started, tmp_path):
    rewards = started(workers=1, retries=1)
    shard = layout.Shard(tmp_path / "shared", 0)
    os.kill(rewards.pids()[0], signal.SIGSTOP)
    rewards.submit("bad", "t5", "5")
    submit(rewards, 5)
    for _ in range(2):  # it begins the answer, and dies of it
        os.kill(rewards.pids()[0], signal.SIGSTOP)
        ticket = next(t for t, path in layout.waiting(shard.requests) if '"t5"' in path.read_text())
        shard.beat(shard.incarnation, ticket)
        os.kill(rewards.pids()[0], signal.SIGKILL)
        while rewards.replaced == 0 and rewards.failures == 0:
            rewards._collect()
        rewards.replaced = 0
        if rewards.failures == 0:
            os.kill(rewards.pids()[0], signal.SIGSTOP)
    found = verdicts(rewards, 6)
    assert found["bad"].infrastructure
    assert right(found, 5)
    assert rewards.failures == 1


def test_a_task_that_nobody_has_is_our_failure_and_stops_the_run_in_the_end(started):
    rewards = started(workers=1, retries=0, max_failures=0)
    rewards.submit("a", "nobody", "5")
    with pytest.raises(RewardError, match=r"1 answers .*max_failures allows \(0\).*task nobody"):
        verdicts(rewards, 1)


@pytest.fixture
def by_hand(tmp_path):
    """A pool whose worker is the test, and its shard."""
    write_tasks(tmp_path / "tasks.jsonl", [Task("t", "?", "gsm8k", "1")])
    config = RewardConfig(backend="file_shards", hosts=["hand"], workers=1)
    made = []

    def start():
        made.append(ShardedRewards([tmp_path / "tasks.jsonl"], config, tmp_path / "shared"))
        made[-1].start()
        return made[-1], layout.Shard(tmp_path / "shared", 0)

    yield start
    for rewards in made:
        rewards.close()


def only_request(shard):
    ((ticket, path),) = layout.waiting(shard.requests)
    return ticket, path


GOOD = {"reward": 1.0, "verdict": "pass", "extracted": "1", "compared": None}


def test_a_worker_that_ends_a_failed_answer_late_does_not_take_the_next_try(by_hand):
    rewards, shard = by_hand()
    rewards.submit("a", "t", "1")
    ticket, request = only_request(shard)
    layout.put(shard.verdicts, ticket, {"failed": "once"})
    assert rewards.poll() == []
    request.unlink(missing_ok=True)  # the worker's last step with the first try
    again, _ = only_request(shard)
    assert again != ticket
    layout.put(shard.verdicts, ticket, {"failed": "the first try again"})
    layout.put(shard.verdicts, again, GOOD)
    ((key, verdict),) = rewards.poll()
    assert (key, verdict.reward, rewards.failures, rewards.pending) == ("a", 1.0, 0, 0)


def test_a_worker_of_a_killed_attempt_answers_nothing_of_the_next(by_hand):
    first, shard = by_hand()
    first.submit("old", "t", "2")
    old, _ = only_request(shard)
    second, shard = by_hand()
    second.submit("new", "t", "1")
    new, _ = only_request(shard)
    layout.put(shard.verdicts, old, {**GOOD, "reward": 0.0})
    assert second.poll() == []
    layout.put(shard.verdicts, new, GOOD)
    ((key, verdict),) = second.poll()
    assert (key, verdict.reward) == ("new", 1.0)


def test_a_request_cannot_name_code(started, tmp_path):
    rewards = started(workers=1)
    requests = layout.Shard(tmp_path / "shared", 0).requests
    layout.put(requests, "x", {"task_id": "t5", "text": "5", "judge": "os:abort", "tasks": ["/etc/passwd"]})
    rewards.submit("a", "t6", "6")
    assert verdicts(rewards, 1)["a"].correct


def test_workers_end_when_the_run_is_silent(tmp_path, monkeypatch):
    write_tasks(tmp_path / "tasks.jsonl", [Task("t", "?", "gsm8k", "1")])
    config = RewardConfig(backend="file_shards", hosts=["hand"])
    rewards = ShardedRewards([tmp_path / "tasks.jsonl"], config, tmp_path / "shared")
    rewards.start()
    code = (
        "import sys; from pathlib import Path; from async_rollout.rewards.shards import layout, worker\n"
        "layout.RUN_SILENT_SEC = 0.5; worker.work(Path(sys.argv[1]), 0, 1)"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path / "shared")], timeout=30)
    assert ran.returncode == 0


def test_who_is_not_ready_in_time_is_named_with_its_host(tmp_path):
    config = RewardConfig(backend="file_shards", hosts=["hand"], workers=3)
    with closing(ShardedRewards([], config, tmp_path / "shared")) as rewards:
        rewards.start()
        ready = layout.Shard(tmp_path / "shared", 1)
        ready.beat(ready.incarnation, "")
        with pytest.raises(
            RewardError, match=r"not ready after 0\.1 s: reward-0 \(hand\), reward-2 \(hand\)$"
        ):
            rewards.wait_ready(0.1)


@pytest.mark.parametrize("end", ["stop", "silence", "owner"])
def test_a_worker_ends_after_the_answer_in_hand_however_many_wait(by_hand, monkeypatch, end):
    rewards, shard = by_hand()
    incarnation = shard.incarnation
    for i in range(5):
        rewards.submit(i, "t", "1")
    monkeypatch.setattr(layout, "RUN_SILENT_SEC", 1.0)

    def judge(task, text):
        if end == "stop":
            (shard.home.parent / "stop").touch()
        elif end == "silence":
            time.sleep(1.1)
        else:
            shard.next_incarnation()
        return Verdict(1.0, "pass")

    monkeypatch.setattr(worker, "build_judge", lambda *args: judge)
    worker.work(shard.home.parent, 0, incarnation)
    assert (len(list(layout.waiting(shard.verdicts))), len(list(layout.waiting(shard.requests)))) == (1, 4)


def test_workers_by_hand_are_started_shown_and_stopped(tmp_path, capsys):
    write_tasks(tmp_path / "tasks.jsonl", [Task(f"t{i}", f"say {i}", "gsm8k", str(i)) for i in range(50)])
    shared = tmp_path / "shared"
    assert main(["reward-workers", "status", str(shared)]) == 2
    config = RewardConfig(backend="file_shards", hosts=["hand"], workers=2)
    with closing(ShardedRewards([tmp_path / "tasks.jsonl"], config, shared)) as rewards:
        rewards.start()
        assert main(["reward-workers", "start", str(shared), "--shards", "5"]) == 2
        capsys.readouterr()
        assert main(["reward-workers", "start", str(shared)]) == 0
        processes = [psutil.Process(int(line.split()[-1])) for line in capsys.readouterr().out.splitlines()]
        rewards.wait_ready(60)
        submit(rewards, 20)
        assert right(verdicts(rewards, 20), 20)
        assert main(["reward-workers", "status", str(shared)]) == 0
        assert capsys.readouterr().out.count("alive") == 2
        assert main(["reward-workers", "stop", str(shared)]) == 0
        assert not psutil.wait_procs(processes, timeout=10)[1]


@pytest.mark.parametrize(("host", "program"), [("node7", "ssh"), ("slurm", "srun")])
def test_workers_on_other_hosts(started, tmp_path, monkeypatch, host, program):
    """With stand-ins for ssh and srun that run the command here, as the other host would."""
    fake = tmp_path / "bin" / program
    fake.parent.mkdir()
    remote = 'for last; do :; done; exec sh -c "$last"' if program == "ssh" else 'shift 3; exec "$@"'
    fake.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/log\n{remote}\n')
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")
    rewards = started(hosts=[host], ssh_options=["-p", "2222"])
    submit(rewards, 20)
    assert right(verdicts(rewards, 20), 20)
    log = (tmp_path / "log").read_text()
    assert log.count("async_rollout.rewards.shards.worker") == 2
    assert ("-p 2222 node7" in log) == (program == "ssh")


def test_the_backend_is_chosen_by_the_configuration(tmp_path):
    assert isinstance(build_rewards([], RewardConfig(), tmp_path), RewardPool)
    sharded = build_rewards([], RewardConfig(backend="file_shards"), tmp_path)
    assert isinstance(sharded, ShardedRewards)


def test_answers_are_spread_over_the_shards():
    shards = [layout.shard_of(f"{i:012d}", 4) for i in range(4000)]
    assert all(900 < shards.count(n) < 1100 for n in range(4))


def test_localhost_workers_die_with_the_run(tmp_path):
    write_tasks(tmp_path / "tasks.jsonl", [Task("t", "?", "gsm8k", "1")])
    code = (
        "import sys, time; from pathlib import Path; from async_rollout.config.reward import RewardConfig\n"
        "from async_rollout.rewards.shards.pool import ShardedRewards\n"
        "r = ShardedRewards([Path(sys.argv[1])], RewardConfig(backend='file_shards'), Path(sys.argv[2]))\n"
        "r.start(); r.wait_ready(60); print(*r.pids(), flush=True); time.sleep(60)"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "tasks.jsonl"), str(tmp_path / "shared")]
    owner = subprocess.Popen(arguments, stdout=subprocess.PIPE)
    workers = [psutil.Process(int(pid)) for pid in owner.stdout.readline().split()]
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert workers
    assert not psutil.wait_procs(workers, timeout=5)[1]
    assert json.loads((tmp_path / "shared" / "setup.json").read_text())["reward"]["backend"] == "file_shards"
    assert launch.worker_command(tmp_path, 0, 1)[-2:] == ["0", "1"]
