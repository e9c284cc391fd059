"""The command line: what is wrong is said before anything is started."""

import json
import subprocess
import sys
import time

import pytest

from async_rollout.cli import COMMANDS, main
from async_rollout.config.cells import Cell, cells, config_hash, resolve
from async_rollout.config.load import load_sweep
from summaries import summary_record

SWEEP = """\
experiment: tried
modes: [areal]
staleness_k: [0, 4]
decoupled: [1]
seeds: [0]
"""
IDS = ["areal-grpo-k0-dec1-s0", "areal-grpo-k4-dec1-s0"]


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    return tmp_path


def test_cells_are_listed_with_overrides(sweep, capsys):
    assert main(["cells", "sweep.yaml", "train.updates=10", "seeds=[3]"]) == 0
    output = capsys.readouterr()
    assert output.out.split() == [f"results/tried/sort/runs/areal-grpo-k{k}-dec1-s3" for k in (0, 4)]
    assert "staleness_k = 4: cannot bind" in output.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "sweep.yaml", "batch.group_size=1"], "batch.group_size = 1: group advantages"),
        (["run", "--cell", IDS[0], "sweep.yaml", "staleness_k=[-1]"], "staleness_k.0 = -1"),
        (["run", "sweep.yaml", "optim.learning_rate=1"], "optim.learning_rate = 1: no such key"),
        (["run", "sweep.yaml", "datasets=[gsm9k]"], "datasets.0 = 'gsm9k'"),
        (["run", "absent.yaml"], "file = 'absent.yaml': No such file"),
        (["run", "sweep.yaml"], IDS[1]),  # several cells: they are listed
        (["run", "sweep.yaml", "--cell", "areal-grpo-k5-dec1-s0"], "not in this sweep"),
        (["run"], "CONFIG = None: missing"),
        (["run", "--resolved", "{}"], "--out = None: missing"),
        (["tables", "sweep.yaml", "--dataset", "sorted"], "--dataset = 'sorted'"),
        (["report", "--sweep", '{"experiment": "tried"}'], "--made-by = None: missing"),
        (["prepare", "gsm8k", "--out", "x", "--from", "absent.jsonl"], "no such file"),
        (["prepare", "sort", "--out", "x", "--block", '{"train_size": 0}'], "train_size = 0: out of range"),
        (["warm-start", "--out", "x", "--block", '{"depth": 3}'], "depth = 3: no such key"),
    ],
)
def test_what_cannot_be_done_is_code_2_with_key_value_and_fix(sweep, capsys, arguments, message):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Fix: " in error
    assert not (sweep / "results").exists()


def test_no_torch_before_the_configuration_is_known_to_be_good(sweep):
    code = (
        "import sys; from async_rollout.cli import main; code = main(sys.argv[1:]); "
        "sys.exit(99 if {'torch', 'transformers'} & sys.modules.keys() else code)"
    )
    command = [sys.executable, "-c", code, "run", "sweep.yaml", "--cell", IDS[0], "train.updates=0"]
    assert subprocess.run(command, capture_output=True).returncode == 2


def test_help_is_quick_and_names_every_command(capsys):
    started = time.process_time()
    with pytest.raises(SystemExit):
        main(["--help"])
    assert time.process_time() - started < 0.3
    listed = capsys.readouterr().out
    assert all(name in listed for name in COMMANDS)


def test_finished_cell_is_not_trained_again_and_another_is_not_overwritten(sweep, capsys):
    known = load_sweep("sweep.yaml")
    cell = cells(known)[0]
    out = sweep / cell.directory("tried")
    out.mkdir(parents=True)
    record = summary_record(cell, config_hash=config_hash(resolve(known, cell)))
    (out / "summary.json").write_text(json.dumps(record))

    assert main(["run", "sweep.yaml", "--cell", cell.id]) == 0
    assert "done already" in capsys.readouterr().err
    assert main(["run", "sweep.yaml", "--cell", cell.id, "train.updates=7"]) == 2
    assert "finished run of another configuration" in capsys.readouterr().err


def test_run_gets_tasks_model_and_the_configuration_as_it_was_given(sweep, monkeypatch):
    seen = {}
    monkeypatch.setattr(
        "async_rollout.runners.cell.run_cell", lambda run, **places: seen.update(places, run=run)
    )
    monkeypatch.setattr("async_rollout.commands.warm_start.build", lambda config, out: seen.update(built=out))
    assert main(["run", "sweep.yaml", "--cell", IDS[1], "data.train_size=5"]) == 0
    assert Cell.of(seen["run"]).id == IDS[1]
    assert seen["run"].model.id == "embedded"
    assert seen["model"] == seen["built"]
    assert (seen["data"] / "train.jsonl").read_text().count("\n") == 5


def test_ctrl_c_is_130(sweep, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("async_rollout.commands.cells.execute", interrupted)
    assert main(["cells", "sweep.yaml"]) == 130


def test_a_reader_that_has_gone_is_no_error(sweep):
    """As in `async-rollout cells ... | head -1`: no traceback, and the code that a shell expects."""
    command = [sys.executable, "-m", "async_rollout.cli", "cells", "sweep.yaml", "seeds=[0, 1, 2, 3]"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == 141
    assert "BrokenPipe" not in said
    assert "Traceback" not in said
