"""Environment variables of everything that computes; set before torch is imported.

The workers of a run inherit them. Threads are limited by each process itself.
"""

import os
from pathlib import Path

from async_rollout.config.hub import HubConfig

# glibc gives large blocks back to the kernel at once and asks for them again in the next step;
# keeping them saves 10 to 30 % of a small model's training time.
ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": str(4 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(16 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
}


_ONE_THREAD = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
_NO_BARS = {"TQDM_DISABLE": "1"}  # of libraries, for every file they load: noise in a log


def set_up_environment() -> None:
    """Set what is not set yet; glibc reads its own when a process starts, so only children profit."""
    for name, value in {**ALLOCATOR, **_ONE_THREAD, **_NO_BARS}.items():
        os.environ.setdefault(name, value)


def set_hub_home(hub: HubConfig) -> None:
    """Have the hub's libraries keep their cache where the sweep says; they read it when they are imported."""
    if hub.home is not None:
        os.environ["HF_HOME"] = str(Path(hub.home).expanduser().absolute())


def switch_hub_off() -> None:
    """From here on, a model that is not in its directory is an error and not a download."""
    os.environ["HF_HUB_OFFLINE"] = "1"
