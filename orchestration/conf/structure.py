"""Structure of one conf file, by its JSON Schema in conf/schema: the same schema that completes and explains keys in an editor."""

import copy
import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from orchestration.conf.document import Document, Step
from orchestration.conf.mistake import Mistake, nearest, shown, way_out

KINDS = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number", type(None): "empty"}
WANTED = {
    "object": "a mapping",
    "array": "a list",
    "string": "a text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
}


@dataclass(frozen=True)
class Finding:
    """What is wrong at `path`. `is_sound`: the value there can still be judged for its meaning."""

    path: tuple[Step, ...]
    text: str
    is_sound: bool = False


def check_structure(name: str, document: Document) -> tuple[dict[str, Any], list[Mistake]]:
    """The settings that are well formed (others are left out, so that their meaning is not judged), and the mistakes in the rest."""
    findings = _one_each(finding for error in _validator(name).iter_errors(document.data) for finding in _findings(error))
    mistakes = [Mistake(document.file, document.line(finding.path), finding.text) for finding in findings]
    if not isinstance(document.data, dict):
        return {}, mistakes
    sound = copy.deepcopy(document.data)
    for finding in findings:
        if not finding.is_sound:
            _leave_out(sound, finding.path)
    return sound, mistakes


def _one_each(findings: Iterable[Finding]) -> list[Finding]:
    """Of several sentences about one wrong value the first: 0.5 for a whole number is not also too small."""
    found = list(findings)
    first = {finding.path: finding for finding in reversed(found) if not finding.is_sound}
    return [finding for finding in found if finding.is_sound or first[finding.path] is finding]


def where(path: Sequence[Step]) -> str:
    """A setting as people name it: kitchen.vector.features; top-level keys of files with one noun go without saying."""
    noun = {"sources", "metrics", "devices", "groups", "rules"}
    steps = path[1:] if len(path) > 1 and path[0] in noun else path
    return ".".join(str(step + 1) if isinstance(step, int) else step for step in steps)


@functools.cache
def _validator(name: str) -> Draft202012Validator:
    schema = json.loads(resources.files("conf").joinpath("schema", f"{name}.json").read_text(encoding="utf-8"))
    kind: type[Draft202012Validator] = extend(Draft202012Validator, {"pattern": _pattern})  # type: ignore[no-untyped-call]
    return kind(schema)


def _pattern(_: object, pattern: str, instance: object, __: object) -> Iterator[ValidationError]:
    """`$` of JSON Schema is the end; that of Python also matches before a last line end."""
    if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
        yield ValidationError("pattern")


def _leave_out(sound: dict[str, Any], path: Sequence[Step]) -> None:
    """Takes the value out of its mapping; a list with a wrong item goes as a whole."""
    keys = list(path)
    for at, step in enumerate(path):
        if isinstance(step, int):
            keys = keys[:at]
            break
    inner: Any = sound
    for key in keys[:-1]:
        inner = inner.get(key) if isinstance(inner, dict) else None
    if keys and isinstance(inner, dict):
        inner.pop(keys[-1], None)


def _findings(error: Any) -> Iterator[Finding]:
    path = tuple(error.absolute_path)
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        for key in sorted(set(error.instance) - set(known)):
            yield Finding((*path, key), f"{where((*path, key))} is not a setting; {way_out(key, known, 'known here: ' + ', '.join(known))}")
    elif error.validator == "required":
        key = next(key for key in error.validator_value if error.message.startswith(repr(key)))
        if not nearest(key, set(error.instance) - set(error.schema["properties"])):  # a misspelt key is told as such
            example = _example(error.schema["properties"][key])
            yield Finding(path, f"{where((*path, key))} is missing; add for example `{key}: {example}`", is_sound=True)
    elif error.validator == "uniqueItems":
        first_at = {str(item): at for at, item in reversed(list(enumerate(error.instance)))}
        for at, item in enumerate(error.instance):
            if first_at[str(item)] != at:
                yield Finding((*path, at), f"{where(path)} names {shown(item)} twice; remove one", is_sound=True)
    elif "propertyNames" in error.absolute_schema_path:
        yield Finding((*path, error.instance), f"{shown(error.instance)} cannot be a name here; {_way_out_of_text(error)}", is_sound=True)
    else:
        yield Finding(path, f"{where(path) or 'the file'} {_problem(error)}")


def _problem(error: Any) -> str:
    limit, value = error.validator_value, error.instance
    problems: dict[str, Callable[[], str]] = {
        "type": lambda: _wrong_kind(error),
        "enum": lambda: f"is {shown(value)}; {way_out(str(value), limit, 'choose one of ' + ', '.join(limit))}",
        "minimum": lambda: f"is {shown(value)}; it must be at least {limit}",
        "maximum": lambda: f"is {shown(value)}; it must be at most {limit}",
        "minItems": lambda: f"is an empty list; write for example {_example(error.schema)}",
        "minProperties": lambda: f"is empty; set {_one_of(error.schema)}",
        "maxProperties": lambda: f"sets {' and '.join(value)}; set only {_one_of(error.schema)}",
    }
    return problems.get(error.validator, lambda: f"is {shown(value)}; {_way_out_of_text(error)}")()


def _wrong_kind(error: Any) -> str:
    wanted = error.validator_value if isinstance(error.validator_value, str) else error.validator_value[0]
    is_quotable = wanted == "string" and isinstance(error.instance, bool | int | float)
    remedy = "put it in quotes" if is_quotable else f"write for example {_example(error.schema)}"
    if wanted == "integer" and isinstance(error.instance, float):
        return f"is {shown(error.instance)}, but must be a whole number; {remedy}"
    return f"is {KINDS[type(error.instance)]}, but must be {WANTED[wanted]}; {remedy}"


def _way_out_of_text(error: Any) -> str:
    """For a text that is empty, too long or of the wrong pattern."""
    if error.validator == "maxLength":
        return f"write at most {error.validator_value} characters"
    return str(error.schema.get("patternErrorMessage", "write a text"))


def _one_of(schema: dict[str, Any]) -> str:
    settings = list(schema.get("properties", ()))
    return "one of " + ", ".join(settings) if settings else f"for example {_example(schema)}"


def _example(schema: dict[str, Any]) -> str:
    """As YAML, on one line."""
    examples = schema.get("examples") or [{}]
    return examples[0] if isinstance(examples[0], str) else json.dumps(examples[0], ensure_ascii=False)
