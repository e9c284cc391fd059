"""Breaks each invariant on purpose, in a copy, and looks whether its test notices (`make mutants`).

The tests must pass in an unchanged copy first. A mutant (tests/mutants.toml) is caught when
pytest says that tests failed; one that cannot be applied, that no longer imports, or whose
test hangs is not. Writes docs/mutants.md and exits with 1 unless all are caught.
Names on the command line choose among them, and write nothing.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED = ("src", "tests", "pyproject.toml", "config", "workflow", "docs", "benchmarks")
PATIENCE_SEC = 600
FAILED = 1  # pytest: tests were run and some failed


@dataclass(frozen=True)
class Mutant:
    """A change that breaks an invariant, and the test that must notice."""

    name: str
    file: str
    find: str
    replace: str
    test: str
    breaks: str

    def apply(self, tree: Path) -> None:
        """Change the copy. Raises ValueError unless what is to be replaced is there once."""
        path = tree / self.file
        text = path.read_text(encoding="utf-8")
        if (times := text.count(self.find)) != 1:
            raise ValueError(f"mutant {self.name}: {self.file} holds {self.find!r} {times} times, not once")
        path.write_text(text.replace(self.find, self.replace), encoding="utf-8")


def mutants() -> list[Mutant]:
    """All of them, in the order of the invariants."""
    table = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))
    return [Mutant(name, **fields) for name, fields in table.items()]


def outcome(test: str, mutant: Mutant | None = None) -> tuple[int, str]:
    """pytest's exit code and last line for a test in a copy, changed or not. Raises TimeoutExpired."""
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name)
        for part in NEEDED:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, tree / part)
        if mutant is not None:
            mutant.apply(tree)
        paths = os.pathsep.join([str(tree / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test],
            cwd=tree,
            env=os.environ | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SEC,
        )
    return done.returncode, (done.stdout.strip().splitlines() or ["no output"])[-1]


def verdict(mutant: Mutant) -> str:
    """`caught`, or how its test ended instead."""
    try:
        code, last = outcome(mutant.test, mutant)
    except subprocess.TimeoutExpired:
        return f"no end within {PATIENCE_SEC} s"
    if code == FAILED:
        return "caught"
    return "survived" if code == 0 else f"pytest ended with {code}: {last}"


def table(found: dict[Mutant, str]) -> str:
    """docs/mutants.md."""
    lines = [
        "# Does each test notice?",
        "",
        "Written by `make mutants`: every invariant of the [design](design.md) is broken on purpose, by a",
        "line or two (`tests/mutants.toml`), and its test must fail.",
        "",
        "| invariant | what is broken | where | test | |",
        "| - | - | - | - | - |",
    ]
    for mutant, said in found.items():
        where = mutant.file.removeprefix("src/async_rollout/")
        test = Path(mutant.test.split("::")[0]).name
        lines.append(f"| `{mutant.name}` | {mutant.breaks} | `{where}` | `{test}` | {said} |")
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> int:
    """Try the mutants; 0 if all were caught."""
    chosen = [m for m in mutants() if not names or m.name in names]
    code, last = outcome("tests/invariants") if not names else (0, "")
    if code:
        print(f"the unchanged copy's own tests do not pass: {last}", file=sys.stderr)
        return 1
    found: dict[Mutant, str] = {}
    for mutant in chosen:
        begun = time.monotonic()
        found[mutant] = verdict(mutant)
        print(f"{mutant.name}: {found[mutant]} ({time.monotonic() - begun:.0f} s)", flush=True)
    if not names:
        (ROOT / "docs" / "mutants.md").write_text(table(found), encoding="utf-8")
    return int(any(said != "caught" for said in found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
