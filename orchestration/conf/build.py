"""Checked settings to the dataclasses of the layers. Nothing here can fail on settings that passed the checks."""

from pathlib import Path

from expectations.rule import Rule
from gold.spec import Group, Vector
from orchestration.conf.endpoint_settings import TlsSettings
from orchestration.conf.files import Settings
from orchestration.conf.kafka_meaning import REFERENCE, instant_of
from orchestration.conf.model import Conf, Device, Source
from orchestration.conf.mqtt_settings import MqttSettings
from orchestration.conf.place import absolute
from orchestration.conf.plant_settings import DeviceSettings, GroupSettings, MetricSettings
from orchestration.conf.source_settings import OriginSettings, SourceSettings
from orchestration.conf.transports import (
    ClientTls,
    HttpEndpoint,
    KafkaTopics,
    KinesisStream,
    LandingFolder,
    MqttTopics,
    TcpEndpoint,
    Tls,
    Transport,
)
from orchestration.location import Location
from silver.spec import Conversion, Metric, Origin, PayloadFormat, Policy, Time


def build(folder: Path, settings: Settings) -> Conf:
    """`settings` are without mistakes."""
    pipeline = settings.pipeline
    policy = Policy(**vars(pipeline.policy))
    return Conf(
        folder=folder.resolve(),
        pipeline=pipeline.pipeline,
        lake=Location(absolute(folder, pipeline.lake)),
        policy=policy,
        engine=pipeline.engine,
        sources={name: _source(folder, pipeline.pipeline, name, source) for name, source in settings.sources.sources.items()},
        metrics={name: _metric(name, metric) for name, metric in settings.metrics.metrics.items()},
        devices={name: Device(name, **vars(device or DeviceSettings())) for name, device in (settings.devices.devices or {}).items()},
        groups={name: _group(name, group, policy) for name, group in (settings.groups.groups or {}).items()},
        rules=tuple(Rule(name, rule.holds.strip()) for name, rule in (settings.rules.rules or {}).items()),
        maintenance=pipeline.maintenance,
        quality=pipeline.quality,
        dbt_project=None if pipeline.dbt.project is None else absolute(folder, pipeline.dbt.project),
        sinks=pipeline.sinks,
    )


def _source(folder: Path, pipeline: str, name: str, source: SourceSettings) -> Source:
    payload = PayloadFormat(
        format=source.format,
        device=Origin(**vars(source.device)),
        time=Time(**vars(source.time)),
        zone=_origin(source.zone),
        metric=_origin(source.metric),
        value=source.value.field if source.value else None,
        unit=_origin(source.unit),
        metrics=source.metrics,
        each=source.each,
        has_header=source.header,
        columns=source.columns,
        separator=source.separator,
        quote=source.quote,
    )
    return Source(name, payload, _transport(folder, f"tidemark-{pipeline}-{name}", source), source.paused)


def _transport(folder: Path, client_id: str, source: SourceSettings) -> Transport:
    """By the settings that are there, of one way. `client_id`: for a broker that conf tells no other."""
    if source.kafka:
        options = {name: _with_absolute_path(folder, value) for name, value in source.kafka.options.items()}
        starting = instant_of(source.kafka.starting) or source.kafka.starting
        return KafkaTopics(**vars(source.kafka) | {"options": options, "starting": starting, "subscribe": source.kafka.subscribe or ()})
    if source.http:
        return HttpEndpoint(**vars(source.http) | {"tls": _tls(folder, source.http.tls)})
    if source.tcp:
        return TcpEndpoint(**vars(source.tcp) | {"tls": _tls(folder, source.tcp.tls)})
    if source.mqtt:
        return _mqtt(folder, client_id, source.mqtt)
    if source.kinesis:
        return KinesisStream(**vars(source.kinesis) | {"starting": instant_of(source.kinesis.starting) or source.kinesis.starting})
    return LandingFolder(absolute(folder, source.path or ""), source.files, source.settle_seconds)


def _with_absolute_path(folder: Path, option: str) -> str:
    reference = REFERENCE.fullmatch(option)
    return f"${{file:{folder.resolve().parent / Path(reference[2]).expanduser()}}}" if reference and reference[1] == "file" else option


def _tls(folder: Path, tls: TlsSettings | None) -> Tls | None:
    return None if tls is None else Tls(absolute(folder, tls.certificate), absolute(folder, tls.key))


def _mqtt(folder: Path, client_id: str, mqtt: MqttSettings) -> MqttTopics:
    host, _, port = mqtt.broker.rpartition(":")
    files = {name: file and absolute(folder, file) for name, file in vars(mqtt.tls).items()} if mqtt.tls else {}
    tls = None if mqtt.tls is None else ClientTls(**files)
    others = {name: value for name, value in vars(mqtt).items() if name not in ("broker", "tls", "client_id")}
    return MqttTopics(host.strip("[]"), int(port), client_id=mqtt.client_id or client_id, tls=tls, **others)


def _origin(origin: OriginSettings | None) -> Origin | None:
    return None if origin is None else Origin(**vars(origin))


def _metric(name: str, metric: MetricSettings) -> Metric:
    conversions = {unit: Conversion(**vars(conversion)) for unit, conversion in metric.conversions.items()}
    return Metric(name=name, **vars(metric) | {"conversions": conversions})


def _group(name: str, group: GroupSettings, policy: Policy) -> Group:
    """What a group leaves out is that of the policy, its own name, or its metrics."""
    lateness = policy.lateness_seconds if group.lateness_seconds is None else group.lateness_seconds
    vector = group.vector and Vector(**vars(group.vector) | {"features": group.vector.features or group.metrics})
    return Group(name=name, **vars(group) | {"lateness_seconds": lateness, "stream": group.stream or name, "vector": vector})
