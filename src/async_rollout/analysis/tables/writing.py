"""How a table is shown and written: `.csv` holds the numbers, `.md` what a reader wants to see."""

import json
import math
from pathlib import Path

import pandas as pd

from async_rollout.analysis.columns import COLUMNS, NOT_REACHED, show, show_interval
from async_rollout.records.files import write_text


def display(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame as text under the labels of its columns.

    A mean becomes one column with its interval, or else with its deviation; the bootstrap
    interval stays in the csv.
    """
    shown, absent = {}, [math.nan] * len(frame)
    for name in frame:
        stem = name.removesuffix("_mean")
        if name in COLUMNS:
            shown[COLUMNS[name].label] = [show(name, value) for value in frame[name]]
        elif stem != name and stem in COLUMNS:
            parts = [frame.get(f"{stem}_{part}", absent) for part in ("mean", "std", "low", "high")]
            rows = zip(*parts, strict=True)
            shown[COLUMNS[stem].label] = [show_interval(stem, *values) for values in rows]
    return pd.DataFrame(shown, dtype=object)


def write_table(frame: pd.DataFrame, stem: Path) -> None:
    """`stem`.csv holds the frame, `stem`.md the texts that show it."""
    write_text(stem.with_name(f"{stem.name}.csv"), _plain(frame).to_csv(index=False, float_format="%.10g"))
    text = display(frame).map(_markdown).to_markdown(index=False, tablefmt="github", disable_numparse=True)
    write_text(stem.with_name(f"{stem.name}.md"), text + "\n")


def write_records(frame: pd.DataFrame, path: Path) -> None:
    """The rows of the frame as a list of objects, one a line; what is not a finite number is null."""
    rows = json.loads(frame.to_json(orient="records", double_precision=10))
    lines = ",\n".join(json.dumps(row, allow_nan=False, ensure_ascii=False) for row in rows)
    write_text(path, f"[\n{lines}\n]\n")


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.replace({"updates_to_threshold": {NOT_REACHED: "not reached"}})


def _markdown(text: str) -> str:
    """Text that stays within its cell and brings no markup of its own."""
    escaped = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return " ".join(escaped.replace("`", "\\`").split())
