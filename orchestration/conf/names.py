"""Names that a conf declares; and one walk over its settings that finds names which nothing declares, and what an object says of itself."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from expectations.settings import Names, Setting, Step
from expectations.wording import hint, quoted
from orchestration.conf.files import MODELS
from orchestration.conf.structure import Finding

JSON_PATH = re.compile(r"(^|\.)[*$](\.|$)|\[\*?\](\.|$)|\[\d+\]\.")
FILE_OF = {"channels": "alerts"}
"""Files that have another name than what they declare."""
Path = tuple[Step, ...]


@dataclass(frozen=True)
class Declared:
    """Entries of each noun by name, right or wrong; None where they cannot be read: then nothing is unknown."""

    entries: Mapping[str, Mapping[str, Any] | None]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Declared":
        """`data` is each readable file as it was written, by its name without its ending."""
        entries = {noun: _entries(noun, data.get(noun)) for noun in ("sources", "metrics", "devices", "groups", "flows", "alerts")}
        file = data.get("alerts")
        return cls(entries | {"channels": _entries("channels", {"channels": {}} | file if isinstance(file, dict) else None)})

    def lacks(self, noun: str, name: str) -> bool:
        names = self.entries[noun]
        return names is not None and name not in names

    @property
    def of_gold(self) -> list[str]:
        """Tables of all groups."""
        return [f"gold.{group}_{kind}" for group in sorted(self.entries["groups"] or ()) for kind in ("aggregates", "vectors", "late")]

    @property
    def of_flows(self) -> list[str]:
        """Tables of flows whose rows have a key, and that of alerts: either side of a pair may be absent."""
        flows = (name for name, flow in (self.entries["flows"] or {}).items() if not (isinstance(flow, dict) and "join" in flow))
        return [*(f"gold.{name}" for name in flows), *(["gold.alerts"] if self.entries["alerts"] else [])]

    def written(self, source: str) -> Collection[str]:
        """The settings of a source that are there, also those with the value of their default."""
        return tuple((self.entries["sources"] or {})[source])

    def unknown(self, noun: str, name: str) -> str:
        """Second half of a sentence about a name that is not declared."""
        remedy = hint(name, self.entries[noun] or (), "declare it there")
        return f"{quoted(name)}, which {FILE_OF.get(noun, noun)}.yml does not declare; {remedy}"


def _entries(noun: str, file: object) -> Mapping[str, Any] | None:
    """No metric at all is a mistake of its own, that would make one of every reference."""
    written = file.get(noun, ()) if isinstance(file, dict) else ()
    if written is None or written == {}:
        return None if noun == "metrics" else {}
    return written if isinstance(written, dict) else None


def is_json_path(path: str) -> bool:
    """Whether it looks like `$.a`, `a.*.b`, `a[0].v` or `a[]`, of which conf reads none. `a[0]` may be the name of a field."""
    return bool(JSON_PATH.search(path))


def check_objects(settings: Mapping[str, Any], declared: Declared) -> Iterator[Finding]:
    """Walk through settings by the keys that files have at their top."""
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
            for finding in _in_value(inner[0], name, path, declared):
                yield Finding((*path, name), finding.text)
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
