"""The messages of a test as events of bronze, with their identity: what arrives at one instant is a batch."""

from base64 import b64decode
from binascii import Error
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pyarrow as pa

from bronze.events import ARRIVED, identified
from orchestration.conf.conf_tests import ConfTest, Given, instant
from orchestration.conf.model import Conf, Source
from orchestration.conf.transport_settings import LandingFolder, S3Settings
from orchestration.connectors.sampling import sample_of_file
from orchestration.errors import ConfError
from silver.repeats import Repeats

NOWHERE = datetime(2026, 1, 1, tzinfo=UTC)
"""When messages arrive that say nothing of it, and measure nothing that has a time."""


def arrived(conf: Conf, test: ConfTest, folder: Path) -> list[tuple[datetime | None, pa.Table]]:
    """ARRIVED of each message, or file of messages, with the instant of its arrival; None where the test does not say it. `folder`: that of
    the file with the test. ConfError where a message cannot be made."""
    pieces, at = list[tuple[datetime | None, pa.Table]](), None
    for number, given in enumerate(test.given):
        at = instant(given.arrival) if given.arrival else at
        pieces.append((at, _stamped(_events(conf, given, folder, number), given, at or NOWHERE)))
    return pieces


def batches(conf: Conf, pieces: list[tuple[datetime, pa.Table]]) -> pa.Table:
    """EVENTS in order of their arrival."""
    repeats = {name: Repeats(bounds.lateness_seconds) for name, bounds in conf.bounds.items()}
    marked = [(at, _marked(conf, repeats, piece)) for at, piece in sorted(pieces, key=itemgetter(0))]
    in_order = groupby(marked, key=itemgetter(0))
    made = [identified(pa.concat_tables(piece for _, piece in of_batch), at, batch, 0) for batch, (at, of_batch) in enumerate(in_order)]
    return pa.concat_tables(made)


def _marked(conf: Conf, repeats: Mapping[str, Repeats], events: pa.Table) -> pa.Table:
    """The events of one source, as bronze has them."""
    name = events["source"][0].as_py() if len(events) else ""
    shape = conf.sources[name].payload_format if name else None
    return repeats[name].marked(events, shape) if shape and shape.id else events


def _events(conf: Conf, given: Given, folder: Path, number: int) -> pa.Table:
    source = _source(conf, given)
    if given.sample:
        return sample_of_file(source, folder / given.sample)
    content = _content(source, given)
    if isinstance(given.payload, str) and isinstance(source.transport, LandingFolder | S3Settings):
        with TemporaryDirectory(prefix="tidemark-") as scratch:
            file = Path(scratch) / Path(given.file_name or f"given.{source.payload_format.format}").name
            file.write_bytes(content)
            return sample_of_file(source, file)
    message: dict[str, Any] = {"payload": content, "source": source.name, "position": str(number)}
    return pa.Table.from_pylist([message], ARRIVED)


def _source(conf: Conf, given: Given) -> Source:
    if given.source is None and len(conf.sources) == 1:
        return next(iter(conf.sources.values()))
    if given.source in conf.sources:
        return conf.sources[str(given.source)]
    problem = f"{given.source} is no source" if given.source else "it does not say which source receives the message"
    raise ConfError(f"{problem}; write `source:` and one of {', '.join(conf.sources)}")


def _content(source: Source, given: Given) -> bytes:
    if given.base64:
        try:
            return b64decode(given.base64, validate=True)
        except Error as error:
            raise ConfError(f"base64 is {given.base64[:40]!r}, which is none ({error})") from None
    encoding = source.payload_format.encoding
    return given.payload.encode(encoding) if isinstance(given.payload, str) else msgspec.json.encode(given.payload)


def _stamped(events: pa.Table, given: Given, at: datetime) -> pa.Table:
    """Events with what the test says of their arrival."""
    headers = [{"key": name, "value": text.encode()} for name, text in given.headers.items()]
    said: dict[str, Any] = {"received_at": at}
    said |= {"key": given.key.encode()} if given.key is not None else {}
    said |= {"headers": headers} if headers else {}
    said |= {"position": given.file_name} if given.file_name else {}
    said |= {"position": f"{given.topic}/given/0"} if given.topic else {}
    for name, value in said.items():
        field = ARRIVED.field(name)
        events = events.set_column(events.column_names.index(name), field, pa.array([value] * len(events), field.type))
    return events
