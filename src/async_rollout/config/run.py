"""One cell, fully resolved: what `config.json` holds and what a process is built from."""

from typing import Self

from pydantic import Field, model_validator

from async_rollout.config.axes import (
    OVERLAPPING,
    SLUG,
    Algorithm,
    Dataset,
    Decoupled,
    Mode,
    Seed,
    StalenessBound,
)
from async_rollout.config.batch import BatchConfig
from async_rollout.config.block import Block, key
from async_rollout.config.checkpoint import CheckpointConfig
from async_rollout.config.collapse import CollapseConfig
from async_rollout.config.critic import CriticConfig
from async_rollout.config.data import DataConfig
from async_rollout.config.errors import Problem, bad_combination
from async_rollout.config.evaluation import EvaluationConfig
from async_rollout.config.model import ModelConfig, WarmStartConfig
from async_rollout.config.objective import AdvantageConfig, KlConfig, ObjectiveConfig
from async_rollout.config.prompt import PromptConfig
from async_rollout.config.reward import RewardConfig
from async_rollout.config.rollout import RolloutConfig, StalenessConfig
from async_rollout.config.rules import broken_rules, misnamed
from async_rollout.config.sampling import SamplingConfig
from async_rollout.config.stress import StressConfig
from async_rollout.config.supervision import SupervisionConfig
from async_rollout.config.trainer import OptimConfig, TrainConfig


class Blocks(Block):
    """The blocks that a sweep file sets and every cell of it shares, arms apart."""

    model: ModelConfig = key(ModelConfig, "the policy")
    warm_start: WarmStartConfig = key(WarmStartConfig, "the embedded model")
    data: DataConfig = key(DataConfig, "sizes of the data")
    prompt: PromptConfig = key(PromptConfig, "instructions")
    sampling: SamplingConfig = key(SamplingConfig, "how tokens are drawn")
    batch: BatchConfig = key(BatchConfig, "what a step consumes")
    objective: ObjectiveConfig = key(ObjectiveConfig, "the loss")
    advantage: AdvantageConfig = key(AdvantageConfig, "from rewards to advantages")
    critic: CriticConfig = key(CriticConfig, "the critic of `gae`")
    kl: KlConfig = key(KlConfig, "penalty")
    optim: OptimConfig = key(OptimConfig, "AdamW")
    train: TrainConfig = key(TrainConfig, "the trainer")
    rollout: RolloutConfig = key(RolloutConfig, "the samplers")
    staleness: StalenessConfig = key(StalenessConfig, "hand-over")
    collapse: CollapseConfig = key(CollapseConfig, "early stop")
    reward: RewardConfig = key(RewardConfig, "the judges")
    evaluation: EvaluationConfig = key(EvaluationConfig, "held-out pass rates")
    checkpoint: CheckpointConfig = key(CheckpointConfig, "against crashes")
    supervision: SupervisionConfig = key(SupervisionConfig, "time limits")
    stress: StressConfig = key(StressConfig, "injected delays")

    @model_validator(mode="after")
    def _can_be_run(self) -> Self:
        if problems := broken_rules(self):
            raise bad_combination(problems)
        return self


class RunConfig(Blocks):
    """One cell: its place on the axes, and every block as it will be used.

    `objective.name` is never `axis` here: `decoupled` has decided it.
    """

    experiment: str = Field(pattern=SLUG)
    dataset: Dataset
    mode: Mode
    algorithm: Algorithm
    arm: str = Field(pattern=f"{SLUG}|^$")  # "" for the base arm
    k: StalenessBound
    decoupled: Decoupled
    seed: Seed

    @model_validator(mode="after")
    def _is_resolved(self) -> Self:
        problems = list(misnamed(self.algorithm, self))
        if self.objective.name == "axis":
            fix = "live, behavior, decoupled, dis, gspo or cispo"
            problems.append(Problem("objective.name", "axis", "a single run needs a loss", fix))
        if self.mode == "sync" and self.k != 0:
            problems.append(Problem("k", self.k, "mode sync trains on fresh samples only", "set k to 0"))
        if self.mode == "lagged" and self.k == "inf":
            problems.append(Problem("k", self.k, "mode lagged delays batches by exactly K", "a number"))
        if problems:
            raise bad_combination(problems)
        return self

    @property
    def embedded(self) -> WarmStartConfig:
        """How the embedded model is made for this run's dataset."""
        return self.warm_start.on(self.dataset)

    @property
    def staleness_bound(self) -> float:
        """K as a number; infinity where there is no bound."""
        return float(self.k)

    @property
    def gpus(self) -> int:
        """GPUs that the run has to see: `cuda:1` is the second of those, whatever else is there."""
        placed = self.placed()
        named = [d for d in (*placed.train.devices, *placed.rollout.devices) if d != "cpu"]
        return max((1 + int(d.partition(":")[2] or 0) for d in named), default=0)

    def placed(self) -> Self:
        """As it computes: a run of one process on the first GPU of its share, or on the CPU.

        `train.devices` decides by its first entry; the rest is for the other modes of the sweep.
        """
        if self.mode in OVERLAPPING:
            return self
        one = {"devices": ["cpu" if self.train.devices[0] == "cpu" else "cuda:0"]}
        blocks = {"train": self.train, "rollout": self.rollout}
        return self.model_copy(update={name: b.model_copy(update=one) for name, b in blocks.items()})

    @property
    def cores(self) -> int:
        """Cores that the run computes with, whatever its mode: no other run is timed on them.

        The first judge is idle most of the time and has none of its own; who asks for more has work for them.
        """
        judges = self.reward.workers - 1 if self.reward.backend == "pool" else 0
        return self.rollout.workers * self.rollout.threads + self.train.workers * self.train.threads + judges

    @property
    def slots(self) -> int:
        """Samples that a worker decodes at once."""
        samples = self.batch.groups * self.batch.group_size
        if self.rollout.slots is not None:
            return self.rollout.slots
        return max(self.batch.group_size, 3 * samples // 8) if self.mode in OVERLAPPING else samples
