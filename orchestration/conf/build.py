"""Checked settings to the dataclasses of the layers. Nothing here can fail on settings that passed the checks."""

from dataclasses import replace
from pathlib import Path

from expectations.rule import Rule
from orchestration.conf.files import Settings
from orchestration.conf.membership import Membership
from orchestration.conf.model import Conf, Source
from orchestration.conf.payload_schemas import schemas_of
from orchestration.conf.source_settings import SourceSettings
from orchestration.conf.transport_settings import Transport
from orchestration.location import Location
from silver.spec import Origin, PayloadFormat, Registry, Time


def build(folder: Path, settings: Settings) -> Conf:
    """`settings` are without mistakes."""
    pipeline, groups = settings.pipeline, settings.groups.groups or {}
    membership = Membership({name: group.devices for name, group in groups.items()})
    lateness = pipeline.policy.lateness_seconds
    complete = {
        name: replace(group, lateness_seconds=lateness) if group.lateness_seconds is None else group for name, group in groups.items()
    }
    features = {name: group.vector.features for name, group in groups.items() if group.vector}
    alerts = {name: replace(alert, signal=alert.signal_of(features)) for name, alert in (settings.alerts.alerts or {}).items()}
    return Conf(
        folder=folder.resolve(),
        pipeline=pipeline.pipeline,
        lake=Location(pipeline.lake),
        policy=pipeline.policy,
        engine=pipeline.engine,
        sources={name: _source(settings, name, source) for name, source in settings.sources.sources.items()},
        metrics=settings.metrics.metrics,
        devices={name: membership.completed(device) for name, device in (settings.devices.devices or {}).items() if device},
        groups=complete,
        rules=tuple(Rule(name, rule.holds.strip()) for name, rule in (settings.rules.rules or {}).items()),
        flows=settings.flows.flows or {},
        maintenance=pipeline.maintenance,
        quality=pipeline.quality,
        dbt_project=pipeline.dbt.project,
        references=pipeline.references,
        sinks=pipeline.sinks,
        schedules=pipeline.schedules,
        page=pipeline.page,
        sql_server=pipeline.sql_server,
        traces=pipeline.traces,
        alerts=alerts,
        notice_policies={**alerts},
        channels=settings.alerts.channels,
    )


def _source(settings: Settings, name: str, source: SourceSettings) -> Source:
    same = {key: value for key, value in vars(source).items() if key in PayloadFormat.__dataclass_fields__}
    origins = {key: Origin(**vars(origin)) for key, origin in source.origins}
    others = {
        "time": Time(**vars(source.time)),
        "value": source.value and source.value.field,
        "has_header": source.header,
        "words": {name: metric.words for name, metric in settings.metrics.metrics.items() if metric.words},
        "registry": source.registry and Registry(**vars(source.registry)),
        "schemas": schemas_of(source.format, source.schema) if source.schema else {},
    }
    payload = PayloadFormat(**same | origins | others)
    return Source(name, payload, _transport(source, f"tidemark-{settings.pipeline.pipeline}-{name}"), source.paused)


def _transport(source: SourceSettings, client_id: str) -> Transport:
    return replace(source.mqtt, client_id=source.mqtt.client_id or client_id) if source.mqtt else source.transport
