"""Which system calls a program may make: a list of what is harmless; any other fails with EPERM.

Not on it: sockets, processes and threads, programs to execute, signals to others, permissions
and owners of files, mounts, namespaces, tracing, kernel keys, io_uring. `clone` fails as if
processes had run out, and `clone3` as if the kernel had none, because libraries expect that.
A process may read and lower its own limits, and nobody else's.
"""

import ctypes
import errno
import struct

from async_rollout.rewards.sandbox import system

_X86_64 = (
    "read 0 write 1 open 2 close 3 stat 4 fstat 5 lstat 6 poll 7 lseek 8 mmap 9 mprotect 10 munmap 11 "
    "brk 12 rt_sigaction 13 rt_sigprocmask 14 rt_sigreturn 15 ioctl 16 pread64 17 pwrite64 18 readv 19 "
    "writev 20 access 21 pipe 22 select 23 sched_yield 24 mremap 25 madvise 28 dup 32 dup2 33 pause 34 "
    "nanosleep 35 getitimer 36 alarm 37 setitimer 38 getpid 39 exit 60 uname 63 fcntl 72 flock 73 "
    "fsync 74 fdatasync 75 truncate 76 ftruncate 77 getdents 78 getcwd 79 chdir 80 rename 82 mkdir 83 "
    "rmdir 84 unlink 87 readlink 89 umask 95 gettimeofday 96 getrlimit 97 getrusage 98 sysinfo 99 "
    "times 100 getuid 102 getgid 104 geteuid 107 getegid 108 getppid 110 sigaltstack 131 arch_prctl 158 "
    "gettid 186 time 201 futex 202 sched_getaffinity 204 getdents64 217 set_tid_address 218 "
    "restart_syscall 219 clock_gettime 228 clock_getres 229 clock_nanosleep 230 exit_group 231 "
    "openat 257 mkdirat 258 newfstatat 262 unlinkat 263 renameat 264 readlinkat 267 faccessat 269 "
    "pselect6 270 ppoll 271 set_robust_list 273 fallocate 285 dup3 292 pipe2 293 renameat2 316 "
    "getrandom 318 statx 332 rseq 334 faccessat2 439"
)
_AARCH64 = (
    "getcwd 17 dup 23 dup3 24 fcntl 25 ioctl 29 flock 32 mkdirat 34 unlinkat 35 renameat 38 truncate 45 "
    "ftruncate 46 fallocate 47 faccessat 48 chdir 49 openat 56 close 57 pipe2 59 getdents64 61 lseek 62 "
    "read 63 write 64 readv 65 writev 66 pread64 67 pwrite64 68 pselect6 72 ppoll 73 readlinkat 78 "
    "newfstatat 79 fstat 80 fsync 82 fdatasync 83 exit 93 exit_group 94 set_tid_address 96 futex 98 "
    "set_robust_list 99 nanosleep 101 getitimer 102 setitimer 103 clock_gettime 113 clock_getres 114 "
    "clock_nanosleep 115 sched_getaffinity 123 sched_yield 124 restart_syscall 128 sigaltstack 132 "
    "rt_sigaction 134 rt_sigprocmask 135 rt_sigreturn 139 times 153 uname 160 getrlimit 163 "
    "getrusage 165 umask 166 gettimeofday 169 getpid 172 getppid 173 getuid 174 geteuid 175 getgid 176 "
    "getegid 177 gettid 178 sysinfo 179 brk 214 munmap 215 mremap 216 mmap 222 mprotect 226 madvise 233 "
    "renameat2 276 getrandom 278 statx 291 rseq 293 faccessat2 439"
)
# audit architecture, harmless calls, clone, clone3, prlimit64
_MACHINES = {
    "x86_64": (0xC000003E, _X86_64, 56, 435, 302),
    "aarch64": (0xC00000B7, _AARCH64, 220, 435, 261),
}
TALK = {"x86_64": (44, 45), "aarch64": (206, 207)}.get(system.MACHINE, ())  # sendto, recvfrom
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _FAIL, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_X32 = 0x40000000  # numbers of the other x86-64 calling convention


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def build_filter(also: tuple[int, ...] = ()) -> bytes:
    """The BPF program for this machine; `also` are numbers of further harmless calls.

    `TALK` lets a process use sockets that it has; it can still make none.
    Raises KeyError for a machine that has no list.
    """
    architecture, calls, clone, clone3, prlimit = _MACHINES[system.MACHINE]
    harmless = [*sorted(int(word) for word in calls.split()[1::2]), *also]
    program = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, architecture, 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
        _instruction(_AT_LEAST, _X32, 0, 1),
        _instruction(_RETURN, _KILL),
        *_if_equal(clone, _FAIL | errno.EAGAIN),
        *_if_equal(clone3, _FAIL | errno.ENOSYS),
        _instruction(_EQUAL, prlimit, 0, 4),
        _instruction(_LOAD, _FIRST_ARGUMENT),
        _instruction(_EQUAL, 0, 0, 1),
        _instruction(_RETURN, _ALLOW),
        _instruction(_RETURN, _FAIL | errno.EPERM),
    ]
    for number in harmless:
        program += _if_equal(number, _ALLOW)
    program.append(_instruction(_RETURN, _FAIL | errno.EPERM))
    return b"".join(program)


def install(program: bytes) -> None:
    """Hold this process, for good, to the filter; needs no_new_privs."""
    buffer = ctypes.create_string_buffer(program, len(program))
    header = _Program(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    system.prctl(system.PR_SET_SECCOMP, (2, ctypes.byref(header)))


def _if_equal(number: int, result: int) -> list[bytes]:
    return [_instruction(_EQUAL, number, 0, 1), _instruction(_RETURN, result)]


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
