"""What a sweep asks of a cluster. Changing it reruns no cell."""

import re

from async_rollout.config.block import Block, key


class ClusterConfig(Block):
    """Requests of each Slurm job; what is left empty is the profile's or follows from the cell."""

    partition: str | None = key(None, "partition", min_length=1)
    account: str | None = key(None, "account that is charged", min_length=1)
    qos: str | None = key(None, "quality of service", min_length=1)
    constraint: str | None = key(None, "features that a node must have, such as `ib&a100`", min_length=1)
    gpu_model: str | None = key(
        None, "type of the GPUs, as Slurm calls it, of cells that use any", pattern=r"^[A-Za-z0-9_.]+$"
    )
    runtime_min: int | None = key(None, "time limit of a cell", unit="min", ge=1)
    mem_mb: int | None = key(
        None, "memory of a cell on its node; when empty, enough for the small models", unit="MB", ge=1
    )
    cpus: int | None = key(
        None, "CPUs of a cell; when empty, one for each thread that it computes with", ge=1
    )
    extra: str | None = key(
        None, "further options of sbatch, such as `--exclusive` or `--exclude=node7`", min_length=1
    )


def keeps_accounts(settings: str) -> bool:
    """Whether a Slurm with these settings (`scontrol show config`) has a database that `sacct` can ask.

    Without one the storage is `accounting_storage/none` in older versions and `(null)` in newer ones.
    """
    found = re.search(r"^AccountingStorageType[ \t]*=[ \t]*(\S*)", settings, re.MULTILINE)
    storage = found[1] if found else ""
    return storage not in ("", "(null)") and not storage.endswith("/none")
