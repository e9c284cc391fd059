"""What a check found: one line of the doctor's output."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's outcome. `fail`: results would be wrong or a run would stop; `warn`: thin or wasteful."""

    level: Literal["ok", "warn", "fail"]
    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.level:4}  {self.check}: {self.text}"


def judged(check: str, good: bool, text: str, otherwise: Literal["warn", "fail"] = "fail") -> Finding:
    """`ok` if `good`, else the given level."""
    return Finding("ok" if good else otherwise, check, text)
