"""Who learns, and how."""

from typing import Annotated, Literal

from pydantic import Field

from async_rollout.config.block import Block, Device, key


class OptimConfig(Block):
    """AdamW."""

    lr: float = key(
        1e-4,
        "learning rate",
        env="LR",
        theirs="5e-6",
        why="fits the embedded model; 5e-6 is for models of 0.5B and more",
        gt=0,
    )
    betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]] = key(
        (0.9, 0.99), "decay of the moments"
    )
    weight_decay: float = key(0.0, "decoupled weight decay", ge=0)
    warmup_updates: int = key(0, "updates of linear warm-up", unit="updates", ge=0)
    grad_clip: float = key(1.0, "largest gradient norm", gt=0)


class TrainConfig(Block):
    """Length of a run and the trainer's resources."""

    updates: int = key(100, "commits: policy versions to reach", unit="updates", ge=1, le=10_000_000)
    workers: int = key(
        1, "trainer processes, one data-parallel group that shares each minibatch; mode areal", ge=1, le=64
    )
    devices: list[Device] = key(
        lambda: ["cpu"],
        "devices, given to trainer workers in turn; a run of one process computes on the first",
        env="TRAINER_DEVICES",
        theirs="cuda:1",
        why="runs without a GPU",
        min_length=1,
    )
    parallel: Literal["replicate", "fsdp2"] = key(
        "replicate",
        "what each trainer worker holds: a whole copy of policy and optimizer, or its shard of both",
    )
    gradient_checkpointing: bool = key(
        False, "compute activations again in the backward pass: less memory, about a third more time"
    )
    microbatch_tokens: int = key(
        16384,
        "tokens of one forward and backward, padding included: changes speed and memory, no result; "
        "on a CPU about 1024 is fastest",
        unit="tokens",
        ge=16,
    )
    threads: int = key(1, "compute threads a trainer worker", ge=1)
    gradient_cosine: bool = key(
        False, "measure the cosine between the gradients of successive optimizer steps; keeps a copy of one"
    )
    save_model: bool = key(False, "keep the final model in the cell's directory, Hugging Face format")
