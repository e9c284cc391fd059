"""Sentences follow from the tables, change with them, and claim nothing that they do not carry."""

from pathlib import Path

from async_rollout.analysis.collect import collect
from async_rollout.analysis.sentences import sentences
from async_rollout.analysis.tables import summary_headline
from async_rollout.config.report import ReportConfig
from summaries import a_cell, grid, summary_record, write_cell, write_grid


def said(paths: dict, k: int = 4) -> str:
    return "\n".join(sentences(summary_headline(collect(paths), ReportConfig()), k))


def pair(tmp_path: Path, speeds: list[tuple[float, float]], ends: list[tuple[float, float]]) -> dict:
    """Cells of sync and areal with given (areal, sync) speeds and last held-out pass rates, a seed each."""
    paths = {}
    for seed, (speed, end) in enumerate(zip(speeds, ends, strict=True)):
        cells = (a_cell(seed=seed), a_cell(mode="sync", k=0, seed=seed))
        for cell, tokens, rate in zip(cells, speed, end, strict=True):
            evals = summary_record(cell)["eval_pass_rate"]
            evals[-1] = evals[-1] | {"sampled": rate}
            paths[cell] = write_cell(
                tmp_path, cell, metrics=False, trained_tokens_per_sec=tokens, eval_pass_rate=evals
            )
    return paths


def test_a_difference_that_three_seeds_carry_is_claimed(tmp_path: Path) -> None:
    text = said(pair(tmp_path, [(200, 100), (210, 100), (190, 100)], [(0.7, 0.8), (0.71, 0.8), (0.69, 0.8)]))
    assert "trained 2.00 times as many tokens a second as sync" in text
    assert "n = 3 pairs of seeds." in text
    assert "pass rate of 0.700, sync at 0.800: a difference of -0.100, 95" in text
    assert "claim" not in text


def test_two_seeds_carry_no_claim(tmp_path: Path) -> None:
    text = said(pair(tmp_path, [(200, 100)] * 2, [(0.7, 0.8)] * 2))
    assert "trained 2.00 times" in text
    assert text.count("in 2 pairs of seeds; fewer than 3 pairs support no claim") == 2


def test_an_interval_with_no_difference_in_it_is_no_claim(tmp_path: Path) -> None:
    text = said(pair(tmp_path, [(200, 100), (50, 100), (110, 100)], [(0.7, 0.6), (0.5, 0.6), (0.61, 0.6)]))
    assert "it includes 1, so no difference is claimed" in text
    assert "it includes 0, so no difference is claimed" in text


def test_seeds_are_paired_and_restarted_cells_are_no_speed(tmp_path: Path) -> None:
    paths = pair(tmp_path, [(200, 100)] * 3, [(0.7, 0.8)] * 3)
    restarted = a_cell(seed=2)
    paths[restarted] = write_cell(tmp_path, restarted, metrics=False, attempts=2, trained_tokens_per_sec=1.0)
    text = said(paths)
    assert "trained 2.00 times" in text
    assert "in 2 pairs of seeds" in text
    paths[a_cell(seed=0)].unlink()
    assert "in 1 pair of seeds" in said(paths)


def test_areal_at_k_0_is_never_the_baseline(tmp_path: Path) -> None:
    cells = [a_cell(k=k, seed=seed) for k in (0, 4) for seed in range(3)]
    text = said({cell: write_cell(tmp_path, cell) for cell in cells})
    assert "no finished sync cell of this algorithm and arm" in text
    assert "times as many" not in text


def test_differing_objectives_are_named(tmp_path: Path) -> None:
    text = said(write_grid(tmp_path, grid(3)))
    lines = [line for line in text.splitlines() if "objective: areal with K = 4" in line]
    assert len(lines) == 6
    assert all(("sync has the decoupled objective" in line) == ("live objective" in line) for line in lines)


def test_staleness_and_learning_are_counted(tmp_path: Path) -> None:
    text = said(write_grid(tmp_path, grid(2)))
    assert "16 of 16 evaluated cells ended with a higher held-out pass rate" in text
    assert "1.19 policy versions old on average over 6 cells, 4 at most (8 optimizer steps); none was" in text


def test_a_headline_bound_that_is_not_in_the_sweep_is_said(tmp_path: Path) -> None:
    text = said(write_grid(tmp_path, grid(2)), k=2)
    assert "No finished areal cell has K = 2 (`report.k_headline`)" in text
    assert "times as many" not in text


def test_nothing_finished_is_said(tmp_path: Path) -> None:
    assert (
        said({a_cell(): tmp_path / "summary.json"}) == "No cell has finished, so there is nothing to say yet."
    )
