"""Spans of all processes, the Chrome trace made of them, and shares of busy time."""

import json
import time

import pytest

from async_rollout.records.events import Events, Stretches, busy_fractions, chrome_trace, read_events

IDLE = frozenset({"wait"})


def span(role: str, name: str, start: float, end: float) -> dict:
    return {"name": name, "role": role, "start": start, "end": end, "args": {}}


def test_spans_of_all_processes_come_back_by_start(tmp_path):
    first, second = (Events(tmp_path / f"{r}.jsonl", r) for r in ("rollout-0", "trainer-0"))
    first.add("generate", 3.0, 4.0, version=2)
    second.add("train", 1.0, 2.5)
    with first.span("reload", version=3):
        pass
    with pytest.raises(ZeroDivisionError), second.span("publish"):
        raise ZeroDivisionError
    first.close()
    second.close()
    events = read_events(tmp_path)
    assert [(e["role"], e["name"]) for e in events[:2]] == [("trainer-0", "train"), ("rollout-0", "generate")]
    assert {e["name"] for e in events} == {"train", "generate", "reload"}
    assert events[1]["args"] == {"version": 2}


def test_the_trace_is_in_the_trace_event_format():
    """Complete events with microseconds since the origin; each process named."""
    trace = chrome_trace([span("b-0", "x", 10.5, 11.0), span("a-0", "y", 11.0, 11.25)], origin=10.0)
    json.dumps(trace, allow_nan=False)
    names = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"}
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert set(names.values()) == {"a-0", "b-0"}
    assert [(names[e["pid"]], e["name"], e["ts"], e["dur"]) for e in spans] == [
        ("b-0", "x", 500_000.0, 500_000.0),
        ("a-0", "y", 1_000_000.0, 250_000.0),
    ]


def test_busy_shares_are_cut_to_the_run_and_averaged_over_a_kind():
    events = [
        span("rollout-0", "generate", -5, 2),  # 2 s of it in the run
        span("rollout-0", "wait", 2, 8),
        span("rollout-0", "generate", 8, 20),  # 2 s
        span("rollout-1", "generate", 0, 10),  # all of it
        span("trainer-0", "train", 1, 6),
        span("trainer-0", "evaluate", 50, 60),  # after the run
        span("idler-0", "wait", 0, 10),
    ]
    assert busy_fractions(events, 0, 10, IDLE) == {"rollout": 0.7, "trainer": 0.5, "idler": 0.0}


def test_busy_shares_never_exceed_one():
    events = [span("a-0", "x", 0, 10), span("a-0", "y", 0, 10)]
    assert busy_fractions(events, 0, 10, IDLE) == {"a": 1.0}


def test_what_is_done_in_a_pause_is_not_the_runs():
    events = [span("a-0", "x", 0, 10), span("b-0", "x", 1, 3), span("b-0", "x", 7, 9)]
    assert busy_fractions(events, 0, 10, IDLE, [(2, 6), (8, 9)]) == {"a": 1.0, "b": 2 / 5}


def test_stretches_end_at_waits_that_are_worth_the_name(tmp_path, monkeypatch):
    now = iter([0, 1, 1.001, 2, 5, 6, 7, 8])  # begun, three waits, closed
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    work = Stretches(Events(tmp_path / "controller-0.jsonl", "controller-0"), "control")
    for _ in range(3):
        with work.wait():
            pass
    work.close()
    assert [(e["start"], e["end"]) for e in read_events(tmp_path)] == [(0, 2), (5, 6), (7, 8)]
