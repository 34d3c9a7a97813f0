"""One YAML file, as plain data that knows its lines.

Plain scalars are read as YAML 1.2 does, the way editors check them: `no`, `on`, `12:30`, `0123` and dates are texts, `1e-3` is a number.
Keys are always texts. Anchors, aliases and merge keys (`<<`) work; tags, several documents and duplicate keys are refused.

The data is made from events, with no nodes between: 20,000 devices take 0.5 s, the nodes of PyYAML alone 1.2 s, ruamel.yaml 9 s.
"""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from expectations.settings import Step
from expectations.wording import quoted
from orchestration.conf.diagnostic import Diagnostic

MAX_DEPTH = 20
"""The C loader has no bound of its own: 100,000 brackets would end the process."""
MAX_NODES = 2_000_000
"""With every alias written out: ten lines of aliases of aliases can stand for billions of nodes."""
MAX_BYTES = 50_000_000
TAG = "tag:yaml.org,2002:"

SCALARS = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?(?:0|[1-9][0-9]*)",
    "float": r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
    "merge": "<<",
}
"""Patterns of plain scalars that are no texts."""
KIND = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in SCALARS.items()))
PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ABSENT, _BEGUN = object(), object()


@dataclass(frozen=True)
class Document:
    """`data` holds dict, list, str, int, float, bool and None; `lines` is by identity of container, then by step."""

    file: str
    data: Any
    lines: dict[int, dict[Step, int]]

    def line(self, path: Sequence[Step]) -> int:
        """Line of the key or list item; of its nearest ancestor where it is not written down."""
        at, line = self.data, 1
        for step in path:
            places = self.lines.get(id(at), {})
            if step not in places:
                break
            line, at = places[step], at[step]
        return line

    def diagnostic(self, path: Sequence[Step], text: str, is_warning: bool = False) -> Diagnostic:
        """A mistake or a warning at a path, with its line."""
        return Diagnostic(self.file, self.line(path), text, is_warning)


class _Unreadable(Exception):
    """The line and text of the one mistake that keeps the file from being read at all."""


def read_document(path: Path) -> tuple[Document | None, list[Diagnostic]]:
    """A file that cannot be read at all is one mistake and no document."""
    file = str(path)
    try:
        text = _text(path)
        reading = _Reading(file, yaml.parse(text, PARSER))
        return reading.document(), reading.diagnostics
    except _Unreadable as error:
        return None, [Diagnostic(file, *error.args)]
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        return None, [Diagnostic(file, line, f"holds the control character U+{error.character:04X}; remove it")]
    except yaml.MarkedYAMLError as error:
        return None, [_explained(file, error, text)]


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise _Unreadable(1, "is missing; `tidemark init DIR` writes a whole conf folder to start from") from None
    except OSError as error:
        raise _Unreadable(1, f"cannot be read ({error.strerror}); check the path and its permissions") from None
    if len(data) > MAX_BYTES:
        raise _Unreadable(1, f"is {len(data):,} bytes long, too much for a conf; load devices with `tidemark devices load FILE` instead")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _Unreadable(line, f"is not UTF-8 (byte 0x{data[error.start]:02x}); save the file as UTF-8") from None


def _explained(file: str, error: yaml.MarkedYAMLError, text: str) -> Diagnostic:
    mark: Any = error.problem_mark or error.context_mark
    line = mark.line + 1
    problem = " ".join(filter(None, (error.context, error.problem)))
    if any("\t" in written[: mark.column + 1] for written in text.splitlines()[mark.line : line]):
        return Diagnostic(file, line, "is indented with a tab; YAML wants spaces")
    return Diagnostic(file, line, f"is not YAML: {problem}; check quotes, brackets, colons and indentation here and above")


