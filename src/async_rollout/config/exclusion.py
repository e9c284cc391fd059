"""Cells that a sweep leaves out of the product of its axes."""

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from async_rollout.config.axes import Algorithm, Dataset, Decoupled, Mode, Seed, StalenessBound
from async_rollout.config.block import Block
from async_rollout.config.errors import bad_value, closest

if TYPE_CHECKING:
    from async_rollout.config.cells import Cell

BASE_ARM = "base"  # what tables call the arm without overrides


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _several(kind: Any) -> Any:
    """The type of a list of `kind`, for which a single value may stand."""
    return Annotated[list[kind], BeforeValidator(_listed, json_schema_input_type=kind | list[kind])]


class Exclusion(Block):
    """One entry of `exclude`: leaves out each cell whose place on every axis given here is listed.

    A value stands for a list of one; `arm: base` is the arm without overrides.
    """

    dataset: _several(Dataset) = Field(default_factory=list)
    mode: _several(Mode) = Field(default_factory=list)
    algorithm: _several(Algorithm) = Field(default_factory=list)
    arm: _several(str) = Field(default_factory=list)
    k: _several(StalenessBound) = Field(default_factory=list)
    decoupled: _several(Decoupled) = Field(default_factory=list)
    seed: _several(Seed) = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _only_axes(cls, value: Any) -> Any:
        for name in value if isinstance(value, dict) else ():
            if name not in cls.model_fields:
                raise bad_value(f"{name} is not an axis", closest(str(name), cls.model_fields))
        return value

    def drops(self, algorithm: str, arm: str) -> bool:
        """True if every cell of this algorithm and arm is left out, so that the two need not fit."""
        given = self.model_dump(exclude_defaults=True)
        wanted = {"algorithm": algorithm, "arm": arm or BASE_ARM}
        return bool(given) and all(axis in wanted and wanted[axis] in given[axis] for axis in given)

    def covers(self, cell: "Cell") -> bool:
        """True if the cell is left out; an entry without axes covers nothing."""
        given = {axis: listed for axis in Exclusion.model_fields if (listed := getattr(self, axis))}
        place = {axis: getattr(cell, axis) for axis in given} | {"arm": cell.arm or BASE_ARM}
        return bool(given) and all(place[axis] in listed for axis, listed in given.items())
