"""Turns a source into the files that cells read: `train.jsonl`, `eval.jsonl`, `manifest.json`.

The manifest is written last: where it is, the two files are whole, and it has their checksums.
"""

from hashlib import sha256
from pathlib import Path

from async_rollout.config.data import DataConfig
from async_rollout.records.files import write_json
from async_rollout.tasks.jsonl import write_tasks
from async_rollout.tasks.sources import load_source


def prepare(dataset: str, data: DataConfig, directory: Path) -> None:
    """Write both splits of the dataset and their manifest into the directory."""
    source = load_source(dataset, data)
    manifest: dict = {
        "source": dataset,
        "revision": source.revision,
        "seed": data.seed,
        "left_out": source.left_out,
        "files": {},
    }
    for name, tasks in (("train.jsonl", source.train), ("eval.jsonl", source.held_out)):
        path = directory / name
        write_tasks(path, tasks)
        manifest["files"][name] = {"tasks": len(tasks), "sha256": sha256(path.read_bytes()).hexdigest()}
    write_json(directory / "manifest.json", manifest)
