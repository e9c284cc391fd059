"""What every configuration block has in common.

A key that no model knows is an error; a value is never silently converted to something
else; a resolved block never changes. `env` is the environment variable by which older
scripts of this kind know a key, `theirs` their default and `why` the reason where ours
differs: all three are documentation only.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from async_rollout.config.errors import bad_value

Device = Annotated[str, Field(pattern=r"^(cpu|cuda(:\d+)?)$")]


class Block(BaseModel):
    """A frozen mapping of known keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_bool_as_number(cls, value: Any, info: ValidationInfo) -> Any:
        """pydantic reads `true` as 1 where a number is wanted; here it is an error."""
        if isinstance(value, bool) and cls.model_fields[info.field_name].annotation in _NUMBERS:
            raise bad_value("wrong type", "write a number")
        return value


_NUMBERS = (int, float, int | None, float | None)


def key(
    default: Any,
    description: str,
    *,
    unit: str = "",
    env: str = "",
    theirs: str = "",
    why: str = "",
    **bounds: Any,
) -> Any:
    """A documented key: default (`...`: required), meaning, unit, and what older scripts call it."""
    documented = {"unit": unit, "env": env, "theirs": theirs, "why": why}
    extra = {name: text for name, text in documented.items() if text}
    how = {"default_factory": default} if callable(default) else {"default": default}
    return Field(description=description, json_schema_extra=extra or None, **how, **bounds)
