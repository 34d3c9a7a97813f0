"""The first events of a source or a file. Nothing is written: no claim, no offset of a group, no session at a broker.

A source that starts at `latest` is read from its oldest event. Of pushed events those in the spool are read; of MQTT those that come
meanwhile, with QoS 0, beside the collector that gets them too.
"""

import time
import zlib
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa

from bronze.events import ARRIVED, File, events
from orchestration.conf.model import Conf, Source
from orchestration.conf.secrets import secret
from orchestration.conf.transports import KafkaTopics, LandingFolder, MqttTopics, ObjectStore, TableOfOthers
from orchestration.connectors.sources import source as of_source
from orchestration.connectors.sources.file_reader import events_of, instant, trouble
from orchestration.errors import ConfError
from orchestration.storage.retired_sources import spool_folder

MOST, QUICK_BYTES = 1_000, 1 << 20
"""Events of a sample; and of a file that is checked to its end."""
Notify = Callable[[str], None]
Starting = TypeVar("Starting", KafkaTopics, TableOfOthers)


def sample(conf: Conf, name: str, seconds: float, notify: Notify) -> pa.Table:
    """ARRIVED, of a source of conf. `seconds`: how long to listen to MQTT. `notify`: of what is left out, and of what takes long."""
    return _first(_pieces(conf, conf.sources[name], seconds, notify))


def sample_of_file(source: Source, file: Path) -> pa.Table:
    """ARRIVED, as if the source had brought the file; ConfError where it cannot be read. In a binary format it is one message."""
    landing = source.transport.path.resolve() if isinstance(source.transport, LandingFolder) else None
    whole = file.resolve()
    position = str(whole.relative_to(landing)) if landing and whole.is_relative_to(landing) else file.name
    try:
        if source.payload_format.is_binary:
            return events(pa.array([file.read_bytes()], pa.binary()), File(source.name, position, instant(file.stat().st_mtime_ns)))
        return _first(_of_file(source, file, position, file.stat().st_mtime_ns))
    except OSError as error:
        raise ConfError(f"{file} cannot be read ({error.strerror or error}); check the path") from None


def _first(pieces: Generator[pa.Table]) -> pa.Table:
    found, count = [pa.Table.from_batches([], ARRIVED)], 0
    with closing(pieces):  # a client of Kafka goes on fetching otherwise
        while count < MOST and (piece := next(pieces, None)) is not None:
            found.append(piece)
            count += len(piece)
    return pa.concat_tables(found).slice(0, MOST)


def _pieces(conf: Conf, of: Source, seconds: float, notify: Notify) -> Generator[pa.Table]:
    """Clients are imported where they are needed: some take longer than all else."""
    match of.transport:
        case LandingFolder():
            yield from _of_folder(of, of.transport, notify)
        case KafkaTopics():
            from orchestration.connectors.sources.kafka import Kafka

            yield from _between_offsets(Kafka(of.name, _from_earliest(of.transport), conf.engine.max_batch_bytes))
        case TableOfOthers():
            from orchestration.connectors.sources.delta import Delta

            yield from _between_offsets(Delta(of.name, _from_earliest(of.transport), conf.engine.max_batch_bytes))
        case ObjectStore():
            yield from _of_bucket(conf, of, of.transport)
        case MqttTopics():
            notify(f"listening to {of.transport.host}:{of.transport.port} for {seconds:g} seconds")
            yield from _of_topics(conf, of, of.transport, seconds)
        case _:
            from orchestration.connectors.sources.spool import Part, Spool
            from orchestration.connectors.sources.spool_records import MARK_BYTES, segments

            spool = Spool(of.name, folder := spool_folder(conf.lake, of.name).local, conf.engine.max_batch_bytes)
            for segment in segments(folder).values():
                yield from spool.read(Part(segment, MARK_BYTES, None))


def _from_earliest(transport: Starting) -> Starting:
    return replace(transport, starting="earliest") if transport.starting == "latest" else transport


