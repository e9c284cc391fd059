"""The fork server: one evaluation at a time, each in a fresh child, nothing of it left afterwards.

It is started as `python -I -S -B` with an empty environment and talks over its standard input
and output: a length, then JSON. It reads no answers and interprets nothing that a child
writes; it says how the child ended and hands on the bytes.
"""

import gc
import json
import os
import select
import signal
import struct
import sys
import time
from contextlib import suppress
from typing import Any, BinaryIO

from async_rollout.rewards.sandbox import landlock, namespaces, seccomp, system
from async_rollout.rewards.sandbox.child import NOBODY, Bounds, bind, evaluate

MOST_RESULTS = 1 << 20  # bytes
_CHUNK = 1 << 16
# What programs often import: here once, so that no child has to.
_WARM = (
    "array base64 bisect collections copy datetime decimal enum fractions functools hashlib heapq io "
    "itertools math numbers operator random re statistics string struct textwrap time typing"
)


class Server:
    """Holds what every evaluation needs."""

    def __init__(self, isolated: bool):
        self._isolated = isolated  # process 1 of a namespace of its own
        self._landlock = landlock.abi()
        if not isolated and not self._landlock:
            raise OSError("the kernel has no Landlock")
        self._filter = seccomp.build_filter()
        self._bounds = self._bind()
        self.granted = [*(["namespaces"] if isolated else [])]
        self.granted += [f"landlock {self._landlock}"] if self._landlock else []
        self.granted += ["seccomp", "rlimits"]

    def run(self, request: dict[str, Any]) -> tuple[str, bytes]:
        """(how the child ended, what it reported): `exited`, `timeout`, `output_limit` or `signal N`."""
        output, output_end = os.pipe()
        results, results_end = os.pipe()
        deadline = time.monotonic() + request["seconds"]
        pid = os.fork()
        if pid == 0:
            self._child(request, output_end, results_end)
        os.close(output_end)
        os.close(results_end)
        try:
            end, reported = _watch(pid, output, results, deadline, request["output_kb"] << 10)
        finally:
            status = self._kill_all(pid)
            os.close(output)
            os.close(results)
        if end == "exited" and os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            end = "timeout" if number == signal.SIGXCPU else f"signal {number}"
        return end, reported

    def _bind(self) -> Bounds:
        """Rules name the scratch directory that is there now."""
        readable, writable = (
            (["/"], namespaces.SCRATCH) if self._isolated else (namespaces.readable_paths(), None)
        )
        return Bounds(
            rules=landlock.ruleset(readable, writable) if self._landlock else None,
            filter=self._filter,
            scratch=namespaces.SCRATCH if self._isolated else "/",
            become=NOBODY if os.getuid() == 0 else None,
        )

    def _child(self, request: dict[str, Any], output: int, results: int) -> None:
        leave = os._exit
        try:
            bind(self._bounds, output, results, request)
            evaluate(request["code"], request["steps"], request["word"])
        finally:
            leave(0)

    def _kill_all(self, pid: int) -> int:
        """Kill and reap the child and whatever it left, and empty the scratch; returns its status."""
        if self._isolated and os.getpid() == 1:
            _signal(-1)  # everything in this namespace but process 1
        else:
            _signal(pid)
        _, status = os.waitpid(pid, 0)
        if self._isolated:
            _reap_orphans()
            if os.listdir(namespaces.SCRATCH):
                namespaces.fresh_scratch()
                if self._bounds.rules is not None:
                    os.close(self._bounds.rules)
                self._bounds = self._bind()
        return status


def main(root: str, isolated: bool) -> None:
    """Serve until standard input ends. The first reply says what the kernel granted, or why it cannot be."""
    system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    try:
        if isolated:
            namespaces.enter(root)
        for name in _WARM.split():
            __import__(name)
        server = Server(isolated)
    except (OSError, KeyError) as error:
        _reply(replies, {"error": str(error)}, b"")
        return
    os.dup2(2, 1)
    sys.path.pop(0)  # where this package lies
    gc.collect()
    gc.freeze()
    _reply(replies, {"granted": server.granted}, b"")
    while (header := requests.read(4)) and len(header) == 4:
        end, reported = server.run(json.loads(requests.read(*struct.unpack("<I", header))))
        _reply(replies, {"end": end}, reported)


def _watch(pid: int, output: int, results: int, deadline: float, most_output: int) -> tuple[str, bytes]:
    """Wait for the child's end, at most until the deadline; (why waiting ended, what was reported)."""
    ended = os.pidfd_open(pid)
    poller = select.poll()
    for descriptor in (ended, output, results):
        os.set_blocking(descriptor, False)
        poller.register(descriptor, select.POLLIN)
    reported = bytearray()
    written = 0
    try:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return "timeout", bytes(reported)
            ready = {descriptor for descriptor, _ in poller.poll(left * 1000 + 1)}
            for descriptor in (output, results):
                if descriptor not in ready:
                    continue
                data = os.read(descriptor, _CHUNK)
                if not data:
                    poller.unregister(descriptor)
                elif descriptor == output:
                    written += len(data)
                else:
                    reported += data
            if written > most_output or len(reported) > MOST_RESULTS:
                return "output_limit", bytes(reported[:MOST_RESULTS])
            if ready == {ended}:  # and nothing is left in the pipes
                return "exited", bytes(reported)
    finally:
        os.close(ended)


def _signal(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _reap_orphans() -> None:
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _reply(to: BinaryIO, header: dict[str, Any], body: bytes) -> None:
    text = json.dumps(header).encode()
    to.write(struct.pack("<II", len(text), len(body)) + text + body)
    to.flush()
