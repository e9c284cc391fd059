"""Sweeps from files, overrides and Snakemake's command line are the same sweeps."""

import subprocess
import sys
from pathlib import Path

import pytest

from async_rollout.config.cells import canonical_json, cells, resolve
from async_rollout.config.errors import ConfigError
from async_rollout.config.load import load_sweep, read_yaml, sweep_from_dict

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "config").glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_in_config_loads_and_resolves(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    sweep = load_sweep(path)
    assert sweep.experiment == path.stem
    runs = [resolve(sweep, cell) for cell in cells(sweep)]
    assert len({canonical_json(run) for run in runs}) == len(runs) > 0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_holds_only_what_differs_from_the_defaults(path: Path) -> None:
    defaults = sweep_from_dict({"experiment": "x"}).model_dump()
    for block, values in read_yaml(path).items():
        if isinstance(defaults[block], dict) and block != "arms":
            assert [key for key, value in values.items() if defaults[block][key] == value] == []


def test_the_demo_has_the_cells_it_promises() -> None:
    names = [cell.id for cell in cells(load_sweep(ROOT / "config/demo.yaml"))]
    assert len(names) == 16
    assert len(cells(load_sweep(ROOT / "config/default.yaml"))) == 78
    assert {"sync-grpo-k0-dec1-s0", "areal-grpo-k4-dec0-s1", "areal-grpo-behavior-k4-dec1-s1"} <= set(names)


def write(path: Path, text: str) -> Path:
    path.write_text("experiment: x\n" + text)
    return path


def test_numbers_in_yaml_are_numbers(tmp_path: Path) -> None:
    lines = ["optim: {lr: 5e-6, grad_clip: 1.5E+1}", "seeds: [01, 08]", "staleness_k: [.inf]"]
    path = write(tmp_path / "x.yaml", "\n".join([*lines, "arms: {a: {kl.coef: 1e-2}}"]))
    assert read_yaml(path)["arms"]["a"]["kl.coef"] == 0.01
    assert read_yaml(path)["optim"] == {"lr": 5e-6, "grad_clip": 15.0}
    sweep = load_sweep(path)
    assert sweep.optim.lr == 5e-6
    assert sweep.seeds == [1, 8]
    assert sweep.staleness_k == ["inf"]


def test_overrides_are_yaml_and_reach_every_key(tmp_path: Path) -> None:
    path = write(tmp_path / "x.yaml", "train: {updates: 9}\narms: {a: {objective.name: behavior}}\n")
    overrides = [
        "optim.lr=5e-6",
        "train.threads=2",
        "seeds=[3, 4]",
        "data.task_limit=",
        "arms.a.objective.name=live",
        "arms.b.kl.coef=0.1",
        "report.pass_threshold.sort=0.5",
        "model.id=a=b",
    ]
    sweep = load_sweep(path, overrides)
    assert (sweep.optim.lr, sweep.train.updates, sweep.train.threads) == (5e-6, 9, 2)
    assert sweep.seeds == [3, 4]
    assert sweep.arms == {"a": {"objective.name": "live"}, "b": {"kl.coef": 0.1}}
    assert sweep.report.pass_threshold == {"sort": 0.5}
    assert sweep.model.id == "a=b"


def test_strings_of_the_snakemake_command_line_are_what_they_say() -> None:
    from_strings = {
        "experiment": "x",
        "seeds": ["0", "01"],
        "staleness_k": ["0", "inf"],
        "decoupled": ["0", "1"],
        "optim": {"lr": "5e-6", "betas": ["0.9", "0.95"]},
        "train": {"updates": "7", "save_model": "true"},
        "data": {"task_limit": "null"},
        "arms": {"a": {"objective.dual_clip": "3"}},
    }
    typed = {
        "experiment": "x",
        "seeds": [0, 1],
        "staleness_k": [0, "inf"],
        "decoupled": [0, 1],
        "optim": {"lr": 0.000005, "betas": [0.9, 0.95]},
        "train": {"updates": 7, "save_model": True},
        "data": {"task_limit": None},
        "arms": {"a": {"objective.dual_clip": 3}},
    }
    texts = [
        [canonical_json(resolve(sweep, cell)) for cell in cells(sweep)]
        for sweep in map(sweep_from_dict, (from_strings, typed))
    ]
    assert texts[0] == texts[1]


def test_config_is_light() -> None:
    modules = sorted(p.stem for p in (ROOT / "src/async_rollout/config").glob("*.py") if p.stem != "__init__")
    code = (
        "import importlib, sys\n"
        f"for name in {modules}: importlib.import_module('async_rollout.config.' + name)\n"
        "heavy = {'torch', 'transformers', 'snakemake', 'numpy', 'pandas'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_aliases_that_stand_for_too_much_are_refused_at_once(tmp_path):
    """Nine lines of ten aliases each are a billion values."""
    lines = ["a0: &a0 [x]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10))]
    path = tmp_path / "sweep.yaml"
    path.write_text("\n".join(["experiment: t", *lines]))
    with pytest.raises(ConfigError, match=r"with its aliases written out it has \d+ values"):
        load_sweep(path)


def test_aliases_of_a_reasonable_file_are_read(tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text("experiment: t\narms:\n  a: &a {optim.lr: 1e-3}\n  b: {<<: *a, train.updates: 7}\n")
    assert load_sweep(path).arms["b"] == {"optim.lr": 1e-3, "train.updates": 7}


def test_value_that_holds_itself_is_refused(tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text("experiment: t\ntrain: &t {updates: 3, x: *t}\n")
    with pytest.raises(ConfigError, match="holds itself"):
        load_sweep(path)
