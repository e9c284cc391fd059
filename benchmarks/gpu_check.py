"""What a GPU makes of this project: one command, under five minutes, without hub or data.

The architecture of Qwen2.5-0.5B with random weights, rollout and trainer on two GPUs where
there are two, else on one. Rows of the table:

- invariants 2, 4, 7 and 8, by their own tests, on the device;
- float16 with loss scaling and bfloat16 autocast: log-probabilities near those of float32,
  optimizer steps that move the weights and keep them finite, and an overflow that is skipped,
  lowers the scale, and is not counted as a step;
- the decoding engine against transformers' generate() at 64 slots, the same recorded lengths;
- publication: weights to the store and back, bit for bit, and how long either way takes;
- mode sync against areal, in their own processes: trained tokens/s once the pipeline is full.

Exit code 0 if every row is ok, 1 if one is not, 2 where there is no such device. Speed is judged
on a GPU only: the engine is to be faster than generate(), and areal than sync where it has two.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from transformers import PretrainedConfig, Qwen2Config, Qwen2ForCausalLM
from transformers.utils import logging as transformers_logging

from async_rollout.config.run import RunConfig
from async_rollout.doctor.architectures import architecture
from async_rollout.learner.characters import build_tokenizer
from async_rollout.learner.learner import Learner
from async_rollout.policy.causal_lm import CausalLMPolicy
from async_rollout.policy.forward import Forward
from async_rollout.types import Group, Sample, SampleId, SampleRequest, Trajectory, Verdict
from cells import cell_config, run
from decoding import SLOTS, run_engine, run_generate
from measure import spread
from weights import Publication, timed

ROOT = Path(__file__).parents[1]
INVARIANTS = {
    2: "k0_is_on_policy",
    4: "stitched_logprobs_are_true",
    7: "microbatch_split_is_invisible",
    8: "padding_is_invisible",
}
GAP = 0.5  # nats that computing in 16 bits may move the log-probability of a token


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    check: str
    found: str
    ok: bool


@dataclass(frozen=True)
class Scale:
    """How much is computed: for a GPU, and as little as shows that every part works."""

    prompts: int  # for engine and generate()
    longest: int  # of their responses
    repeats: int
    groups: int  # a batch of the cells
    updates: int
    skip: int  # commits until the pipeline is full
    tests: str  # of the invariants, as pytest's -k has it
    judged: bool  # whether speed counts


FULL = Scale(256, 128, 3, 8, 14, 4, "not number_of_trainers", True)
TINY = Scale(64, 8, 1, 2, 4, 1, "qwen2-sampling0 or qwen2-1.0 or depend_on_the_split", False)


@dataclass(frozen=True)
class Setting:
    """Where and on what everything runs."""

    trainer: str
    rollout: str
    model: Path
    scale: Scale
    directory: Path


def tiny_architecture() -> PretrainedConfig:
    """A model of the same family for a CPU."""
    return Qwen2Config(
        vocab_size=128,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
    )


def write_model(directory: Path, config: PretrainedConfig) -> Path:
    """Random weights and the embedded model's characters, in Hugging Face format."""
    tokenizer = build_tokenizer()
    config.bos_token_id = tokenizer.bos_token_id
    config.eos_token_id = tokenizer.eos_token_id
    config.pad_token_id = tokenizer.pad_token_id
    torch.manual_seed(0)
    Qwen2ForCausalLM(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def invariants(setting: Setting) -> Iterator[Row]:
    """The tests of the invariants that a device could break."""
    for number, name in INVARIANTS.items():
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-k",
                setting.scale.tests,
                f"tests/invariants/test_{name}.py",
            ],
            cwd=ROOT,
            env={**os.environ, "ASYNC_ROLLOUT_TEST_DEVICE": setting.trainer},
            capture_output=True,
            text=True,
        )
        lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["no output"]
        yield Row(f"invariant {number} {name}", lines[-1].strip("= "), done.returncode == 0)


