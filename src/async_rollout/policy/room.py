"""Room for the answers: a prompt and its longest response must fit into the model's positions.

What an environment writes into a response counts as part of it.
"""

from collections.abc import Sequence

from transformers import AutoConfig

from async_rollout.config.errors import ConfigError, Problem
from async_rollout.config.model import ModelConfig
from async_rollout.config.run import RunConfig
from async_rollout.types import Prompt


def most_positions(model: ModelConfig) -> int | None:
    """Tokens of a prompt and its response together; None where the model sets no limit. Loads no weights."""
    if model.backend != "causal_lm":
        return None
    config = AutoConfig.from_pretrained(model.id, trust_remote_code=model.trust_remote_code)
    return getattr(config.get_text_config(), "max_position_embeddings", None)


def check_room(prompts: Sequence[Prompt], run: RunConfig) -> str:
    """Says how much the longest prompt needs of what there is. ConfigError if that is too much.

    Asked before a run begins: else one long prompt would end it, perhaps after all of its training.
    `run.model.id` is a directory or a hub id.
    """
    most, response = most_positions(run.model), run.sampling.max_new_tokens
    longest = max(prompts, key=lambda prompt: len(prompt.ids))
    length = len(longest.ids)
    need = f"task {longest.task_id}, a prompt of {length} tokens, may need {length + response} positions"
    if most is None:
        return f"{need}, the policy sets no limit"
    if length + response <= most:
        return f"{need} of the model's {most}"
    beyond = sum(len(prompt.ids) + response > most for prompt in prompts)
    what = f"{need}, the model has {most} (so for {beyond} of {len(prompts)} prompts)"
    less = f"at most {most - length}, or " if most > length else ""
    fix = f"{less}leave out the long prompts, or take a model with more positions"
    raise ConfigError([Problem("sampling.max_new_tokens", response, what, fix)])