def _between_offsets(source: of_source.Source) -> Generator[pa.Table]:
    start: of_source.Offset = {}
    while (end := source.latest_offset(start)) != start:
        for part in source.partitions(start, end):
            yield from source.read(part)
        start = end


def _of_folder(of: Source, landing: LandingFolder, notify: Notify) -> Generator[pa.Table]:
    from orchestration.connectors.sources.claims import landing_files

    for file, stat in sorted(landing_files(landing), key=lambda found: found[1].st_mtime_ns):
        try:
            yield from _of_file(of, file, str(file.relative_to(landing.path)), stat.st_mtime_ns)
        except ConfError as error:
            notify(str(error))


def _of_file(of: Source, file: Path, position: str, modified_ns: int) -> Generator[pa.Table]:
    format, size = of.payload_format.format, file.stat().st_size
    why = trouble(file, size, format) if size <= QUICK_BYTES else None
    try:
        if why is None:
            yield from events_of(of.name, file, position, modified_ns, of.payload_format)
    except (EOFError, ValueError, zlib.error):
        why = trouble(file, size, format)
    if why:
        raise ConfError(f"{file} is left out by a run: {why}")


def _of_bucket(conf: Conf, of: Source, store: ObjectStore) -> Generator[pa.Table]:
    """Objects of a page of the listing, the oldest first; each is brought as a whole."""
    from orchestration.connectors.sources.s3_client import S3Client
    from orchestration.storage.object_claims import ObjectClaim

    client = S3Client(of.name, store, conf.folder)
    with TemporaryDirectory(prefix="tidemark-") as folder:
        for page in client.pages():
            for found in sorted(page, key=lambda version: version.modified_us):
                file = Path(folder) / f"object{Path(found.key).suffix}"
                if client.bring(ObjectClaim(0, *found, None), file):
                    yield from _of_file(of, file, f"{store.bucket}/{found.key}", found.modified_us * 1000)


def _of_topics(conf: Conf, of: Source, endpoint: MqttTopics, seconds: float) -> Generator[pa.Table]:
    """A session of its own, which ends with the connection; no share of a group, which others would miss."""
    from paho.mqtt.client import Client, ConnectFlags, MQTTMessage
    from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
    from paho.mqtt.reasoncodes import ReasonCode

    from orchestration.connectors.collector.tls import client_context

    version = MQTTProtocolVersion.MQTTv5 if endpoint.version == "v5" else MQTTProtocolVersion.MQTTv311
    client, came, refused = (
        Client(CallbackAPIVersion.VERSION2, f"preview-{uuid4().hex[:8]}", protocol=version),
        list[pa.Table](),
        list[str](),
    )
    if endpoint.username is not None:
        client.username_pw_set(endpoint.username, endpoint.password and secret(conf.folder, endpoint.password))
    if (context := client_context(endpoint.tls)) is not None:
        client.tls_set_context(context)

    def begin(_client: Client, _data: Any, _flags: ConnectFlags, reason: ReasonCode, _properties: Any) -> None:
        if reason.is_failure:
            refused.append(str(reason))
        client.subscribe([(topic, 0) for topic in endpoint.topics])

    def take(_client: Client, _data: Any, message: MQTTMessage) -> None:
        landed = File(of.name, f"{message.topic}/preview/{len(came)}", datetime.now(UTC))
        came.append(events(pa.array([bytes(message.payload)], pa.binary()), landed))

    client.on_connect, client.on_message = begin, take
    client.on_disconnect = lambda _client, _data, _flags, reason, _properties: refused.append(str(reason))
    client.on_subscribe = lambda _client, _data, _mid, reasons, _properties: refused.extend(str(of) for of in reasons if of.is_failure)
    try:
        client.connect(endpoint.host, endpoint.port)
        end = time.monotonic() + seconds
        while time.monotonic() < end and len(came) < MOST and not refused:
            client.loop(0.1)
    except (OSError, ValueError) as error:
        refused.append(getattr(error, "strerror", None) or str(error))
    if refused:
        raise of_source.SourceDownError(f"source {of.name} cannot be read from {endpoint.host}:{endpoint.port}: {refused[0]}.")
    client.disconnect()
    yield from came
