"""A result set made by hand with faults planted in it: each is flagged, in the checks table as written."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from async_rollout.analysis.collect import collect
from async_rollout.analysis.tables.catalog import write_tables
from async_rollout.config.report import ReportConfig
from summaries import a_cell, a_plan, summary_record, write_cell

SEEDS = range(3)
SYNC = [a_cell(mode="sync", k=0, seed=seed) for seed in SEEDS]
K2, K4, K8 = ([a_cell(k=k, seed=seed) for seed in SEEDS] for k in (2, 4, 8))
LAGGED = [a_cell(mode="lagged", k=2, seed=seed) for seed in SEEDS]


def same_as(cell, other) -> dict:
    """What makes `cell` a run with the numbers of `other`: an axis that did nothing."""
    ours, theirs = summary_record(cell), summary_record(other)
    own = ("config", "config_hash", "k", "mode", "seed", "wall_clock_sec", "trained_tokens_per_sec")
    return theirs | {name: ours[name] for name in own}


def edit(path: Path, pattern: str, replacement: str) -> None:
    text, n = re.subn(pattern, replacement, path.read_text(), count=1)
    assert n == 1
    path.write_text(text)


@pytest.fixture(scope="module")
def planted(tmp_path_factory) -> tuple[Path, pd.DataFrame]:
    """The tables' directory and the checks of a sweep in which all this has gone wrong at once."""
    results = tmp_path_factory.mktemp("results")
    cells = [*SYNC, *K2, *K4, *K8, *LAGGED]
    paths = {cell: write_cell(results, cell) for cell in cells}
    edit(paths[SYNC[0]], r'"pass_rate_last": 0\.75', '"pass_rate_last": 3.17')
    edit(paths[SYNC[1]], r'"kl": 0\.001', '"kl": NaN')
    paths[SYNC[2]].unlink()  # a missing seed
    for cell, other in zip(K4, K2, strict=True):  # K changes nothing
        write_cell(results, cell, **same_as(cell, other))
    # two configurations swapped, in the summaries of one and beside those of the other
    edit(paths[K8[0]], r'"config": \{', '"config": {"optim": {"lr": 0.5}, ')
    paths[K8[1]].with_name("config.json").write_text(json.dumps(summary_record(K8[2])["config"]))
    edit(paths[K8[2]].with_name("metrics.jsonl"), r'"wait_sec": [\d.]+', '"wait_sec": NaN')
    for cell, k in zip(LAGGED, (2, 2, 1), strict=True):  # a lag that is not K
        write_cell(results, cell, **same_as(cell, a_cell(mode="lagged", k=k, seed=cell.seed)))
    edit(paths[K2[0]], '"async_rollout": "0.1.0"', '"async_rollout": "0.0.9"')
    edit(paths[K2[1]], '"cores": 2', '"cores": 64')
    edit(paths[K2[2]], '"schema_version": 1', '"schema_version": 0')
    tables = results / "sort" / "tables"
    plans = {cell: a_plan(cell) for cell in cells} | {LAGGED[1]: a_plan(LAGGED[1], config_hash="changed")}
    write_tables(collect(paths, plans), tables, ReportConfig())
    return tables, pd.read_csv(tables / "checks.csv", keep_default_na=False)


FAULTS = {
    "rate 3.17": ("error", SYNC[0], r"broken: pass_rate_last \(3\.17\)"),
    "NaN": ("error", SYNC[1], "broken: not strict JSON .*NaN"),
    "missing seed": ("error", SYNC[2], "^missing"),
    "another schema": ("error", K2[2], "broken: schema version 0"),
    "K axis inert": ("warning", None, "areal, grpo, base, 1: axis k is inert, 2 and 4 have the same numbers"),
    "swapped in the summary": ("error", K8[0], "its config is not the one of its config_hash"),
    "swapped in config.json": (
        "error",
        K8[1],
        "config.json is of another run than the summary: seed 2 for 1",
    ),
    "NaN in the metrics": ("error", K8[2], r"metrics\.jsonl:1: not JSON \(NaN"),
    "not the config asked for": ("error", LAGGED[1], "made from another config"),
    "wrong lag": ("error", LAGGED[2], "the oldest trained token was 1 versions old, lagged makes it 2"),
    "other code": ("warning", None, r"different software: async_rollout is 0\.0\.9 \(1 cells\)"),
    "other machine": ("warning", None, r"different machines.*cores is 2 .*64 \(1 cells\)"),
    "a bound that never bound": ("note", None, "K = 4: never bound, the oldest trained token was 2"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_flagged(planted, name: str) -> None:
    level, cell, text = FAULTS[name]
    _, found = planted
    found = found[(found["level"] == level) & (found["cell"] == (cell.id if cell else ""))]
    assert any(re.search(text, finding) for finding in found["finding"]), found["finding"].tolist()


def test_nothing_else_is_flagged(planted) -> None:
    _, found = planted
    unexplained = [
        (row.level, row.cell, row.finding)
        for row in found.itertuples()
        if not any(
            row.level == level and row.cell == (cell.id if cell else "") and re.search(text, row.finding)
            for level, cell, text in FAULTS.values()
        )
    ]
    assert unexplained == []


def test_a_broken_cell_is_in_no_mean(planted) -> None:
    tables, _ = planted
    frame = pd.read_csv(tables / "mode_aggregate.csv")
    assert frame[frame["mode"] == "sync"]["n"].item() == 0
    failed = pd.read_csv(tables / "failures.csv")
    assert set(failed["kind"]) == {"damaged", "missing"}
    assert {cell.id for cell in SYNC} <= set(failed["cell"])
