"""`async-rollout eval MODEL --dataset D`: a model's pass rate, by the prompts, engine and judges of runs.

MODEL is a directory in Hugging Face format, a hub id, a .gguf file, or `model/` of a cell that was
run with `train.save_model`: then the cell's own configuration holds, and its last evaluation comes
out again. A printed line is a pass rate with its standard error over tasks; --out has each answer.
"""

import json
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from async_rollout.commands.environment import set_up_environment, switch_hub_off
from async_rollout.commands.run import look_at_gpus, provide_model
from async_rollout.config.cells import cells, resolve
from async_rollout.config.errors import ConfigError, Problem
from async_rollout.config.load import load_sweep, run_from_json, sweep_from_dict
from async_rollout.config.run import RunConfig
from async_rollout.places import model_directory
from async_rollout.records.files import write_text

if TYPE_CHECKING:
    from async_rollout.runners.model_evaluation import AnswerRow


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("model", metavar="MODEL", help="a directory, a hub id or a .gguf file")
    parser.add_argument("--dataset", metavar="D", help="as the key `datasets` names it")
    parser.add_argument(
        "--config", metavar="CONFIG", help="the sweep whose blocks hold (default: their defaults)"
    )
    parser.add_argument(
        "overrides", nargs="*", metavar="key.path=value", help="with --config: replaces a key of the file"
    )
    parser.add_argument("--split", choices=("eval", "train"), default="eval")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--greedy", action="store_true", help="only the likeliest answers")
    kind.add_argument("--sampled", action="store_true", help="only sampled answers")
    parser.add_argument("--samples", type=int, default=1, metavar="N", help="sampled answers to each task")
    parser.add_argument("--seed", type=int, metavar="N", help="of the sampling streams (evaluation.seed)")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first tasks (data.task_limit)")
    parser.add_argument("--max-new-tokens", type=int, metavar="N", help="sampling.max_new_tokens")
    parser.add_argument("--device", metavar="DEVICE", help="cpu, cuda or cuda:N")
    parser.add_argument("--out", type=Path, metavar="FILE.jsonl", help="a line of JSON for each answer")


def execute(args: Namespace) -> None:
    """Print a line a pass rate."""
    run = _configured(args)
    if args.samples < 1:
        raise ConfigError([Problem("--samples", args.samples, "no answer to judge", "1 or more")])
    set_up_environment()
    look_at_gpus(run)
    provide_model(run)
    switch_hub_off()
    rows: list[AnswerRow] = []
    with tempfile.TemporaryDirectory(prefix="async-rollout-eval-") as scratch:
        for kind, samples in (("sampled", args.samples), ("greedy", 1)):
            if (kind == "sampled" and args.greedy) or (kind == "greedy" and args.sampled):
                continue
            rows += (found := _answers(run, Path(scratch), args.split, kind, samples))
            print(_line(run.dataset, args.split, kind, samples, found), flush=True)
    if args.out:
        lines = [json.dumps(asdict(row), allow_nan=False, ensure_ascii=False) + "\n" for row in rows]
        write_text(args.out, "".join(lines))
        print(f"{args.out}: {len(rows)} answers", file=sys.stderr)


def _answers(run: RunConfig, scratch: Path, split: str, kind: str, samples: int) -> "list[AnswerRow]":
    from async_rollout.runners.cell import with_model
    from async_rollout.runners.model_evaluation import evaluate_model
    from async_rollout.runtime.process import limit_threads
    from async_rollout.tasks.prepare import prepare

    limit_threads(run.rollout.threads if run.mode == "areal" else run.train.threads)
    data = scratch / "data"
    if not data.exists():
        prepare(run.dataset, run.data, data)
    loaded = with_model(run, model_directory(run))
    return evaluate_model(loaded, data, scratch, split=split, kind=kind, samples=samples)


def _line(dataset: str, split: str, kind: str, samples: int, rows: "list[AnswerRow]") -> str:
    from async_rollout.runners.model_evaluation import score

    found = score(rows)
    each = f", {samples} answers each" if samples > 1 else ""
    return f"{dataset} {split} {kind}: {found.rate:.4f} ± {found.error:.4f} ({found.tasks} tasks{each})"


def _configured(args: Namespace) -> RunConfig:
    """The configuration of a run that would be evaluated like this."""
    beside = Path(args.model).parent / "config.json"
    if args.config:
        datasets = [f"datasets={json.dumps([args.dataset])}"] if args.dataset else []
        sweep = load_sweep(args.config, [*args.overrides, *datasets])
        content = resolve(sweep, cells(sweep)[0]).model_dump(mode="json")
    elif Path(args.model).is_dir() and beside.is_file():
        content = run_from_json(beside.read_text(encoding="utf-8")).model_dump(mode="json")
    elif args.dataset:
        sweep = sweep_from_dict({"experiment": "eval", "datasets": [args.dataset]}, "--dataset")
        content = resolve(sweep, cells(sweep)[0]).model_dump(mode="json")
    else:
        what = "missing, and MODEL is not the model of a finished cell"
        raise ConfigError([Problem("--dataset", None, what, "--dataset sort, for example")])
    content["dataset"] = args.dataset or content["dataset"]
    content["model"]["id"] = args.model
    for block, key, value in (
        ("evaluation", "seed", args.seed),
        ("data", "task_limit", args.limit),
        ("sampling", "max_new_tokens", args.max_new_tokens),
        ("train", "devices", args.device and [args.device]),
        ("rollout", "devices", args.device and [args.device]),
    ):
        if value is not None:
            content[block][key] = value
    return run_from_json(json.dumps(content))
