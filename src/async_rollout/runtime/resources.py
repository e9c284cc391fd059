"""Memory and CPU of each process of a run: resources.csv, and the CPU time that the run took."""

import threading
import time
from collections.abc import Mapping
from pathlib import Path

import psutil


class ResourceLog:
    """Reads /proc through psutil, from a thread once every `every_sec`; roles are `kind-index`."""

    def __init__(self, path: Path, processes: Mapping[str, int], every_sec: float = 1.0):
        self._file = path.open("w", encoding="utf-8")
        self._file.write("seconds,role,pid,rss_mb,cpu_sec\n")
        self._processes = {role: psutil.Process(pid) for role, pid in processes.items()}
        self._every = every_sec
        self._started = time.monotonic()
        self._begun = self._cpu()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="resources", daemon=True)
        self._thread.start()

    def cpu_seconds(self) -> dict[str, float]:
        """CPU time by kind since this log was opened; call while all processes live."""
        now = self._cpu()
        kinds = {role.rsplit("-", 1)[0] for role in now}
        return {
            kind: sum(now[r] - self._begun[r] for r in now if r.rsplit("-", 1)[0] == kind)
            for kind in sorted(kinds)
        }

    def close(self) -> None:
        """End the thread; what was sampled is on disk."""
        self._stop.set()
        self._thread.join()
        self._file.close()

    def _cpu(self) -> dict[str, float]:
        times = {role: process.cpu_times() for role, process in self._processes.items()}
        return {role: t.user + t.system for role, t in times.items()}

    def _run(self) -> None:
        stopped = False
        while not stopped:
            for role, process in self._processes.items():
                self._sample(role, process)
            self._file.flush()
            stopped = self._stop.wait(self._every)

    def _sample(self, role: str, process: psutil.Process) -> None:
        try:
            with process.oneshot():
                rss, cpu = process.memory_info().rss, process.cpu_times()
        except psutil.NoSuchProcess:  # it ended; the supervisor deals with that
            return
        seconds = time.monotonic() - self._started
        self._file.write(
            f"{seconds:.1f},{role},{process.pid},{rss / 2**20:.1f},{cpu.user + cpu.system:.2f}\n"
        )
