"""A pair of trainers in processes of their own, and what tests have them do together."""

import multiprocessing
import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import torch

from async_rollout.learner.learner import Learner
from async_rollout.learner.ranks import LOOPBACK, Alone, Ranks, Rendezvous
from async_rollout.policy.causal_lm import CausalLMPolicy
from async_rollout.types import UpdateMetrics
from learning import groups, run_config
from tiny_policy import VOCABULARY, IdCodec, tiny_model

Call = Callable[..., list[Any]]
"""Calls f(ranks, *arguments, **more) on both ranks at once; returns what each returned, or fails so."""


@contextmanager
def two_trainers() -> Iterator[Call]:
    """Gives the function that both are called by; they end with the block."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    with socket.create_server((LOOPBACK, 0)) as listener:
        port = listener.getsockname()[1]
        for rank in range(2):
            meeting = Rendezvous(rank, 2, port, None if rank else listener)
            ours, theirs = context.Pipe()
            processes.append(context.Process(target=_serve, args=(meeting, theirs), daemon=True))
            processes[-1].start()
            theirs.close()
            pipes.append(ours)

    def call(function: Callable, *arguments: Any, **more: Any) -> list[Any]:
        for pipe in pipes:
            pipe.send((partial(function, **more), arguments))
        answers = [pipe.recv() for pipe in pipes]
        for failure, _ in answers:
            assert failure is None, failure
        return [result for _, result in answers]

    yield call
    for process in processes:
        process.kill()
        process.join()


def _serve(meeting: Rendezvous, pipe: Connection) -> None:
    torch.set_num_threads(1)
    ranks = Ranks(meeting, torch.device("cpu"), sharded=False)
    while True:
        function, arguments = pipe.recv()
        try:
            pipe.send((None, function(ranks, *arguments)))
        except Exception:
            pipe.send((traceback.format_exc(), None))


@dataclass(frozen=True)
class Trained:
    """What some updates left."""

    weights: dict[str, torch.Tensor]
    state: dict
    metrics: list[UpdateMetrics]


def train(
    ranks: Alone,
    blocks: dict,
    *,
    kind: str = "qwen2",
    updates: int = 2,
    resumed: Trained | None = None,
    **how: Any,
) -> Trained:
    """Some updates of a tiny model; the batches depend on the policy version alone."""
    run = run_config(**blocks)
    ranks.sharded = run.train.parallel == "fsdp2"
    policy = CausalLMPolicy(tiny_model(kind).cpu(), IdCodec(), run)  # gloo's side, wherever other tests run
    learner = Learner(run, policy, "cpu", ranks)
    metrics = [
        learner.step(groups(seed=v, versions=(max(0, v - 1), v), vocabulary=VOCABULARY, **how), v)
        for v in range(updates)
    ]
    whole, state = learner.whole(), learner.state_dict()
    weights = {n: p.detach().clone() for n, p in whole.parameters().items()} if ranks.rank == 0 else {}
    return Trained(weights, state, metrics)
