"""`otlp`: metrics of OpenTelemetry in JSON, an object for each data point."""

from typing import Any

from silver.decoders.json_text import object_of
from silver.records import UnreadableError

KINDS = ("gauge", "sum", "histogram", "exponentialHistogram", "summary")
NUMBERS = ("count", "sum", "min", "max")
NO_VALUE = 1
"""The `flags` of a data point that holds nothing."""


def otlp(content: Any) -> list[Any]:
    """Data points with `name`, `unit` and `kind` of the metric, `value`, `time` and `start` in nanoseconds, `attributes`, those of the
    `resource`, and the name of the `scope`; of histograms and summaries `count`, `sum`, `min` and `max` in place of a value. A name with
    dots is an object in an object, as paths have it."""
    points = list[dict[str, Any]]()
    for of_resource in _objects(object_of(content), "resourceMetrics"):
        resource = _attributes(_object(of_resource, "resource"))
        for of_scope in _objects(of_resource, "scopeMetrics"):
            scope = _object(of_scope, "scope").get("name")
            for metric in _objects(of_scope, "metrics"):
                kind = next((kind for kind in KINDS if kind in metric), "")
                more = {"resource": resource, "scope": scope, "name": metric.get("name"), "unit": metric.get("unit"), "kind": kind}
                points += [more | _point(point) for point in _objects(_object(metric, kind), "dataPoints")]
    return points


def _point(point: dict[str, Any]) -> dict[str, Any]:
    value = point.get("asDouble", _whole(point.get("asInt"))) if _whole(point.get("flags")) != NO_VALUE else None
    times = {"time": _whole(point.get("timeUnixNano")), "start": _whole(point.get("startTimeUnixNano"))}
    return {"value": value, **times, "attributes": _attributes(point)} | {name: _whole(point[name]) for name in NUMBERS if name in point}


def _attributes(holder: dict[str, Any]) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for attribute in _objects(holder, "attributes"):
        *path, name = str(attribute.get("key", "")).split(".")[:20]
        inner = attributes
        for step in path:
            below = inner.setdefault(step, {})
            inner = below if isinstance(below, dict) else inner.setdefault(f"{step}.", {})
        value = _object(attribute, "value")
        inner[name] = _whole(value["intValue"]) if "intValue" in value else next(iter(value.values()), None)
    return attributes


def _whole(value: Any) -> Any:
    """Whole numbers of 64 bits, which JSON has as texts."""
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and value.isascii() and len(value) <= 20:
        return int(value)
    return value


def _objects(holder: dict[str, Any], name: str) -> list[dict[str, Any]]:
    values = holder.get(name)
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise UnreadableError(f"{name} is no list of objects")
    return values


def _object(holder: dict[str, Any], name: str) -> dict[str, Any]:
    value = holder.get(name)
    if not isinstance(value, dict | None):
        raise UnreadableError(f"{name} is no object")
    return value or {}
