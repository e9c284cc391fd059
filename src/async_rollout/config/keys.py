"""The dotted names of a configuration's keys."""

from collections.abc import Iterator

from pydantic import BaseModel
from pydantic.fields import FieldInfo


def is_block(field: FieldInfo) -> bool:
    """True for a key that holds further keys."""
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


def known_keys(model: type[BaseModel], prefix: str = "") -> dict[str, FieldInfo]:
    """Every key of `model` that holds a value, by dotted name, in the order of definition."""
    return dict(_walk(model, prefix))


def _walk(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        if is_block(field):
            yield from _walk(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def siblings(model: type[BaseModel], key: str) -> list[str]:
    """The dotted names that exist beside `key`, blocks included; empty where its block does not exist."""
    home, _, _ = key.rpartition(".")
    for name in filter(None, home.split(".")):
        field = model.model_fields.get(name)
        if field is None or not is_block(field):
            return []
        model = field.annotation
    return [f"{home}.{name}" if home else name for name in model.model_fields]
