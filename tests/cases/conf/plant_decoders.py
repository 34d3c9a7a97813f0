"""A decoder behind `influx`: which tag names the device depends on the measurement."""

import json
from typing import Any

TAGS = {"weather": "station", "pump": "id"}


def with_device(point: dict[str, Any]) -> list[dict[str, Any]]:
    """Add the device of a point."""
    return [point | {"device": point["tags"].get(TAGS.get(point["measurement"]))}]


def from_kafka(content: bytes, message: Any) -> list[dict[str, Any]]:
    """Add the key, and the time of CloudEvents where a message has that in a header."""
    time = (message.headers or {}).get("ce_time")
    return [json.loads(content) | {"device": message.key.decode()} | ({"ts": time.decode()} if time else {})]
