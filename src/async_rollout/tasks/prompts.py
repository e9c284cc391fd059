"""What the model is asked: the task's prompt, and the instruction of its type."""

from async_rollout.config.prompt import PromptConfig
from async_rollout.tasks.task import Task, family


def instruction(task: Task, config: PromptConfig) -> str:
    """The system instruction; empty if there is none."""
    return getattr(config, family(task.task_type))


def plain(system: str, user: str) -> str:
    """Both as one text, for models without a chat template."""
    return f"{system}\n\n{user}" if system else user


def prompt_text(task: Task, config: PromptConfig) -> str:
    """What a model without a chat template is asked."""
    return plain(instruction(task, config), task.prompt)
