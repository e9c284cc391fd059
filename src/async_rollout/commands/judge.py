"""`async-rollout judge FILE.jsonl`: answers judged exactly as runs do it, a line of JSON each.

A row is {"id", "task_type", "response", "gold_answer" or "reference_tests"}, and for code perhaps
"starter_code". A printed line has "id", "reward", "verdict", "extracted", "milliseconds", and
"compared" where a test had to be decided beside the program. All rows are checked first.
"""

import json
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from async_rollout.config.load import load_sweep
from async_rollout.config.reward import RewardConfig

_ROW = ("id", "task_type", "response", "gold_answer", "reference_tests", "starter_code", "prompt")


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("file", metavar="FILE.jsonl", type=Path, help="answers, one JSON object a line")
    parser.add_argument("--config", metavar="CONFIG", help="the sweep whose `reward` block is used")
    parser.add_argument(
        "overrides", nargs="*", metavar="key.path=value", help="with --config: replaces a key of the file"
    )


def execute(args: Namespace) -> None:
    """Judge every row. Raises TaskError that names file and line for a row that cannot be judged."""
    from async_rollout.rewards.judge import build_judge
    from async_rollout.tasks.jsonl import line_of, read_objects
    from async_rollout.tasks.math import check_golds
    from async_rollout.tasks.task import TaskError

    answers = []
    for number, row in read_objects(args.file):
        with line_of(args.file, number):
            answers.append(_answer(row))
    if not answers:
        raise TaskError(f"{args.file}: holds no row; write one JSON object a line")
    check_golds(str(args.file), [task for task, _ in answers])
    config = load_sweep(args.config, args.overrides).reward if args.config else RewardConfig()
    judge = build_judge(config, [task.task_type for task, _ in answers])
    for task, text in answers:
        begun = time.perf_counter()
        verdict = judge(task, text)
        line: dict[str, Any] = {
            "id": task.task_id,
            "reward": verdict.reward,
            "verdict": verdict.verdict,
            "extracted": verdict.extracted,
            "milliseconds": round((time.perf_counter() - begun) * 1000, 3),
        }
        if verdict.compared is not None:
            line["compared"] = verdict.compared
        print(json.dumps(line, allow_nan=False, ensure_ascii=False), flush=True)


def _answer(row: dict[str, Any]) -> tuple[Any, str]:
    """(task, response) of one row."""
    from async_rollout.tasks.jsonl import task_from_row
    from async_rollout.tasks.task import TaskError

    if unknown := [name for name in row if name not in _ROW]:
        raise TaskError(f"unknown field `{unknown[0]}`; the fields are {', '.join(_ROW)}")
    if not isinstance(row.get("response"), str):
        raise TaskError("`response` is missing or not a string; it is the answer to judge")
    if isinstance(row.get("id"), bool) or not isinstance(row.get("id"), str | int):
        raise TaskError("`id` is missing or neither a string nor a number; the verdict is printed under it")
    rest = {name: value for name, value in row.items() if name not in ("id", "response")}
    task = task_from_row({"prompt": "(not needed)", **rest, "task_id": str(row["id"])})
    return task, row["response"]
