"""What staleness buys: speed, and reward for the tokens it costs."""

from async_rollout.analysis.figures.against_k import Measure, against_k
from async_rollout.analysis.figures.drawing import Drawing, Scene
from async_rollout.analysis.series import is_timed, keep
from async_rollout.records.summary import Summary

UNTIMED = (
    "no cell of mode sync, async or areal has finished at its first attempt",
    "mode lagged delays on purpose, so its speed says nothing; modes: [sync, areal] has one "
    "(config/demo.yaml)",
)
THROUGHPUT = Measure("trained_tokens_per_sec", "trained tokens / s", lambda s: s.trained_tokens_per_sec)


def fig5c_throughput_vs_staleness(scene: Scene) -> Drawing:
    """Trained tokens a second by K (AReaL, Fig. 5c)."""
    timed = keep(scene.cells, is_timed)
    return against_k(scene, "Throughput against allowed staleness", [THROUGHPUT], timed, UNTIMED)


def fig_updates_per_sec(scene: Scene) -> Drawing:
    """Commits a second by K."""
    measure = Measure("updates_per_sec", "updates / s", lambda s: s.updates_per_sec)
    return against_k(scene, "Updates a second", [measure], keep(scene.cells, is_timed), UNTIMED)


def fig_reward_per_ktoken(scene: Scene) -> Drawing:
    """Reward of trained samples for a thousand generated tokens, dropped ones included, by K."""
    measure = Measure("reward_per_ktoken", "reward / 1,000 tokens", reward_per_ktoken)
    missing = ("no finished cell has generated a token", "any finished cell gives this figure")
    return against_k(scene, "Reward for generated tokens", [measure], scene.cells.done(), missing)


def reward_per_ktoken(summary: Summary) -> float | None:
    """Sum of the trained samples' rewards ÷ thousands of generated tokens."""
    if not summary.tokens.generated:
        return None
    return summary.reward_mean * summary.samples.trained / summary.tokens.generated * 1000
