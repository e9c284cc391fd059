"""Whether a policy has lost what it knew, judged on its training pass rate."""

from collections.abc import Sequence

from async_rollout.config.collapse import CollapseConfig
from async_rollout.records.rows import MetricsRow


def collapsed(commits: Sequence[MetricsRow], config: CollapseConfig) -> bool:
    """True at the end of a window that, like those just before it, stayed below a share of the start.

    Windows of `window` commits follow each other; the first is the start and is never judged.
    """
    if not config.windows or not commits or len(commits) % config.window:
        return False
    starts = range(0, len(commits), config.window)
    first, *later = (_pass_rate(commits[i : i + config.window]) for i in starts)
    latest = later[-config.windows :]
    return len(latest) == config.windows and all(rate < config.share * first for rate in latest)


def _pass_rate(commits: Sequence[MetricsRow]) -> float:
    correct = sum(c.correct for c in commits)
    return correct / max(1, correct + sum(c.incorrect for c in commits))
