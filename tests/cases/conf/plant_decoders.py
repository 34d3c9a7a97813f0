"""A decoder behind `influx`: which tag names the device depends on the measurement."""

from typing import Any

TAGS = {"weather": "station", "pump": "id"}


def with_device(point: dict[str, Any]) -> list[dict[str, Any]]:
    """Add the device of a point."""
    return [point | {"device": point["tags"].get(TAGS.get(point["measurement"]))}]