def recorded_batch(policy: CausalLMPolicy) -> list[Group]:
    """Two groups of four samples that the policy has just drawn, half of them right."""
    rng = np.random.default_rng(0)
    prompts = [rng.integers(8, 90, size=12).astype(np.int32) for _ in range(2)]
    engine = policy.engine(slots=8, seed=0, version=0)
    engine.submit([SampleRequest(SampleId(g, i), prompts[g], 16) for g in range(2) for i in range(4)])
    drawn: list[Trajectory] = []
    while engine.running():
        drawn += engine.step()
    samples = [
        Sample(t, "", Verdict(float(t.id.sample % 2), "recorded")) for t in sorted(drawn, key=lambda t: t.id)
    ]
    return [Group(g, str(g), tuple(samples[4 * g : 4 * g + 4])) for g in range(2)]


def precision(setting: Setting, autocast: str) -> Row:
    """Training in 16 bits: near float32, and what overflows is skipped."""
    config = _config(setting, model={"id": str(setting.model), "autocast": autocast}, optim={"lr": 1e-5})
    policy = CausalLMPolicy.load(config, setting.trainer)
    learner = Learner(config, policy, setting.trainer)
    batch = recorded_batch(policy)
    before = _weights(policy)
    metrics = [learner.step(batch, version) for version in range(4)]
    gap = metrics[0].first_logratio_max
    steps = sum(m.optimizer_steps for m in metrics)
    after = _weights(policy)
    moved = float((after - before).abs().max())
    ok = gap < GAP and steps > 0 and moved > 0 and bool(torch.isfinite(after).all())
    found = f"log-probabilities within {gap:.3f}, {steps} optimizer steps, weights moved by {moved:.1e}"
    if autocast == "float16":
        skipped = overflow_is_skipped(learner, policy, batch)
        ok &= skipped
        found += ", an overflow is skipped" if skipped else ", AN OVERFLOW IS NOT SKIPPED"
    return Row(f"{autocast} autocast", found, ok)


def overflow_is_skipped(learner: Learner, policy: CausalLMPolicy, batch: list[Group]) -> bool:
    """Whether an infinite gradient leaves the weights alone, lowers the scale, and is no optimizer step."""
    before, scale = _weights(policy), _scale(learner)
    parameter = next(iter(policy.parameters().values()))
    hook = parameter.register_hook(lambda gradient: gradient * math.inf)
    metrics = learner.step(batch, 4)
    hook.remove()
    still = torch.equal(before, _weights(policy))
    return still and metrics.optimizer_steps == 0 and _scale(learner) < scale


def engine_rate(setting: Setting) -> Row:
    """Refilled slots against batches that wait for their longest sample."""
    policy = CausalLMPolicy.load(_config(setting), setting.rollout)
    rng = np.random.default_rng(1)
    n, longest = setting.scale.prompts, setting.scale.longest
    prompts = [rng.integers(8, 90, size=rng.integers(8, 33)).astype(np.int32) for _ in range(n)]
    lengths = np.clip(rng.lognormal(np.log(longest / 4), 1.0, size=n), 2, longest).astype(np.int64)
    forward = Forward(policy.model)
    arms: dict[str, Callable[[], int]] = {
        "engine": lambda: run_engine(forward, prompts, lengths),
        "generate()": lambda: run_generate(policy.model, prompts, lengths),
    }
    rates: dict[str, list[float]] = {name: [] for name in arms}
    for turn in range(1 + setting.scale.repeats):  # the first warms up
        for name, arm in arms.items():
            begun = time.perf_counter()
            tokens = arm()
            if turn:
                rates[name].append(tokens / (time.perf_counter() - begun))
    ratio = statistics.median(a / b for a, b in zip(rates["engine"], rates["generate()"], strict=True))
    told = ", ".join(f"{name} {statistics.median(values):.0f} tokens/s" for name, values in rates.items())
    ok = ratio > 1 or not setting.scale.judged
    return Row(f"decoding, {SLOTS} slots", f"{told}: {ratio:.2f}x", ok)


def publication(setting: Setting) -> Row:
    """From the trainer's device into the store, and out again to the rollout's."""
    writer, reader = (
        CausalLMPolicy.load(_config(setting), device) for device in (setting.trainer, setting.rollout)
    )
    ours, theirs = Publication(writer), Publication(reader)
    with torch.no_grad():
        for parameter in reader.parameters().values():
            parameter.zero_()
    theirs.store.close()
    theirs.store = ours.store
    writes = [timed(ours.publish) for _ in range(1 + 2 * setting.scale.repeats)][1:]
    reads = [timed(theirs.read) for _ in range(1 + 2 * setting.scale.repeats)][1:]
    ours.store.close()
    same = torch.equal(_weights(writer), _weights(reader))
    found = ", ".join(
        f"{name} {spread([1000 * s for s in seconds])} ms"
        for name, seconds in (("write", writes), ("read", reads))
    )
    return Row(
        f"publication, {ours.layout.size / 1e6:.0f} MB", found + ("" if same else ", NOT THE SAME"), same
    )


