"""Everything wrong that is planted in a set of results is flagged, and a clean set has no flag."""

import json
import re
from pathlib import Path

import pytest

from async_rollout.analysis.checks import checks, unreal_backends
from async_rollout.analysis.collect import collect
from summaries import a_cell, a_plan, grid, summary_record, write_cell, write_grid

CELL = a_cell()


def findings(paths: dict, plans: dict | None = None, under_way: bool = False) -> list[tuple[str, str, str]]:
    """(level, cell id, text)"""
    found = checks(collect(paths, plans, under_way=under_way))
    return [(c.level, c.cell.id if c.cell else "", c.text) for c in found]


def one(tmp_path: Path, **changes) -> list[tuple[str, str, str]]:
    """Findings about three seeds of which seed 0 is changed; notes on n cannot come up."""
    paths = {cell: write_cell(tmp_path, cell) for cell in (a_cell(seed=s) for s in (1, 2))}
    return findings({CELL: write_cell(tmp_path, CELL, **changes), **paths})


def test_a_clean_sweep_of_three_seeds_has_no_findings(tmp_path: Path) -> None:
    assert findings(write_grid(tmp_path, grid(3))) == []


def flow(**counts) -> dict:
    """A `Flow` of a summary; zero where not told otherwise."""
    return {"generated": 0, "trained": 0, "dropped": {}, "abandoned": 0} | counts


