"""Structure of one conf file: its document as the pydantic dataclass that declares its settings, and a finding for each that is wrong."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from expectations.settings import NAME, Step
from expectations.wording import hint, nearest, quoted
from orchestration.conf.files import ENTRIES, MODELS
from orchestration.conf.schemas import Node, resolved, schema_of

KINDS = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number", type(None): "empty"}
WANTED: dict[str, tuple[str, tuple[type, ...]]] = {
    "object": ("a mapping", (dict,)),
    "array": ("a list", (list,)),
    "string": ("a text", (str,)),
    "boolean": ("true or false", (bool,)),
    "integer": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
}


@dataclass(frozen=True)
class Finding:
    """A mistake at `path`. `is_warning`: it is probably one."""

    path: tuple[Step, ...]
    text: str
    is_warning: bool = False

    @classmethod
    def of(cls, path: tuple[Step, ...], text: str, *below: Step, is_warning: bool = False) -> "Finding":
        """A sentence that begins with the name of a setting; it may stand at something `below` that."""
        return cls((*path, *below), f"{where(path)} {text}", is_warning=is_warning)


class Checked(NamedTuple):
    """One file. `settings`: as `MODELS` declares it; None where something is wrong. `sound`: its top-level settings without what is wrong:
    an entry of `ENTRIES`, or a whole setting.
    """

    settings: Any
    sound: dict[str, Any]
    findings: list[Finding]


def check_structure(name: str, data: Any, folder: Path = Path("conf")) -> Checked:
    """Check a file of the conf in `folder`: its settings, and what is wrong with them."""
    try:
        settings = _validated(name, data, folder)
        return Checked(settings, vars(settings), [])
    except ValidationError as mistakes:
        errors = mistakes.errors(include_url=False)
    sound = _sound(name, data, folder, {_object_at(error["loc"]) for error in errors})
    return Checked(None, sound, [finding for error in errors for finding in _findings(name, error)])


def _object_at(path: tuple[Step, ...]) -> tuple[Step, ...]:
    return path[: 2 if path and path[0] in ENTRIES else 1]


def _validated(name: str, data: Any, folder: Path) -> Any:
    return _adapter(name).validate_python(data, by_alias=True, by_name=False, context=folder)


def _sound(name: str, data: Any, folder: Path, wrong: Collection[tuple[Step, ...]]) -> dict[str, Any]:
    """`wrong`: paths of objects. Examples stand in for settings that are required, until the rest is read."""
    if not isinstance(data, dict):
        return {}
    root = schema_of(name)
    stand_in = {key: example_of(resolved(root["properties"][key], root), root) for key in root.get("required", ())}
    kept = {key: value for key, value in data.items() if (key,) not in wrong}
    for key in kept.keys() & set(ENTRIES):
        kept[key] = kept[key] and {entry: value for entry, value in kept[key].items() if (key, entry) not in wrong}
    try:
        return {key: value for key, value in vars(_validated(name, stand_in | kept, folder)).items() if (key,) not in wrong}
    except ValidationError:  # no entry is left
        return {}


def where(path: Sequence[Step]) -> str:
    """A setting as people name it: kitchen.vector.features; top-level keys of files with one noun go without saying."""
    steps = path[1:] if len(path) > 1 and path[0] in ENTRIES else path
    return ".".join(str(step + 1) if isinstance(step, int) else step for step in steps)


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(MODELS[name])


def _node(name: str, path: Sequence[Step]) -> Node:
    """The schema of the value at a path."""
    root = schema_of(name)
    node = root
    for step in path:
        below = node["items"] if isinstance(step, int) else node.get("properties", {}).get(step) or node["additionalProperties"]
        node = resolved(below, root)
    return node


def _findings(name: str, error: Any) -> Iterator[Finding]:
    path, kind = tuple(error["loc"]), error["type"]
    written = error["input"].keys() - {NAME} if isinstance(error["input"], dict) else error["input"]
    if kind == "unexpected_keyword_argument":
        names = _node(name, path[:-1])["properties"]
        unknown = f"is not a setting; {hint(path[-1], names, 'known here: ' + ', '.join(names))}"
        yield Finding(path, f"{where(path)} {_removed(path, error['input']) or unknown}")
    elif kind == "missing":
        node, key = _node(name, path[:-1]), path[-1]
        if not nearest(key, set(written) - set(node["properties"])):  # a misspelt key is a finding of its own
            example = _example(_node(name, path), name)
            yield Finding(path[:-1], f"{where(path)} is missing; add for example `{key}: {example}`")
    elif kind == "twice":
        items = list(map(str, error["input"]))
        for at, item in enumerate(items):
            if item in items[:at]:
                yield Finding((*path, at), f"{where(path)} names {quoted(item)} twice; remove one")
    elif path and path[-1] == "[key]":
        names = _node(name, path[:-2]).get("propertyNames", {})
        yield Finding(path[:-1], f"{quoted(path[-2])} cannot be a name here; {_hint_of_text(names, kind)}")
    elif not ((kind == "too_short" and written) or kind == "default_factory_not_called"):
        # Pydantic does not count wrong items, and gives no default that follows from a wrong setting: both are findings of their own.
        problem = _problem(_node(name, path), error, name)
        yield Finding(path, f"{where(path) or 'the file'} {problem}")


def _removed(path: tuple[Step, ...], value: Any) -> str | None:
    """The way out for a setting of an earlier version, as the second half of a sentence; None for any other path."""
    match path:
        case "quality", "schedule" | "schedules":
            crons = [value] if isinstance(value, str) else [*value.values()] if isinstance(value, dict) else []
            cron = next((cron for cron in crons if isinstance(cron, str)), "15 3 * * *")
            block = f"schedules: {{quality: {{cron: {json.dumps(cron)}, command: quality}}}}"
            use = f"`tidemark up` checks all suites with `{block}` at the top of pipeline.yml"
        case "quality", "webhook":
            block = 'channels: {quality: {webhook: {url: "${env:QUALITY_URL}"}}}'
            use = f"a channel is notified with `{block}` in alerts.yml and `channels: [quality]` here"
        case _:
            return None
    return f"was removed; {use if value else 'take the line out'}"


def _problem(node: Node, error: Any, name: str) -> str:
    """The second half of a sentence about a value that is wrong."""
    value = error["input"]
    if error["type"] == "unreadable":
        return str(error["msg"])
    wanted, types = WANTED[node["type"]]
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        is_quotable = node["type"] == "string" and isinstance(value, bool | int | float)
        remedy = "put it in quotes" if is_quotable else f"write for example {_example(node, name)}"
        is_fraction = node["type"] == "integer" and isinstance(value, float)
        return f"is {quoted(value) if is_fraction else KINDS[type(value)]}, but must be {wanted}; {remedy}"
    # A secret that stands in conf must not get into a log too.
    said = "is a secret in plain text" if node.get("writeOnly") else f"is {quoted(value)}"
    match error["type"], value:
        case (("enum" | "literal_error"), str()):
            remedy = hint(value, node["enum"], "choose one of " + ", ".join(node["enum"]))
        case "greater_than_equal", _:
            remedy = f"it must be at least {node['minimum']}"
        case "less_than_equal", _:
            remedy = f"it must be at most {node['maximum']}"
        case "too_short", list():
            said, remedy = "is an empty list", f"write for example {_example(node, name)}"
        case "too_short", _:
            said, remedy = "is empty", f"set {_one_of(node, name)}"
        case "too_long", list():
            said, remedy = f"has {len(value):,} items", f"write at most {node['maxItems']:,}"
        case kind, _:
            remedy = _hint_of_text(node, kind)
    return f"{said}; {remedy}"


def _hint_of_text(node: Node, kind: str) -> str:
    """For a text that is empty, too long or of the wrong pattern."""
    if kind == "string_too_long":
        return f"write at most {node['maxLength']} characters"
    return str(node.get("patternErrorMessage", "write a text"))


def _one_of(node: Node, name: str) -> str:
    settings = list(node.get("properties", ()))
    return "one of " + ", ".join(settings) if settings else f"for example {_example(node, name)}"


def _example(node: Node, name: str) -> str:
    """The example of a node as YAML, on one line."""
    example = example_of(node, schema_of(name))
    return example if isinstance(example, str) else json.dumps(example, ensure_ascii=False)


def example_of(node: Node, root: Node) -> Any:
    """The first example of a node, or its default; of a mapping without one its required settings, or else its first."""
    if "examples" in node or "properties" not in node:
        return next(iter(node.get("examples", ())), node.get("default", {}))
    names = node.get("required") or list(node["properties"])[:1]
    return {name: example_of(resolved(node["properties"][name], root), root) for name in names}
