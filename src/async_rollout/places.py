"""Where things lie below the working directory: shared by the command line and the workflow.

Every path is relative and made from the configuration alone, so that it is the same on
every machine. A cell's own directory is `config.cells.Cell.directory`.
"""

import hashlib
import json
import re
from pathlib import Path

from pydantic import BaseModel

from async_rollout.config.axes import dataset_slug
from async_rollout.config.data import DataConfig
from async_rollout.config.run import RunConfig
from async_rollout.config.sweep import SweepConfig

RESULTS = Path("results")


def dataset_directory(sweep: SweepConfig, dataset: str) -> Path:
    """Everything that belongs to one dataset of a sweep."""
    return RESULTS / sweep.experiment / dataset_slug(dataset)


def report_file(sweep: SweepConfig) -> Path:
    """The sweep's report."""
    return RESULTS / sweep.experiment / "report.html"


def data_name(data: DataConfig, shared: DataConfig) -> str:
    """Name of the data's directory: `data`, or with a hash where an arm changes the `data` block."""
    return "data" if data == shared else f"data-{digest(data)}"


def model_directory(run: RunConfig) -> Path | None:
    """Where the policy's initial weights lie: built here, fetched from a hub, or already local.

    None if the backend needs none.
    """
    if run.model.backend != "causal_lm":
        return None
    if run.model.id == "embedded":
        return RESULTS / "models" / f"embedded-{digest(run.embedded)}"
    if Path(run.model.id).is_dir():
        return Path(run.model.id)
    return RESULTS / "models" / re.sub(r"[^A-Za-z0-9._-]+", "--", run.model.id)


def digest(block: BaseModel) -> str:
    """Eight hex digits that name the values of a block."""
    text = json.dumps(block.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
