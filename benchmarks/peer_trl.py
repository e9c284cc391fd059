"""TRL's GRPOTrainer on the CPU, for peers.py: run it in an environment that has TRL, alone or by torchrun.

Prints one JSON line from rank 0: completion tokens a second, seconds a step and the mean length,
all over the steps after `--skip`. A step is one optimizer step; a batch is generated for every
`--minibatches` of them. Rewards are a hash of the text, so that every group has signal.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import zlib
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer


class Clock(TrainerCallback):
    """When each optimizer step ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step_end(self, args, state, control, **kwargs) -> None:
        """Note the time."""
        self.ends.append(time.perf_counter())


def reward(completions: list[str], **kwargs) -> list[float]:
    """A number in [0, 1) that the text alone decides."""
    return [zlib.crc32(text.encode()) % 1000 / 1000 for text in completions]


def main() -> None:
    """Train, then print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("model", "prompts"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("groups", "group-size", "minibatches", "tokens", "updates", "skip"):
        parser.add_argument(f"--{name}", type=int, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    prompts = json.loads(given.prompts.read_text())
    samples = given.groups * given.group_size
    clock = Clock()
    with tempfile.TemporaryDirectory() as scratch:
        trainer = GRPOTrainer(
            model=AutoModelForCausalLM.from_pretrained(given.model, dtype=torch.float32),
            processing_class=AutoTokenizer.from_pretrained(given.model, padding_side="left"),
            reward_funcs=reward,
            train_dataset=Dataset.from_list([{"prompt": prompt} for prompt in prompts]),
            callbacks=[clock],
            args=GRPOConfig(
                output_dir=scratch,
                use_cpu=True,
                bf16=False,
                gradient_checkpointing=False,
                per_device_train_batch_size=samples // given.minibatches // ranks,
                steps_per_generation=given.minibatches,
                num_generations=given.group_size,
                max_completion_length=given.tokens,
                temperature=1.0,
                beta=0.0,
                learning_rate=1e-30,
                lr_scheduler_type="constant",
                max_steps=given.updates * given.minibatches,
                logging_steps=1,
                report_to=[],
                save_strategy="no",
                disable_tqdm=True,
                dataloader_pin_memory=False,
                ddp_backend="gloo" if ranks > 1 else None,
            ),
        )
        stdout, sys.stdout = sys.stdout, sys.stderr  # what TRL prints is not the result
        trainer.train()
        sys.stdout = stdout
    lengths = [row["completions/mean_length"] for row in trainer.state.log_history if "reward" in row]
    first = given.skip * given.minibatches
    seconds = clock.ends[-1] - clock.ends[first - 1]
    length = sum(lengths[first:]) / len(lengths[first:])
    if trainer.accelerator.is_main_process:
        updates = given.updates - given.skip
        tokens = length * samples * updates
        print(
            json.dumps(
                {
                    "tokens_per_sec": tokens / seconds,
                    "update_sec": seconds / updates,
                    "mean_length": length,
                    "parameters": sum(p.numel() for p in trainer.model.parameters()),
                }
            )
        )


if __name__ == "__main__":
    main()
