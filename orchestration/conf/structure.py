"""Structure of one conf file: its document as the pydantic dataclass that declares its settings, and a finding for each that is wrong."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from pydantic import TypeAdapter, ValidationError

from orchestration.conf.diagnostic import hint, nearest, quoted
from orchestration.conf.document import Step
from orchestration.conf.files import MODELS
from orchestration.conf.schemas import Node, resolved, schema_of
from orchestration.conf.values import PARTIAL

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
    """What is wrong at `path`. `is_sound`: the value there can still be checked for its meaning. `is_warning`: it is probably wrong."""

    path: tuple[Step, ...]
    text: str
    is_sound: bool = False
    is_warning: bool = False

    @classmethod
    def of(cls, path: tuple[Step, ...], text: str, *below: Step, is_warning: bool = False) -> "Finding":
        """A sentence that begins with the name of a setting; it may stand at something `below` that."""
        return cls((*path, *below), f"{where(path)} {text}", is_warning=is_warning)


def check_structure(name: str, data: Any) -> tuple[Any, list[Finding]]:
    """The settings of a file, as `MODELS[name]`, and what is wrong with its data. Where something is, the settings are partial."""
    validate = partial(_adapter(name).validate_python, data, by_alias=True, by_name=False)
    try:
        return validate(), []
    except ValidationError as mistakes:
        findings = [finding for error in mistakes.errors(include_url=False) for finding in _findings(name, error)]
    return validate(context=PARTIAL), findings


def where(path: Sequence[Step]) -> str:
    """A setting as people name it: kitchen.vector.features; top-level keys of files with one noun go without saying."""
    noun = {"sources", "metrics", "devices", "groups", "rules", "sinks"}
    steps = path[1:] if len(path) > 1 and path[0] in noun else path
    return ".".join(str(step + 1) if isinstance(step, int) else step for step in steps)


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(MODELS[name])


def _node(name: str, path: Sequence[Step]) -> Node:
    """What the schema says of the value at a path."""
    root = schema_of(name)
    node = root
    for step in path:
        below = node["items"] if isinstance(step, int) else node.get("properties", {}).get(step) or node["additionalProperties"]
        node = resolved(below, root)
    return node


def _findings(name: str, error: Any) -> Iterator[Finding]:
    path, kind = tuple(error["loc"]), error["type"]
    if kind == "unexpected_keyword_argument":
        names = _node(name, path[:-1])["properties"]
        yield Finding(path, f"{where(path)} is not a setting; {hint(path[-1], names, 'known here: ' + ', '.join(names))}")
    elif kind == "missing":
        node, key = _node(name, path[:-1]), path[-1]
        if not nearest(key, set(error["input"]) - set(node["properties"])):  # a misspelt key is a finding of its own
            example = _example(_node(name, path), name)
            yield Finding(path[:-1], f"{where(path)} is missing; add for example `{key}: {example}`", is_sound=True)
    elif kind == "twice":
        items = list(map(str, error["input"]))
        for at, item in enumerate(items):
            if item in items[:at]:
                yield Finding((*path, at), f"{where(path)} names {quoted(item)} twice; remove one", is_sound=True)
    elif path and path[-1] == "[key]":
        names = _node(name, path[:-2]).get("propertyNames", {})
        yield Finding(path[:-1], f"{quoted(path[-2])} cannot be a name here; {_hint_of_text(names, kind)}", is_sound=True)
    elif kind != "too_short" or not error["input"]:  # pydantic does not count wrong items, which are findings of their own
        problem = _problem(_node(name, path), error, name)
        yield Finding(path, f"{where(path) or 'the file'} {problem}")


def _problem(node: Node, error: Any, name: str) -> str:
    """The second half of a sentence about a value that is wrong."""
    value = error["input"]
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
        case "too_long", dict():
            said, remedy = f"sets {' and '.join(value)}", f"set only {_one_of(node, name)}"
        case "too_long", list():
            said, remedy = f"has {len(value):,} items", f"write at most {node['maxItems']:,}"
        case "instant", _:
            said, remedy = f"{said}, which is no instant", error["msg"]
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
    """As YAML, on one line."""
    example = example_of(node, schema_of(name))
    return example if isinstance(example, str) else json.dumps(example, ensure_ascii=False)


def example_of(node: Node, root: Node) -> Any:
    """The first example of a node, or its default; of a mapping without one its required settings, or else its first."""
    if "examples" in node or "properties" not in node:
        return next(iter(node.get("examples", ())), node.get("default", {}))
    names = node.get("required") or list(node["properties"])[:1]
    return {name: example_of(resolved(node["properties"][name], root), root) for name in names}
