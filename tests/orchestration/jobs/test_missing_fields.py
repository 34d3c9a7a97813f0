"""Declared fields that no longer come and fields that nobody declared: what is said of events as they come, once."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from orchestration.jobs.missing_fields import seen_of, sentences
from orchestration.jobs.watched_fields import WatchedSource
from silver.spec import Origin, PayloadFormat, Time

SHAPE = PayloadFormat("json", Origin(constant="tank"), Time("ts"), metrics={"temperature": "temp", "level": "l"})
EIGHT = datetime(2026, 3, 2, 8, tzinfo=UTC)
BOTH, RENAMED, LEVEL = {"temp": 21.4, "l": 1}, {"temp_c": 21.5, "l": 1}, {"l": 1}


LONG = PayloadFormat("json", Origin(constant="tank"), Time("ts"), metric=Origin(field="m"), value=Origin("v"), unit=Origin(field="u"))


def said(source: WatchedSource, of: Sequence[dict[str, Any]], minute: int = 0, shape: PayloadFormat = SHAPE) -> list[str]:
    """Of the next batch of events, one a minute."""
    received = [EIGHT + timedelta(minutes=minute + n) for n in range(len(of))]
    columns = {
        "payload": pa.array([json.dumps(one).encode() for one in of], pa.binary()),
        "header": pa.nulls(len(of), pa.string()),
        "position": pa.nulls(len(of), pa.string()),
        "received_at": pa.array(received, pa.timestamp("us", "UTC")),
    }
    return list(sentences("plant", source, seen_of(pa.table(columns), shape, 1_000), len(of)))


def test_a_field_that_is_renamed_is_told_once_with_its_new_name_until_it_comes_again() -> None:
    source = WatchedSource()
    assert said(source, [BOTH] * 3) == []
    gone = "had values until 2026-03-02T08:02:00Z and has none since, though 2 events came"
    told = [f"metric temperature of source plant {gone}; new fields: temp_c"]
    assert said(source, [RENAMED] * 2, 3) == told
    assert said(source, [RENAMED] * 200, 5) == []
    assert source.metrics["temperature"].told == told[0]
    assert said(source, [BOTH], 300) == []
    assert source.metrics["temperature"].told is None


def test_a_field_that_is_renamed_within_the_first_batch_is_told() -> None:
    (told,) = said(WatchedSource(), [BOTH, *[RENAMED] * 3])
    assert told.endswith("has none since, though 3 events came; new fields: temp_c")


def test_a_field_that_never_comes_is_told_beside_what_comes_instead() -> None:
    (told,) = said(WatchedSource(), [RENAMED] * 2)
    assert told == "metric temperature of source plant never had a value, though 2 events came; new fields: temp_c"


def test_a_field_that_comes_now_and_then_is_missed_when_it_was_away_ten_times_as_long() -> None:
    source = WatchedSource()
    now_and_then = [BOTH if n % 20 == 0 else LEVEL for n in range(201)]
    assert said(source, now_and_then) == []
    assert said(source, [LEVEL] * 190, 201) == []
    assert len(said(source, [LEVEL], 391)) == 1


@pytest.mark.parametrize("first", [[], [{"temp": None, "l": 1}], [{"state": {"id": 7}, "l": 2, "temp": 3}]])
def test_a_new_field_is_told_alone_where_none_is_missing_and_only_after_the_first_look(first: list[dict[str, Any]]) -> None:
    source = WatchedSource()
    assert said(source, [BOTH, *first, BOTH]) == []
    assert said(source, [BOTH | {"hum": 40}, BOTH | {"hum": None}], 3) == [
        "source plant has fields that conf does not name; new fields: hum"
    ]
    assert said(source, [BOTH | {"hum": 40}], 5) == []


def test_a_unit_that_no_longer_comes_is_told_until_it_does() -> None:
    source, bare = WatchedSource(), {"m": "temperature", "v": 21.4}
    assert said(source, [bare | {"u": "degC"}] * 120, shape=LONG) == []
    (told,) = said(source, [bare] * 100, 120, LONG)
    assert told == "the unit of source plant had values until 2026-03-02T09:59:00Z and has none since, though 100 events came"
    assert said(source, [bare | {"u": "degC"}], 300, LONG) == []
    assert source.metrics["the unit"].told is None


def test_long_rows_whose_fields_are_renamed_are_told_though_their_events_measure_nothing() -> None:
    source = WatchedSource()
    assert said(source, [{"m": "temperature", "v": 21.4, "u": "degC"}] * 3, shape=LONG) == []
    gone = "of source plant had values until 2026-03-02T08:02:00Z and has none since, though 1 event came; new fields: name, val"
    assert said(source, [{"name": "temperature", "val": 21.4, "u": "degC"}], 3, LONG) == [f"field v {gone}", f"field m {gone}"]


def test_a_zone_and_an_attribute_are_missed_when_they_end_and_not_where_they_are_rare() -> None:
    shape, source = replace(SHAPE, zone=Origin(field="z"), attributes={"quality": "q", "note": "n"}), WatchedSource()
    assert said(source, [BOTH | {"z": "hall", "q": "good"}] * 2, shape=shape) == []
    assert said(source, [BOTH | {"other": 1}] * 99, 2, shape) == ["source plant has fields that conf does not name; new fields: other"]
    gone = "of source plant had values until 2026-03-02T08:01:00Z and has none since, though 100 events came"
    assert said(source, [BOTH], 101, shape) == [f"the zone {gone}", f"attribute quality {gone}"]


def test_a_field_whose_name_is_no_text_is_told_and_kept_with_escapes() -> None:
    source = WatchedSource()
    assert said(source, [BOTH]) == []
    assert said(source, [BOTH | {"half\ud800": 1}], 1) == [r"source plant has fields that conf does not name; new fields: half\ud800"]
    assert msgspec.json.decode(msgspec.json.encode(source), type=WatchedSource) == source
