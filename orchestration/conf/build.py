"""Checked settings to the dataclasses of the layers. Nothing here can fail on settings that passed the checks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from expectations.rule import Rule
from gold.spec import Group, Late, Vector
from orchestration.conf.model import Conf, Device, Engine, GateMode, Maintenance, Quality, Reference, Source
from orchestration.conf.place import absolute
from orchestration.conf.quality_meaning import instant
from silver.spec import Aggregation, Conversion, Metric, Origin, Policy, Shape, Time, Unknown

DEFAULT_MAX_FUTURE_SECONDS = 300
DEFAULT_MAX_PAYLOAD_BYTES = 1_048_576


def build(folder: Path, settings: Mapping[str, dict[str, Any]]) -> Conf:
    """`settings` is by file name without its ending."""
    pipeline = settings["pipeline"]
    policy = _policy(pipeline["policy"])
    return Conf(
        folder=folder.resolve(),
        pipeline=pipeline["pipeline"],
        lake=absolute(folder, pipeline["lake"]),
        policy=policy,
        engine=_engine(pipeline.get("engine", {})),
        sources={name: _source(folder, name, source) for name, source in settings["sources"]["sources"].items()},
        metrics={name: _metric(name, metric) for name, metric in settings["metrics"]["metrics"].items()},
        devices={name: _device(name, device or {}) for name, device in (settings["devices"]["devices"] or {}).items()},
        groups={name: _group(name, group, policy) for name, group in (settings["groups"]["groups"] or {}).items()},
        rules=tuple(Rule(name, rule["holds"].strip()) for name, rule in (settings["rules"]["rules"] or {}).items()),
        maintenance=Maintenance(**{key: float(value) for key, value in pipeline.get("maintenance", {}).items()}),
        quality=_quality(pipeline.get("quality", {})),
        dbt_project=_dbt_project(folder, pipeline.get("dbt", {}).get("project")),
    )


def _policy(policy: Mapping[str, Any]) -> Policy:
    return Policy(
        lateness_seconds=int(policy["lateness_seconds"]),
        max_future_seconds=int(policy.get("max_future_seconds", DEFAULT_MAX_FUTURE_SECONDS)),
        max_payload_bytes=int(policy.get("max_payload_bytes", DEFAULT_MAX_PAYLOAD_BYTES)),
        unknown_device=Unknown(policy.get("unknown_device", Unknown.QUARANTINE)),
        unknown_metric=Unknown(policy.get("unknown_metric", Unknown.QUARANTINE)),
    )


def _engine(engine: Mapping[str, Any]) -> Engine:
    """JSON Schema takes 2.0 for a whole number; Spark would not."""
    whole = ("cores", "shuffle_partitions", "max_batch_bytes", "small_batch_bytes")
    settings: dict[str, Any] = {key: int(value) if key in whole else value for key, value in engine.items()}
    return Engine(**settings)


def _quality(quality: Mapping[str, Any]) -> Quality:
    reference = quality.get("reference")
    return Quality(
        schedule=quality.get("schedule"),
        schedules=dict(quality.get("schedules", {})),
        gates={table: GateMode(mode) for table, mode in quality.get("gates", {}).items()},
        webhook=quality.get("webhook"),
        reference=None if reference is None else Reference(instant(reference["from"]), instant(reference["until"])),
    )


def _dbt_project(folder: Path, project: str | None) -> Path | None:
    return None if project is None else absolute(folder, project)


def _source(folder: Path, name: str, source: Mapping[str, Any]) -> Source:
    optional = {key: source[key] for key in ("files", "settle_seconds") if key in source}
    return Source(name=name, path=absolute(folder, source["path"]), shape=_shape(source), **optional)


def _shape(source: Mapping[str, Any]) -> Shape:
    optional: dict[str, Any] = {key: Origin(**source[key]) for key in ("zone", "metric", "unit") if key in source}
    optional |= {key: source[key] for key in ("metrics", "each", "separator", "quote") if key in source}
    return Shape(
        format=source["format"],
        device=Origin(**source["device"]),
        time=Time(**source["time"]),
        value=source["value"]["field"] if "value" in source else None,
        has_header=source.get("header", False),
        columns=tuple(source.get("columns", ())),
        **optional,
    )


def _metric(name: str, metric: Mapping[str, Any]) -> Metric:
    slide = metric.get("slide_seconds")
    return Metric(
        name=name,
        aggregation=Aggregation(metric["aggregation"]),
        step_seconds=int(metric["step_seconds"]),
        unit=metric.get("unit"),
        slide_seconds=None if slide is None else int(slide),
        minimum=_optional_float(metric.get("minimum")),
        maximum=_optional_float(metric.get("maximum")),
        conversions={unit: _conversion(written) for unit, written in metric.get("conversions", {}).items()},
        label=metric.get("label"),
    )


def _conversion(conversion: Mapping[str, Any]) -> Conversion:
    return Conversion(multiply=float(conversion.get("multiply", 1)), add=float(conversion.get("add", 0)))


def _optional_float(number: float | None) -> float | None:
    return None if number is None else float(number)


def _device(device_id: str, device: Mapping[str, Any]) -> Device:
    return Device(device_id, tuple(device.get("groups", ())), device.get("zone"), device.get("label"))


def _group(name: str, group: Mapping[str, Any], policy: Policy) -> Group:
    idle = group.get("idle_close_seconds")
    return Group(
        name=name,
        metrics=tuple(group["metrics"]),
        lateness_seconds=int(group.get("lateness_seconds", policy.lateness_seconds)),
        stream=group.get("stream", name),
        vector=_vector(group["vector"], tuple(group["metrics"])) if "vector" in group else None,
        idle_close_seconds=None if idle is None else int(idle),
        label=group.get("label"),
        late=Late(group.get("late", Late.AMEND)),
    )


def _vector(vector: Mapping[str, Any], metrics: tuple[str, ...]) -> Vector:
    features = tuple(vector.get("features", metrics))
    return Vector(vector.get("entity", "device"), features, int(vector.get("max_fill_seconds", 0)))
