"""Births of Sparkplug B, stored in the lake before the events that need them are in bronze: a header of each event names its birth.

The id of a birth is the digest of its names, so it never changes its meaning. Data without a birth get an id of their own, under which no
birth is stored: all readers find their metrics without a name, until a retry of the quarantine stores the birth that came since.
`sparkplug/<source>.json` has what is known of the nodes at the offset of bronze, and at the one to which it is read next.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa

from bronze.events import ARRIVED
from orchestration.conf.model import Conf
from orchestration.conf.transport_settings import MqttSettings
from orchestration.connectors.sources.schemas import Schemas
from orchestration.connectors.sources.source import Notice, Offset
from orchestration.connectors.sparkplug_nodes import NAMESPACE, Address, Node, Nodes, address_of
from orchestration.storage.payload_formats import payload_formats, remember_schemas
from orchestration.storage.state_file import StateFile
from silver.decoders.sparkplug_b import BIRTH, payload_of
from silver.records import UnreadableError
from silver.spec import PayloadFormat

FOLDER = "sparkplug"
WAY_OUT = "Remove it: data then wait for the next birth of their node."


@dataclass(frozen=True)
class _Known:
    """The state of nodes at an offset."""

    offset: dict[str, Any]
    nodes: dict[str, Node]
    answers: dict[str, str]
    recent: dict[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class _State:
    offsets: list[_Known] = field(default_factory=list)


class Births:
    """Births of one source, from an offset on; None: from its newest."""

    def __init__(self, conf: Conf, source: str, shape: PayloadFormat, start: Offset | None) -> None:
        self._conf, self._source, self._schemas, self._start = conf, source, shape.schemas, start
        declared = conf.sources.get(source)
        is_strict = declared is not None and isinstance(declared.transport, MqttSettings) and declared.transport.rebirth
        self._file = StateFile(conf.lake / FOLDER / f"{source}.json", _State, WAY_OUT)
        self._at_start = _known(self._file, start)
        state = _copy(self._at_start)
        self._nodes = Nodes(is_strict, state.nodes, answers=state.answers, recent=state.recent)
        self.notices = list[Notice]()

    @classmethod
    def of(cls, conf: Conf, source: str, start: Offset | None = None) -> "Births | None":
        """None for a source of another format."""
        shape = payload_formats(conf).get(source)
        return cls(conf, source, shape, start) if shape and shape.written_in == "sparkplug_b" else None

    def named(self, events: pa.Table) -> pa.Table:
        """ARRIVED with the header that names the birth of each event."""
        return with_births(events, self._nodes)

    def keep(self, end: Offset) -> None:
        """Store the births, and what is known at the end of these events; before they are in bronze."""
        new = {name: (text,) if text else () for name, text in self._nodes.texts.items() if name not in self._schemas}
        if new:
            remember_schemas(self._conf, self._source, new)
        reason = "no birth before them is known; they wait in quarantine for one and a retry"
        self.notices += [Notice("birth unknown", {"source": self._source, "node": name, "reason": reason}) for name in new if not new[name]]
        answers = {name: birth for name, birth in self._nodes.answers.items() if not self._schemas.get(name)}
        at_end = _Known(dict(end), self._nodes.nodes, answers, self._nodes.recent)
        self._file.write(_State([replace(self._at_start, offset=dict(self._start or {})), at_end]))

    def ask_again(self) -> None:
        """Store the births that came for data that wait."""
        answers = {name: self._schemas[birth] for name, birth in self._nodes.answers.items() if birth in self._schemas}
        if answers := {name: texts for name, texts in answers.items() if not self._schemas.get(name)}:
            remember_schemas(self._conf, self._source, answers)


def ask_again(conf: Conf) -> None:
    """Store schemas and births that events wait for, as far as they are known by now; SourceDownError where a registry gives no answer."""
    for source in conf.sources:
        for kept in (Schemas.of(conf, source), Births.of(conf, source)):
            if kept:
                kept.ask_again()


def with_births(events: pa.Table, nodes: Nodes) -> pa.Table:
    """ARRIVED with the header that names the birth of each event, in their order. A payload that is none of Sparkplug B gets none."""
    names = ("payload", "position", "key", "headers", "received_at")
    rows, headers, is_changed = events.select(names).to_pylist(), list[Any](), False
    for row in rows:
        birth = None
        if row["payload"] and (address := _address(row)) is not None:
            try:
                arrived_ms = round(row["received_at"].timestamp() * 1000) if row["received_at"] else 0
                birth = nodes.read(address, payload_of(row["payload"]), row["position"], arrived_ms)
            except UnreadableError:
                pass
        headers.append([*(row["headers"] or ()), {"key": BIRTH, "value": birth.encode()}] if birth else row["headers"])
        is_changed |= birth is not None
    at = ARRIVED.get_field_index("headers")
    return events.set_column(at, ARRIVED.field(at), pa.array(headers, ARRIVED.field(at).type)) if is_changed else events


def by_own_births(events: pa.Table, shape: PayloadFormat) -> tuple[pa.Table, PayloadFormat]:
    """Events, and how they are read: by the births among them alone."""
    nodes = Nodes(is_strict=False)
    named = with_births(events, nodes)
    return named, replace(shape, schemas=shape.schemas | {name: (text,) for name, text in nodes.texts.items() if text})


def devices_down(conf: Conf) -> Mapping[str, datetime]:
    """Return since when each device is down, by the last level of its topics; UTC."""
    down = dict[str, datetime]()
    for source in conf.sources:
        file = conf.lake / FOLDER / f"{source}.json"
        for name, node in _known(StateFile(file, _State, WAY_OUT), None).nodes.items():
            for device, since in node.down.items():
                down[device or name.partition("/")[2]] = datetime.fromtimestamp(since / 1000, UTC)
    return down


def _known(file: StateFile[_State], offset: Offset | None) -> _Known:
    offsets = (file.read() or _State()).offsets
    same = [state for state in offsets if offset is None or state.offset == dict(offset)]
    return same[-1] if same else _Known({}, {}, {})


def _copy(state: _Known) -> _Known:
    return msgspec.convert(msgspec.to_builtins(state), _Known)


def _address(row: Mapping[str, Any]) -> Address | None:
    """The topic by which an event came to MQTT: in its position, or in key or headers where Kafka is behind the broker."""
    position = row["position"] or ""
    if position.startswith(NAMESPACE):
        return address_of(position.rpartition("/")[0].rpartition("/")[0])
    of_kafka = [row["key"], *(header["value"] for header in row["headers"] or ())]
    texts = (content.decode(errors="replace") for content in of_kafka if content and content.startswith(NAMESPACE.encode()))
    return next((address for text in texts if (address := address_of(text))), None)
