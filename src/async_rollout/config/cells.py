"""The cells of a sweep, and each cell's resolved configuration.

Combinations that differ only in what makes no difference are one cell: `sync` has one per
algorithm, arm and seed, named k0-dec1, and where `objective.name` is set (`dis` algorithms)
the `decoupled` axis is named dec1. Editing a sweep never renames a cell that stays in it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, Self

from async_rollout.config.arms import combinations, decoupled_values, variant, with_objective
from async_rollout.config.axes import dataset_slug
from async_rollout.config.errors import ConfigError, Problem, closest
from async_rollout.config.run import Blocks, RunConfig

if TYPE_CHECKING:
    from async_rollout.config.sweep import SweepConfig


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One place on the axes: one run."""

    dataset: str
    mode: str
    algorithm: str
    arm: str  # "" for the base arm
    k: int | Literal["inf"]
    decoupled: int
    seed: int

    @classmethod
    def of(cls, run: RunConfig) -> Self:
        """The cell that a resolved configuration belongs to."""
        return cls(run.dataset, run.mode, run.algorithm, run.arm, run.k, run.decoupled, run.seed)

    @property
    def id(self) -> str:
        """`<mode>-<algorithm>[-<arm>]-k<K>-dec<0|1>-s<seed>`: unique within a dataset."""
        head = "-".join(filter(None, (self.mode, self.algorithm, self.arm)))
        return f"{head}-k{self.k}-dec{self.decoupled}-s{self.seed}"

    @property
    def dataset_slug(self) -> str:
        """The dataset's name in paths."""
        return dataset_slug(self.dataset)

    def directory(self, experiment: str) -> PurePosixPath:
        """Where the run's files lie, seen from the repository."""
        return PurePosixPath("results", experiment, self.dataset_slug, "runs", self.id)


def cells(sweep: "SweepConfig") -> list[Cell]:
    """Every cell once, in the order of the axes, the base arm first, without what `exclude` leaves out."""
    return [cell for cell in every_cell(sweep) if not any(entry.covers(cell) for entry in sweep.exclude)]


def every_cell(sweep: "SweepConfig") -> list[Cell]:
    """The cells, also those that `exclude` leaves out."""
    found = []
    for dataset, mode, (algorithm, arm) in product(sweep.datasets, sweep.modes, combinations(sweep)):
        bounds = [0] if mode == "sync" else sweep.staleness_k
        values = decoupled_values(sweep, mode, algorithm, arm)
        found += [
            Cell(dataset, mode, algorithm, arm, k, value, seed)
            for k, value, seed in product(bounds, values, sweep.seeds)
        ]
    return found


def cell_named(sweep: "SweepConfig", cell_id: str, slug: str | None = None) -> Cell:
    """The cell with this id, and dataset slug if given; ConfigError names the closest one."""
    known = {cell.id: cell for cell in cells(sweep) if slug in (None, cell.dataset_slug)}
    if cell_id not in known:
        raise ConfigError([Problem("cell", cell_id, "not in this sweep", closest(cell_id, known))])
    return known[cell_id]


def resolve(sweep: "SweepConfig", cell: Cell) -> RunConfig:
    """The whole configuration of one cell: blocks, recipe, axis, arm, in that order."""
    blocks = with_objective(variant(sweep, cell.algorithm, cell.arm), cell.decoupled)
    return RunConfig(
        experiment=sweep.experiment,
        dataset=cell.dataset,
        mode=cell.mode,
        algorithm=cell.algorithm,
        arm=cell.arm,
        k=cell.k,
        decoupled=cell.decoupled,
        seed=cell.seed,
        **{name: getattr(blocks, name) for name in Blocks.model_fields},
    )


def canonical_json(run: RunConfig) -> str:
    """One text for one configuration, however it was written: sorted keys, no white space."""
    return _canonical(run.model_dump(mode="json"))


def config_hash(run: RunConfig) -> str:
    """The first 16 hex digits of the SHA-256 of the canonical JSON."""
    return hash_of(run.model_dump(mode="json"))


def hash_of(config: Mapping[str, Any]) -> str:
    """`config_hash` of a configuration as `config.json` and `summary.json` hold it."""
    return hashlib.sha256(_canonical(config).encode()).hexdigest()[:16]


def _canonical(config: Mapping[str, Any]) -> str:
    return json.dumps(config, sort_keys=True, separators=(",", ":"), allow_nan=False)


def inert_warnings(sweep: "SweepConfig") -> list[str]:
    """A line for each K that cannot bind: a run needs 4(K + 1) updates to get that far behind."""
    asynchronous = {(c.algorithm, c.arm, c.k) for c in cells(sweep) if c.mode != "sync" and c.k != "inf"}
    found = {(k, variant(sweep, algorithm, arm).train.updates) for algorithm, arm, k in asynchronous}
    return [
        f"staleness_k = {k}: cannot bind within train.updates = {n}; it takes {4 * (k + 1)} updates"
        for k, n in sorted(found)
        if n < 4 * (k + 1)
    ]
