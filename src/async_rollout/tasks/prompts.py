"""What the model is asked: the task's prompt, and how to give the answer where that is needed."""

from async_rollout.tasks.task import Task, family

_INSTRUCTIONS = {
    "sort": "",
    "gsm8k": "\nThink step by step. End with a line `#### <number>` that holds only the final answer.",
    "math": "\nThink step by step. Put the final answer in \\boxed{}.",
    "coding": "\nAnswer with one Python code block.",
    "reasoning_gym": "\nThink step by step. Give the final answer as <answer>...</answer>.",
}


def prompt_text(task: Task) -> str:
    """The user's turn; the policy's codec puts it into its chat template, if it has one."""
    return task.prompt + _INSTRUCTIONS[family(task.task_type)]
