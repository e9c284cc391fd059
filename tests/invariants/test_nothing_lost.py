"""Invariant 10: every prompt handed out ends in exactly one place, and is trained once an epoch."""

import json
from collections import Counter

from crashed import UPDATES, rows
from tiny_cells import cell_config


def test_every_group_ends_once(areal_cell):
    """Submitted = trained + rejected, by the rows and by the summary."""
    rows = areal_cell.rows("results.jsonl")
    samples = Counter((r["group"], r["sample"], r["attempt"]) for r in rows)
    assert set(samples.values()) == {1}
    trained = {r["group"] for r in rows if r["dropped"] is None}
    rejected = {r["group"] for r in rows if r["dropped"] == "infrastructure"}
    counts = areal_cell.summary["groups"]
    assert rejected, "no answer failed: the run shows nothing"
    assert not trained & rejected
    assert trained | rejected == set(range(counts["submitted"]))
    assert counts == {
        "submitted": len(trained | rejected),
        "trained": len(trained),
        "infrastructure": len(rejected),
    }
    assert len(trained) == areal_cell.config.train.updates * areal_cell.config.batch.groups
    assert sorted(n for row in areal_cell.rows("metrics.jsonl") for n in row["groups"]) == sorted(trained)


def test_trained_groups_are_whole(areal_cell):
    size = areal_cell.config.batch.group_size
    trained = Counter(r["group"] for r in areal_cell.rows("results.jsonl") if r["dropped"] is None)
    assert set(trained.values()) == {size}


def test_every_sample_and_token_is_counted_once(areal_cell):
    rows = areal_cell.rows("results.jsonl")
    summary = areal_cell.summary
    for flow, weight in ((summary["samples"], lambda r: 1), (summary["tokens"], lambda r: r["tokens"])):
        assert flow["generated"] == flow["trained"] + sum(flow["dropped"].values()) + flow["abandoned"]
        assert flow["trained"] == sum(weight(r) for r in rows if r["dropped"] is None)
        dropped = Counter()
        for row in rows:
            if row["dropped"] is not None:
                dropped[row["dropped"]] += weight(row)
        assert flow["dropped"] == dropped
    for what in ("trained", "generated"):
        assert sum(summary["staleness_histogram"][what].values()) == summary["tokens"][what]


def test_no_prompt_is_trained_twice_in_an_epoch(areal_cell):
    """The run goes through the prompts more than four times, rejected ones left out."""
    tasks = areal_cell.config.data.train_size
    trained = {(r["group"], r["task_id"]) for r in areal_cell.rows("results.jsonl") if r["dropped"] is None}
    in_epoch = Counter((group // tasks, task) for group, task in trained)
    assert set(in_epoch.values()) == {1}
    assert max(group // tasks for group, _ in trained) >= 4


def test_a_failure_of_the_judge_is_no_reward(areal_cell):
    """Rows that nobody could judge carry no reward and were never trained."""
    unjudged = [r for r in areal_cell.rows("results.jsonl") if r["verdict"] == "infrastructure"]
    assert areal_cell.summary["infrastructure_failures"] >= len(unjudged) > 0
    assert all(r["reward"] is None and r["dropped"] for r in unjudged)


def test_nothing_is_lost_by_crashes(crashed_run):
    """Over all attempts: every group handed out ends once, whole, and once an epoch."""
    _, run = crashed_run
    results, summary = rows(run, "results.jsonl"), json.loads((run.out / "summary.json").read_text())
    assert set(Counter((r["group"], r["sample"], r["attempt"]) for r in results).values()) == {1}
    trained = Counter(r["group"] for r in results if r["dropped"] is None)
    assert set(trained.values()) == {4}
    assert sorted(trained) == sorted(n for row in rows(run, "metrics.jsonl") for n in row["groups"])
    counts = summary["groups"]
    assert counts["trained"] == len(trained) == 4 * UPDATES
    assert counts["submitted"] == sum(n for what, n in counts.items() if what != "submitted")
    tasks = cell_config().data.train_size
    task_of = {r["group"]: r["task_id"] for r in results}
    in_epoch = Counter((group // tasks, task_of[group]) for group in trained)
    assert set(in_epoch.values()) == {1}
    for flow, weight in ((summary["samples"], lambda r: 1), (summary["tokens"], lambda r: r["tokens"])):
        assert flow["trained"] == sum(weight(r) for r in results if r["dropped"] is None)
        assert flow["generated"] == flow["trained"] + sum(flow["dropped"].values()) + flow["abandoned"]
    assert sum(summary["staleness_histogram"]["generated"].values()) == summary["tokens"]["generated"]
