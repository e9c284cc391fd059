"""A run whose pass rate fell ends where the rule says, in every mode, and says so."""

from pathlib import Path

import pytest

from tiny_cells import cell_config, run_tiny


@pytest.mark.parametrize(("mode", "k"), [("sync", 0), ("lagged", 2), ("areal", 2)])
def test_a_collapsed_run_ends_early(mode: str, k: int, tmp_path: Path) -> None:
    """The backend `dummy` learns nothing: its pass rate scatters, and soon falls below the start."""
    cell = run_tiny(
        cell_config(
            mode=mode,
            k=k,
            model={"backend": "dummy"},
            train={"updates": 60, "save_model": True},
            evaluation={"every": 3},
            collapse={"windows": 1, "window": 2, "share": 0.95},
        ),
        tmp_path,
    )
    summary, commits = cell.summary, cell.rows("metrics.jsonl")
    rates = [row["correct"] for row in commits]
    below = [n for n in range(4, len(rates) + 1, 2) if sum(rates[n - 2 : n]) < 0.95 * sum(rates[:2])]
    assert below == [len(commits)]
    assert (summary["status"], summary["updates"], summary["policy_version"]) == (
        "collapsed",
        below[0],
        below[0],
    )
    assert summary["updates"] < 60
    assert [row["version"] for row in cell.rows("evals.jsonl")] == list(range(0, below[0] + 1, 3))
    samples = summary["samples"]
    lost = sum(samples["dropped"].values()) + samples["abandoned"]
    assert samples["generated"] == samples["trained"] + lost
    assert samples["trained"] == 16 * below[0]
    assert list((cell.out / "model").iterdir()), "what was trained until then is kept"
    if mode == "lagged":
        assert samples["abandoned"] == 16 * k  # the batches that waited
