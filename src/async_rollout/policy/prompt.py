"""The exact text that a policy is asked, special tokens of its chat template included."""

from async_rollout.config.prompt import PromptConfig
from async_rollout.policy.interface import Codec
from async_rollout.tasks.prompts import instruction
from async_rollout.tasks.task import Task


def rendered(codec: Codec, task: Task, config: PromptConfig) -> str:
    """The task as this model's prompt; `codec.encode` turns it into ids."""
    return codec.render(instruction(task, config), task.prompt)
