"""Judging a list of answers with the run's reward pool, for evaluation and for `sync`."""

from collections.abc import Callable, Hashable, Sequence

from async_rollout.channels import poll
from async_rollout.rewards.backend import Rewards
from async_rollout.types import Verdict

_TELL_SEC = 0.5


def judge_all(
    pool: Rewards,
    answers: Sequence[tuple[Hashable, str, str]],
    tell: Callable[[str], None] = lambda text: None,
) -> dict[Hashable, Verdict]:
    """Verdict by key for answers given as (key, task id, text). Raises RewardError if the pool gives up.

    Verdicts of other answers, whose groups were rejected before they came, are let go. `tell` hears
    now and then how far it is.
    """
    for key, task_id, text in answers:
        pool.submit(key, task_id, text)
    wanted = {key for key, _, _ in answers}
    verdicts: dict[Hashable, Verdict] = {}
    while True:
        verdicts.update((key, verdict) for key, verdict in pool.poll() if key in wanted)
        if len(verdicts) == len(wanted):
            return verdicts
        tell(f"{len(verdicts)} of {len(wanted)} answers judged")
        poll(pool.waitables(), min(_TELL_SEC, pool.patience()))
