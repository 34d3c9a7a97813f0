"""Why a measurement breaks a rule: a few words with the text that failed and a hint. Pure. For few rows, as payloads are read again."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import msgspec
import pyarrow as pa

from bronze.schema import EVENTS
from expectations.wording import counted
from silver.csv_rows import twice_named, values_of
from silver.decoders.chain import decoder_of, objects_of
from silver.decoders.message import OF_MESSAGE, Message, messages
from silver.instants import MICROS_PER, to_instants
from silver.json_rows import as_text
from silver.measurements import payload_rows
from silver.policy import SilverConfig
from silver.records import ODD, Node, Rows, UnreadableError, nodes
from silver.schema import SOMETHING_IS_MEASURED
from silver.spec import Locator, Origin, PayloadFormat, Time

LONGEST, NEAR, MOST_COMPARED = 60, 20, 2_000
LIKELY = range(946_684_800_000_000, 4_102_444_800_000_000)
"""The years 2000 to 2099, in µs since 1970."""


@dataclass
class Reasons:
    """`devices`: names of which a misspelt one may be meant."""

    config: SilverConfig
    devices: Collection[str]
    _elements: dict[tuple[Any, ...], list[dict[str, Any]]] = field(default_factory=dict)
    """The elements of the event that was read last: several of its measurements may be asked for."""

    def of(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Explain a row of silver.quarantine: each rule that it breaks, with the reason; nothing if its source is unknown."""
        shape = self.config.shapes.get(row["source"])
        if shape is None:
            return {}
        explained = self._known(row, shape)
        return {rule: explained[rule]() if rule in explained else self._columns(rule, row, shape) for rule in row["broken_rules"]}

    def _known(self, row: Mapping[str, Any], shape: PayloadFormat) -> dict[str, Callable[[], str]]:
        metric, payload, fields = self.config.metrics.get(row["metric"] or ""), bytes(row["payload"]), [*shape.metrics.values()]
        of_birth = ["no birth of its device was known when it came"] if shape.written_in == "sparkplug_b" else []
        limits = ["any" if limit is None else limit for limit in (metric.bounds if metric else (None, None))]

        def said(origin: Origin | None, *more: str) -> str:
            locators = origin.locators if origin else ()
            return " and ".join((*(words for locator in locators for words in self._said(locator, row, shape)), *more))

        def of_nothing() -> str:
            return said(shape.value) if shape.value else f"none of {', '.join(fields)} has a value"

        return {
            "payload_is_small_enough": lambda: f"{len(payload):,} bytes are more than policy.max_payload_bytes",
            "payload_is_utf8": lambda: _unreadable(payload, row["header"], shape),
            "payload_is_readable": lambda: self._undecoded(row, shape) if shape.is_decoded else _unreadable(payload, row["header"], shape),
            SOMETHING_IS_MEASURED: of_nothing,
            "device_is_present": lambda: said(shape.device),
            "metric_is_present": lambda: said(shape.metric, *of_birth) if shape.metric else of_nothing(),
            "event_time_is_valid": lambda: said(shape.time, *_format(self._time_text(row, shape), shape)),
            "local_time_is_unique": lambda: said(shape.time, "comes twice or never; see repeated_hour"),
            "value_is_a_number": lambda: said(shape.value or Origin(fields[row["part"] % len(fields)])),
            "value_is_in_range": lambda: f"{row['value']} is not in {limits[0]} to {limits[1]}",
            "unit_is_known": lambda: said(shape.unit, f"{row['metric']} is in {metric and metric.unit}"),
            "device_is_known": lambda: _undeclared(row["device_id"], self.devices, "devices.yml"),
            "metric_is_known": lambda: _undeclared(row["metric"], self.config.metrics, "metrics.yml"),
        }

    def _columns(self, rule: str, row: Mapping[str, Any], shape: PayloadFormat) -> str:
        """The values of the columns and attributes that a rule asks for; all other rules are about clocks."""
        holds = next((own.holds for own in self.config.rules if own.name == rule), "event_time, ingested_at")
        asked = {name: value for name, value in row.items() if re.search(rf"\b{name}\b", re.sub("'[^']*'", "", holds))}
        asked |= {name: as_text(self._value(path, row, shape)) for name, path in shape.attributes.items() if f"'{name}'" in holds}
        return ", ".join(f"{name} is {value}" for name, value in asked.items()) or f"not {holds}"

    def _said(self, locator: Locator, row: Mapping[str, Any], shape: PayloadFormat) -> Iterator[str]:
        """A few words for each text: what it is, why it is none, or that its pattern is not found in it."""
        whole = list[str]()
        for name, text, problem in (texts := list(self._texts(locator, row, shape))):
            yield problem if text is None else f"{name} {shortened(text)}"
            whole += [] if text is None else [text]
        if locator.match and len(whole) == len(texts) and not re.search(locator.match, " ".join(whole)):
            yield f"{shortened(locator.match)} is not found in it"

    def _texts(self, locator: Locator, row: Mapping[str, Any], shape: PayloadFormat) -> Iterator[tuple[str, str | None, str]]:
        """The texts that a source takes from there, each with its name, and what is said where there is none."""
        for part in locator.parts:
            value = self._value(part, row, shape)
            yield f"{part} is", as_text(value), f"something above {part} is no object" if value is ODD else f"{part} is absent or null"
        if locator.constant is not None:
            yield "conf says", locator.constant, ""
        if locator.payload:
            yield "the payload is", bytes(row["payload"]).decode(shape.encoding, "replace"), ""
        if locator.key or locator.header is not None:
            name = "the key" if locator.key else f"the header {locator.header}"
            content = (
                row.get("key") if locator.key else {entry["key"]: entry["value"] for entry in row.get("headers") or ()}.get(locator.header)
            )
            text = None if content is None else bytes(content).decode("utf-8", "replace")
            yield f"{name} is", text, f"{name} is absent, or was not kept in quarantine"
        if locator.file_name or locator.topic:
            yield "", None, f"{shortened(row['position'] or '')} does not match {locator.file_name or f'level {locator.topic} of a topic'}"

    def _time_text(self, row: Mapping[str, Any], shape: PayloadFormat) -> str | None:
        for locator in shape.time.locators:
            texts = [text for _, text, _ in self._texts(locator, row, shape) if text is not None]
            text = " ".join(texts)
            match = re.search(locator.match, text) if locator.match else None
            if texts and len(texts) == max(len(locator.parts), 1) and (match or not locator.match):
                return match[1] if match else text
        return None

    def _value(self, path: str, row: Mapping[str, Any], shape: PayloadFormat) -> Any:
        """Return a field as it stands in the payload; None if it is absent or null."""
        event = row["source"], bytes(row["payload"]), row["header"], row.get("position"), row.get("key")
        if event not in self._elements:
            payload = pa.array([event[1] if shape.is_decoded else event[1].decode(shape.encoding, "replace")])
            pieces = payload_rows(payload, self._event(row), shape, self.config.policy.max_payload_bytes)
            self._elements = {event: [values for piece in pieces for values in _values(piece, shape)]}
        at, elements = row["part"] // max(len(shape.metrics), 1), self._elements[event]
        return elements[at][path] if at < len(elements) else None  # conf was another one then

    def _undecoded(self, row: Mapping[str, Any], shape: PayloadFormat) -> str:
        payload, node = bytes(row["payload"]), nodes(shape)[0]
        (message,) = messages(pa.array([payload]), self._event(row), shape, self.config.policy.max_payload_bytes)
        try:
            for members in objects_of(decoder_of(shape, frozenset(node.members)), message or Message(payload)):
                node.record_of(members)
        except UnreadableError as error:
            return str(error)
        return "its decoder reads it by now"

    def _event(self, row: Mapping[str, Any]) -> pa.Table:
        """The event of a row of silver.quarantine, which has not all that came with it."""
        names = ("header", "position", *OF_MESSAGE)
        return pa.table({name: pa.array([row.get(name)], EVENTS.field(name).type) for name in names})


