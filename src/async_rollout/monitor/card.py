"""A cell as the list shows it."""

from async_rollout.monitor.cell import WatchedCell
from async_rollout.monitor.health import findings_of
from async_rollout.monitor.schema import Card
from async_rollout.monitor.state import state_of

_AXES = ("mode", "algorithm", "arm", "k", "decoupled", "seed", "updates")


def card_of(cell: WatchedCell, now: float) -> Card:
    """The card at `now` (seconds since 1970)."""
    state = state_of(cell, now)
    place, axes, last, ending = cell.place, cell.axes, cell.recent.last, cell.ending
    version = ending.policy_version if ending else last.version if last else 0
    return Card(
        id=place.id,
        experiment=place.experiment,
        dataset=place.dataset,
        cell=place.cell,
        **{name: getattr(axes, name) for name in _AXES},
        state=state,
        activity=cell.states[-1].state if cell.states else "",
        version=version,
        progress=_progress(version, axes.updates, state == "done"),
        pass_rate=_round(ending.pass_rate_last if ending else cell.recent.pass_rate),
        eval_pass_rate=_round(cell.evals[-1].sampled if cell.evals else None),
        staleness=_round(ending.staleness_mean if ending else last.staleness_mean if last else None),
        staleness_max=ending.staleness_max if ending else cell.oldest if last else None,
        tokens_per_sec=_round(ending.trained_tokens_per_sec if ending else cell.recent.speed),
        attempts=ending.attempts if ending else max((row.attempt for row in cell.states), default=0),
        last_sign=int(cell.last_sign),
        findings=findings_of(cell, state, now),
    )


def _progress(version: int, updates: int, done: bool) -> float:
    return 1.0 if done else min(1.0, version / updates) if updates else 0.0


def _round(value: float | None) -> float | None:
    """Six digits are enough to look at."""
    return None if value is None else float(f"{value:.6g}")
