"""Sentences follow from the tables, change with them, and claim nothing that they do not carry."""

from pathlib import Path

from async_rollout.analysis.collect import collect
from async_rollout.analysis.sentences import sentences
from async_rollout.analysis.tables.catalog import build_tables
from async_rollout.config.report import ReportConfig
from summaries import a_cell, grid, summary_record, write_cell, write_grid


def chapters(paths: dict, k: int = 4) -> dict[str, list[str]]:
    report = ReportConfig(k_headline=k)
    return sentences(dict(build_tables(collect(paths), report)), report)


def said(paths: dict, k: int = 4, chapter: str = "headline") -> str:
    return "\n".join(chapters(paths, k).get(chapter, []))


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
    speed, learning = text.splitlines()[1:]
    assert "on 2 cores" in speed
    assert "sync on 1 core, 95" in speed
    assert "each core or GPU that is 1.00 times as many" in speed  # twice the cores, so no gain by itself
    assert speed.endswith("it includes 1, so no difference is claimed.")
    assert "pass rate of 0.700, sync at 0.800: a difference of -0.100, 95" in learning
    assert learning.endswith("n = 3 pairs of seeds.")


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
    assert "the sweep has no sync cell of this algorithm and arm" in text
    assert "times as many" not in text
    speeds = said({cell: write_cell(tmp_path, cell) for cell in cells}, chapter="throughput")
    assert "No asynchronous run can be compared with a synchronous one." in speeds
    assert "relative to its own K = 0, which is no synchronous baseline, speed was 4.57 at K = 4" in speeds


def test_differing_objectives_are_named(tmp_path: Path) -> None:
    text = said(write_grid(tmp_path, grid(3)))
    lines = [line for line in text.splitlines() if "objective: areal with K = 4" in line]
    assert len(lines) == 6
    assert all(("sync has the decoupled objective" in line) == ("live objective" in line) for line in lines)


def test_staleness_and_learning_are_counted(tmp_path: Path) -> None:
    paths = write_grid(tmp_path, grid(2))
    assert "16 of 16 evaluated cells ended with a higher held-out pass rate" in said(paths)
    ages = said(paths, chapter="staleness")
    assert "1.19 policy versions old on average over 6 cells, 4 at most (8 optimizer steps); none was" in ages
    learning = said(paths, chapter="learning")
    assert "16 of 16 evaluated cells reached the threshold of pass rate, 0.6; the fastest after" in learning


def test_cells_that_never_reached_the_threshold_count_for_the_median(tmp_path: Path) -> None:
    paths = {}
    for seed, rates in enumerate([(0.0, 0.7), (0.7, 0.7), (0.0, 0.0), (0.0, 0.7)]):
        cell = a_cell(seed=seed)
        points = zip(summary_record(cell)["eval_pass_rate"], (rates[0], *[rates[1]] * 3), strict=True)
        evals = [point | {"sampled": rate} for point, rate in points]
        paths[cell] = write_cell(tmp_path, cell, metrics=False, eval_pass_rate=evals)
    text = said(paths, chapter="learning")
    assert "3 of 4 evaluated cells" in text
    assert "the fastest after 0 updates, the median after 20." in text  # of 0, 20, 20 and never
    lone = {cell: path for cell, path in paths.items() if cell.seed in (1, 2)}
    assert "the fastest after 0 updates, half of them or more never did." in said(lone, chapter="learning")


def test_sync_of_the_base_arm_is_named_where_the_arm_has_none(tmp_path: Path) -> None:
    cells = [a_cell(mode="sync", k=0), a_cell(mode="sync", k=0, arm="own"), a_cell()]
    paths = {cell: write_cell(tmp_path, cell) for cell in [*cells, a_cell(arm="own"), a_cell(arm="drain")]}
    lines = [line for line in said(paths).splitlines() if "Speed" in line]
    named = ["as sync (of the base arm: sync-grpo-k0-dec1) on" in line for line in lines]
    assert [("arm drain" in line, "1 core" in line) for line in lines] == [(each, True) for each in named]
    assert sum(named) == 1


