"""The numbers of a run that no two runs share unless they did the same: none of them is a time."""

from async_rollout.records.summary import Summary

_MEASURES = ("reward_mean", "pass_rate_first", "pass_rate_last", "kl", "entropy", "grad_norm", "ess_ratio")


def fingerprint(summary: Summary) -> tuple:
    """Equal for runs that sampled and learned the same."""
    evaluations = tuple((point.version, point.sampled, point.greedy) for point in summary.eval_pass_rate)
    return *(getattr(summary, name) for name in _MEASURES), summary.tokens.trained, evaluations