def shortened(text: str, most: int = LONGEST) -> str:
    """In quotes; a long text is cut."""
    return f"'{text}'" if len(text) <= most else f"'{text[:most]}...'"


def _values(rows: Rows, shape: PayloadFormat) -> list[dict[str, Any]]:
    columns = (column.to_pylist() if isinstance(column := rows.values(path), pa.Array) else column for path in shape.fields)
    return [dict(zip(shape.fields, row, strict=True)) for row in zip(*columns, strict=True)]


def _undeclared(name: str, names: Collection[str], file: str) -> str:
    near = get_close_matches(name[:100], [*names][:MOST_COMPARED], n=1)
    return f"{shortened(name)} is not in {file}" + (f"; did you mean {shortened(near[0])}?" if near else "")


def _format(text: str | None, shape: PayloadFormat) -> list[str]:
    if shape.time.arrival:
        return ["its source does not say when it came"]
    if text is None:
        return []
    texts = pa.array([text], pa.string())
    others = [format for format in ("iso", *MICROS_PER) if format != shape.time.format]
    micros = {format: to_instants(texts, Time("time", format))[0].cast(pa.int64())[0].as_py() or 0 for format in others}
    return [f"not {shape.time.format}" + "".join([f"; it may be {format}" for format, instant in micros.items() if instant in LIKELY][:1])]


def _unreadable(payload: bytes, header: str | None, shape: PayloadFormat) -> str:
    if not payload.strip():
        return "it is empty"
    try:
        text = payload.decode(shape.encoding)
    except UnicodeDecodeError as error:
        near = shortened(payload[max(0, error.start - NEAR) :].decode("latin-1"), 2 * NEAR)
        return f"byte {error.start + 1} (0x{payload[error.start]:02x}) is no {shape.encoding.upper()}; as Latin-1 it is {near}"
    return _no_row(text, header, shape) if shape.format == "csv" else _no_object(text, shape)


def _no_row(line: str, header: str | None, shape: PayloadFormat) -> str:
    values, names = values_of(line, shape), shape.columns or values_of(header or "", shape) or ()
    if values is None:
        return f"a quote ({shape.quote}) is not closed, or stands inside a value: {shortened(line)}"
    if not shape.columns and (twice := twice_named(header or "", shape)):
        return f"the header names {' and '.join(twice)} twice: {shortened(header or '')}"
    owner = "columns" if shape.columns else "header"
    return f"it has {counted(len(values), 'value')}, and the {owner} {counted(len(names), 'name')}: {shortened(line)}"


def _no_object(text: str, shape: PayloadFormat) -> str:
    node = Node({}, is_list=True)
    for name in reversed(shape.each.split(".") if shape.each else ()):
        node = Node({name: node})
    try:
        json.loads(text)
        msgspec.json.decode(text, type=node.record)
    except json.JSONDecodeError as error:
        near = text[error.pos :].strip()
        return f"character {error.pos + 1}: {error.msg.lower().removesuffix(' at')}, found {shortened(near, NEAR) if near else 'the end'}"
    except (ValueError, RecursionError, msgspec.DecodeError) as error:
        return str(error).replace("`", "")
    return "it is larger or nested more deeply than what is read"
