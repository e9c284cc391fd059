"""Builds the policy that a config names; backends are imported only when asked for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from async_rollout.config.run import RunConfig
from async_rollout.tasks.task import Task

if TYPE_CHECKING:
    from async_rollout.policy.interface import Codec, Policy


def build_policy(config: RunConfig, *, device: str, tasks: Sequence[Task] = ()) -> "Policy":
    """The policy of `model.backend` on this device; only `dummy` and `tabular` need tasks."""
    match config.model.backend:
        case "causal_lm":
            from async_rollout.policy.causal_lm import CausalLMPolicy

            _refuse_embedded(config)
            return CausalLMPolicy.load(config, device)
        case "dummy":
            from async_rollout.policy.dummy import DummyPolicy

            return DummyPolicy(config, tasks, device)
        case "tabular":
            from async_rollout.policy.tabular import TabularPolicy

            return TabularPolicy(config, tasks, device)


def build_codec(config: RunConfig) -> "Codec":
    """The codec of `model.backend`, without weights; only `causal_lm` imports transformers."""
    if config.model.backend != "causal_lm":
        from async_rollout.policy.char_codec import CharCodec

        return CharCodec()
    from async_rollout.policy.codec import TokenizerCodec

    _refuse_embedded(config)
    return TokenizerCodec.load(config.model.id, config.model.trust_remote_code)


def _refuse_embedded(config: RunConfig) -> None:
    if config.model.id == "embedded":
        raise ValueError(
            "model.id = embedded names no directory: build the embedded model first "
            "(async-rollout warm-start) and give its directory"
        )
