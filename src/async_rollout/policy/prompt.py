"""The exact text that a policy is asked, special tokens of its chat template included."""

from collections.abc import Iterable

from async_rollout.config.prompt import PromptConfig
from async_rollout.policy.interface import Codec
from async_rollout.tasks.environment import ENVIRONMENTS
from async_rollout.tasks.prompts import instruction
from async_rollout.tasks.task import Task
from async_rollout.types import Prompt


def rendered(codec: Codec, task: Task, config: PromptConfig) -> str:
    """The task as this model's prompt; `codec.encode` turns it into ids."""
    return codec.render(instruction(task, config), task.prompt)


def encode_prompts(codec: Codec, tasks: Iterable[Task], config: PromptConfig) -> list[Prompt]:
    """Each task's prompt in ids, with the environment that its type has, if any."""
    return [
        Prompt(
            task.task_id,
            codec.encode(rendered(codec, task, config)),
            task.task_type if task.task_type in ENVIRONMENTS else "",
        )
        for task in tasks
    ]
