"""Memory and CPU of each process of a run: resources.csv, and the CPU time that the run took."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil


@dataclass(slots=True)
class _Watched:
    """A process, and the CPU time that it had when it was last seen."""

    role: str
    process: psutil.Process
    begun: float = 0.0
    paused_at: float = 0.0
    family: bool = False  # with what its ended children took: a judge runs programs
    cpu: float = field(init=False, default=0.0)

    def look(self) -> float | None:
        """Memory in MiB; None if it has ended, which the supervisor deals with."""
        try:
            with self.process.oneshot():
                memory, times = self.process.memory_info().rss, self.process.cpu_times()
        except psutil.NoSuchProcess:
            return None
        self.cpu = times.user + times.system
        if self.family:
            self.cpu += times.children_user + times.children_system
        return memory / 2**20


class ResourceLog:
    """Reads /proc through psutil, from a thread once every `every_sec`; roles are `kind-index`.

    `judges` gives the run's reward workers as they are now; `before` holds the CPU time that
    earlier attempts at the run took, by kind.
    """

    def __init__(
        self,
        path: Path,
        processes: Mapping[str, int],
        judges: Callable[[], Sequence[int]] = tuple,
        before: Mapping[str, float] | None = None,
        every_sec: float = 1.0,
    ):
        self._file = path.open("w", encoding="utf-8")
        self._file.write("seconds,role,pid,rss_mb,cpu_sec\n")
        self._before = Counter(before or {})
        self._every = every_sec
        self._started = time.monotonic()
        self._watched = [_Watched(role, psutil.Process(pid)) for role, pid in processes.items()]
        self._judges = judges
        self._lock = threading.Lock()
        self._find_judges()
        for watched in self._watched:
            watched.look()
            watched.begun = watched.cpu
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="resources", daemon=True)
        self._thread.start()

    def add(self, role: str, pid: int) -> None:
        """A process that was started later: it replaces one of its role that died."""
        self._watched.append(_Watched(role, psutil.Process(pid)))

    def cpu_seconds(self) -> dict[str, float]:
        """CPU time by kind since this log was opened, and before; of the dead, as they were last seen."""
        self._find_judges()
        spent = self._before.copy()
        for watched in self._watched:
            watched.look()
            spent[watched.role.rsplit("-", 1)[0]] += watched.cpu - watched.begun
        return dict(sorted(spent.items()))

    def pause(self) -> None:
        """What is computed until `go_on` is not the run's."""
        for watched in self._watched:
            watched.look()
            watched.paused_at = watched.cpu

    def go_on(self) -> None:
        """Count again."""
        for watched in self._watched:
            watched.look()
            watched.begun += watched.cpu - watched.paused_at

    def close(self) -> None:
        """End the thread; what was sampled is on disk."""
        self._stop.set()
        self._thread.join()
        self._file.close()

    def _find_judges(self) -> None:
        """Those that are new, perhaps in the place of one that died."""
        with self._lock:
            known = {watched.process.pid for watched in self._watched}
            for place, pid in enumerate(self._judges()):
                if pid not in known:
                    with suppress(psutil.NoSuchProcess):
                        self._watched.append(_Watched(f"reward-{place}", psutil.Process(pid), family=True))

    def _run(self) -> None:
        stopped = False
        while not stopped:
            self._find_judges()
            for watched in list(self._watched):
                if (memory := watched.look()) is not None:
                    seconds = time.monotonic() - self._started
                    self._file.write(
                        f"{seconds:.1f},{watched.role},{watched.process.pid},{memory:.1f},{watched.cpu:.2f}\n"
                    )
            self._file.flush()
            stopped = self._stop.wait(self._every)
