"""System calls that Python 3.11 does not offer. Linux only; each raises OSError with its name."""

import ctypes
import os

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND = 1, 2, 4, 32, 4096
MS_REC, MS_PRIVATE = 16384, 1 << 18
MNT_DETACH = 2
_CAPABILITY_VERSION_3 = 0x20080522
_NR_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_NR_CAPSET = {"x86_64": 126, "aarch64": 91}

_libc = ctypes.CDLL(None, use_errno=True)
MACHINE = os.uname().machine


def prctl(option: int, value: object) -> None:
    """prctl(2) with one argument, or two for PR_SET_SECCOMP given as (mode, pointer)."""
    arguments = value if isinstance(value, tuple) else (value, 0)
    _check("prctl", _libc.prctl(option, *arguments, 0, 0))


def unshare(flags: int) -> None:
    """Leave the namespaces that the flags name for new ones."""
    _check("unshare", _libc.unshare(flags))


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """mount(2)."""
    texts = (None if t is None else os.fsencode(t) for t in (source, target, kind))
    result = _libc.mount(*texts, ctypes.c_ulong(flags), None if data is None else data.encode())
    _check(f"mount {target}", result)


def unmount(target: str) -> None:
    """Detach a mount; what still uses it keeps it."""
    _check(f"unmount {target}", _libc.umount2(os.fsencode(target), MNT_DETACH))


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root of this mount namespace and put the old one at `old`."""
    _check("pivot_root", _libc.syscall(_NR_PIVOT_ROOT[MACHINE], os.fsencode(new), os.fsencode(old)))


def drop_capabilities() -> None:
    """Give up every capability, for good once no_new_privs is set."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _check("capset", _libc.syscall(_NR_CAPSET[MACHINE], header, (ctypes.c_uint32 * 6)()))


def syscall(name: str, number: int, *arguments: object) -> int:
    """Any system call; its result if that is not negative."""
    result = _libc.syscall(number, *arguments)
    _check(name, result)
    return result


def _check(name: str, result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
