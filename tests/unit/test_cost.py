"""What a sweep will take, by what cells like its own took."""

import pytest

from async_rollout.analysis.cost import Past, estimate
from async_rollout.cli import main
from async_rollout.config.cells import cells, config_hash, resolve
from async_rollout.config.load import load_sweep
from async_rollout.records.files import write_json
from summaries import summary
from tiny_cells import cell_config

EMBEDDED = {"model": {"id": "embedded"}}


def past(seconds: float, size: int | None = 1000, machine: str = "this one", **blocks) -> Past:
    config = cell_config(**EMBEDDED | blocks).model_dump(mode="json")
    return Past(config, seconds=seconds, beside=10.0, bytes=size, machine=machine)


def test_time_and_disk_scale_with_the_samples_and_the_rest_does_not():
    """20 updates of 4·4 samples took 100 s; 40 updates of 8·4 are four times as many."""
    run = cell_config(**EMBEDDED, train={"updates": 40}, batch={"groups": 8, "group_size": 4})
    found = estimate(run, [past(100.0)])
    assert found.seconds == pytest.approx(4 * 100 + 10)
    assert found.bytes == 4000


def test_the_most_alike_cells_count_alone_and_are_named():
    cells = [
        past(1.0, mode="sync", k=0),
        past(2.0, algorithm="grpo_dis", objective={"name": "dis"}),
        past(40.0),
        past(60.0, seed=1),
        past(3.0, model={"id": "other"}),
    ]
    found = estimate(cell_config(**EMBEDDED, seed=7), cells)
    assert found.seconds == pytest.approx(50 + 10)
    assert (
        found.source
        == "as 2 finished cells of the same configuration but for seed and experiment took on this one"
    )
    wider = estimate(cell_config(**EMBEDDED, mode="lagged"), cells)
    assert wider.source.startswith("as 4 finished cells of the same model in another mode")


@pytest.mark.parametrize(
    "blocks",
    [
        {"model": {"id": "other"}},
        {"model": {"backend": "tabular"}},
        {"train": {"devices": ["cuda:0"], "updates": 20}},
        {"stress": {"judge_sec": 1.0}},
        {"warm_start": {"layers": 3}},
    ],
)
def test_other_models_devices_and_delays_tell_nothing(blocks):
    found = estimate(cell_config(**EMBEDDED | blocks), [past(100.0)])
    assert found.seconds is None
    assert "no finished cell" in found.source


def test_a_guess_is_used_and_called_one():
    found = estimate(cell_config(**EMBEDDED), [past(100.0)], 3.0)
    assert (found.seconds, found.source) == (60.0, "at 3 s an update, as given")


def test_disk_is_not_judged_by_cells_without_their_rows():
    assert estimate(cell_config(**EMBEDDED), [past(1.0, None), past(1.0, 500)]).bytes == 500


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.yaml").write_text(
        "experiment: tried\nmodes: [areal]\nstaleness_k: [1, 2]\ndecoupled: [1]\nseeds: [0]\n"
        "train: {devices: ['cuda:0'], updates: 10}\nrollout: {devices: ['cuda:1']}\n"
    )
    return "sweep.yaml"


def test_the_command_counts_hours_of_cores_and_gpus(sweep, capsys):
    """Two cells of 10 updates at 360 s: an hour each, on two cores and two GPUs."""
    assert main(["cost", sweep, "--seconds-per-update", "360"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("areal grpo: 2 cells, 4 CPU hours, 4 GPU hours, ")
    assert lines[0].endswith("at 360 s an update, as given")
    assert lines[1].startswith("2 cells to run, 0 done: 2 cells, 4 CPU hours")


def test_finished_cells_are_found_counted_and_left_out(sweep, tmp_path, capsys):
    loaded = load_sweep(sweep)
    cell = cells(loaded)[0]
    run = resolve(loaded, cell)
    directory = tmp_path / cell.directory("tried")
    record = summary(
        cell,
        config=run.model_dump(mode="json"),
        config_hash=config_hash(run),
        wall_clock_sec=3600.0 - 7,
        setup_wall_clock_sec=5.0,
        evaluation_wall_clock_sec=2.0,
    )
    write_json(directory / "summary.json", record.model_dump(mode="json"))
    write_json(directory / "config.json", run.model_dump(mode="json"))
    (directory / "results.jsonl").write_text("x" * 5_000_000)
    assert main(["cost", sweep]) == 0
    out = capsys.readouterr().out
    assert "1 cells to run, 1 done: 1 cells, 2 CPU hours, 2 GPU hours, 5 MB" in out
    assert "as 1 finished cells of the same mode, model, dataset, length limit and algorithm took" in out


def test_what_nothing_tells_is_not_a_number(sweep, capsys):
    assert main(["cost", sweep]) == 0
    assert "hours unknown (give --seconds-per-update)" in capsys.readouterr().out


def test_a_guess_must_be_above_zero(sweep, capsys):
    assert main(["cost", sweep, "--seconds-per-update", "0"]) == 2
    assert "--seconds-per-update" in capsys.readouterr().err
