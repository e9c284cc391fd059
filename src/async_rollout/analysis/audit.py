"""Whether a finished cell kept the invariants 1, 2 and 10 of docs/design.md, by its files alone.

Every number here is counted again from `results.jsonl` and compared with what `metrics.jsonl`
and `summary.json` say of it. Nothing that ran is asked.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from async_rollout.analysis.rows import Rows, count_rows
from async_rollout.records.cells import SUMMARY_FILE, SummaryError, read_metrics, read_summary
from async_rollout.records.rows import MetricsRow
from async_rollout.records.summary import Flow, Summary

_ON_POLICY = 1e-4  # largest log-ratio before the first step where nothing is stale, in float32
_PROCEDURAL = ("sort", "coding", "calculator")  # give exactly as many tasks as they are asked for
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Fault:
    """What a cell's files contradict."""

    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.check}: {self.text}"


def faults(cell: Path) -> list[Fault]:
    """Everything that is wrong with a finished cell's directory.

    Raises FileNotFoundError if it has no summary.json: a run that is under way is not judged.
    """
    try:
        summary = read_summary(cell / SUMMARY_FILE)
    except SummaryError as error:
        return [Fault("files", str(error))]
    try:
        metrics, rows = read_metrics(cell), count_rows(cell / "results.jsonl")
    except (FileNotFoundError, ValueError, KeyError) as error:
        return [Fault("files", f"{type(error).__name__}: {error}")]
    return [
        *_staleness(summary, metrics, rows),
        *_on_policy(summary, metrics),
        *_commits(summary, metrics),
        *_groups(summary, metrics, rows),
        *_epochs(summary, rows),
        *_flows(summary, metrics, rows),
    ]


def _staleness(summary: Summary, metrics: list[MetricsRow], rows: Rows) -> Iterator[Fault]:
    """Invariant 1; what is said of staleness is what the tokens' versions say."""
    name = "trained_staleness_at_most_K"
    ages = rows.ages["trained"]
    bound = float(summary.k)
    if beyond := {age: n for age, n in ages.items() if not 0 <= age <= bound}:
        yield Fault(name, f"K = {summary.k}, trained tokens by age beyond it: {beyond}")
    if summary.mode == "lagged":
        late = [m.version for m in metrics if set(m.staleness) - {str(min(m.version - 1, summary.k))}]
        if late:
            yield Fault(name, f"lagged: not exactly min(version, K) versions old: commits {_some(late)}")
    if rows.mislabelled:
        yield Fault(name, f"staleness is not trained_at − oldest version: {_some(rows.mislabelled)}")
    by_commit: Counter = Counter()
    for row in metrics:
        by_commit.update({int(age): n for age, n in row.staleness.items()})
    for kind in ("trained", "dropped"):
        said = {int(age): n for age, n in getattr(summary.staleness_histogram, kind).items()}
        if said != dict(rows.ages[kind]):
            yield Fault(name, f"{kind} tokens by age: summary {said}, rows {dict(rows.ages[kind])}")
    if any(n > ages[age] for age, n in by_commit.items()):  # masked samples are in no loss
        yield Fault(name, f"trained tokens by age: metrics {dict(by_commit)}, rows {dict(ages)}")


def _on_policy(summary: Summary, metrics: list[MetricsRow]) -> Iterator[Fault]:
    """Invariant 2, where parameters and computation are float32."""
    model = summary.config["model"]
    if summary.k != 0 or (model["dtype"], model["autocast"]) != ("float32", "none"):
        return
    off = [m.version for m in metrics if m.staleness_max or m.first_logratio_max >= _ON_POLICY]
    if off:
        worst = max(m.first_logratio_max for m in metrics)
        yield Fault("k0_is_on_policy", f"commits {_some(off)}; largest log-ratio {worst:.3g}")


