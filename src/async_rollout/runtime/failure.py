"""Why a run failed, in one word that a program can read. No torch: errors are known by name."""

import errno
from typing import get_args

from async_rollout.records.states import Reason

_BY_NAME: dict[str, Reason] = {
    "OutOfMemoryError": "out_of_memory",  # torch's, of any device
    "MemoryError": "out_of_memory",
    "NonFiniteError": "non_finite",
    "NonFiniteLogit": "non_finite",
    "NonFiniteWeights": "non_finite",
    "RewardError": "reward",
    "UnjudgedEvaluation": "reward",
    "SetupTimeout": "setup_timeout",
    "SystemExit": "stopped",
    "KeyboardInterrupt": "stopped",
}


def reason_of(error: BaseException) -> Reason:
    """The word for an error; one that carries its own `reason` (a worker's) keeps it."""
    if getattr(error, "reason", None) in get_args(Reason):
        return error.reason
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "disk_full"
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return "out_of_memory"
    return next((_BY_NAME[c.__name__] for c in type(error).__mro__ if c.__name__ in _BY_NAME), "error")


def last_line(error: BaseException) -> str:
    """What an error says at its end, for one line of text."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[-1].strip()}"[:500]
