"""One YAML file, as plain data that knows its lines.

Plain scalars are read as YAML 1.2 does, the way editors check them: `no`, `on`, `12:30`, `0123` and dates are texts, `1e-3` is a number.
Keys are always texts. Anchors, aliases and merge keys (`<<`) work; tags, several documents and duplicate keys are refused.
"""

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from orchestration.conf.diagnostic import Diagnostic, quoted

MAX_DEPTH = 20
"""The C loader has no bound of its own: 100,000 brackets would end the process."""
MAX_NODES = 2_000_000
"""With every alias written out: ten lines of aliases of aliases can stand for billions of nodes."""
MAX_BYTES = 50_000_000
TAG = "tag:yaml.org,2002:"

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Loader(_Base):  # type: ignore[misc]
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  PyYAML asks for it on the class


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(0|[1-9][0-9]*)", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", list("-+.0123456789")),
    ("merge", r"<<", ["<"]),
):
    Loader.add_implicit_resolver(TAG + _tag, re.compile(rf"^(?:{_pattern})$"), _first)

_BEGUN = object()
Step = str | int
"""A key of a mapping, or a place in a list."""


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
        node = _composed(_text(path))
        reading = _Reading(file)
        return Document(file, reading.plain(node), reading.lines), reading.diagnostics
    except _Unreadable as error:
        return None, [Diagnostic(file, *error.args)]


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


def _composed(text: str) -> yaml.Node:
    try:
        _check_depth(text)
        node = yaml.compose(text, Loader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _Unreadable(line, f"holds the control character U+{error.character:04X}; remove it") from None
    except yaml.MarkedYAMLError as error:
        raise _explained(error, text) from None
    if node is None:
        raise _Unreadable(1, "is empty; `tidemark init DIR` writes a conf folder with an example of it")
    return node


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _Unreadable(_line(event), f"is nested deeper than {MAX_DEPTH} levels, which no setting is; check the brackets")


def _explained(error: yaml.MarkedYAMLError, text: str) -> _Unreadable:
    mark: Any = error.problem_mark or error.context_mark
    line = mark.line + 1
    problem = " ".join(filter(None, (error.context, error.problem)))
    if "single document" in problem:
        return _Unreadable(line, "holds a second document ('---'); keep one document in a file")
    if any("\t" in written[: mark.column + 1] for written in text.splitlines()[mark.line : line]):
        return _Unreadable(line, "is indented with a tab; YAML wants spaces")
    return _Unreadable(line, f"is not YAML: {problem}; check quotes, brackets, colons and indentation here and above")


@dataclass
class _Reading:
    """Node tree to plain data; a node that is shared by aliases is read once."""

    file: str
    lines: dict[int, dict[Step, int]] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    done: dict[int, Any] = field(default_factory=dict)
    sizes: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Levels and nodes of each container, with every alias written out."""

    def plain(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if id(node) not in self.done:
            self.done[id(node)] = _BEGUN
            self.done[id(node)] = self._container(node)
        if self.done[id(node)] is _BEGUN:
            raise _Unreadable(_line(node), "holds an anchor that contains itself; write the value out")
        return self.done[id(node)]

    def _container(self, node: yaml.Node) -> Any:
        if node.tag not in (TAG + "map", TAG + "seq"):
            self._refuse(node, f"the tag {quoted(node.tag)} is not read here; remove it")
        value: Any
        if isinstance(node, yaml.MappingNode):
            value, lines = self._mapping(node)
        else:
            value, lines = list(map(self.plain, node.value)), dict(enumerate(map(_line, node.value)))
        self.lines[id(value)] = lines
        below = [self.sizes.get(id(child), (0, 1)) for child in (value.values() if isinstance(value, dict) else value)]
        depth, nodes = 1 + max((depth for depth, _ in below), default=0), 1 + sum(nodes for _, nodes in below)
        self.sizes[id(value)] = depth, nodes
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            raise _Unreadable(_line(node), "becomes too large when its aliases are written out; use fewer of them")
        return value

    def _mapping(self, node: yaml.MappingNode) -> tuple[dict[Step, Any], dict[Step, int]]:
        """Own keys first; merged ones do not replace them."""
        own: dict[Step, Any] = {}
        lines: dict[Step, int] = {}
        merged: list[dict[Step, Any]] = []
        for key, child in node.value:
            if key.tag == TAG + "merge":
                merged += self._merged(child)
            elif not isinstance(key, yaml.ScalarNode):
                self._refuse(key, "a list or mapping cannot be a key; write a text")
            elif key.value in own:
                self._refuse(key, f"{quoted(key.value)} is there twice, first on line {lines[key.value]}; keep one")
            else:
                own[key.value], lines[key.value] = self.plain(child), _line(key)
        for other in merged:
            own = own | {step: value for step, value in other.items() if step not in own}
            lines = self.lines[id(other)] | lines
        return own, lines

    def _merged(self, node: yaml.Node) -> list[dict[Step, Any]]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for part in parts:
            if not isinstance(part, yaml.MappingNode):
                self._refuse(part, "'<<' merges mappings only; name the anchor of a mapping")
        return [self.plain(part) for part in parts if isinstance(part, yaml.MappingNode)]

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        kind, text = node.tag.removeprefix(TAG), node.value
        if kind in ("null", "bool"):
            return None if kind == "null" else text.lower() == "true"
        if kind in ("int", "float"):
            with suppress(ValueError):
                number = int(text) if kind == "int" and len(text) <= 19 else float(text)
                if math.isfinite(number) and (kind == "float" or abs(number) < 10**18):
                    return number
            self._refuse(node, f"{quoted(text)} is not a number that can be used; write a finite one of at most 18 digits")
            return 0
        if kind not in ("str", "merge"):
            self._refuse(node, f"the tag {quoted(node.tag)} is not read here; remove it")
        return text

    def _refuse(self, node: yaml.Node, text: str) -> None:
        self.diagnostics.append(Diagnostic(self.file, _line(node), text))


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1
