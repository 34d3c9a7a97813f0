"""One walk over the settings of a conf: names that nothing declares, and mistakes that an object knows of itself."""

from collections.abc import Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from expectations.settings import Names, Setting, Step
from orchestration.conf.files import MODELS
from orchestration.conf.names import Declared
from orchestration.conf.structure import Finding

Path = tuple[Step, ...]


def walk(settings: Mapping[str, Any], declared: Declared) -> Iterator[Finding]:
    """Look through settings by the keys that files have at their top."""
    models: list[Any] = [*MODELS.values()]
    kinds = {key: kind for model in models for _, key, kind in _fields(model)}
    for key in settings.keys() & kinds.keys():
        yield from _in_value(kinds[key], settings[key], (key,), declared)


def _in_value(kind: Any, value: Any, path: Path, declared: Declared) -> Iterator[Finding]:
    """Look through a value of that type; None is absent."""
    origin, inner = get_origin(kind), get_args(kind)
    if value is None:
        return
    if isinstance(value, Setting):
        yield from _in_object(value, path, declared)
    elif origin is Annotated:
        for mark in inner[1:]:
            if isinstance(mark, Names) and declared.lacks(mark.noun, value):
                setting = path[:-1] if isinstance(path[-1], int) else path
                yield Finding.of(setting, f"names {declared.unknown(mark.noun, value)}", *path[len(setting) :])
        yield from _in_value(inner[0], value, path, declared)
    elif origin in (Union, UnionType):
        for other in inner:
            yield from _in_value(other, value, path, declared)
    elif origin in (dict, Mapping):
        for name, entry in value.items():
            yield from _in_key(inner[0], name, path, declared)
            yield from _in_value(inner[1], entry, (*path, name), declared)
    elif origin is tuple:
        for number, item in enumerate(value):
            yield from _in_value(inner[0], item, (*path, number), declared)


def _in_object(settings: Setting, path: Path, declared: Declared) -> Iterator[Finding]:
    model: Any = type(settings)
    for name, key, kind in _fields(model):
        yield from _in_value(kind, getattr(settings, name), (*path, key), declared)
    for problem in settings.problems():
        yield Finding.of((*path, *problem.path), problem.text, *problem.below, is_warning=problem.is_warning)


def _in_key(kind: Any, name: str, path: Path, declared: Declared) -> Iterator[Finding]:
    """A key may be a name that something else declares."""
    for finding in _in_value(kind, name, path, declared):
        yield Finding((*path, name), finding.text)


@cache
def _fields(model: Any) -> list[tuple[str, str, Any]]:
    """List the fields of a subclass of `Setting` in which there is something to look at: their names, their keys in YAML, their types."""
    hints, fields = get_type_hints(model, include_extras=True), model.__pydantic_fields__
    kinds = [(name, field.validation_alias or name, hints[name]) for name, field in fields.items()]
    return [(name, key, kind) for name, key, kind in kinds if _is_of_interest(kind)]


def _is_of_interest(kind: Any) -> bool:
    """Whether settings or names of something else are below."""
    if isinstance(kind, Names) or (isinstance(kind, type) and issubclass(kind, Setting)):
        return True
    return any(_is_of_interest(inner) for inner in (*get_args(kind), *getattr(kind, "__metadata__", ())))
