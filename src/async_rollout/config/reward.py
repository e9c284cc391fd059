"""Who judges answers, and how strictly."""

from typing import Literal

from async_rollout.config.block import Block, key


class RewardConfig(Block):
    """The judges."""

    backend: Literal["pool", "file_shards"] = key(
        "pool",
        "`pool`: processes beside the controller; `file_shards`: workers that share files with the run",
    )
    hosts: list[str] = key(
        list,
        "where workers of `file_shards` run, in turn: `localhost`, `slurm` (a step of this job), `hand` (see "
        "`async-rollout reward-workers`), or a host for ssh that has the same files; none: here",
    )
    ssh_options: list[str] = key(list, "arguments of ssh before the host, such as `-p`, `2222`")
    workers: int = key(1, "judging processes", ge=1)
    timeout_sec: float = key(10, "for one answer, then its worker is replaced", unit="s", gt=0)
    retries: int = key(2, "further tries after a failure of the judge itself", ge=0)
    max_failures: int = key(16, "answers that no try could judge, before the run stops", unit="samples", ge=0)
    strict: bool = key(
        False, "a numeric answer must be marked (`####`, a box or `<answer>`); else the last number counts"
    )
    math_timeout_sec: float = key(
        3,
        "to compare one MATH answer, then it is wrong; at most half of `reward.timeout_sec`",
        unit="s",
        gt=0,
    )
    code_score: Literal["share", "all"] = key(
        "share", "reward of a program: `share` of its tests passed, or 1 if `all` are and else 0"
    )
    code_timeout_sec: float = key(
        4, "for a program and all its tests; at most half of `reward.timeout_sec`", unit="s", gt=0
    )
    code_memory_mb: int = key(256, "that a program may use", unit="MB", ge=64)
    code_output_kb: int = key(64, "that a program may print", unit="kB", ge=1)
    sandbox: Literal["isolated", "filtered"] = key(
        "filtered",
        "least that programs are run with, else the run is refused: `isolated` (namespaces: own network, "
        "processes, files) or `filtered` (Landlock and seccomp alone); the stronger is used where it can be",
    )

    @property
    def math_seconds(self) -> float:
        """What comparing may take: an answer that overruns is wrong long before its worker counts as hung."""
        return min(self.math_timeout_sec, self.timeout_sec / 2)

    @property
    def code_seconds(self) -> float:
        """What a program and its tests may take, for the same reason."""
        return min(self.code_timeout_sec, self.timeout_sec / 2)
