"""Only a sound summary of the right config counts as done."""

import json
from pathlib import Path

import pytest

from async_rollout.records.cells import SummaryError, is_done, read_metrics, read_summary
from summaries import a_cell, summary_record, write_cell

CELL = a_cell()
SOUND = json.dumps(summary_record(CELL))

DAMAGED = {
    "empty": ("", "the file is empty"),
    "blank": ("\n \n", "the file is empty"),
    "truncated": (SOUND[: len(SOUND) // 2], "not strict JSON"),
    "no object": ("[1]", "not a summary"),
    "empty object": ("{}", "not a summary"),
    "nan": (SOUND.replace('"kl": 0.001', '"kl": NaN'), "NaN is not a number"),
    "nan in config": (SOUND.replace('"embedded"', "Infinity"), "Infinity is not a number"),
    "rate": (json.dumps(summary_record(CELL, pass_rate_last=3.17)), r"pass_rate_last \(3.17\)"),
    "eval rate": (SOUND.replace('"sampled": 0.25', '"sampled": -0.1'), "eval_pass_rate.0.sampled"),
    "huge number": (SOUND.replace('"kl": 0.001', '"kl": 1e999'), "kl"),
    "count": (json.dumps(summary_record(CELL, interruptions=-1)), "interruptions"),
    "unknown field": (json.dumps(summary_record(CELL, more=1)), "more"),
    "other schema": (json.dumps(summary_record(CELL, schema_version=2)), "schema version 2"),
    "deep": ("[" * 100_000, "not strict JSON"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_summary_is_refused_with_its_name_and_the_reason(tmp_path: Path, name: str) -> None:
    text, reason = DAMAGED[name]
    path = tmp_path / "summary.json"
    path.write_text(text)
    with pytest.raises(SummaryError, match=reason) as caught:
        read_summary(path)
    assert str(path) in str(caught.value)
    assert not is_done(path, summary_record(CELL)["config_hash"])


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.write_bytes(b"\xff\xfe{")
    with pytest.raises(SummaryError, match="not UTF-8"):
        read_summary(path)


def test_a_missing_field_is_refused(tmp_path: Path) -> None:
    record = summary_record(CELL)
    del record["updates"]
    path = tmp_path / "summary.json"
    path.write_text(json.dumps(record))
    with pytest.raises(SummaryError, match="updates: Field required"):
        read_summary(path)


def test_done_means_sound_and_of_this_config(tmp_path: Path) -> None:
    path = write_cell(tmp_path, CELL)
    assert is_done(path, read_summary(path).config_hash)
    assert not is_done(path, "another hash")
    assert not is_done(tmp_path / "nowhere" / "summary.json", "x")


def test_metrics_are_read_without_a_torn_last_row(tmp_path: Path) -> None:
    directory = write_cell(tmp_path, CELL).parent
    assert [row.version for row in read_metrics(directory)] == list(range(1, 61))
    with (directory / "metrics.jsonl").open("a") as file:
        file.write('{"version": 61')
    assert len(read_metrics(directory)) == 60


def test_foreign_metrics_are_refused_by_line(tmp_path: Path) -> None:
    directory = write_cell(tmp_path, CELL).parent
    (directory / "metrics.jsonl").write_text('{"version": 1}\n')
    with pytest.raises(ValueError, match=r"metrics\.jsonl:1: .*correct"):
        read_metrics(directory)
