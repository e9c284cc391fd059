"""What a model is told beside the problem, by type of task."""

from async_rollout.config.block import Block, key


class PromptConfig(Block):
    """System instructions: the system turn of a chat template, else a paragraph before the problem.

    An empty one is left out.
    """

    sort: str = key("", "for `sort`")
    calculator: str = key("", "for `calculator`; the embedded model knows its calls, another must be told")
    gsm8k: str = key(
        "Think step by step. End with a line `#### <number>` that holds only the final answer.",
        "for GSM8K-style word problems",
    )
    math: str = key("Think step by step. Put the final answer in \\boxed{}.", "for MATH-style problems")
    coding: str = key("Answer with one Python code block.", "for programs")
    reasoning_gym: str = key(
        "Think step by step. Give the final answer as <answer>...</answer>.", "for `reasoning_gym:NAME`"
    )
