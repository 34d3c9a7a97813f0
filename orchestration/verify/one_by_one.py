"""Payloads to measurements, one by one, whatever they hold; at_once reads many of one make."""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa

from orchestration.verify import instants
from orchestration.verify.csv_payload import row_reader
from orchestration.verify.json_payload import Branch, Tree, UnreadableError, as_text, is_as_declared, read_object
from orchestration.verify.numerals import number_or_switch
from silver.spec import ELEMENT, Origin, PayloadFormat

# Java takes half a surrogate pair in UTF-8 for one bad letter, Python for three.
SURROGATE_IN_UTF8 = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
LONGEST_TIME = 100

Members = dict[str, Any]
Field = Callable[[Members, Members], Any]
"""A declared field of an event and of the element of its list."""


def rows_of(events: pa.Table, shape: PayloadFormat, max_payload_bytes: int) -> list[tuple[Any, ...]]:
    """Rows of measurements.MEASUREMENTS."""
    read, rows_of_event = _payload_reader(shape), _rows(shape)
    columns = (events.column(name).to_pylist() for name in ("payload", "header", "position"))
    rows = []
    for at, (payload, header, position) in enumerate(zip(*columns, strict=True)):
        text, is_utf8 = _decoded(payload)
        is_small = len(payload) <= max_payload_bytes
        members = read(text, header) if is_small else None
        rows += [(at, is_small, is_utf8, *row) for row in rows_of_event(members, position or "")]
    return rows


def _decoded(payload: bytes) -> tuple[str, bool]:
    try:
        return payload.decode(), True
    except UnicodeDecodeError:
        return SURROGATE_IN_UTF8.sub("\ufffd".encode(), payload).decode("utf-8", "replace"), False


def _payload_reader(shape: PayloadFormat) -> Callable[[str, str | None], Members | None]:
    if shape.format == "csv":
        return row_reader(shape)
    tree = _tree(shape)

    def read(text: str, header: str | None) -> Members | None:
        try:
            members = read_object(text)
        except UnreadableError:
            return None
        return members if is_as_declared(members, tree) else None

    return read


def _tree(shape: PayloadFormat) -> Tree:
    """The objects and the list through which the shape's paths go."""
    origins = [origin.field for origin in (shape.device, shape.zone, shape.metric, shape.unit) if origin and origin.field]
    paths = [*origins, shape.time.field, *shape.metrics.values(), *([shape.value] if shape.value else [])]
    tree: Tree = {}
    for path in paths:
        is_of_element = shape.each is not None and path.startswith(ELEMENT)
        node = _list_of(tree, shape.each) if is_of_element and shape.each else tree
        for name in path.removeprefix(ELEMENT).split(".")[:-1] if is_of_element else path.split(".")[:-1]:
            node = node.setdefault(name, Branch(False, {})).inner
    return tree


def _list_of(tree: Tree, each: str) -> Tree:
    *parents, last = each.split(".")
    for name in parents:
        tree = tree.setdefault(name, Branch(False, {})).inner
    return tree.setdefault(last, Branch(True, {})).inner


def _rows(shape: PayloadFormat) -> Callable[[Members | None, str], Iterator[tuple[Any, ...]]]:
    device, zone, unit = (_origin(origin, shape) for origin in (shape.device, shape.zone, shape.unit))
    time, instant = _field(shape.time.field, shape), _instant_reader(shape)
    elements_of, cells_of = _elements(shape), _wide(shape) if shape.metrics else _long(shape)
    width = max(len(shape.metrics), 1)

    def rows(members: Members | None, position: str) -> Iterator[tuple[Any, ...]]:
        event: Members = members or {}
        elements, count = elements_of(event)
        for at, element_or_null in enumerate(elements):
            element = element_or_null or {}
            of_both = (device(event, element, position), zone(event, element, position))
            of_unit, of_time = unit(event, element, position), instant(time(event, element))
            cells, parts = cells_of(event, element, position, count)
            for metric_at, metric, value in cells:
                part = at * width + metric_at
                yield (members is not None, *of_both, metric, value, of_unit, of_time, part, parts)

    return rows


