"""Checked settings to the dataclasses of the layers. Nothing here can fail on settings that passed the checks."""

from pathlib import Path

from expectations.rule import Rule
from gold.spec import Group, Vector
from orchestration.conf.files import Settings
from orchestration.conf.membership import Membership
from orchestration.conf.model import Conf, Device, Source
from orchestration.conf.payload_schemas import schemas_of
from orchestration.conf.plant_settings import DeviceSettings, GroupSettings, MetricSettings
from orchestration.conf.source_settings import SourceSettings
from orchestration.conf.transport_settings import Transport
from orchestration.location import Location
from silver.spec import Conversion, Metric, Origin, PayloadFormat, Policy, Registry, Time


def build(folder: Path, settings: Settings) -> Conf:
    """`settings` are without mistakes."""
    pipeline, groups = settings.pipeline, settings.groups.groups or {}
    membership = Membership({name: group.devices for name, group in groups.items()})
    policy = Policy(**vars(pipeline.policy))
    return Conf(
        folder=folder.resolve(),
        pipeline=pipeline.pipeline,
        lake=Location(pipeline.lake),
        policy=policy,
        engine=pipeline.engine,
        sources={name: _source(settings, name, source) for name, source in settings.sources.sources.items()},
        metrics={name: _metric(name, metric) for name, metric in settings.metrics.metrics.items()},
        devices={
            name: Device(name, **vars(of) | {"groups": membership.groups_of(name, of.groups)})
            for name, device in (settings.devices.devices or {}).items()
            for of in [device or DeviceSettings()]
        },
        groups={name: _group(name, group, policy) for name, group in groups.items()},
        rules=tuple(Rule(name, rule.holds.strip()) for name, rule in (settings.rules.rules or {}).items()),
        maintenance=pipeline.maintenance,
        quality=pipeline.quality,
        dbt_project=pipeline.dbt.project,
        references=pipeline.references,
        sinks=pipeline.sinks,
        schedules=pipeline.schedules,
        page=pipeline.page,
        sql_server=pipeline.sql_server,
        traces=pipeline.traces,
    )


def _source(settings: Settings, name: str, source: SourceSettings) -> Source:
    same = {key: value for key, value in vars(source).items() if key in PayloadFormat.__dataclass_fields__}
    origins = {key: Origin(**vars(origin)) for key, origin in source.origins}
    others = {
        "time": Time(**vars(source.time)),
        "value": source.value and source.value.field,
        "has_header": source.header,
        "words": {metric: dict(of.words) for metric, of in settings.metrics.metrics.items() if of.words},
        "registry": source.registry and Registry(**vars(source.registry)),
        "schemas": schemas_of(source.format, source.schema) if source.schema else {},
    }
    payload = PayloadFormat(**same | origins | others)
    return Source(name, payload, _transport(source, f"tidemark-{settings.pipeline.pipeline}-{name}"), source.paused)


def _transport(source: SourceSettings, client_id: str) -> Transport:
    return source.mqtt.changed(client_id=source.mqtt.client_id or client_id) if source.mqtt else source.transport


def _metric(name: str, metric: MetricSettings) -> Metric:
    conversions = {unit: Conversion(**vars(conversion)) for unit, conversion in metric.conversions.items()}
    of_metric = {key: value for key, value in vars(metric).items() if key != "words"}  # of the formats of payloads
    return Metric(name=name, **of_metric | {"conversions": conversions})


def _group(name: str, group: GroupSettings, policy: Policy) -> Group:
    """What a group leaves out is that of the policy, its own name, or its metrics."""
    lateness = policy.lateness_seconds if group.lateness_seconds is None else group.lateness_seconds
    vector = group.vector and Vector(**vars(group.vector) | {"features": group.vector.features or group.metrics})
    return Group(name=name, **vars(group) | {"lateness_seconds": lateness, "stream": group.stream or name, "vector": vector})
