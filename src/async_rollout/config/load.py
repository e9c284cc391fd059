"""Configurations from YAML files, command lines and JSON. What cannot be run is a ConfigError."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import yaml
from pydantic import ValidationError

from async_rollout.config.errors import ConfigError, Problem, problems_in
from async_rollout.config.run import RunConfig
from async_rollout.config.sweep import SweepConfig

_MOST_VALUES = 100_000  # that aliases may stand for: ten lines of them can stand for a billion


class _Loader(yaml.SafeLoader):
    """YAML without its traps: a key twice is an error, `5e-6` is a number, 010 is not 8."""

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None and (values := _values(node, {})) > _MOST_VALUES:
            _refuse(f"with its aliases written out it has {values} values, at most {_MOST_VALUES} fit", node)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            name = key_node.value
            if isinstance(name, str) and name in seen:
                _refuse(f"the key {name} is there twice", key_node)
            seen.add(name if isinstance(name, str) else id(key_node))
        return super().construct_mapping(node, deep)

    def construct_integer(self, node: yaml.ScalarNode) -> int:
        """A whole number; digits that YAML 1.1 would read in base 8 or 60 are refused."""
        value = self.construct_yaml_int(node)
        digits = node.value.replace("_", "")
        if re.fullmatch(r"[-+]?[0-9:]+", digits) and (":" in digits or value != int(digits)):
            _refuse(f"{node.value} reads as {value} in YAML: write it without leading zero or colon", node)
        return value


def _values(node: yaml.Node, known: dict[int, int]) -> int:
    """Values below a node, counted as often as aliases repeat them; one that holds itself counts once."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = 0
        pairs = isinstance(node, yaml.MappingNode)
        inner = [each for pair in node.value for each in pair] if pairs else node.value
        known[id(node)] = 1 + sum(_values(each, known) for each in inner)
    return known[id(node)]


def _refuse(what: str, node: yaml.Node) -> NoReturn:
    raise yaml.constructor.ConstructorError(None, None, what, node.start_mark)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_integer)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """A YAML file's mapping; ConfigError with file and line if it cannot be read."""
    try:
        content = _parse(Path(path).read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise ConfigError([Problem("file", str(path), what, "give the path of a YAML file")]) from error
    if not isinstance(content, dict):
        problem = Problem("(top level)", content, "wrong type", "write a mapping, such as experiment: NAME")
        raise ConfigError([problem], str(path))
    return content


def load_sweep(path: str | Path, overrides: Sequence[str] = ()) -> SweepConfig:
    """The sweep of a YAML file, with `key.path=value` overrides; the values are read as YAML."""
    content = read_yaml(path)
    for override in overrides:
        _override(content, override)
    return sweep_from_dict(content, str(path))


def sweep_from_dict(content: Mapping[str, Any], source: str = "config") -> SweepConfig:
    """The sweep of a mapping, such as Snakemake's `config`, whose numbers may be strings."""
    return _validated(SweepConfig, _plain(content), source)


def run_from_json(text: str) -> RunConfig:
    """The configuration of one cell, as `canonical_json` or config.json hold it."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        fix = "give the JSON that `canonical_json` writes"
        raise ConfigError([Problem("run", text, f"not JSON ({error})", fix)]) from error
    return _validated(RunConfig, content, "run")


def _validated(model: type, content: Any, source: str) -> Any:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise ConfigError(problems_in(error, model), source) from error


def _parse(text: str, source: str) -> Any:
    try:
        content = yaml.load(text, _Loader)
        json.dumps(content, default=str)  # refuses what holds itself, by an alias
        return content
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line if mark else 0
        what = str(getattr(error, "problem", None) or error)
        shown = next(iter(text.splitlines()[line:]), "")
        raise ConfigError(
            [Problem(f"{source}:{line + 1}", shown, what, "correct this line")], source
        ) from error
    except (RecursionError, ValueError) as error:
        what = f"a value holds itself, or is nested too deep ({error})"
        raise ConfigError([Problem(source, None, what, "write the values out")], source) from error


def split_override(text: str) -> tuple[list[str], str]:
    """Path and value of one `key.path=value`. What follows an arm's name is one dotted key."""
    dotted, equals, value = text.partition("=")
    path = dotted.strip().split(".")
    if not equals or not all(path):
        raise ConfigError([Problem("override", text, "not an assignment", "write key.path=value")])
    if path[0] == "arms" and len(path) > 2:
        path = [*path[:2], ".".join(path[2:])]
    return path, value


def _override(content: dict[str, Any], text: str) -> None:
    """Set one `key.path=value` in place."""
    path, value = split_override(text)
    dotted = ".".join(path)
    block = content
    for depth, name in enumerate(path[:-1], start=1):
        if block.get(name) is None:
            block[name] = {}
        block = block[name]
        if not isinstance(block, dict):
            where = ".".join(path[:depth])
            problem = Problem(dotted, block, f"{where} has a value, not keys", f"set {where} itself")
            raise ConfigError([problem])
    block[path[-1]] = _parse(value, dotted)


def _plain(value: Any) -> Any:
    """Plain dicts and lists.

    The words that Snakemake's command line leaves for None become None. A path below the working
    directory loses the machine's part of it, so that cells compare across checkouts.
    """
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, str):
        here = f"{os.getcwd()}{os.sep}"
        text = re.sub(f"^(jsonl:)?{re.escape(here)}", r"\1", value)
        return None if text in ("null", "~") else text
    return value
