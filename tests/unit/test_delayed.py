"""Injected delays: how long verdicts are held back, that nothing is lost meanwhile, and that 0 is nothing."""

import math
from types import SimpleNamespace

import pytest

from async_rollout.rewards import delayed
from async_rollout.rewards.delayed import DelayedRewards, delay, held_back
from async_rollout.types import SampleId, Verdict
from learning import run_config

PASS = Verdict(1.0, "pass")


class Instant:
    """Judges at once."""

    def __init__(self):
        self.answers = []
        self.closed = False

    def submit(self, key, task_id, text):
        self.answers.append(key)

    def poll(self):
        done, self.answers = [(key, PASS) for key in self.answers], []
        return done

    @property
    def pending(self):
        return len(self.answers)

    def patience(self):
        return 3600.0

    def close(self):
        self.closed = True


@pytest.fixture
def now(monkeypatch):
    """A clock to be set."""
    now = [100.0]
    monkeypatch.setattr(delayed, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_delays_are_exponential_and_a_function_of_the_sample():
    keys = [SampleId(group, sample) for group in range(1000) for sample in range(8)]
    drawn = sorted(delay(2.0, 7, key) for key in keys)
    assert drawn == sorted(delay(2.0, 7, key) for key in reversed(keys))
    n = len(drawn)
    assert len(set(drawn)) == n, "attempts and samples have streams of their own"
    gaps = [abs((1 - math.exp(-x / 2.0)) - (i + 0.5) / n) for i, x in enumerate(drawn)]
    assert max(gaps) < 1.63 / math.sqrt(n), "Kolmogorov-Smirnov at 1 %"
    assert delay(2.0, 8, keys[0]) != delay(2.0, 7, keys[0]) != delay(2.0, 7, SampleId(0, 0, 1))


def test_verdicts_come_when_they_are_due_each_once(now):
    rewards = DelayedRewards(Instant(), 5.0, 0)
    due = {SampleId(0, i): 100.0 + delay(5.0, 0, SampleId(0, i)) for i in range(20)}
    for key in due:
        rewards.submit(key, "task", "text")
    assert rewards.pending == 20
    came = {}
    while rewards.pending:
        for key, verdict in rewards.poll():
            assert (verdict, key in came) == (PASS, False)
            came[key] = now[0]
        if rewards.pending:
            assert rewards.patience() > 0
            now[0] += rewards.patience()
    assert came == pytest.approx(due)
    rewards.close()
    assert rewards._rewards.closed


def test_evaluation_is_not_held_back(now):
    rewards = DelayedRewards(Instant(), 1000.0, 0)
    rewards.submit((0, "greedy", 1), "task", "text")
    assert [key for key, _ in rewards.poll()] == [(0, "greedy", 1)]


def test_without_delay_the_rewards_are_the_rewards():
    rewards = Instant()
    assert held_back(rewards, run_config()) is rewards
    assert isinstance(held_back(rewards, run_config(stress={"judge_sec": 0.1})), DelayedRewards)
