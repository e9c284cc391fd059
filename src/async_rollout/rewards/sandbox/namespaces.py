"""A world of its own for the server: no network, no other processes, and a file system that holds
Python's standard library, read-only, and one small directory in memory.
"""

import os
import signal
import sys

from async_rollout.rewards.sandbox import system

SCRATCH = "/tmp"
SCRATCH_OPTIONS = "size=12m,nr_inodes=1024,mode=1777"
DEVICES = ("/dev/null", "/dev/urandom")
_KEPT = 2 | 4 | 8  # nosuid, nodev, noexec: an unprivileged user may not clear them


def readable_paths() -> list[str]:
    """What a program needs of this machine to run and import the standard library."""
    library = os.path.dirname(os.path.realpath(os.__file__))
    found = [os.path.join(sys.base_prefix, "lib"), library, "/usr/lib", "/lib", "/lib64"]
    found += ["/usr/share/zoneinfo", *DEVICES]
    return [path for path in dict.fromkeys(found) if os.path.exists(path)]


def enter(root: str) -> None:
    """Enter new namespaces; returns in their process 1, whose root is built on the empty directory `root`.

    The calling process stays outside, waits and ends as process 1 does. Raises OSError if the
    kernel does not grant it.
    """
    user, group = os.getuid(), os.getgid()
    flags = system.CLONE_NEWNS | system.CLONE_NEWUTS | system.CLONE_NEWIPC
    flags |= system.CLONE_NEWPID | system.CLONE_NEWNET
    system.unshare(flags if user == 0 else flags | system.CLONE_NEWUSER)
    if user != 0:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    outside = os.fork()
    if outside:
        for descriptor in (0, 1):  # they belong to process 1 now
            os.close(descriptor)
        _, status = os.waitpid(outside, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
    _build(root)


def fresh_scratch() -> None:
    """An empty scratch directory in place of the old one, whatever that holds."""
    system.unmount(SCRATCH)
    _mount_scratch(SCRATCH)


def _build(root: str) -> None:
    system.mount("none", "/", None, system.MS_REC | system.MS_PRIVATE)
    system.mount("tmpfs", root, "tmpfs", system.MS_NOSUID | system.MS_NODEV, "size=1m,mode=755")
    for path in readable_paths():
        _show(path, root + path)
    os.makedirs(root + SCRATCH, exist_ok=True)
    _mount_scratch(root + SCRATCH)
    os.mkdir(root + "/old")
    system.pivot_root(root, root + "/old")
    os.chdir("/")
    system.unmount("/old")
    os.rmdir("/old")
    _make_read_only("/")


def _mount_scratch(target: str) -> None:
    system.mount("tmpfs", target, "tmpfs", system.MS_NOSUID | system.MS_NODEV, SCRATCH_OPTIONS)


def _show(path: str, target: str) -> None:
    """Bind `path` at `target`, read-only; a link to a directory becomes that directory."""
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    system.mount(path, target, None, system.MS_BIND)
    if path not in DEVICES:
        _make_read_only(target)


def _make_read_only(target: str) -> None:
    flags = system.MS_REMOUNT | system.MS_BIND | system.MS_RDONLY
    system.mount("none", target, None, flags | os.statvfs(target).f_flag & _KEPT)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
