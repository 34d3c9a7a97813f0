"""The first events of a source or a file, from the oldest on. Nothing is written: no claim, no offset of a group, no session at a broker.

Of pushed events those in the spool are read; of MQTT without a spool those that come meanwhile, with QoS 0, beside the collector that gets
them too.
"""

import time
from collections.abc import Callable, Generator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import pyarrow as pa

from bronze.events import ARRIVED, File, events
from orchestration.conf.model import Conf, Source
from orchestration.conf.transport_settings import DeltaSettings, KafkaSettings, LandingFolder, MqttSettings, S3Settings
from orchestration.connectors.sources import source as of_source
from orchestration.connectors.sources.file_reader import events_of, instant, left_out
from orchestration.connectors.sources.spool_records import segments
from orchestration.errors import ConfError
from orchestration.secrets import secret
from orchestration.storage.lake_layout import spool_folder

MOST = 1_000
Pieces = Generator[pa.Table]


def sample(conf: Conf, name: str, seconds: float, notify: Callable[[str], None]) -> pa.Table:
    """ARRIVED, of a source of conf. `seconds`: how long to listen to MQTT. `notify`: of what is left out, and of what takes long."""
    source, most = conf.sources[name], conf.engine.max_batch_bytes
    match source.transport:  # clients are imported where they are needed: some take longer than all else
        case LandingFolder():
            pieces = _of_folder(source, source.transport, notify)
        case KafkaSettings():
            from orchestration.connectors.sources.kafka import Kafka

            # Not by `replace`, which would set what was left out, to what nobody may write.
            written = {setting: value for setting, value in vars(source.transport).items() if value}
            pieces = _of_offsets(Kafka(name, KafkaSettings(**written | {"starting": "earliest"}), most))
        case DeltaSettings():
            from orchestration.connectors.sources.delta import Delta

            pieces = _of_offsets(Delta(name, DeltaSettings(table=source.transport.table), most))
        case S3Settings():
            pieces = _of_bucket(conf, source, source.transport, notify)
        case MqttSettings() if not segments(spool_folder(conf.lake, name).local):
            notify(f"listening to {source.transport.host}:{source.transport.port} for {seconds:g} seconds")
            pieces = _of_topics(conf, source, source.transport, seconds)
        case _:
            from orchestration.connectors.sources.spool import spooled

            pieces = spooled(name, spool_folder(conf.lake, name).local)
    return _first(pieces)


def sample_of_file(source: Source, file: Path, notify: Callable[[str], None] = lambda _: None) -> pa.Table:
    """ARRIVED, as if the source had brought the file; ConfError where it cannot be read. In a binary format it is one message."""
    landing, whole = source.transport.path.resolve() if isinstance(source.transport, LandingFolder) else Path(), file.resolve()
    position = str(whole.relative_to(landing)) if whole.is_relative_to(landing) else file.name
    try:
        if source.payload_format.is_binary:
            return events(pa.array([file.read_bytes()], pa.binary()), File(source.name, position, instant(file.stat().st_mtime_ns)))
        return _first(_of_file(source, file, position, file.stat().st_mtime_ns, notify))
    except OSError as error:
        raise ConfError(f"{file} cannot be read ({error.strerror or error}); check the path") from None


def _first(pieces: Pieces) -> pa.Table:
    pieces_read, count = [pa.Table.from_batches([], ARRIVED)], 0
    with closing(pieces):
        while count < MOST and (piece := next(pieces, None)) is not None:
            pieces_read.append(piece)
            count += len(piece)
    return pa.concat_tables(pieces_read).slice(0, MOST)


def _of_offsets(source: of_source.Source) -> Pieces:
    start: of_source.Offset = {}
    while (end := source.latest_offset(start)) != start:
        for part in source.partitions(start, end):
            yield from source.read(part)
        start = end


def _of_folder(source: Source, landing: LandingFolder, notify: Callable[[str], None]) -> Pieces:
    from orchestration.connectors.sources.files import landing_files

    for file, stat in sorted(landing_files(landing), key=lambda entry: entry[1].st_mtime_ns):
        try:
            yield from _of_file(source, file, str(file.relative_to(landing.path)), stat.st_mtime_ns, notify)
        except ConfError as error:
            notify(str(error))


def _of_file(source: Source, file: Path, position: str, modified_ns: int, notify: Callable[[str], None]) -> Pieces:
    if why := left_out(file, file.stat(), source.payload_format):
        raise ConfError(f"a run would skip {file}: {why}")
    notices = list[of_source.Notice]()
    yield from events_of(source.name, file, position, modified_ns, source.payload_format, notices=notices)
    for notice in notices:
        notify(f"{file}: {notice.facts['reason']}")


def _of_bucket(conf: Conf, source: Source, store: S3Settings, notify: Callable[[str], None]) -> Pieces:
    """Read the objects of a bucket: of each page of the listing the oldest ones first."""
    from orchestration.connectors.sources.object_claims import ObjectClaim
    from orchestration.connectors.sources.s3 import S3Client

    client = S3Client(source.name, store)
    with TemporaryDirectory(prefix="tidemark-") as folder:
        for page in client.pages():
            for version in sorted(page, key=lambda version: version.modified_us):
                file = Path(folder) / f"object{Path(version.key).suffix}"
                if client.bring(ObjectClaim(0, *version, None), file):
                    yield from _of_file(source, file, f"{store.bucket}/{version.key}", version.modified_us * 1000, notify)


def _of_topics(conf: Conf, source: Source, at: MqttSettings, seconds: float) -> Pieces:
    """In a session that ends with the connection; as no member of a shared group, whose others would miss what comes here."""
    from paho.mqtt.client import Client, MQTTMessage, error_string
    from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

    from orchestration.connectors.collector.sockets import client_context

    came, version = list[pa.Table](), MQTTProtocolVersion.MQTTv5 if at.version == "v5" else MQTTProtocolVersion.MQTTv311
    client = Client(CallbackAPIVersion.VERSION2, f"preview-{uuid4().hex[:8]}", protocol=version)
    if at.username is not None:
        client.username_pw_set(at.username, at.password and secret(at.password))
    if (context := client_context(at.tls)) is not None:
        client.tls_set_context(context)

    def begin(*answer: Any) -> None:
        if answer[3].is_failure:
            raise ConnectionError(f"the broker refuses the connection ({answer[3]})")
        client.subscribe([(topic, 0) for topic in at.topics])

    def take(_client: Client, _data: Any, message: MQTTMessage) -> None:
        landed = File(source.name, f"{message.topic}/preview/{len(came)}", datetime.now(UTC))
        came.append(events(pa.array([bytes(message.payload)], pa.binary()), landed))

    client.on_connect, client.on_message = begin, take
    try:
        client.connect(at.host, at.port)
        end = time.monotonic() + seconds
        while time.monotonic() < end and len(came) < MOST:
            if failed := client.loop(0.1):
                raise ConnectionError(error_string(failed).rstrip("."))
    except (OSError, ValueError) as error:
        raise of_source.SourceDownError(f"source {source.name} cannot be read from {at.host}:{at.port}: {error}.") from None
    client.disconnect()
    yield from came
