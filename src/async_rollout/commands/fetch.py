"""`async-rollout fetch MODEL`: a hub's model, or a GGUF file, as a directory: cells need no hub."""

import re
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from async_rollout.config.errors import ConfigError, Problem


def configure(parser: ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "model", metavar="MODEL", help="a hub id (Qwen/Qwen2.5-0.5B-Instruct) or a .gguf file"
    )
    parser.add_argument("--out", required=True, type=Path, help="directory to write")


def execute(args: Namespace) -> None:
    """Fetch the model."""
    fetch(args.model, args.out)


def fetch(model: str, directory: Path) -> None:
    """Copy configuration, tokenizer and weights of a hub's model into `directory`.

    The weights are its safetensors; where it has none, its pytorch_model*.bin. A path that ends in
    `.gguf` is a file, which is unpacked there. Raises ConfigError if the model has no weights or
    cannot be had.
    """
    print(f"[fetch] {model} -> {directory}", file=sys.stderr, flush=True)
    if model.endswith(".gguf"):
        from async_rollout.policy.gguf import convert_gguf

        convert_gguf(Path(model), directory)
        return
    if not re.fullmatch(r"[\w-]+(\.[\w-]+)*(/[\w-]+([.]+[\w-]+)*)?", model):
        what = "no such directory, and no hub id either"
        fix = "give a directory in Hugging Face format, or OWNER/NAME on the hub"
        raise ConfigError([Problem("model.id", model, what, fix)])
    _download(model, directory, ["*.json", "*.safetensors", "*.model", "*.txt", "*.py", "*.jinja"])
    if any(directory.glob("*.safetensors")):
        return
    _download(model, directory, ["pytorch_model*.bin*"])
    if not any(directory.glob("pytorch_model*.bin")):
        (directory / "config.json").unlink(missing_ok=True)  # what has one is taken for a whole model
        what = "has no weights that can be read (*.safetensors or pytorch_model*.bin)"
        raise ConfigError([Problem("model.id", model, what, "name a model that has, or give a directory")])


def _download(model: str, directory: Path, patterns: list[str]) -> None:
    """The files of a hub's model that match."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

    try:
        snapshot_download(model, local_dir=directory, allow_patterns=patterns)
    except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
        what = f"cannot be fetched ({type(error).__name__}: {' '.join(str(error).split())[:200]})"
        fix = "fetch it where there is a network, check its name and your access, or give a directory"
        raise ConfigError([Problem("model.id", model, what, fix)]) from error
