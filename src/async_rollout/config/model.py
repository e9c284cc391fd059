"""Which model is trained, and in what precision."""

from typing import Literal, Self

from async_rollout.config.block import Block, key


class ModelConfig(Block):
    """The policy that rollout and trainer workers load."""

    backend: Literal["causal_lm", "dummy", "tabular"] = key(
        "causal_lm",
        "`causal_lm`: a Hugging Face model; `dummy` (knows the answers) and `tabular` (picks among "
        "candidate answers) test the machinery and are named as such in the report",
    )
    id: str = key(
        "embedded",
        "`embedded` (built and warm-started here, see `warm_start`), a local directory in Hugging Face "
        "format, a `.gguf` file (extra `gguf`), or a hub id",
        env="MODEL_ID",
        theirs="Qwen/Qwen2.5-0.5B-Instruct",
        why="needs no hub and learns in minutes on a CPU",
    )
    dtype: Literal["float32", "bfloat16", "float16"] = key(
        "float32", "type of the parameters", env="HF_DTYPE", theirs="float32"
    )
    autocast: Literal["none", "bfloat16", "float16"] = key(
        "none",
        "type that training forwards compute in",
        env="HF_USE_AUTOCAST",
        theirs="0",
        why="`none` is 0; the type is named instead of 1",
    )
    attn_implementation: Literal["sdpa", "eager"] = key("sdpa", "attention kernel of transformers")
    trust_remote_code: bool = key(False, "run code that comes with a hub model")


class WarmStartConfig(Block):
    """Architecture and supervised start of the embedded model."""

    task: Literal["dataset", "sort", "coding", "calculator"] = key(
        "dataset",
        "what it is shown; `dataset`: what it will be trained on, or `sort` where that shows nothing",
    )
    seed: int = key(0, "seed of weights and demonstrations", ge=0)
    hidden_size: int = key(64, "width", ge=8)
    layers: int = key(2, "transformer layers", ge=1)
    heads: int = key(4, "attention heads", ge=1)
    kv_heads: int = key(4, "key-value heads", ge=1)
    intermediate_size: int = key(128, "width of the MLP", ge=8)
    steps: int = key(400, "optimizer steps", ge=0)
    batch: int = key(64, "demonstrations a step", unit="samples", ge=1)
    lr: float = key(4e-3, "peak learning rate", gt=0)
    marked_share: float = key(0.25, "share of demonstrations in the answer format", ge=0, le=1)
    corrupted_share: float = key(0.3, "share with a wrong digit, or a wrong program", ge=0, le=1)

    def on(self, dataset: str) -> Self:
        """The block with `task` decided for a dataset."""
        if self.task != "dataset":
            return self
        return self.model_copy(update={"task": dataset if dataset in DEMONSTRATED else "sort"})


DEMONSTRATED = ("sort", "coding", "calculator")  # datasets that the embedded model can be shown
