"""Checked settings to the dataclasses of the layers. Nothing here can fail on settings that passed the checks."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from expectations.rule import Rule
from gold.alert_spec import Alert, Escalation, Flapping, Hours, NoData, NoticePolicy, Signal
from gold.spec import Group, Vector
from orchestration.conf.alert_settings import WEEK, AlertSettings, HoursSettings
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
    of_groups = {name: _group(name, group, policy) for name, group in groups.items()}
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
        groups=of_groups,
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
        alerts={name: _alert(name, alert, of_groups) for name, alert in (settings.alerts.alerts or {}).items()},
        notice_policies={name: _notice_policy(alert) for name, alert in (settings.alerts.alerts or {}).items()},
        channels=settings.alerts.channels,
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
    return replace(source.mqtt, client_id=source.mqtt.client_id or client_id) if source.mqtt else source.transport


def _metric(name: str, metric: MetricSettings) -> Metric:
    conversions = {unit: Conversion(**vars(conversion)) for unit, conversion in metric.conversions.items()}
    of_metric = {key: value for key, value in vars(metric).items() if key not in {"words", "counter"}}  # words: of the formats of payloads
    return Metric(name=name, **of_metric | {"conversions": conversions, "wraps_at": metric.counter and metric.counter.wraps_at})


def _group(name: str, group: GroupSettings, policy: Policy) -> Group:
    """What a group leaves out is that of the policy, its own name, or its metrics."""
    lateness = policy.lateness_seconds if group.lateness_seconds is None else group.lateness_seconds
    vector = group.vector and Vector(**vars(group.vector) | {"features": group.vector.features or group.metrics})
    return Group(name=name, **vars(group) | {"lateness_seconds": lateness, "stream": group.stream or name, "vector": vector})


def _alert(name: str, alert: AlertSettings, groups: Mapping[str, Group]) -> Alert:
    others = {
        "signal": signal_of(alert, {name: group.vector.features for name, group in groups.items() if group.vector}),
        "no_data": alert.no_data and NoData(**vars(alert.no_data)),
        "escalate": tuple(Escalation(**vars(step)) for step in alert.escalate),
        "hours": alert.hours and _hours(alert.hours),
        "flapping": alert.flapping and Flapping(**vars(alert.flapping)),
    }
    same = {key: value for key, value in vars(alert).items() if key in Alert.__dataclass_fields__ and value is not None}
    return Alert(name, **same | others)


def _notice_policy(alert: AlertSettings) -> NoticePolicy:
    set_in_conf = {key: value for key, value in vars(alert).items() if key in NoticePolicy.__dataclass_fields__ and value is not None}
    return NoticePolicy(**set_in_conf)


def signal_of(alert: AlertSettings, features: Mapping[str, tuple[str, ...]]) -> Signal:
    """What an alert looks at. `features`: of the vectors of groups, by the name of the group."""
    (kind,) = alert.chosen
    intervals = alert.count or alert.account
    of_values = {
        "metric": alert.reading or alert.window,
        "group": alert.vector or alert.group,
        "features": features.get(alert.vector or "", ()),
    }
    return Signal(kind, **of_values | (vars(intervals) if intervals else {}))


def _hours(hours: HoursSettings) -> Hours:
    begin, end = (int(at[:2]) * 60 + int(at[3:]) for at in (hours.begin, hours.end))
    return Hours(hours.zone, tuple(WEEK.index(day) for day in hours.days), begin, end)