PLANTED = {
    "rate": ({"pass_rate_last": 3.17}, "error", r"broken: pass_rate_last \(3.17\)"),
    "collapsed": ({"status": "collapsed"}, "warning", "collapsed"),
    "attempts": ({"attempts": 3}, "warning", "needed 3 attempts"),
    "failures": ({"infrastructure_failures": 2}, "warning", "2 answers could not be judged"),
    "above K": ({"staleness_max": 5}, "error", "5 versions old, above K = 4"),
    "wrong max": ({"staleness_max": 3}, "error", "staleness_max is 3, the oldest trained token was 4"),
    "unknown ages": ({"tokens": flow(generated=5, trained=5)}, "error", "ages of"),
    "lost samples": (
        {"samples": flow(generated=10, trained=7, dropped={"stale": 1}, abandoned=1)},
        "error",
        "samples do not add up: 10 generated, 9 accounted for",
    ),
    "no evaluation": ({"eval_pass_rate": []}, "warning", "never evaluated"),
    "empty updates": ({"empty_updates": 7}, "note", "nothing was trainable in 7 of 60"),
    "foreign": ({"k": 0}, "error", "broken: k is 0, this cell's is 4"),
    "swapped config": ({"config": {"k": 8}}, "error", "broken: k is 4, its own config has 8"),
    "other code": (
        {"software": {"async_rollout": "0.0.9", "torch": "2.13.0"}},
        "warning",
        "different software: async_rollout is 0.0.9 .1 cells., 0.1.0 .2 cells.",
    ),
    "other machine": ({"machine": {"cpu": "test CPU", "cores": 64}}, "warning", "different machines"),
    "short": ({"updates": 19}, "warning", "K = 4: cannot bind within 19 updates; it takes 20"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_flagged_once_and_nothing_else(tmp_path: Path, name: str) -> None:
    changes, level, text = PLANTED[name]
    found = one(tmp_path, **changes)
    hits = [f for f in found if f[0] == level]
    assert len(hits) >= 1
    assert any(re.search(text, f[2]) for f in hits), found
    if name not in ("above K",):  # which is also a wrong maximum
        assert len(found) == 1


def test_missing_and_torn_cells_are_errors(tmp_path: Path) -> None:
    cells = [a_cell(seed=seed) for seed in range(5)]
    paths = {cell: write_cell(tmp_path, cell) for cell in cells}
    paths[cells[0]].unlink()
    paths[cells[1]].write_text("")
    paths[cells[2]].write_text(json.dumps(summary_record(cells[2]))[:500])
    text = paths[cells[3]].read_text().replace('"kl": 0.001', '"kl": NaN')
    paths[cells[3]].write_text(text)
    found = findings(paths)
    assert [(level, cell) for level, cell, _ in found] == [("error", cell.id) for cell in cells[:4]]
    for (_, _, text), word in zip(found, ("missing", "empty", "not strict JSON", "NaN"), strict=True):
        assert word in text
        assert str(tmp_path) not in text


def test_an_inert_axis_is_flagged(tmp_path: Path) -> None:
    zero = {"0": 8000}
    flat = {
        "staleness_histogram": {"trained": zero, "generated": zero, "dropped": {}},
        "staleness_max": 0,
        "staleness_mean": 0.0,
        "tokens": flow(generated=8000, trained=8000),
    }
    cells = [a_cell(k=k, seed=seed) for k in (4, "inf") for seed in range(3)]
    found = findings({cell: write_cell(tmp_path, cell, **flat) for cell in cells})
    assert [f[0] for f in found] == ["warning", "warning"]
    assert "K = 4: inert in 3 of 3 cells" in found[0][2]
    assert "K = inf: inert in 3 of 3 cells" in found[1][2]


def test_a_bound_that_was_never_reached_is_a_note(tmp_path: Path) -> None:
    ages = {"0": 4000, "2": 4000}
    loose = {
        "staleness_histogram": {"trained": ages, "generated": ages, "dropped": {}},
        "staleness_max": 2,
        "tokens": flow(generated=8000, trained=8000),
    }
    found = findings(
        {cell: write_cell(tmp_path, cell, **loose) for cell in (a_cell(seed=s) for s in range(3))}
    )
    assert len(found) == 1
    assert found[0][0] == "note"
    assert "never bound, the oldest trained token was 2 versions old" in found[0][2]


def test_one_run_under_two_names_is_flagged(tmp_path: Path) -> None:
    cells = [a_cell(seed=seed) for seed in range(3)]
    paths = {cell: write_cell(tmp_path, cell) for cell in cells}
    same = summary_record(cells[0])["config_hash"]
    found = findings(paths | {cells[1]: write_cell(tmp_path, cells[1], config_hash=same)})
    assert "one run under 2 names" in found[0][2]
    assert "same config hash" in found[0][2]


def test_a_copied_run_is_flagged_though_its_axes_were_changed(tmp_path: Path) -> None:
    cells = [a_cell(seed=seed) for seed in range(3)]
    paths = {cell: write_cell(tmp_path, cell) for cell in cells}
    copied = {"entropy": summary_record(cells[0])["entropy"]}  # all else is alike in synthetic cells
    found = findings(paths | {cells[2]: write_cell(tmp_path, cells[2], **copied)})
    ids = f"{cells[0].id}, {cells[2].id}"
    assert f"one run under 2 names: {ids} have the same numbers and wall clock" in found[0][2]


def test_a_summary_of_another_config_is_flagged(tmp_path: Path) -> None:
    cells = [a_cell(seed=seed) for seed in range(3)]
    paths = {cell: write_cell(tmp_path, cell) for cell in cells}
    plans = {cell: a_plan(cell) for cell in cells}
    assert findings(paths, plans) == []
    found = findings(paths, plans | {cells[0]: a_plan(cells[0], config_hash="changed since")})
    assert [(f[0], f[1]) for f in found] == [("error", cells[0].id)]
    assert "another config" in found[0][2]


def test_few_seeds_are_a_note_and_an_empty_sweep_an_error(tmp_path: Path) -> None:
    found = findings(write_grid(tmp_path, grid(2)))
    assert [f[0] for f in found] == ["note"]
    assert "n = 2" in found[0][2]
    assert findings({}) == [("error", "", "the sweep has no cells")]
    assert ("error", "", "no cell has finished") in findings({CELL: tmp_path / "none.json"})
    begun = findings({CELL: tmp_path / "none.json"}, under_way=True)
    assert ("note", "", "no cell has finished") in begun
    assert {level for level, _, _ in begun} == {"note"}


def test_backends_that_are_no_model_are_counted(tmp_path: Path) -> None:
    paths = {
        c: write_cell(tmp_path, c, backend=b)
        for c, b in ((a_cell(seed=0), "dummy"), (a_cell(seed=1), "tabular"), (a_cell(seed=2), "causal_lm"))
    }
    assert unreal_backends(collect(paths)) == {"dummy": 1, "tabular": 1}


def test_what_never_acted_is_inert_for_the_whole_axis(tmp_path: Path) -> None:
    cells = [a_cell(k=k, seed=seed) for k in (0, 4) for seed in range(3)]
    silent = {cell: write_cell(tmp_path, cell, clip_fraction=0.0, minibatches=1) for cell in cells}
    (level, cell, text), *others = findings(silent)
    assert (level, cell, others) == ("note", "", [])
    assert text.startswith("sort, areal, grpo, base, decoupled 1: inert, clipping never acted")
    assert text.endswith("in all 6 cells (K = 0, 4, 1 minibatches)")
    assert findings(silent | {cells[-1]: write_cell(tmp_path, cells[-1], clip_fraction=0.01)}) == []


def test_a_loss_that_does_not_clip_has_no_inert_clipping(tmp_path: Path) -> None:
    cells = [a_cell(decoupled=0, seed=seed) for seed in range(3)]
    assert findings({cell: write_cell(tmp_path, cell, clip_fraction=0.0) for cell in cells}) == []


def test_metrics_that_are_missing_or_incomplete_are_flagged(tmp_path: Path) -> None:
    cells = [a_cell(seed=seed) for seed in range(3)]
    paths = {cell: write_cell(tmp_path, cell, metrics=cell.seed != 1) for cell in cells}
    log = paths[cells[0]].with_name("metrics.jsonl")
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-1]))
    assert findings(paths) == [
        ("error", cells[0].id, "metrics.jsonl has 59 commits, the run 60"),
        ("warning", cells[1].id, "no metrics.jsonl"),
    ]
