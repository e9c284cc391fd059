"""Judging a list of answers with the run's reward pool, for evaluation and for `sync`."""

from collections.abc import Hashable, Sequence

from async_rollout.channels import poll
from async_rollout.rewards.pool import RewardPool
from async_rollout.types import Verdict


def judge_all(pool: RewardPool, answers: Sequence[tuple[Hashable, str, str]]) -> dict[Hashable, Verdict]:
    """Verdict by key for answers given as (key, task id, text). Raises RewardError if the pool gives up."""
    for key, task_id, text in answers:
        pool.submit(key, task_id, text)
    verdicts: dict[Hashable, Verdict] = {}
    while True:
        verdicts.update(pool.poll())
        if len(verdicts) == len(answers):
            return verdicts
        poll(pool.waitables(), pool.patience())
