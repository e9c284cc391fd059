"""One cell, fully resolved: what `config.json` holds and what a process is built from."""

from typing import Literal

from async_rollout.config.batch import BatchConfig
from async_rollout.config.block import Block, key
from async_rollout.config.data import DataConfig
from async_rollout.config.evaluation import EvaluationConfig
from async_rollout.config.model import ModelConfig, WarmStartConfig
from async_rollout.config.objective import AdvantageConfig, KlConfig, ObjectiveConfig
from async_rollout.config.rollout import RolloutConfig, StalenessConfig
from async_rollout.config.sampling import SamplingConfig
from async_rollout.config.supervision import RewardConfig, SupervisionConfig
from async_rollout.config.trainer import OptimConfig, TrainConfig


class Blocks(Block):
    """The blocks that a sweep file sets and every cell of it shares, arms apart."""

    model: ModelConfig = key(ModelConfig, "the policy")
    warm_start: WarmStartConfig = key(WarmStartConfig, "the embedded model")
    data: DataConfig = key(DataConfig, "sizes of the data")
    sampling: SamplingConfig = key(SamplingConfig, "how tokens are drawn")
    batch: BatchConfig = key(BatchConfig, "what a step consumes")
    objective: ObjectiveConfig = key(ObjectiveConfig, "the loss")
    advantage: AdvantageConfig = key(AdvantageConfig, "from rewards to advantages")
    kl: KlConfig = key(KlConfig, "penalty")
    optim: OptimConfig = key(OptimConfig, "AdamW")
    train: TrainConfig = key(TrainConfig, "the trainer")
    rollout: RolloutConfig = key(RolloutConfig, "the samplers")
    staleness: StalenessConfig = key(StalenessConfig, "hand-over")
    reward: RewardConfig = key(RewardConfig, "the judges")
    evaluation: EvaluationConfig = key(EvaluationConfig, "held-out pass rates")
    supervision: SupervisionConfig = key(SupervisionConfig, "time limits")


class RunConfig(Blocks):
    """One cell: its place on the axes, and every block as it will be used.

    `objective.name` is never `axis` here: `decoupled` has decided it.
    """

    experiment: str
    dataset: str
    mode: Literal["sync", "areal"]
    algorithm: str
    arm: str  # "" for the base arm
    k: int | Literal["inf"]
    decoupled: Literal[0, 1]
    seed: int

    @property
    def staleness_bound(self) -> float:
        """K as a number; infinity where there is no bound."""
        return float(self.k)
