"""Weights set aside for evaluation: one safetensors file a version, until the run ends."""

import os
import shutil
from pathlib import Path

from async_rollout.config.run import RunConfig


def is_due(version: int, config: RunConfig) -> bool:
    """True for the versions that are evaluated: the first, every n-th and the last."""
    return version % config.evaluation.every == 0 or version == config.train.updates


def due_versions(config: RunConfig, last: int) -> list[int]:
    """All versions that are evaluated of a run that ended at version `last`."""
    return [v for v in range(last + 1) if is_due(v, config)]


def snapshot_path(out: Path, version: int) -> Path:
    """Where a version's weights lie."""
    return out / "snapshots" / f"v{version}.safetensors"


def write_snapshot(out: Path, version: int, policy) -> None:
    """Write the policy's parameters as `version`; appears at once or not at all."""
    from safetensors.torch import save_file

    path = snapshot_path(out, version)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    save_file({n: p.detach().cpu().contiguous() for n, p in policy.parameters().items()}, partial)
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(partial, path)


def discard_snapshots(out: Path) -> None:
    """Remove them all, if there are any: every version has been evaluated."""
    shutil.rmtree(out / "snapshots", ignore_errors=True)


def load_snapshot(path: Path, policy) -> None:
    """Copy a snapshot into the policy's parameters, in place."""
    import torch
    from safetensors.torch import load_file

    weights = load_file(path)
    with torch.no_grad():
        for name, parameter in policy.parameters().items():
            parameter.copy_(weights[name])
