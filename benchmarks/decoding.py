"""Claim: refilled slots win what they can over batches that wait for their longest sample.

The decoding engine at 64 slots and transformers' generate() in batches of 64 produce the
same number of tokens for each of the same prompts with the same randomly initialised model
of the demo's size, on one thread. Lengths are recorded beforehand: every row ends at its
own, in our engine by its token limit, in generate() by a stopping criterion. What refilling
can win at most is the bound: the steps of generate(), whose batches last as long as their
longest row, over the steps of slots that are always full; at the end of a run slots run
empty, so fewer prompts reach less of it. Our tokens come with the
log-probability that training needs; generate() is not asked for any.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    PreTrainedModel,
    Qwen2Config,
    StoppingCriteria,
    StoppingCriteriaList,
)
from transformers.utils import logging as transformers_logging

from async_rollout.policy.engine import DecodingEngine
from async_rollout.policy.forward import Forward
from async_rollout.policy.prefill import left_padded
from async_rollout.policy.sampling import Sampler
from async_rollout.types import SampleId, SampleRequest

SLOTS = 64
VOCABULARY = 99


@dataclass(frozen=True)
class Result:
    """One distribution of lengths; rates are medians over the repeats."""

    lengths: str
    prompts: int
    tokens: int
    engine_tokens_per_sec: float
    generate_tokens_per_sec: float
    speedup: float  # median of the repeats' ratios, each pair taken back to back
    bound: float
    figure: float
    aim: float

    @property
    def met(self) -> bool:
        """True if the figure reaches the aim."""
        return self.figure >= self.aim


class RecordedLengths(StoppingCriteria):
    """Ends each row of generate() after its own number of new tokens."""

    def __init__(self, prompt_width: int, lengths: np.ndarray) -> None:
        self._ends = torch.from_numpy(prompt_width + lengths)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **kwargs: object) -> torch.Tensor:
        """(n,) True for the rows that are done."""
        return (input_ids.shape[1] >= self._ends).to(input_ids.device)


def build_model() -> PreTrainedModel:
    """The demo's architecture with random weights: lengths are forced, so what it says is irrelevant."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=VOCABULARY, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=4, intermediate_size=128, tie_word_embeddings=True, initializer_range=0.05,
        max_position_embeddings=1024, bos_token_id=None, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    return AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()


def draw_lengths(name: str, n: int) -> np.ndarray:
    """n response lengths, (n,) int64."""
    rng = np.random.default_rng(1)
    if name == "uniform":
        return rng.integers(4, 65, size=n)
    return np.clip(rng.lognormal(mean=np.log(20), sigma=1.0, size=n), 4, 256).astype(np.int64)


def bound(lengths: np.ndarray) -> float:
    """Longest ÷ mean length within a batch of SLOTS, over all batches."""
    batches = [lengths[i : i + SLOTS] for i in range(0, len(lengths), SLOTS)]
    return float(sum(len(b) * b.max() for b in batches) / lengths.sum())


def run_engine(forward: Forward, prompts: list[np.ndarray], lengths: np.ndarray) -> int:
    """Decode every prompt; returns the tokens produced."""
    engine = DecodingEngine(
        forward, slots=SLOTS, seed=0, version=0, sampler=Sampler(), stop_ids=frozenset(), prefill_tokens=16384
    )
    requests = [
        SampleRequest(SampleId(i, 0), p, int(n))
        for i, (p, n) in enumerate(zip(prompts, lengths, strict=True))
    ]
    tokens = 0
    while requests or engine.free_slots < SLOTS:
        free = engine.free_slots
        engine.submit(requests[:free])
        del requests[:free]
        tokens += sum(len(trajectory.behavior_logprobs) for trajectory in engine.step())
    return tokens


@torch.inference_mode()
def run_generate(model: PreTrainedModel, prompts: list[np.ndarray], lengths: np.ndarray) -> int:
    """generate() in batches of SLOTS, each until its longest row ends; returns the tokens wanted."""
    for start in range(0, len(prompts), SLOTS):
        ids, real = left_padded(prompts[start : start + SLOTS])
        wanted = lengths[start : start + SLOTS]
        model.generate(
            torch.from_numpy(ids).to(model.device),
            attention_mask=torch.from_numpy(real).long().to(model.device),
            generation_config=GenerationConfig(
                do_sample=True, top_k=0, top_p=1.0, max_new_tokens=int(wanted.max()), pad_token_id=0
            ),
            stopping_criteria=StoppingCriteriaList([RecordedLengths(ids.shape[1], wanted)]),
        )
    return int(lengths.sum())


def timed(run: Callable[[], int], expected: int) -> float:
    """Tokens per second of one run."""
    start = time.perf_counter()
    tokens = run()
    seconds = time.perf_counter() - start
    if tokens != expected:
        raise RuntimeError(f"{tokens} tokens instead of {expected}")
    return tokens / seconds


def compare(name: str, model: PreTrainedModel, n: int, repeats: int) -> Result:
    """Run both ways in turn, `repeats` times."""
    rng = np.random.default_rng(0)
    prompts = [rng.integers(3, VOCABULARY, size=rng.integers(8, 13)).astype(np.int32) for _ in range(n)]
    lengths, forward = draw_lengths(name, n), Forward(model)
    total = int(lengths.sum())
    run_engine(forward, prompts[:SLOTS], lengths[:SLOTS])  # warm up
    run_generate(model, prompts[:SLOTS], lengths[:SLOTS])
    ours, theirs = [], []
    for _ in range(repeats):
        ours.append(timed(lambda: run_engine(forward, prompts, lengths), total))
        theirs.append(timed(lambda: run_generate(model, prompts, lengths), total))
    speedup = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    most = bound(lengths)
    figure, aim = (speedup / most, 0.85) if name == "uniform" else (speedup, 2.0)
    rates = statistics.median(ours), statistics.median(theirs)
    return Result(name, n, total, *rates, speedup, most, figure, aim)


def main(arguments: list[str]) -> int:
    """Print a line for each distribution of lengths, and the claim's line last."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer prompts and repeats, under 60 s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results there")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    transformers_logging.set_verbosity_error()
    model = build_model()
    n, repeats = (512, 3) if options.quick else (1024, 7)
    results = [compare(name, model, n, repeats) for name in ("uniform", "log-normal")]
    for r in results:
        print(
            f"{r.lengths}: {r.prompts} prompts, {r.tokens} tokens; "
            f"engine {r.engine_tokens_per_sec:.0f} tokens/s with log-probabilities, "
            f"generate() {r.generate_tokens_per_sec:.0f} tokens/s without: {r.speedup:.2f}x; "
            f"bound {r.bound:.2f}x, share of it {r.speedup / r.bound:.2f}"
        )
    if options.json:
        options.json.write_text(
            json.dumps([asdict(r) | {"met": r.met} for r in results], allow_nan=False, indent=1)
        )
    uniform, lognormal = results
    print(
        f"refilled slots against generate() in batches of {SLOTS}, {n} prompts: "
        f"{uniform.figure:.2f} of the bound for "
        f"uniform lengths (aim {uniform.aim}), {lognormal.figure:.2f}x for log-normal ones "
        f"(aim {lognormal.aim}): " + ("met" if uniform.met and lognormal.met else "missed")
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