def _commits(summary: Summary, metrics: list[MetricsRow]) -> Iterator[Fault]:
    """Every batch ends in exactly one commit, and the run has as many as it should."""
    versions = [m.version for m in metrics]
    if versions != list(range(1, len(versions) + 1)):
        yield Fault("one_commit_a_batch", f"versions in metrics.jsonl do not count up: {_some(versions)}")
    if not len(metrics) == summary.updates == summary.policy_version:
        text = f"{len(metrics)} rows, {summary.updates} updates, version {summary.policy_version}"
        yield Fault("one_commit_a_batch", text)
    wanted = summary.config["train"]["updates"]
    if summary.status == "done" and summary.updates != wanted:
        yield Fault("one_commit_a_batch", f"{summary.updates} updates of {wanted}")
    batch = summary.config["batch"]["groups"]
    if odd := [m.version for m in metrics if len(m.groups) != batch]:
        yield Fault("one_commit_a_batch", f"not {batch} groups in commits {_some(odd)}")


def _groups(summary: Summary, metrics: list[MetricsRow], rows: Rows) -> Iterator[Fault]:
    """Invariant 10: what was handed out ends once, whole, where its commit says."""
    name = "nothing_lost"
    if rows.twice:
        yield Fault(name, f"samples that end twice: {_some(rows.twice)}")
    size = summary.config["batch"]["group_size"]
    if part := [g for g, n in rows.trained.items() if n != size]:
        yield Fault(name, f"trained groups without all of their {size} samples: {_some(part)}")
    told = [(group, m.version - 1) for m in metrics for group in m.groups]
    if again := [group for group, n in Counter(group for group, _ in told).items() if n > 1]:
        yield Fault(name, f"groups in more than one commit: {_some(again)}")
    if differ := sorted(set(told) ^ set(rows.trained_at.items())):
        yield Fault(name, f"(group, version) of metrics and rows differ: {_some(differ)}")
    if both := sorted(rows.trained.keys() & rows.dropped):
        yield Fault(name, f"groups both trained and dropped: {_some(both)}")
    counts = dict(summary.groups)
    submitted, ended = counts.pop("submitted"), sum(counts.values())
    if ended > submitted or (summary.status == "done" and ended < submitted):
        yield Fault(name, f"{submitted} groups handed out, {ended} ended: {counts}")
    if counts["trained"] != len(rows.trained):
        yield Fault(name, f"{counts['trained']} groups trained, rows have {len(rows.trained)}")


def _epochs(summary: Summary, rows: Rows) -> Iterator[Fault]:
    """Invariant 10: no prompt is trained twice within an epoch of the prompts."""
    data, tasks = summary.config["data"], len(set(rows.task.values()))
    if summary.dataset in _PROCEDURAL:
        tasks = min(data["train_size"], data["task_limit"] or data["train_size"])
    elif len(rows.task) < summary.groups["submitted"]:
        return  # groups that left no row: how many prompts there are cannot be told
    seen = Counter((group // tasks, rows.task[group]) for group in rows.trained)
    if twice := [place for place, n in seen.items() if n > 1]:
        yield Fault("nothing_lost", f"(epoch, task) trained twice: {_some(twice)}")


def _flows(summary: Summary, metrics: list[MetricsRow], rows: Rows) -> Iterator[Fault]:
    """Everything generated is counted once where it ends; what was trained was judged."""
    flows: dict[str, tuple[Flow, Counter]] = {
        "samples": (summary.samples, rows.samples),
        "tokens": (summary.tokens, rows.tokens),
    }
    for what, (flow, counted) in flows.items():
        ended = flow.trained + sum(flow.dropped.values()) + flow.abandoned
        if flow.generated != ended:
            yield Fault("nothing_lost", f"{flow.generated} {what} generated, {ended} ended")
        said = {"trained": flow.trained, **flow.dropped}
        if said != {"trained": 0} | counted:
            yield Fault("nothing_lost", f"{what}: summary {said}, rows {dict(counted)}")
    if rows.unjudged:
        yield Fault("reward_is_judged_not_guessed", f"trained without a verdict: {_some(rows.unjudged)}")
    judged = sum(m.correct + m.incorrect for m in metrics)
    if judged != rows.samples["trained"]:
        text = f"metrics judge {judged} samples, rows have {rows.samples['trained']} trained"
        yield Fault("nothing_lost", text)


def _some(found: list) -> str:
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(map(str, found[:_SHOWN])) + more