def test_a_headline_bound_that_is_not_in_the_sweep_is_said(tmp_path: Path) -> None:
    text = said(write_grid(tmp_path, grid(2)), k=2)
    assert "No finished areal cell has K = 2 (`report.k_headline`)" in text
    assert "times as many" not in text


def test_nothing_finished_is_said(tmp_path: Path) -> None:
    found = chapters({a_cell(): tmp_path / "summary.json"})
    assert found["headline"] == ["No cell has finished, so there is nothing to say yet."]
    assert found["failures"] == ["1 of 1 cells: 1 missing."]


def ends(tmp_path: Path, rates: dict) -> dict:
    """Cells with given last held-out pass rates, one seed after another."""
    paths = {}
    for axes, values in rates.items():
        for seed, rate in enumerate(values):
            cell = a_cell(**dict(axes), seed=seed)
            evals = summary_record(cell)["eval_pass_rate"]
            evals[-1] |= {"sampled": rate}
            paths[cell] = write_cell(tmp_path, cell, metrics=False, eval_pass_rate=evals)
    return paths


def at(**axes) -> tuple:
    return tuple(axes.items())


def test_what_staleness_did_is_said_of_the_largest_k(tmp_path: Path) -> None:
    paths = ends(
        tmp_path,
        {
            at(mode="lagged", k=0): [0.80, 0.81, 0.82],
            at(mode="lagged", k=4): [0.80, 0.82, 0.81],
            at(mode="lagged", k=16): [0.60, 0.62, 0.61],
        },
    )
    text = said(paths, chapter="staleness")
    assert "at K = 16 differs from that at K = 0 by -0.200, 95" in text
    assert "no difference is claimed" not in text
    assert "K = 4" not in text


def test_naive_and_decoupled_are_compared_at_the_largest_shared_k(tmp_path: Path) -> None:
    paths = ends(
        tmp_path,
        {
            at(mode="lagged", k=8): [0.80, 0.81, 0.82],
            at(mode="lagged", k=8, arm="behavior"): [0.60, 0.62, 0.61],
            at(mode="lagged", k=16): [0.7, 0.7, 0.7],
            at(mode="lagged", k=8, arm="drain"): [0.1, 0.1, 0.1],
        },
    )
    (line,) = [x for x in chapters(paths)["staleness"] if x.startswith("Objectives")]
    assert "lagged, grpo, K = 8: decoupled ended at a held-out pass rate of 0.810, behavior at 0.610" in line
    assert "a difference of +0.200" in line


def test_algorithms_are_paired_with_grpo_of_their_arm_or_else_its_base(tmp_path: Path) -> None:
    paths = ends(
        tmp_path,
        {
            at(mode="lagged"): [0.5, 0.5, 0.5],
            at(mode="lagged", algorithm="sao"): [0.7, 0.71, 0.72],
            at(mode="lagged", algorithm="sao", arm="equal"): [0.4, 0.6, 0.5],
        },
    )
    own, equal = chapters(paths)["algorithms"]
    assert "sao ended at a held-out pass rate of 0.710, grpo at 0.500: a difference of +0.210" in own
    assert "claim" not in own
    assert "(against arm base: the algorithm is not all that differs)" in equal
    assert "no difference is claimed" in equal


def test_one_algorithm_is_compared_with_nothing(tmp_path: Path) -> None:
    assert "algorithms" not in chapters(write_grid(tmp_path, grid(1)))


def test_failures_are_counted_by_kind(tmp_path: Path) -> None:
    paths = write_grid(tmp_path, grid(1))
    first, second, third, *_ = paths
    paths[first].unlink()
    paths[second].write_text("{")
    paths[third] = write_cell(tmp_path, third, status="collapsed")
    (text,) = chapters(paths)["failures"]
    assert text == "3 of 8 cells: 1 missing, 1 damaged and 1 collapsed."
