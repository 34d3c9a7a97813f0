"""Checked settings of how events come to the dataclasses of transports.py. Nothing here can fail on settings that passed the checks."""

from pathlib import Path

from orchestration.conf.endpoint_settings import TlsSettings
from orchestration.conf.kafka_meaning import instant_of
from orchestration.conf.mqtt_settings import MqttSettings
from orchestration.conf.place import absolute
from orchestration.conf.secrets import with_absolute_path
from orchestration.conf.source_settings import SourceSettings
from orchestration.conf.transports import (
    ClientTls,
    Collected,
    HttpEndpoint,
    KafkaTopics,
    KinesisStream,
    LandingFolder,
    MqttTopics,
    ObjectStore,
    TableOfOthers,
    TcpEndpoint,
    Tls,
    Transport,
)


def transport(folder: Path, client_id: str, source: SourceSettings) -> Transport:
    """By the settings that are there, of one way. `client_id`: for a broker that conf tells no other."""
    if source.kafka:
        options = {name: with_absolute_path(folder, value) for name, value in source.kafka.options.items()}
        starting = instant_of(source.kafka.starting) or source.kafka.starting
        return KafkaTopics(**vars(source.kafka) | {"options": options, "starting": starting, "subscribe": source.kafka.subscribe or ()})
    if source.s3:
        return ObjectStore(**vars(source.s3))
    if source.delta:
        of = source.delta
        return TableOfOthers(absolute(folder, of.table), of.starting if of.starting_version is None else of.starting_version)
    return _collected(folder, client_id, source) or LandingFolder(absolute(folder, source.path or ""), source.files, source.settle_seconds)


def _collected(folder: Path, client_id: str, source: SourceSettings) -> Collected | None:
    """None where events do not come by `tidemark collect`."""
    if source.http:
        return HttpEndpoint(**vars(source.http) | {"tls": _tls(folder, source.http.tls)})
    if source.tcp:
        return TcpEndpoint(**vars(source.tcp) | {"tls": _tls(folder, source.tcp.tls)})
    if source.mqtt:
        return _mqtt(folder, client_id, source.mqtt)
    if source.kinesis:
        return KinesisStream(**vars(source.kinesis) | {"starting": instant_of(source.kinesis.starting) or source.kinesis.starting})
    return None


def _tls(folder: Path, tls: TlsSettings | None) -> Tls | None:
    return None if tls is None else Tls(absolute(folder, tls.certificate), absolute(folder, tls.key))


def _mqtt(folder: Path, client_id: str, mqtt: MqttSettings) -> MqttTopics:
    host, _, port = mqtt.broker.rpartition(":")
    files = {name: file and absolute(folder, file) for name, file in vars(mqtt.tls).items()} if mqtt.tls else {}
    tls = None if mqtt.tls is None else ClientTls(**files)
    others = {name: value for name, value in vars(mqtt).items() if name not in ("broker", "tls", "client_id")}
    return MqttTopics(host.strip("[]"), int(port), client_id=mqtt.client_id or client_id, tls=tls, **others)
