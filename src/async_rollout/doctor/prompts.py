"""Whether every prompt leaves room for its response; nothing of the model's weights is loaded."""

from async_rollout.config.errors import ConfigError
from async_rollout.config.run import RunConfig
from async_rollout.doctor.finding import Finding
from async_rollout.policy.prompt import encode_prompts
from async_rollout.policy.registry import build_codec
from async_rollout.policy.room import check_room
from async_rollout.tasks.sources import load_source


def prompts_check(run: RunConfig) -> Finding:
    """Of both splits, as a run checks it before it begins; `run.model.id` is a directory or a hub id."""
    source = load_source(run.dataset, run.data)
    most = run.data.task_limit
    tasks = source.train[:most] + source.held_out[:most]
    prompts = encode_prompts(build_codec(run), tasks, run.prompt)
    try:
        return Finding("ok", "prompts", check_room(prompts, run))
    except ConfigError as error:
        return Finding("fail", "prompts", str(error.problems[0]))
