"""What the documents name exists: functions, keys, and every loss and recipe."""

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

from async_rollout.config.keys import known_keys
from async_rollout.config.objective import AdvantageConfig, ObjectiveConfig
from async_rollout.config.recipes import RECIPES
from async_rollout.config.sweep import SweepConfig

ROOT = Path(__file__).parents[2]
DOCS = ("papers.md", "objectives.md")
FUNCTION = re.compile(r"`([\w/]+\.py):([\w.]+)`")


def text(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def names_in(path: Path) -> set[str]:
    """Functions, classes and methods (as Class.method) of a module."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return found


@pytest.mark.parametrize("name", DOCS)
def test_every_function_that_is_named_exists(name: str) -> None:
    named = FUNCTION.findall(text(name))
    assert len(named) > 5
    for path, function in named:
        assert function in names_in(ROOT / "src/async_rollout" / path), f"{path}:{function}"


def test_every_key_that_papers_md_names_exists() -> None:
    known = known_keys(SweepConfig)
    rows = [line.split(" | ") for line in text("papers.md").splitlines() if line.startswith("| ")][2:]
    keys = [key for row in rows for key in re.findall(r"`([\w.]+)[`:]", row[2])]
    assert len(keys) > len(rows)
    assert [key for key in keys if key not in known] == []


def test_every_method_of_papers_md_has_a_function() -> None:
    lines = [line for line in text("papers.md").splitlines() if line.startswith("| ")][2:]
    assert len(lines) > 15
    assert [line for line in lines if not FUNCTION.search(line)] == []


@pytest.mark.parametrize("block", [ObjectiveConfig, AdvantageConfig])
def test_objectives_md_has_a_row_for_every_choice(block) -> None:
    choices = set(get_args(block.model_fields["name"].annotation)) - {"axis"}
    page = text("objectives.md")
    assert [choice for choice in sorted(choices) if f"\n| `{choice}` |" not in page] == []


def test_objectives_md_has_a_row_for_every_recipe() -> None:
    page = text("objectives.md")
    assert [name for name in RECIPES if f"\n| `{name}` |" not in page] == []
