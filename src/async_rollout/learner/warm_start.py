"""Builds the embedded model and gives it a supervised start from which RL has room to learn.

Always: the result is a function of the config alone (one thread, own random streams); the
directory appears whole or not at all, and loads as any Hugging Face model.
"""

import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from async_rollout.config.model import WarmStartConfig
from async_rollout.learner.characters import build_tokenizer
from async_rollout.learner.curriculum import Curriculum, curriculum_of
from async_rollout.policy.codec import TokenizerCodec
from async_rollout.policy.engine import DecodingEngine
from async_rollout.policy.forward import Forward
from async_rollout.policy.sampling import Sampler
from async_rollout.policy.turns import Turns
from async_rollout.records.files import write_json
from async_rollout.tasks.demonstration import Demonstration
from async_rollout.tasks.environment import ENVIRONMENTS
from async_rollout.types import SampleId, SampleRequest

Progress = Callable[[int, float], None]

WARMUP_STEPS = 20
FLOOR = 0.1  # of the peak learning rate, at the end of the cosine
IGNORED = -100


def warm_start(config: WarmStartConfig, directory: Path, progress: Progress | None = None) -> dict:
    """Train the embedded model on demonstrations and write it to `directory`.

    `progress` is called with (steps done, loss). Returns, and writes beside the model as
    `warm_start.json`: the config, the last loss, held-out pass rates and CPU seconds.
    """
    started = time.process_time()
    with _one_thread_own_streams(config.seed):
        tokenizer = build_tokenizer()
        model = build_model(config, tokenizer)
        curriculum = curriculum_of(config)
        loss = _train(model, tokenizer, config, curriculum, progress)
        result = {
            "warm_start": config.model_dump(mode="json"),
            "parameters": model.num_parameters(),
            "loss": loss,
            "pass_rate_sampled": pass_rate(model, tokenizer, curriculum, sampled=True),
            "pass_rate_greedy": pass_rate(model, tokenizer, curriculum, sampled=False),
            "held_out": len(curriculum.questions),
            "cpu_seconds": time.process_time() - started,
        }
    with _whole_directory(directory) as unfinished:
        model.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
        write_json(unfinished / "warm_start.json", result)
    return result


def build_model(config: WarmStartConfig, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """The embedded model with random weights.

    Llama's architecture, because AutoTokenizer replaces the tokenizer of a Qwen2 model by its own.
    """
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=config.hidden_size,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.kv_heads,
            intermediate_size=config.intermediate_size,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
            initializer_range=0.05,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )


@torch.no_grad()
def pass_rate(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, curriculum: Curriculum, *, sampled: bool
) -> float:
    """Share of the questions answered right, one response each, at temperature 1 or greedily."""
    codec = TokenizerCodec(tokenizer, frozenset([tokenizer.eos_token_id]), tokenizer.pad_token_id)
    questions = curriculum.questions
    engine = DecodingEngine(
        Forward(model.eval()),
        slots=len(questions),
        seed=0,
        version=0,
        sampler=Sampler(greedy=not sampled),
        stop_ids=codec.stop_ids,
        prefill_tokens=1 << 14,
        observe=Turns(codec),
    )
    engine.submit(
        SampleRequest(
            SampleId(i, 0), codec.encode(q.prompt), curriculum.answer_tokens, curriculum.environment
        )
        for i, q in enumerate(questions)
    )
    right = 0
    while engine.running():
        for done in engine.step():
            right += questions[done.id.group].is_right(codec.decode(done.response_ids.tolist()))
    return right / len(questions)


def _train(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    config: WarmStartConfig,
    curriculum: Curriculum,
    progress: Progress | None,
) -> float | None:
    """Next-token loss on what the model would write itself; returns the last one."""
    rng = np.random.default_rng(config.seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.lr, betas=(0.9, 0.98), weight_decay=0.01, fused=True
    )
    value = None
    for step in range(config.steps):
        ids, targets = _encode(tokenizer, curriculum.draw(rng, config.batch), curriculum.environment)
        logits = model(input_ids=ids).logits  # padding on the right is never attended to
        loss = torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten(), ignore_index=IGNORED
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = config.lr * _schedule(step, config.steps)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        value = loss.item()
        if progress is not None:
            progress(step + 1, value)
    return value


def pieces(shown: Demonstration, environment: str) -> list[tuple[str, bool]]:
    """The demonstration as (text, whether the model writes it): prompt, turns, observations."""
    found = [(shown.prompt, False)]
    response = ""
    for turn in shown.turns:
        observed = ENVIRONMENTS[environment].observe(response + turn) if environment else None
        found += [(turn, True), (observed or "", False)]
        response += turn + (observed or "")
    return found


def _encode(
    tokenizer: PreTrainedTokenizerFast, demonstrations: Sequence[Demonstration], environment: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """(ids, targets), each (n, longest): bos, the pieces, eos; targets are set on the model's own and eos."""
    rows = []
    for shown in demonstrations:
        row = [(tokenizer.bos_token_id, False)]
        for text, own in pieces(shown, environment):
            row += [(i, own) for i in tokenizer(text, add_special_tokens=False)["input_ids"]]
        rows.append([*row, (tokenizer.eos_token_id, True)])
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), tokenizer.pad_token_id)
    targets = torch.full_like(ids, IGNORED)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor([token for token, _ in row])
        targets[i, : len(row)] = torch.tensor([token if own else IGNORED for token, own in row])
    return ids, targets


def _schedule(step: int, steps: int) -> float:
    """Linear warm-up, then a cosine down to the floor; a factor on the peak learning rate."""
    if step < WARMUP_STEPS:
        return (step + 1) / WARMUP_STEPS
    done = (step - WARMUP_STEPS) / max(1, steps - WARMUP_STEPS)
    return FLOOR + (1 - FLOOR) * (1 + math.cos(math.pi * done)) / 2


@contextmanager
def _one_thread_own_streams(seed: int) -> Iterator[None]:
    """One compute thread and a seeded torch stream, both given back afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _whole_directory(directory: Path) -> Iterator[Path]:
    """A directory to fill that takes the place of `directory` once it is complete and on disk."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}."))
    unfinished = home / "new"
    unfinished.mkdir()
    try:
        yield unfinished
        for path in unfinished.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        if directory.exists():
            directory.rename(home / "old")
        unfinished.rename(directory)
    finally:
        shutil.rmtree(home, ignore_errors=True)