@dataclass
class _Reading:
    """Events of YAML to plain data; what an anchor names is read once."""

    file: str
    events: Iterator[Any]
    lines: dict[int, dict[Step, int]] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    anchors: dict[str, Any] = field(default_factory=dict)
    sizes: dict[int, tuple[int, int, Any]] = field(default_factory=dict)
    """Levels and nodes of each container, with every alias written out, by its identity; the container itself has to stay for that."""

    def document(self) -> Document:
        next(self.events)
        if isinstance(next(self.events), yaml.StreamEndEvent):
            raise _Unreadable(1, "is empty; `tidemark init DIR` writes a conf folder with an example of it")
        data = self._value(next(self.events), 1)
        next(self.events)
        if not isinstance(event := next(self.events), yaml.StreamEndEvent):
            raise _Unreadable(_line(event), "holds a second document ('---'); keep one document in a file")
        return Document(self.file, data, self.lines)

    def _value(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            if (value := self.anchors.get(str(event.anchor), _ABSENT)) in (_ABSENT, _BEGUN):
                what = "contains itself" if value is _BEGUN else "is not there before it"
                raise _Unreadable(_line(event), f"names an anchor that {what}; write the value out")
            return value
        self.anchors |= {event.anchor: _BEGUN} if event.anchor else {}
        value = self._scalar(event) if isinstance(event, yaml.ScalarEvent) else self._container(event, depth)
        self.anchors |= {event.anchor: value} if event.anchor else {}
        return value

    def _container(self, event: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise _Unreadable(_line(event), f"is nested deeper than {MAX_DEPTH} levels, which no setting is; check the brackets")
        if event.tag not in (None, "!", TAG + "map", TAG + "seq"):
            self._refuse(event, f"the tag {quoted(event.tag)} is not read here; remove it")
        read = self._mapping if isinstance(event, yaml.MappingStartEvent) else self._sequence
        value, lines = read(depth + 1)
        self.lines[id(value)] = lines
        below = [self.sizes.get(id(child), (0, 1)) for child in (value.values() if isinstance(value, dict) else value)]
        levels, nodes = 1 + max((size[0] for size in below), default=0), 1 + sum(size[1] for size in below)
        self.sizes[id(value)] = levels, nodes, value
        if levels > MAX_DEPTH or nodes > MAX_NODES:
            raise _Unreadable(_line(event), "becomes too large when its aliases are written out; use fewer of them")
        return value

    def _sequence(self, depth: int) -> tuple[list[Any], dict[Step, int]]:
        value: list[Any] = []
        lines: dict[Step, int] = {}
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            lines[len(value)] = _line(event)
            value.append(self._value(event, depth))
        return value, lines

    def _mapping(self, depth: int) -> tuple[dict[Step, Any], dict[Step, int]]:
        """Own keys first; merged ones do not replace them."""
        own: dict[Step, Any] = {}
        lines: dict[Step, int] = {}
        merged: list[dict[Step, Any]] = []
        while not isinstance(key := next(self.events), yaml.MappingEndEvent):
            name = key.value if isinstance(key, yaml.ScalarEvent) else self._value(key, depth)
            value = self._value(next(self.events), depth)
            if not isinstance(key, yaml.ScalarEvent):
                self._refuse(key, "a list or mapping cannot be a key; write a text")
            elif _kind(key) == "merge":
                parts = value if isinstance(value, list) else [value]
                merged += [part for part in parts if isinstance(part, dict)]
                if not all(isinstance(part, dict) for part in parts):
                    self._refuse(key, "'<<' merges mappings only; name the anchor of a mapping")
            elif name in own:
                self._refuse(key, f"{quoted(name)} is there twice, first on line {lines[name]}; keep one")
            else:
                own[name], lines[name] = value, _line(key)
        for other in merged:
            own |= {step: value for step, value in other.items() if step not in own}
            lines = self.lines[id(other)] | lines
        return own, lines

    def _scalar(self, event: Any) -> Any:
        kind, text = _kind(event), event.value
        if kind in ("null", "bool"):
            return None if kind == "null" else text.lower() == "true"
        if kind in ("int", "float"):
            with suppress(ValueError):
                number = int(text) if kind == "int" and len(text) <= 19 else float(text)
                if math.isfinite(number) and (kind == "float" or abs(number) < 10**18):
                    return number
            self._refuse(event, f"{quoted(text)} is not a number that can be used; write a finite one of at most 18 digits")
            return 0
        if kind not in ("str", "merge"):
            self._refuse(event, f"the tag {quoted(event.tag)} is not read here; remove it")
        return text

    def _refuse(self, event: Any, text: str) -> None:
        self.diagnostics.append(Diagnostic(self.file, _line(event), text))


def _kind(event: Any) -> str:
    """The tag of a scalar, without that of YAML before it."""
    if event.tag in (None, "!"):
        match = KIND.fullmatch(event.value) if event.implicit[0] else None
        return str(match.lastgroup) if match else "str"
    return str(event.tag.removeprefix(TAG))


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