def modes(setting: Setting) -> Row:
    """The same work in turns, and at once."""
    rates = {}
    for mode, k in (("sync", 0), ("areal", 4)):
        finished = run(_config(setting, mode=mode, k=k), setting.directory)
        steady = finished.steady(setting.scale.skip)
        rates[mode] = steady["tokens_per_sec"]
        oldest = max(int(age) for commit in finished.commits for age in commit["staleness"])
        assert oldest <= k, f"mode {mode} trained a token that was {oldest} versions old"
    ratio = rates["areal"] / rates["sync"]
    told = ", ".join(f"{mode} {rate:.0f} tokens/s" for mode, rate in rates.items())
    ok = ratio > 1 or not setting.scale.judged or setting.trainer == setting.rollout
    return Row(f"trained, {setting.rollout} and {setting.trainer}", f"{told}: {ratio:.2f}x", ok)


def check(setting: Setting) -> Iterator[Row]:
    """Every row; a part that raises is a row that is not ok."""
    yield from invariants(setting)
    parts: dict[str, Callable[[], Row]] = {
        "float16 autocast": lambda: precision(setting, "float16"),
        "bfloat16 autocast": lambda: precision(setting, "bfloat16"),
        "decoding": lambda: engine_rate(setting),
        "publication": lambda: publication(setting),
        "trained": lambda: modes(setting),
    }
    for name, part in parts.items():
        try:
            yield part()
        except Exception as error:  # whatever a device does not do is what this is asked for
            yield Row(name, f"{type(error).__name__}: {error}".splitlines()[0], False)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _config(setting: Setting, **blocks: object) -> RunConfig:
    scale = setting.scale
    devices = {
        "train": {"updates": scale.updates, "devices": [setting.trainer], "microbatch_tokens": 4096},
        "rollout": {"devices": [setting.rollout], "slots": 4 * scale.groups},
        "batch": {"groups": scale.groups},
        "sampling": {"max_new_tokens": scale.longest},
        "checkpoint": {"every": 0},
    }
    return cell_config(setting.model, **devices | blocks)


def _weights(policy: CausalLMPolicy) -> torch.Tensor:
    return torch.cat([p.detach().flatten().cpu() for p in policy.parameters().values()])


def _scale(learner: Learner) -> float:
    return learner.state_dict()["optimizer"]["scaler"]["scale"]


def main(arguments: list[str]) -> int:
    """Print the table; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="cpu: that all parts work")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    options = parser.parse_args(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        print(f"gpu-check: torch {torch.__version__} finds no CUDA device here", file=sys.stderr)
        return 2
    transformers_logging.set_verbosity_error()
    torch.set_num_threads(1)
    on_gpu = options.device == "cuda"
    trainer, rollout = (
        ("cuda:0", f"cuda:{min(1, torch.cuda.device_count() - 1)}") if on_gpu else ("cpu", "cpu")
    )
    begun, rows = time.monotonic(), []
    with tempfile.TemporaryDirectory() as name:
        shape = architecture("Qwen/Qwen2.5-0.5B-Instruct") if on_gpu else tiny_architecture()
        model = write_model(Path(name) / "model", shape)
        for row in check(Setting(trainer, rollout, model, FULL if on_gpu else TINY, Path(name))):
            rows.append(row)
            print(f"{'ok' if row.ok else 'FAILED':6}  {row.check:42}  {row.found}", flush=True)
    devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if on_gpu else ["cpu"]
    if options.json:
        record = {"devices": devices, "torch": torch.__version__, "seconds": time.monotonic() - begun}
        text = json.dumps(record | {"rows": [asdict(row) for row in rows]}, allow_nan=False, indent=1)
        options.json.write_text(text + "\n")
    failed = sum(not row.ok for row in rows)
    print(f"{', '.join(devices)}: {len(rows) - failed} ok, {failed} failed, {time.monotonic() - begun:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
