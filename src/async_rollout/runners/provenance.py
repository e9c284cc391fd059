"""What a run was made with: versions of the software, a digest of this code, the machine."""

import hashlib
import platform
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import psutil

import async_rollout
from async_rollout.config.reward import RewardConfig
from async_rollout.rewards.sandbox.client import Sandbox

_LIBRARIES = ("torch", "transformers", "numpy", "snakemake")
# what can change a run's result or its speed; tables and pages cannot
_PARTS = (
    "types.py",
    "channels.py",
    "tasks",
    "rewards",
    "policy",
    "algorithms",
    "learner",
    "runtime",
    "runners",
)


def software() -> dict[str, str]:
    """Version by name; `code` is a digest of this package's own computing parts."""
    return {
        "async_rollout": async_rollout.__version__,
        "code": code_digest(Path(async_rollout.__file__).parent),
        "python": platform.python_version(),
        **{name: version(name) for name in _LIBRARIES},
    }


def code_digest(package: Path) -> str:
    """Twelve hex digits that change with any source file that can change a result."""
    digest = hashlib.sha256()
    for part in _PARTS:
        path = package / part
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def machine() -> dict[str, str | int | float]:
    """System, processor, cores that this process may use, memory in GiB."""
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "processor": _processor(),
        "cores": len(psutil.Process().cpu_affinity()),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
    }


def sandbox_level(config: RewardConfig) -> str:
    """How far programs are shut in here, found as the judges found it; `elsewhere`: judged on other hosts."""
    if config.backend == "file_shards" and set(config.hosts) - {"localhost"}:
        return "elsewhere"
    with closing(Sandbox(config.sandbox)) as sandbox:
        return sandbox.level


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
