"""Algorithms as named presets of plain keys, applied before the arms: an arm may change any of them."""

from typing import Any

RECIPES: dict[str, dict[str, Any]] = {
    "grpo": {"advantage.name": "group"},
}
