"""A sweep: what is compared, the blocks that its cells share, and what the report highlights."""

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from async_rollout.config.arms import wrong_variants
from async_rollout.config.axes import (
    SLUG,
    Algorithm,
    Dataset,
    Decoupled,
    Mode,
    Seed,
    StalenessBound,
    dataset_slug,
)
from async_rollout.config.block import key
from async_rollout.config.cells import cells, every_cell
from async_rollout.config.cluster import ClusterConfig
from async_rollout.config.errors import Problem, bad_combination, bad_value
from async_rollout.config.exclusion import Exclusion
from async_rollout.config.hub import HubConfig
from async_rollout.config.report import ReportConfig
from async_rollout.config.run import Blocks


def _exists(dataset: str) -> str:
    kind, _, path = dataset.partition(":")
    if kind == "jsonl" and not Path(path).is_file():
        raise bad_value("no such file", "the path of a JSONL file, seen from where the command runs")
    return dataset


def _distinct(values: list[Any]) -> list[Any]:
    if twice := [value for value, n in Counter(values).items() if n > 1]:
        raise bad_value(f"{', '.join(map(str, twice))} is listed more than once", "list each value once")
    return values


RESERVED = ("latest", "models", "published")  # what lies beside the experiments under results/


def _free(name: str) -> str:
    if name in RESERVED:
        raise bad_value("the name of something else under results/", "another name")
    return name


Distinct = AfterValidator(_distinct)
Name = Annotated[str, Field(pattern=SLUG)]


class SweepConfig(Blocks):
    """What a YAML file under config/ holds. Every combination of the axes is a cell."""

    experiment: Annotated[Name, AfterValidator(_free)] = key(
        ..., "name of the sweep: its results lie in results/EXPERIMENT"
    )
    datasets: Annotated[list[Annotated[Dataset, AfterValidator(_exists)]], Distinct] = key(
        lambda: ["sort"],
        "task sources: `sort`, `calculator`, `reasoning_gym:NAME` (procedural), `coding` (own), `gsm8k`, "
        "`math` (hub), `jsonl:PATH`, seen from the repository",
        env="DATASETS",
        min_length=1,
    )
    modes: Annotated[list[Mode], Distinct] = key(
        lambda: ["sync", "areal"],
        "how a run is scheduled: `sync` (generate, then train), `areal` (processes that do both at once), "
        "`async` (the same in threads of one process), "
        "`lagged` (sync, but each batch is trained exactly K versions late: repeatable bit for bit)",
        env="ASYNC_MODES, RUN_SYNC",
        why="one list holds both: `sync` is a mode like the others",
        min_length=1,
    )
    algorithms: Annotated[list[Algorithm], Distinct] = key(
        lambda: ["grpo"], "named presets of keys, see recipes", min_length=1
    )
    arms: dict[Name, dict[str, Any]] = key(
        dict, "named sets of `block.key: value` that run beside the base arm, which is always there"
    )
    staleness_k: Annotated[list[StalenessBound], Distinct] = key(
        lambda: [0, 2, 4, 8],
        "K, the largest staleness at training; `inf`: no bound",
        unit="versions",
        env="STALENESS_K",
        theirs="0,2,4,8",
        min_length=1,
    )
    decoupled: Annotated[list[Decoupled], Distinct] = key(
        lambda: [0, 1],
        "objective: 1 `decoupled`, 0 `live`; inert in `sync` and where `objective.name` is set",
        env="DECOUPLED",
        theirs="0,1",
        min_length=1,
    )
    seeds: Annotated[list[Seed], Distinct] = key(
        lambda: [0, 1, 2],
        "seeds of initial streams and order; `01` is 1",
        env="SEEDS",
        theirs="0,1,2",
        min_length=1,
    )
    exclude: list[Exclusion] = key(
        list,
        "cells to leave out: one entry a pattern over the axes dataset, mode, algorithm, arm, k, decoupled "
        "and seed, such as `{mode: lagged, k: inf}`; a list of values matches any of them",
    )
    report: ReportConfig = key(ReportConfig, "what tables and report highlight")
    cluster: ClusterConfig = key(ClusterConfig, "what is asked of Slurm")
    hub: HubConfig = key(HubConfig, "where the hub's cache is")

    @model_validator(mode="after")
    def _can_be_run(self) -> Self:
        """In place of the blocks alone, each algorithm's and arm's blocks are checked."""
        problems = [*self._one_directory_each(), *wrong_variants(self)]
        if problems := problems or self._wrong_cells():
            raise bad_combination(problems)
        return self

    def _wrong_cells(self) -> list[Problem]:
        """Cells that cannot be, and entries of `exclude` that leave nothing out."""
        every = every_cell(self)
        pairs = list(product(self.algorithms, ["", *self.arms]))
        problems = [
            Problem(
                f"exclude.{i}", entry.model_dump(exclude_defaults=True), "leaves no cell out", "remove it"
            )
            for i, entry in enumerate(self.exclude)
            if not any(map(entry.covers, every)) and not any(entry.drops(*pair) for pair in pairs)
        ]
        if any((cell.mode, cell.k) == ("lagged", "inf") for cell in cells(self)):
            what = "mode lagged delays batches by exactly K versions, and without bound it never trains"
            fix = "leave it out of staleness_k, or only there: exclude: [{mode: lagged, k: inf}]"
            problems.append(Problem("staleness_k", "inf", what, fix))
        return problems

    def _one_directory_each(self) -> list[Problem]:
        slugs = Counter(map(dataset_slug, self.datasets))
        return [
            Problem("datasets", dataset, f"another dataset is called {slug} too", "rename the file")
            for dataset in self.datasets
            if slugs[slug := dataset_slug(dataset)] > 1
        ]
