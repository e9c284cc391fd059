"""Leases: what only one run of a machine may use at a time, such as its GPUs.

A lease is a lock of the kernel on a file that bears the thing's name. It ends with its holder,
however that ends, so the files that lie around mean nothing. Who needs several things takes them
together or waits with none, and while one waits, others who could use the same ones wait behind it:
nobody holds what another needs while waiting itself, and one who needs many is not passed by for ever.
"""

import fcntl
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

_POLL_SEC = 0.2
_NOTICE_SEC = (1.0, 60.0)  # until the first notice, and between any two


def lease_directory(kind: str) -> Path:
    """Where this user's locks on things of this kind lie: on this machine, for GPUs one place a Slurm job.

    A job's GPUs are its own, and may be numbered from 0 in each job. Its cores have one number on the
    machine, and where Slurm binds nobody the user's other jobs may have them too. Raises
    PermissionError if the place is another user's.
    """
    place = Path(tempfile.gettempdir()) / f"async-rollout-leases-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    if place.lstat().st_uid != os.getuid() or place.is_symlink():
        raise PermissionError(f"{place} belongs to another user: set TMPDIR to a directory of your own")
    job = os.environ.get("SLURM_JOB_ID") if kind == "GPU" else None
    directory = place / (f"job-{job}" if job else "machine")
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory


@contextmanager
def leased(kind: str, names: Sequence[str], n: int, holder: str) -> Iterator[list[str]]:
    """Hold `n` of the things `names` of one kind, in their order, while the block runs.

    Waits while too few are free, and says now and then for whom; `holder` is what others are told.
    Raises ValueError if there are fewer than `n` at all.
    """
    if n > len(names):
        raise ValueError(f"{n} {kind}s are wanted, and there are {len(names)}")
    directory = lease_directory(kind)
    files = {name: directory / f"{kind}-{name.replace('/', '_')}" for name in names}
    turns = sorted(path.with_name(f"turn-{path.name}") for path in files.values())  # one order for all
    taken: list[str] = []

    def take() -> bool:
        taken[:] = _take(files, n, held, holder)
        return len(taken) == n

    def notice() -> None:
        print(f"waits for {n} of {len(names)} {kind}s; {_holders(files)}", file=sys.stderr, flush=True)

    with ExitStack() as held:
        with ExitStack() as turn:
            for path in turns:
                _wait_for(partial(_lock, path, turn, holder), notice)
            _wait_for(take, notice)
        yield taken


def _take(files: Mapping[str, Path], n: int, held: ExitStack, holder: str) -> list[str]:
    """The first `n` that are free, locked until `held` is closed; where there are fewer, none is locked."""
    taken: list[str] = []
    with ExitStack() as locks:
        for name, path in files.items():
            if len(taken) < n and _lock(path, locks, holder):
                taken.append(name)
        if len(taken) == n:
            held.push(locks.pop_all())
    return taken


def _lock(path: Path, stack: ExitStack, holder: str) -> bool:
    """Lock the file until `stack` is closed, and write into it who holds it; False if it is locked."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    stack.callback(os.close, descriptor)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{holder} (process {os.getpid()})".encode(), 0)
    return True


def _wait_for(done: Callable[[], bool], notice: Callable[[], None]) -> None:
    first, between = _NOTICE_SEC
    due = time.monotonic() + first
    while not done():
        if time.monotonic() >= due:
            notice()
            due = time.monotonic() + between
        time.sleep(_POLL_SEC)


def _holders(files: Mapping[str, Path]) -> str:
    """Who has which; a file that nobody has locked says nothing."""
    found = []
    for name, path in files.items():
        with ExitStack() as looked:
            if path.exists() and (text := path.read_text(errors="replace")) and not _free(path, looked):
                found.append(f"{name}: {text}")
    return "; ".join(found) or "others wait before it"


def _free(path: Path, stack: ExitStack) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    stack.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
