"""What tables of the user say of a device or a zone becomes attributes of readings."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from expectations.rule import Rule
from silver.spec import Origin
from tests.rows import INGESTED_AT, LONG, events, references, silver

EVER, BEFORE, AFTER = (datetime(year, month, 1, tzinfo=UTC) for year, month in ((1970, 1), (2025, 12), (2026, 2)))
SHAPE = replace(LONG, attributes={"customer": "c", "note": "n"})


def event(device: str = "oven", **more: Any) -> str:
    return json.dumps({"device": device, "metric": "temperature", "value": 1.0, "ts": "2026-01-01T00:00:01Z"} | more)


def attributes(payload: str, *versions: Any, **more: Any) -> Any:
    (reading,), _ = silver(events([payload]), references=references(*versions), **more)
    return None if reading.attributes is None else dict(reading.attributes)


def test_a_version_counts_for_events_ingested_from_its_instant_on() -> None:
    old, new = ("device_id", "oven", {"customer": "Ada"}, EVER), ("device_id", "oven", {"customer": "Bob"}, INGESTED_AT)
    assert attributes(event(), old) == {"customer": "Ada"}
    assert attributes(event(), old, new) == {"customer": "Bob"}
    assert attributes(event(), old, (*new[:3], AFTER)) == {"customer": "Ada"}
    assert attributes(event(), (*new[:3], AFTER)) is None, "it was not known then"


def test_a_row_that_left_the_table_and_a_device_that_it_never_had_give_no_attributes() -> None:
    assert attributes(event(), ("device_id", "oven", {"customer": "Ada"}, EVER), ("device_id", "oven", None, BEFORE)) is None
    assert attributes(event(), ("device_id", "room", {"customer": "Ada"}, EVER)) is None


def test_a_zone_is_that_of_the_event_else_that_of_the_registry() -> None:
    halls = [("zone", name, {"foreman": foreman}, EVER) for name, foreman in (("hall", "Eve"), ("yard", "Kim"))]
    assert attributes(event(), *halls) == {"foreman": "Eve"}
    zoned = replace(LONG, zone=Origin(field="z"))
    assert attributes(event(z="yard"), *halls, shape=zoned) == {"foreman": "Kim"}
    assert attributes(event(z="moon"), *halls, shape=zoned) is None
    of_device = ("device_id", "oven", {"customer": "Ada"}, EVER)
    assert attributes(event(), *halls, of_device) == {"customer": "Ada", "foreman": "Eve"}


def test_an_attribute_of_the_event_stays_and_one_that_it_leaves_blank_is_filled() -> None:
    said = ("device_id", "oven", {"customer": "Ada", "contract": "7"}, EVER)
    assert attributes(event(c="Zoe", n="x"), said, shape=SHAPE) == {"customer": "Zoe", "note": "x", "contract": "7"}
    assert attributes(event(c=" "), said, shape=SHAPE) == {"customer": "Ada", "note": None, "contract": "7"}
    assert attributes(event("room", c="Zoe"), said, shape=SHAPE) == {"customer": "Zoe", "note": None}


def test_a_rule_sees_the_attributes_of_the_event_alone() -> None:
    rules = (Rule("is_of_ada", "attributes['customer'] = 'Ada'"),)
    said = references(("device_id", "oven", {"customer": "Ada"}, EVER))
    found, rejected = silver(events([event()]), references=said, shape=SHAPE, rules=rules)
    assert (found, [row.broken_rules for row in rejected]) == ([], [["is_of_ada"]])
