"""A message as decoders see it."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from silver.spec import PayloadFormat

OF_MESSAGE = ("key", "headers", "received_at")
"""Columns of bronze that decoders alone ask for, beside the payload and the position."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Message(NamedTuple):
    """A payload, and what came with it: null where the source has none of it, or where nobody asked for it.

    `position`: topic/partition/offset, or the path of the file. `arrived_micros`: when the source had it, in microseconds since 1970.
    `most_bytes`: no longer payload is read, also unpacked.
    """

    payload: bytes
    key: bytes | None = None
    headers: Mapping[str, bytes] | None = None
    position: str | None = None
    arrived_micros: int | None = None
    most_bytes: int = 1_048_576

    @property
    def topic(self) -> str:
        """The topic of a message of MQTT or Kafka."""
        return (self.position or "").rpartition("/")[0].rpartition("/")[0]

    @property
    def arrived_at(self) -> datetime | None:
        """When the source had it, UTC."""
        return None if self.arrived_micros is None else EPOCH + timedelta(microseconds=self.arrived_micros)


def messages(payloads: pa.Array, events: pa.Table, shape: PayloadFormat, most_bytes: int) -> Iterable[Message | None]:
    """A message of each payload; null where one is null. It has what its shape reads beside the payload. `events`: as bronze has them."""
    contents = payloads.to_pylist()
    columns = {name: events[name] for name in shape.beside if name in events.column_names}
    if not columns:
        return (None if payload is None else Message(payload) for payload in contents)
    nothing = [None] * len(contents)
    columns |= {"received_at": columns["received_at"].cast(pa.int64())} if "received_at" in columns else {}
    beside = [columns[name].to_pylist() if name in columns else nothing for name in ("key", "headers", "position", "received_at")]
    return (
        None if payload is None else Message(payload, key, _by_name(pairs), position, arrival, most_bytes)
        for payload, key, pairs, position, arrival in zip(contents, *beside, strict=True)
    )


def _by_name(headers: list[dict[str, Any]] | None) -> dict[str, bytes] | None:
    return {header["key"]: header["value"] for header in headers} if headers else None
