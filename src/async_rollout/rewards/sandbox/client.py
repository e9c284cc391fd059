"""Starts a sandbox server and has programs run by it, one at a time. Imports nothing heavy, no torch.

Where the kernel allows, the server is `isolated` (namespaces, its own file system) and else
`filtered` (Landlock and seccomp alone). Whatever goes wrong with the server itself is a
SandboxError and never a verdict on a program.
"""

import json
import os
import select
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import async_rollout

Level = Literal["isolated", "filtered"]
LEVELS: tuple[Level, ...] = ("isolated", "filtered")  # strongest first
_START_SEC = 20.0
_GRACE_SEC = 2.0  # beyond a program's time, for the server to kill it and to reply
_MAIN = (
    "import sys; sys.path.insert(0, {source!r}); "
    "from async_rollout.rewards.sandbox.server import main; main({root!r}, {isolated})"
)


class SandboxError(RuntimeError):
    """The sandbox cannot be had, or its server failed; says nothing about a program."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program's process ended, and the lines that it reported."""

    end: str  # `exited`, `timeout`, `output_limit`, `signal N`
    lines: list[bytes]


class Sandbox:
    """One server. Raises SandboxError if it cannot be as strong as `least`."""

    def __init__(self, least: Level = "filtered", *, memory_mb: int = 256, output_kb: int = 64):
        self._limits = {"memory_mb": memory_mb, "output_kb": output_kb}
        self._server: subprocess.Popen | None = None
        self._directory = tempfile.TemporaryDirectory(prefix="async-rollout-sandbox-")
        self.level, self.granted = self._first_that_starts(LEVELS[: LEVELS.index(least) + 1])

    def run(self, code: str, steps: list[dict[str, str]], *, seconds: float, word: str = "") -> Ran:
        """Run a program and then the steps (see child.py), all within `seconds`."""
        if self._server is None:
            self._start(self.level)
        request = {"code": code, "steps": steps, "word": word, "seconds": seconds, **self._limits}
        header, body = self._ask(request, seconds + _GRACE_SEC)
        return Ran(header["end"], body.split(b"\n")[:-1])

    def close(self) -> None:
        """End the server and everything below it."""
        self._stop()
        self._directory.cleanup()

    @property
    def pid(self) -> int | None:
        """Of the server's first process, while there is one."""
        return self._server.pid if self._server else None

    def _first_that_starts(self, levels: tuple[Level, ...]) -> tuple[Level, list[str]]:
        refused = []
        for level in levels:
            try:
                return level, self._start(level)
            except SandboxError as error:
                refused.append(f"{level}: {error}")
        self._directory.cleanup()
        raise SandboxError(
            f"programs cannot be run safely here: {'; '.join(refused)}. Code tasks need Linux with "
            f"namespaces or Landlock; reward.sandbox = {levels[-1]} is the least that the config allows"
        )

    def _start(self, level: Level) -> list[str]:
        main = _MAIN.format(
            source=str(Path(async_rollout.__file__).parents[1]),
            root=self._directory.name,
            isolated=level == "isolated",
        )
        self._server = subprocess.Popen(
            [os.path.realpath(sys.executable), "-I", "-S", "-B", "-c", main],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"LANG": "C.UTF-8"},
            cwd="/",
            bufsize=0,
            start_new_session=True,
        )
        header, _ = self._receive(_START_SEC)
        if "error" in header:
            self._stop()
            raise SandboxError(header["error"])
        return header["granted"]

    def _ask(self, request: dict[str, Any], timeout: float) -> tuple[dict[str, Any], bytes]:
        text = json.dumps(request).encode()
        try:
            self._server.stdin.write(struct.pack("<I", len(text)) + text)
        except BrokenPipeError:
            self._stop()
            raise SandboxError("the sandbox server has died") from None
        return self._receive(timeout)

    def _receive(self, timeout: float) -> tuple[dict[str, Any], bytes]:
        deadline = time.monotonic() + timeout
        try:
            sizes = struct.unpack("<II", self._read(8, deadline))
            return json.loads(self._read(sizes[0], deadline)), self._read(sizes[1], deadline)
        except SandboxError:
            self._stop()
            raise

    def _read(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        stream = self._server.stdout
        while len(data) < size:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([stream], [], [], left)[0]:
                raise SandboxError("the sandbox server does not answer")
            chunk = stream.read(size - len(data))
            if not chunk:
                raise SandboxError("the sandbox server has died")
            data += chunk
        return bytes(data)

    def _stop(self) -> None:
        """Let the server end by itself, which takes its namespace with it; else kill it."""
        server, self._server = self._server, None
        if server is None:
            return
        server.stdin.close()
        server.stdout.close()
        try:
            server.wait(1.0)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
