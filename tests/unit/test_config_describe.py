"""The generated schema and reference are in step with the models and complete."""

import json
from pathlib import Path

import jsonschema
import pytest

from async_rollout.config.describe import README, SCHEMA, json_schema, main, readme
from async_rollout.config.keys import known_keys
from async_rollout.config.load import read_yaml
from async_rollout.config.sweep import SweepConfig

ROOT = Path(__file__).parents[2]

OLDER = (
    "DATASETS SEEDS STALENESS_K DECOUPLED ASYNC_MODES RUN_SYNC TASK_LIMIT TRAIN_SIZE EVAL_SIZE MODEL_ID "
    "HF_DTYPE HF_USE_AUTOCAST LR CLIP_EPS KL_COEF TEMPERATURE TOP_P MAX_NEW_TOKENS ROLLOUT_DEVICES "
    "TRAINER_DEVICES UPDATE_BATCH AREAL_SETUP_TIMEOUT_SEC AREAL_SETUP_POLL_SEC AREAL_HEARTBEAT_SEC "
    "K_HEADLINE PASS_THRESHOLD_GSM8K PASS_THRESHOLD_CODING"
)

ROWS = {
    "seeds": "`SEEDS` (0,1,2)",
    "staleness_k": "`STALENESS_K` (0,2,4,8)",
    "decoupled": "`DECOUPLED` (0,1)",
    "modes": "`ASYNC_MODES`, `RUN_SYNC`",
    "data.train_size": "`TRAIN_SIZE` (128)",
    "data.eval_size": "`EVAL_SIZE` (64)",
    "data.task_limit": "`TASK_LIMIT`",
    "model.id": "`MODEL_ID` (Qwen/Qwen2.5-0.5B-Instruct)",
    "optim.lr": "`LR` (5e-6)",
    "objective.clip_high": "`CLIP_EPS` (0.2)",
    "kl.coef": "`KL_COEF` (0.02)",
    "sampling.temperature": "`TEMPERATURE` (0.9)",
    "sampling.top_p": "`TOP_P` (0.95)",
    "batch.groups": "`UPDATE_BATCH` (4)",
    "supervision.setup_timeout_sec": "`AREAL_SETUP_TIMEOUT_SEC` (900)",
    "report.k_headline": "`K_HEADLINE` (2)",
    "report.pass_threshold": "`PASS_THRESHOLD_GSM8K`, `PASS_THRESHOLD_CODING` (0.10)",
}


def rows() -> dict[str, str]:
    lines = [line for line in readme().splitlines() if line.startswith("| `")]
    return {line.split("`")[1]: line for line in lines}


def test_the_written_files_are_in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["--check"]) == 0


def test_check_writes_nothing_and_fails_when_out_of_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--check"]) == 1
    assert list(tmp_path.iterdir()) == []
    for path in (SCHEMA, README):
        path.parent.mkdir(parents=True)
    assert main([]) == 0
    assert main(["--check"]) == 0
    README.write_text("old")
    assert main(["--check"]) == 1


def test_every_key_has_a_row_with_its_meaning() -> None:
    assert sorted(rows()) == sorted(known_keys(SweepConfig))
    for line in rows().values():
        assert line.split(" | ")[1].strip(), line


@pytest.mark.parametrize("name", OLDER.split())
def test_every_older_name_is_listed(name: str) -> None:
    assert any(f"`{name}`" in line for line in rows().values())


@pytest.mark.parametrize(("key", "older"), ROWS.items())
def test_an_older_name_stands_in_the_row_of_its_key(key: str, older: str) -> None:
    assert older in rows()[key]


def test_where_a_default_differs_the_row_says_why() -> None:
    for name, field in known_keys(SweepConfig).items():
        extra = field.json_schema_extra or {}
        if "theirs" not in extra:
            continue
        ours = field.get_default(call_default_factory=True)
        shown = ",".join(
            f"{v:g}" if isinstance(v, int | float) else str(v)
            for v in (ours if isinstance(ours, list) else [ours])
        )
        assert shown == extra["theirs"] or "why" in extra, name


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_schema_accepts_every_file(path: Path) -> None:
    schema = json_schema()
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert [error.message for error in validator.iter_errors(read_yaml(path))] == []


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"experiment": "x", "trian": {}},
        {"experiment": "x", "train": {"updates": 0}},
        {"experiment": "x", "modes": []},
    ],
)
def test_the_schema_refuses_what_the_models_refuse(content: dict) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(json.dumps(content)), json_schema())
