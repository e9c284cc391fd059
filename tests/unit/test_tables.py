"""The tables of cells and of their means, against known numbers."""

import math
from pathlib import Path

import pandas as pd
import pytest

from async_rollout.analysis.collect import collect
from async_rollout.analysis.tables import display, mode_aggregate, summary_headline, write_tables
from async_rollout.config.report import ReportConfig
from summaries import a_cell, grid, summary_record, write_cell, write_grid

REPORT = ReportConfig(pass_threshold={"sort": 0.6})


def fixed_set(results: Path) -> dict:
    """Seven cells: two seeds of sync, three of areal at K = 4 (one late, one lost), K = inf, a second arm."""
    sync = [a_cell(mode="sync", k=0, seed=seed) for seed in (0, 1)]
    areal = [a_cell(seed=seed) for seed in (0, 1, 2)]
    paths = {cell: write_cell(results, cell, metrics=False) for cell in sync}
    paths[areal[0]] = write_cell(results, areal[0], metrics=False, trained_tokens_per_sec=400.0)
    slow = {"trained_tokens_per_sec": 9.0, "attempts": 2, "pass_rate_last": 0.65, "status": "collapsed"}
    flat = [p | {"sampled": 0.25} for p in summary_record(areal[1])["eval_pass_rate"]]
    paths[areal[1]] = write_cell(results, areal[1], metrics=False, eval_pass_rate=flat, **slow)
    paths[areal[2]] = results / "sort" / "runs" / areal[2].id / "summary.json"
    for other in (a_cell(k="inf"), a_cell(arm="behavior")):
        paths[other] = write_cell(
            results,
            other,
            metrics=False,
            length_mean_trained=6.0,
            length_mean_generated=8.0,
            tokens={
                "generated": 20000,
                "trained": 18000,
                "dropped": {"stale": 1500, "rejected": 500},
                "abandoned": 0,
            },
        )
    return paths


def only(frame: pd.DataFrame, **where) -> pd.Series:
    for column, value in where.items():
        frame = frame[frame[column] == value]
    assert len(frame) == 1
    return frame.iloc[0]


def test_headline_has_a_row_for_each_cell_in_order(tmp_path: Path) -> None:
    headline = summary_headline(collect(fixed_set(tmp_path)), REPORT)
    assert list(headline["cell"]) == [
        "sync-grpo-k0-dec1-s0",
        "sync-grpo-k0-dec1-s1",
        "areal-grpo-k4-dec1-s0",
        "areal-grpo-k4-dec1-s1",
        "areal-grpo-k4-dec1-s2",
        "areal-grpo-kinf-dec1-s0",
        "areal-grpo-behavior-k4-dec1-s0",
    ]
    assert list(headline["status"]) == ["done", "done", "done", "collapsed", "missing", "done", "done"]
    assert list(headline["arm"]) == ["base"] * 6 + ["behavior"]


def test_headline_numbers(tmp_path: Path) -> None:
    headline = summary_headline(collect(fixed_set(tmp_path)), REPORT)
    first = only(headline, cell="areal-grpo-k4-dec1-s0")
    assert first["eval_sampled_first"] == 0.25
    assert first["eval_sampled_last"] == pytest.approx(0.75)
    assert first["eval_greedy_last"] == pytest.approx(0.80)
    assert first["updates_to_threshold"] == 60  # 0.25 + 40/120 is below 0.6
    assert first["k_steps"] == 8
    assert only(headline, cell="areal-grpo-k4-dec1-s1")["updates_to_threshold"] == math.inf
    loose = only(headline, cell="areal-grpo-kinf-dec1-s0")
    assert loose["dropped_token_share"] == pytest.approx(0.1)
    assert loose["length_ratio"] == pytest.approx(0.75)
    missing = only(headline, cell="areal-grpo-k4-dec1-s2")
    assert (
        missing.drop(["cell", "dataset", "mode", "algorithm", "arm", "k", "decoupled", "seed", "status"])
        .isna()
        .all()
    )


def test_an_unknown_dataset_has_the_default_threshold(tmp_path: Path) -> None:
    cell = a_cell(dataset="jsonl:words.jsonl")
    headline = summary_headline(collect({cell: write_cell(tmp_path, cell)}), REPORT)
    assert headline["updates_to_threshold"].item() == 0  # 0.25 >= 0.10 already at the start


def test_aggregate_counts_what_is_there_and_times_only_first_attempts(tmp_path: Path) -> None:
    aggregate = mode_aggregate(collect(fixed_set(tmp_path)), REPORT)
    row = only(aggregate, mode="areal", k=4, arm="base")
    assert (row["seeds"], row["n"], row["collapsed"], row["timed_n"]) == (3, 2, 1, 1)
    assert row["pass_rate_last_mean"] == pytest.approx(0.70)
    assert row["pass_rate_last_std"] == pytest.approx(0.10 / math.sqrt(2))  # ddof 1
    assert row["trained_tokens_per_sec_mean"] == 400.0
    assert math.isnan(row["trained_tokens_per_sec_std"])  # n = 1
    assert row["reached"] == "1 of 2"
    assert only(aggregate, mode="sync")["n"] == 2


def test_a_group_without_any_finished_cell_stays_in_the_aggregate(tmp_path: Path) -> None:
    cell = a_cell()
    aggregate = mode_aggregate(collect({cell: tmp_path / "summary.json"}), REPORT)
    assert (aggregate["seeds"].item(), aggregate["n"].item()) == (1, 0)
    assert math.isnan(aggregate["pass_rate_last_mean"].item())
    assert display(aggregate)["train pass, last"].item() == ""


def test_no_cells_give_tables_with_a_head_only(tmp_path: Path) -> None:
    write_tables(collect({}), tmp_path, REPORT)
    text = (tmp_path / "summary_headline.csv").read_text()
    assert text.startswith("cell,dataset,mode")
    assert text.count("\n") == 1


def test_tables_show_missing_and_not_reached_as_words(tmp_path: Path) -> None:
    write_tables(collect(fixed_set(tmp_path)), tmp_path / "tables", REPORT)
    for end in ("csv", "md"):
        lines = (tmp_path / "tables" / f"summary_headline.{end}").read_text().splitlines()
        assert "missing" in next(line for line in lines if "k4-dec1-s2" in line)
        assert "not reached" in next(line for line in lines if "k4-dec1-s1" in line)
        assert not any("nan" in line.lower() for line in lines)
    aggregate = (tmp_path / "tables" / "mode_aggregate.md").read_text()
    assert "0.700 ± 0.071" in aggregate


def test_markdown_of_hostile_names_stays_a_table(tmp_path: Path) -> None:
    cell = a_cell(dataset="jsonl:a|b<script>`x`\nc.jsonl")
    write_tables(collect({cell: tmp_path / "summary.json"}), tmp_path, REPORT)
    lines = (tmp_path / "summary_headline.md").read_text().splitlines()
    assert len(lines) == 3
    assert "<script>" not in lines[2]
    assert lines[2].replace("\\|", "").count("|") == lines[0].count("|")


def test_the_order_of_the_input_does_not_matter(tmp_path: Path) -> None:
    paths = write_grid(tmp_path, grid())
    write_tables(collect(paths), tmp_path / "a", REPORT)
    write_tables(collect(dict(reversed(paths.items()))), tmp_path / "b", REPORT)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()
