"""`async-rollout fetch MODEL`: a hub's model as a directory, so that cells need no hub."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("model", metavar="MODEL", help="a hub id, such as Qwen/Qwen2.5-0.5B-Instruct")
    parser.add_argument("--out", required=True, type=Path, help="directory to write")


def execute(args: Namespace) -> None:
    """Fetch the model."""
    fetch(args.model, args.out)


def fetch(model: str, directory: Path) -> None:
    """Copy configuration, tokenizer and weights (safetensors) of a hub's model into `directory`."""
    from huggingface_hub import snapshot_download

    print(f"[fetch] {model} -> {directory}", file=sys.stderr, flush=True)
    snapshot_download(
        model,
        local_dir=directory,
        allow_patterns=["*.json", "*.safetensors", "*.model", "*.txt", "*.py", "*.jinja"],
    )
