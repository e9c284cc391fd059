"""Any model scored as runs score theirs: the same prompts, streams, engine and judges."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from async_rollout.config.run import RunConfig
from async_rollout.policy.prompt import encode_prompts
from async_rollout.policy.registry import build_policy
from async_rollout.policy.respond import draw
from async_rollout.policy.room import check_room
from async_rollout.rewards.backend import build_rewards
from async_rollout.runners.judging import judge_all
from async_rollout.runtime.examination import UnjudgedEvaluation
from async_rollout.tasks.splits import read_splits, split_paths

Kind = Literal["sampled", "greedy"]


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One judged answer."""

    task_id: str
    kind: Kind
    sample: int  # from 0
    response: str
    tokens: int
    finish_reason: str
    reward: float
    verdict: str
    extracted: str | None
    compared: str | None


@dataclass(frozen=True, slots=True)
class Score:
    """A pass rate and its standard error, which treats a task's samples as one observation."""

    rate: float
    error: float
    tasks: int


def evaluate_model(
    run: RunConfig, data: Path, scratch: Path, *, split: Literal["eval", "train"], kind: Kind, samples: int
) -> list[AnswerRow]:
    """Every task of the split answered so many times by `run.model`, and judged, in the tasks' order.

    `data` holds the prepared tasks; judges may use the directory `scratch`. Raises
    UnjudgedEvaluation if an answer could not be judged: the rate would be a guess.
    """
    splits = read_splits(data, run.data)
    tasks = splits.held_out if split == "eval" else splits.train
    policy = build_policy(run, device=run.train.devices[0], tasks=splits.train + splits.held_out)
    rewards = build_rewards(split_paths(data), run.reward, scratch)
    try:
        rewards.start()
        prompts = encode_prompts(policy.codec, tasks, run.prompt)
        check_room(prompts, run)
        drawn = draw(policy, prompts, run, greedy=kind == "greedy", samples=samples)
        texts = {t.id: policy.codec.decode(t.response_ids.tolist()) for t in drawn}
        rewards.wait_ready(run.supervision.setup_timeout_sec)
        verdicts = judge_all(rewards, [(t.id, tasks[t.id.group].task_id, texts[t.id]) for t in drawn])
    finally:
        rewards.close()
    if failed := sum(v.infrastructure for v in verdicts.values()):
        raise UnjudgedEvaluation(f"{failed} of {len(drawn)} answers could not be judged")
    return [
        AnswerRow(
            task_id=tasks[t.id.group].task_id,
            kind=kind,
            sample=t.id.sample,
            response=texts[t.id],
            tokens=len(t.response_ids),
            finish_reason=t.finish_reason,
            reward=verdicts[t.id].reward,
            verdict=verdicts[t.id].verdict,
            extracted=verdicts[t.id].extracted,
            compared=verdicts[t.id].compared,
        )
        for t in drawn
    ]


def score(rows: Sequence[AnswerRow]) -> Score:
    """The share of answers that passed; error: standard deviation of the tasks' shares / sqrt(tasks)."""
    passed: dict[str, list[bool]] = {}
    for row in rows:
        passed.setdefault(row.task_id, []).append(row.verdict == "pass")
    shares = [sum(each) / len(each) for each in passed.values()]
    n = len(shares)
    rate = sum(row.verdict == "pass" for row in rows) / len(rows)
    variance = sum((share - rate) ** 2 for share in shares) / max(1, n - 1)
    return Score(rate, math.sqrt(variance / n), n)
