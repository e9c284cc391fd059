"""Blocks as one algorithm and one arm use them, and arms that make no sense.

Later wins: the sweep's blocks, the algorithm's recipe, the `decoupled` axis, the arm.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from async_rollout.config.errors import Problem, problems_in, unknown_key
from async_rollout.config.exclusion import BASE_ARM
from async_rollout.config.objective import READERS
from async_rollout.config.recipes import RECIPES
from async_rollout.config.rules import misnamed
from async_rollout.config.run import Blocks

if TYPE_CHECKING:
    from async_rollout.config.sweep import SweepConfig

BASE = ""


def combinations(sweep: "SweepConfig") -> list[tuple[str, str]]:
    """Every (algorithm, arm) in order, the base arm first, without those that `exclude` drops whole."""
    pairs = product(sweep.algorithms, [BASE, *sweep.arms])
    return [pair for pair in pairs if not any(entry.drops(*pair) for entry in sweep.exclude)]


def variant(sweep: "SweepConfig", algorithm: str, arm: str) -> Blocks:
    """The blocks of one algorithm and arm; `objective.name` is `axis` where the axis decides.

    Raises pydantic's ValidationError if the arm does not fit.
    """
    overrides = RECIPES[algorithm] | (sweep.arms[arm] if arm else {})
    blocks: dict[str, Any] = {name: getattr(sweep, name) for name in Blocks.model_fields}
    for block, values in _nested(overrides).items():
        blocks[block] = (blocks[block].model_dump() if block in blocks else {}) | values
    return Blocks.model_validate(blocks)


def decoupled_values(sweep: "SweepConfig", mode: str, algorithm: str, arm: str) -> list[int]:
    """The values of the `decoupled` axis that make a difference; 1 stands for them where none does.

    None at all if the arm only sets keys that the loss does not read: it would repeat the base arm.
    """
    blocks = variant(sweep, algorithm, arm)
    values = [1] if mode == "sync" or blocks.objective.name != "axis" else sweep.decoupled
    keys = sweep.arms[arm] if arm else ["train.updates"]
    losses = {value: with_objective(blocks, value).objective.name for value in values}
    return [
        v for v in values if not keys or any(losses[v] in READERS.get(key, losses.values()) for key in keys)
    ]


def with_objective(blocks: Blocks, decoupled: int) -> Blocks:
    """The blocks with `objective.name` no longer `axis`: 1 is `decoupled`, 0 is `live`."""
    if blocks.objective.name != "axis":
        return blocks
    objective = blocks.objective.model_copy(update={"name": ("live", "decoupled")[decoupled]})
    return blocks.model_copy(update={"objective": objective})


def wrong_variants(sweep: "SweepConfig") -> list[Problem]:
    """Algorithms and arms that cannot be run, arms misnamed, and arms no different from another."""
    problems = [*_wrong_bases(sweep), *_overruled(sweep)]
    problems += [p for arm in sweep.arms for p in (*_wrong_name(arm), *_wrong_keys(sweep, arm))]
    return problems or list(_same(sweep))


def _nested(overrides: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    nested: dict[str, dict[str, Any]] = {}
    for dotted, value in overrides.items():
        block, _, name = dotted.partition(".")
        nested.setdefault(block, {})[name] = value
    return nested


def _problems(sweep: "SweepConfig", algorithm: str, arm: str) -> list[Problem]:
    """What is wrong with the blocks of one algorithm and arm."""
    try:
        return list(misnamed(algorithm, variant(sweep, algorithm, arm)))
    except ValidationError as error:
        return problems_in(error, Blocks)


def _wrong_bases(sweep: "SweepConfig") -> list[Problem]:
    """Each problem of the algorithms without arm, once."""
    found = [p for pair in combinations(sweep) if pair[1] == BASE for p in _problems(sweep, *pair)]
    return [p for i, p in enumerate(found) if p not in found[:i]]


def _wrong_name(arm: str) -> Iterator[Problem]:
    if arm in RECIPES or arm == BASE_ARM:
        what = "the name of an algorithm" if arm in RECIPES else "what tables call the arm without overrides"
        yield Problem("arms", arm, f"an arm would be taken for {what}", "give it another name")


def _overruled(sweep: "SweepConfig") -> Iterator[Problem]:
    """A block's key that an algorithm's recipe would silently replace."""
    for algorithm in sweep.algorithms:
        for dotted, preset in RECIPES[algorithm].items():
            name, _, field = dotted.partition(".")
            block = getattr(sweep, name)
            if field in block.model_fields_set and (value := getattr(block, field)) != preset:
                fix = f"set it in an arm (arms: {{NAME: {{{dotted}: {value}}}}})"
                yield Problem(dotted, value, f"algorithm {algorithm} sets it to {preset}", fix)


def _wrong_keys(sweep: "SweepConfig", arm: str) -> Iterator[Problem]:
    for dotted, value in sweep.arms[arm].items():
        block, _, name = dotted.partition(".")
        where = f"arms.{arm}.{dotted}"
        if block in Blocks.model_fields and not name:
            yield Problem(where, value, "a block, not a key", f"write {block}.KEY, one line for each key")
        elif block in type(sweep).model_fields and block not in Blocks.model_fields:
            fix = "an arm sets keys of the blocks, such as objective.name"
            yield Problem(where, value, "belongs to the whole sweep, not to a run", fix)
        elif block not in Blocks.model_fields:
            yield Problem(where, value, "no such key", unknown_key(dotted, value, Blocks).fix)
        else:
            continue
        return
    for pair in combinations(sweep):
        if pair[1] == arm and (problems := _problems(sweep, *pair)):
            for problem in problems:
                yield Problem(f"arms.{arm}.{problem.key}", problem.value, problem.what, problem.fix)
            return


def _same(sweep: "SweepConfig") -> Iterator[Problem]:
    seen = {"the base arm": _bodies(sweep, BASE)}
    kept = {name for _, name in combinations(sweep)}
    for arm, overrides in sweep.arms.items():
        if arm not in kept:
            continue
        bodies = _bodies(sweep, arm)
        if twin := next((name for name, other in seen.items() if bodies <= other), None):
            what = f"changes nothing: each of its cells is also one of {twin}"
            yield Problem(f"arms.{arm}", overrides, what, "change a key's value, or remove the arm")
        seen[f"arm {arm}"] = bodies


def _bodies(sweep: "SweepConfig", arm: str) -> set[tuple[str, str, str]]:
    """What the cells of an arm do, apart from dataset, K and seed."""
    return {
        (algorithm, mode, with_objective(variant(sweep, algorithm, arm), value).model_dump_json())
        for algorithm, name in combinations(sweep)
        if name == arm
        for mode in sweep.modes
        for value in decoupled_values(sweep, mode, algorithm, arm)
    }
