"""Which files a program may open: a Landlock ruleset (Linux 5.13), made once and put on each child."""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from async_rollout.rewards.sandbox import system

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446  # on every architecture
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_MAKE_SPECIAL = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11  # character device, socket, fifo, block device
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE


def abi() -> int:
    """Version that the kernel offers; 0 if it offers none."""
    try:
        return system.syscall("landlock_create_ruleset", _CREATE, None, ctypes.c_size_t(0), 1)
    except OSError:
        return 0


def ruleset(readable: Iterable[str], writable: str | None) -> int:
    """Descriptor of a ruleset: read below some paths, write below one; no TCP, no signals to others."""
    version = abi()
    handled = (1 << 13) - 1
    for least, right in ((2, 1 << 13), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        handled |= right if version >= least else 0
    attributes = struct.pack("=Q", handled)
    attributes += struct.pack("=Q", 3) if version >= 4 else b""  # bind and connect
    attributes += struct.pack("=Q", 3) if version >= 6 else b""  # abstract sockets, signals
    rules = system.syscall(
        "landlock_create_ruleset", _CREATE, attributes, ctypes.c_size_t(len(attributes)), 0
    )
    for path in readable:
        _allow(rules, path, _EXECUTE | _READ_FILE | _READ_DIR)
    if writable is not None:
        _allow(rules, writable, handled & ~(_EXECUTE | _MAKE_SPECIAL | _IOCTL_DEV))
    return rules


def restrict(rules: int) -> None:
    """Hold this process, for good, to the ruleset; needs no_new_privs."""
    system.syscall("landlock_restrict_self", _RESTRICT, rules, 0)


def _allow(rules: int, path: str, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _ON_FILES
        system.syscall("landlock_add_rule", _ADD_RULE, rules, 1, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)
