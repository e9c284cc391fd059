"""What every benchmark shares: its options, repeats that take turns, and the claim in the last line."""

import argparse
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Claim:
    """One sentence with a number to hold it to."""

    text: str
    figure: float
    aim: float
    at_most: bool = False  # the aim is a ceiling

    @property
    def met(self) -> bool:
        """True if the figure reaches the aim."""
        return self.figure <= self.aim if self.at_most else self.figure >= self.aim

    def __str__(self) -> str:
        sign = "<=" if self.at_most else ">="
        return f"{self.text}, {self.figure:.3g}, {sign} {self.aim:g}, {'met' if self.met else 'missed'}"


def options(description: str, arguments: Sequence[str]) -> argparse.Namespace:
    """`--quick` and `--json FILE`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller and fewer, under 60 s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results there")
    return parser.parse_args(arguments)


def in_turn(arms: Mapping[str, Callable[[], T]], repeats: int) -> dict[str, list[T]]:
    """Call every arm once a round, so that a slow moment of the machine hits all of them."""
    found: dict[str, list[T]] = {name: [] for name in arms}
    for _ in range(repeats):
        for name, arm in arms.items():
            found[name].append(arm())
    return found


def spread(values: Sequence[float]) -> str:
    """Median and range of what was measured."""
    return f"{statistics.median(values):.4g} ({min(values):.4g} to {max(values):.4g})"


def report(settings: argparse.Namespace, claims: Sequence[Claim], results: Any) -> int:
    """Write the JSON file, print the claims, the last one last; returns the exit code, 0."""
    if settings.json:
        found = [vars(claim) | {"met": claim.met} for claim in claims]
        settings.json.write_text(
            json.dumps({"claims": found, "results": results}, allow_nan=False, indent=1) + "\n"
        )
    for claim in claims:
        print(claim)
    return 0
