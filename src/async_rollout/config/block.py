"""What every configuration block has in common.

A key that no model knows is an error; a value is never silently converted to something
else; a resolved block never changes. `env` is the environment variable by which older
scripts of this kind know a key, `theirs` their default: both are documentation only.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Block(BaseModel):
    """A frozen mapping of known keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def key(
    default: Any, description: str, *, unit: str = "", env: str = "", theirs: str = "", **bounds: Any
) -> Any:
    """A documented key: default, meaning, unit, and what older scripts call it."""
    extra = {k: v for k, v in (("unit", unit), ("env", env), ("theirs", theirs)) if v}
    how = {"default_factory": default} if callable(default) else {"default": default}
    return Field(description=description, json_schema_extra=extra or None, **how, **bounds)