def _elements(shape: PayloadFormat) -> Callable[[Members], tuple[list[Members | None], int | None]]:
    """Elements of an event and how many its list has: None where there is no list, 1 where none is declared."""
    if shape.each is None:
        return lambda event: ([None], 1)
    *parents, last = shape.each.split(".")

    def elements(event: Members) -> tuple[list[Members | None], int | None]:
        holder = _inner(event, parents)
        found = None if holder is None else holder.get(last)
        return found or [None], None if found is None else len(found)

    return elements


Cells = tuple[Iterable[tuple[int, str | None, float | None]], int | None]


def _long(shape: PayloadFormat) -> Callable[[Members, Members, str, int | None], Cells]:
    assert shape.value is not None
    metric, value = _origin(shape.metric, shape), _field(shape.value, shape)

    def cells(event: Members, element: Members, position: str, count: int | None) -> Cells:
        return ((0, named(metric(event, element, position)), _number(value(event, element))),), count

    return cells


def _wide(shape: PayloadFormat) -> Callable[[Members, Members, str, int | None], Cells]:
    """A blank says that nothing was measured; its place is still counted."""
    fields = [(at, named(metric), _field(path, shape)) for at, (metric, path) in enumerate(shape.metrics.items())]

    def cells(event: Members, element: Members, position: str, count: int | None) -> Cells:
        values = ((at, metric, _not_blank(field(event, element))) for at, metric, field in fields)
        filled = [(at, metric, _number(value)) for at, metric, value in values if value is not None]
        return filled or ((0, None, None),), None if shape.each else len(filled)

    return cells


def _origin(origin: Origin | None, shape: PayloadFormat) -> Callable[[Members, Members, str], str | None]:
    if origin is None or origin.constant is not None:
        constant = origin.constant if origin else None
        return lambda event, element, position: constant
    if origin.file_name is not None:
        part_of = lru_cache(maxsize=1024)(partial(part_of_name, re.compile(origin.file_name)))
        return lambda event, element, position: part_of(position)
    assert origin.field is not None
    field = _field(origin.field, shape)
    return lambda event, element, position: _name(field(event, element))


def part_of_name(pattern: re.Pattern[str], position: str) -> str | None:
    """The first group of the pattern in the name of the file."""
    found = pattern.search(position)
    return named(found[1]) if found else None


def _field(path: str, shape: PayloadFormat) -> Field:
    if shape.format == "csv":
        return lambda event, element: event.get(path)
    is_of_element = shape.each is not None and path.startswith(ELEMENT)
    *parents, last = path.removeprefix(ELEMENT).split(".") if is_of_element else path.split(".")
    if not parents:
        return (lambda event, element: element.get(last)) if is_of_element else (lambda event, element: event.get(last))

    def field(event: Members, element: Members) -> Any:
        holder = _inner(element if is_of_element else event, parents)
        return None if holder is None else holder.get(last)

    return field


def _inner(members: Members, parents: list[str]) -> Members | None:
    found: Members | None = members
    for name in parents:
        found = None if found is None else found.get(name)
    return found


def _instant_reader(shape: PayloadFormat) -> Callable[[Any], int | None]:
    read = instants.reader(shape.time)

    def instant(value: Any) -> int | None:
        text = value if type(value) is str else as_text(value)
        return None if text is None or len(text) > LONGEST_TIME else read(text)

    return instant


def _name(value: Any) -> str | None:
    if type(value) is str and value.isascii():  # nearly all are
        return value.strip(" ") or None
    return named(as_text(value))


def named(text: str | None) -> str | None:
    """Without spaces around it; None where nothing is left."""
    return (text.strip(" ") or None) if text is not None else None


def _not_blank(value: Any) -> Any:
    return named(value) if isinstance(value, str) else value


def _number(value: Any) -> float | None:
    match value:
        case str():
            return number_or_switch(value)
        case bool():
            return float(value)
        case float():
            return value if math.isfinite(value) else None
        case int():
            return _as_float(value)
        case _:
            return None


def _as_float(value: int) -> float:
    """An integer beyond all floats is infinite, for the rules to turn away."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
