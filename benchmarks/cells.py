"""Whole cells as a benchmark runs them: a random model that answers at recorded lengths and stays as it is.

Every token of a model with random weights ends the answer with the same small chance, so
lengths are geometric: many short, few very long. Noise is a function of seed, group, sample
and position, and the learning rate is too small to move a weight, so every arm draws the
very same answers. A KL coefficient that is too small to matter has every batch trained on,
though no random answer is right.
"""

import json
import os
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from async_rollout.config.run import RunConfig
from async_rollout.learner.characters import build_tokenizer
from async_rollout.runners.cell import run_cell
from async_rollout.tasks.prepare import prepare

SIZES = {
    "0.1 M": (64, 2, 4, 128),
    "1 M": (128, 4, 4, 512),
    "20 M": (512, 6, 8, 1536),
}  # width, layers, heads, MLP width


def random_model(directory: Path, size: str) -> Path:
    """A Qwen2 with the embedded model's characters, in Hugging Face format."""
    width, layers, heads, mlp = SIZES[size]
    tokenizer = build_tokenizer()
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=heads,
            intermediate_size=mlp,
            max_position_embeddings=1024,
            tie_word_embeddings=True,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def cell_config(model: Path, /, **blocks) -> RunConfig:
    """A resolved areal cell on `sort`; keyword arguments replace keys of blocks, or axes."""
    run = {
        "experiment": "benchmark",
        "dataset": "sort",
        "mode": "areal",
        "algorithm": "grpo",
        "arm": "",
        "k": 4,
        "decoupled": 1,
        "seed": 0,
        "objective": {"name": "decoupled"},
        "model": {"id": str(model)},
        "batch": {"groups": 8, "group_size": 8},
        "data": {"train_size": 64, "eval_size": 1},
        "sampling": {"max_new_tokens": 256},
        "kl": {"coef": 1e-9, "reference": "behavior"},
        "optim": {"lr": 1e-30},
        "train": {"updates": 12},
        "evaluation": {"every": 100_000},
    }
    for name, value in blocks.items():
        run[name] = run.get(name, {}) | value if isinstance(value, dict) else value
    return RunConfig.model_validate(run)


@dataclass(frozen=True)
class Finished:
    """What a cell left: its summary and its commits."""

    summary: dict
    commits: list[dict]

    def steady(self, skip: int) -> dict[str, float]:
        """Rates and mean staleness from commit `skip` to the last."""
        first, rest = self.commits[skip - 1], self.commits[skip:]
        tokens = sum(row["trained_tokens"] for row in rest)
        seconds = rest[-1]["seconds"] - first["seconds"]
        ages = sum(int(age) * n for row in rest for age, n in row["staleness"].items())
        return {"tokens_per_sec": tokens / seconds, "staleness": ages / max(1, tokens)}


def run(config: RunConfig, directory: Path) -> Finished:
    """Run the cell below `directory`, in processes as ever; what it prints is in its logs."""
    out, data = directory / f"cell{len(list(directory.glob('cell*')))}", directory / "data"
    if not data.exists():
        prepare(config.dataset, config.data, data)
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
        run_cell(config, out=out, data=data)
    commits = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return Finished(json.loads((out / "summary.json").read_text()), commits)
