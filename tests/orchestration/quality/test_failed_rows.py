"""quality.failed_rows: rows that fail beside the message each came from, on tables of every layer; and hostile values on the whole way."""

import json
import logging
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from deltalake import DeltaTable

from expectations.suite import Suite, suite
from gold.windows.spec import Group, Vector
from orchestration.engine.lake import Lake
from orchestration.location import Location
from orchestration.quality import failed_rows
from orchestration.quality.check import Scope, check, store_run
from orchestration.quality.failed_rows import FAILED_ROW_SCHEMA, FAILED_ROWS
from orchestration.quality.history import RESULTS, last_runs, trends
from orchestration.quality.outcome import Cause, Run
from orchestration.quality.report import failures, write_report
from orchestration.storage.delta import path_of
from tests.lakes import bare_conf, write
from tests.orchestration.quality import hostile
from tests.orchestration.quality.test_quality_report import Elements
from tests.rows import INGESTED_AT, at

INFINITY, NAN = float("inf"), float("nan")
BINARY = b"\x00\xff\xfe{not json\x1b[2J" + hostile.SCRIPT.encode()
FINITE = {
    "type": "expect_column_values_to_be_between",
    "kwargs": {"column": "value", "min_value": -1e300, "max_value": 1e300},
    "severity": "critical",
    "description": "Every value is a finite number.",
}
NAMED = {
    "type": "expect_column_values_to_match_regex",
    "kwargs": {"column": "device_id", "regex": "^oven$"},
    "severity": "warning",
    "description": "Every device is the oven.",
}
REVISED = {
    "type": "expect_column_values_to_be_between",
    "kwargs": {"column": "revision", "min_value": 0},
    "severity": "critical",
    "description": "Revisions are numbered from 0.",
}
OF_SOURCE = {
    "type": "expect_column_values_to_be_in_set",
    "kwargs": {"column": "source", "value_set": ["plant"]},
    "severity": "warning",
    "description": "Every event is of a source that conf names.",
}
SUITES = [
    suite("events", {"table": "bronze.events", "expectations": [OF_SOURCE]}),
    suite("readings", {"table": "silver.readings", "sample": ["metric", "event_time"], "expectations": [FINITE, NAMED]}),
    suite("windows", {"table": "gold.*_aggregates", "sample": ["device_id"], "expectations": [REVISED]}),
    suite("vectors", {"table": "gold.*_vectors", "sample": ["entity"], "expectations": [REVISED]}),
]
RUN_AT = at("13:00")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    groups = {"kitchen": Group("kitchen", ("temperature",), 600, "kitchen", Vector("group", ("oven.temperature",)))}
    return Lake(bare_conf(tmp_path, lake=Location(tmp_path / "the plant's lake"), groups=groups))


def event(batch: int, row: int, payload: bytes | None, source: str = "plant") -> dict[str, Any]:
    identity = {"bronze_batch": batch, "bronze_row": row, "ingested_on": INGESTED_AT.date()}
    return identity | {"payload": payload, "position": f"{batch}.jsonl", "source": source}


def reading(batch: int, row: int, value: float, device_id: str = "oven", second: int = 0) -> dict[str, Any]:
    measured = {"device_id": device_id, "metric": "temperature", "event_time": at("12:00") + timedelta(seconds=second), "value": value}
    return measured | {"groups": ["kitchen"], "bronze_batch": batch, "bronze_row": row, "part": 0}


def window(**more: Any) -> dict[str, Any]:
    return {"window_start": at("12:00"), "window_end": at("12:01"), "revision": -1} | more


def run_quality(lake: Lake, folder: Path, run_at: datetime = RUN_AT, suites: list[Suite] = SUITES) -> Run:
    run = check(lake, suites, run_at, lambda _: None, Scope(Cause.ASKED, last_runs=last_runs(lake.conf.lake)))
    rows = store_run(lake, run)
    write_report(run, folder / "page.html", rows, trends(lake.conf.lake))
    return run


def kept(lake: Lake) -> list[dict[str, Any]]:
    rows = DeltaTable(path_of(lake.conf.lake, FAILED_ROWS).local).to_pyarrow_table().to_pylist(maps_as_pydicts="strict")
    return sorted(rows, key=lambda row: (row["table_name"], row["description"], row["bronze_batch"] or 0, row["bronze_row"] or 0))


def failed_events(lake: Lake) -> Iterator[tuple[Any, ...]]:
    for row in kept(lake):
        yield row["table_name"], row["bronze_batch"], row["bronze_row"], row["position"], row["payload"]


def test_a_row_that_fails_stands_beside_its_message_in_every_layer(lake: Lake, tmp_path: Path) -> None:
    write(lake, "bronze.events", event(0, 0, b"first"), event(0, 1, BINARY), event(0, 2, b"foreign", "gone"))
    write(lake, "bronze.events", event(7, 0, b"newest"), event(7, 1, b"of the fryer"), event(7, 2, b"of later"))
    write(lake, "silver.readings", reading(0, 0, 1.0), reading(0, 1, INFINITY, second=1), reading(7, 0, 2.0, second=59))
    write(lake, "silver.readings", reading(7, 1, 3.0, "fryer", 30), reading(7, 2, 3.0, second=60), reading(9, 9, NAN, second=2))
    lost = window(device_id="gone", metric="temperature")
    write(lake, "gold.kitchen_aggregates", window(device_id="fryer", metric="temperature"), lost)
    write(lake, "gold.kitchen_vectors", window(entity="kitchen"), window(entity="fryer"))
    run_quality(lake, tmp_path)

    assert list(failed_events(lake)) == [
        ("bronze.events", 0, 2, "0.jsonl", b"foreign"),
        ("gold.kitchen_aggregates", None, None, None, None),
        ("gold.kitchen_aggregates", 7, 1, "7.jsonl", b"of the fryer"),
        ("gold.kitchen_vectors", 7, 0, "7.jsonl", b"newest"),
        ("gold.kitchen_vectors", 7, 1, "7.jsonl", b"of the fryer"),
        ("silver.readings", 7, 1, "7.jsonl", b"of the fryer"),
        ("silver.readings", 0, 1, "0.jsonl", BINARY),
        ("silver.readings", 9, 9, None, None),
    ]
    infinite = kept(lake)[6]
    assert infinite["row_values"] == {"metric": "temperature", "event_time": "2026-01-01 12:00:01Z", "value": "inf"}
    assert (infinite["table_version"], infinite["suite"], infinite["severity"]) == (1, "readings", "critical")
    assert (infinite["expectation"], infinite["description"], infinite["run_at"]) == (FINITE["type"], FINITE["description"], RUN_AT)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "0.jsonl · batch 0, row 1" in page
    assert r"\x00\xff\xfe{not json\x1b[2J&#34;&gt;&lt;script" in page


def test_where_nothing_came_the_rows_of_the_earlier_run_are_shown_and_not_kept_again(lake: Lake, tmp_path: Path) -> None:
    write(lake, "bronze.events", event(0, 0, b"the message"))
    write(lake, "silver.readings", reading(0, 0, INFINITY))
    first = run_quality(lake, tmp_path)
    second = run_quality(lake, tmp_path, RUN_AT + timedelta(hours=1))
    third = run_quality(lake, tmp_path, RUN_AT + timedelta(hours=2))
    assert [row["run_id"] for row in kept(lake)] == [first.run_id]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<code>the message</code>" in page
    assert "since 01 Jan 2026, 13:00 UTC, 3 runs" in page.replace("at least ", "")
    results = DeltaTable(path_of(lake.conf.lake, RESULTS).local).to_pyarrow_table().to_pylist()
    assert {(row["run_id"], row["found_in"]) for row in results if row["is_success"] is False} == {
        (run.run_id, first.run_id) for run in (first, second, third)
    }


def test_at_most_twenty_rows_of_a_failure_are_kept(lake: Lake, tmp_path: Path) -> None:
    write(lake, "silver.readings", *(reading(0, n, INFINITY) for n in range(30)))
    run = run_quality(lake, tmp_path, suites=SUITES[1:2])
    assert len(kept(lake)) == 20
    assert "30 of 30 rows" in next(failures(run))
    assert "17 more rows" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_messages_are_read_from_the_files_that_can_hold_them_and_damage_in_others_costs_nothing(lake: Lake) -> None:
    write(lake, "bronze.events", event(0, 0, b"other"))
    (other,) = DeltaTable(lake.tables["bronze.events"].location.local).file_uris()
    write(lake, "bronze.events", event(1, 0, b"wanted"))
    write(lake, "silver.readings", reading(1, 0, INFINITY))
    Path(unquote(other.removeprefix("file://"))).write_bytes(b"damaged")
    run = check(lake, SUITES[1:2], RUN_AT, lambda _: None, Scope(Cause.ASKED, "silver"))
    store_run(lake, run)
    assert [row[4] for row in failed_events(lake)] == [b"wanted"]


def test_messages_beyond_what_fits_stay_in_bronze_and_their_rows_say_where(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_rows, "MOST_BYTES", 10)
    write(lake, "bronze.events", event(0, 0, b"12345678"), event(0, 1, b"12345678"))
    write(lake, "silver.readings", reading(0, 0, INFINITY), reading(0, 1, INFINITY))
    store_run(lake, check(lake, SUITES[1:2], RUN_AT, lambda _: None, Scope(Cause.ASKED, "silver")))
    assert [row[1:] for row in failed_events(lake)] == [(0, 0, "0.jsonl", b"12345678"), (0, 1, "0.jsonl", None)]


def test_where_messages_cannot_be_read_rows_are_kept_without_them(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    write(lake, "bronze.events", event(0, 0, b"lost"))
    (file,) = DeltaTable(lake.tables["bronze.events"].location.local).file_uris()
    write(lake, "silver.readings", reading(0, 0, INFINITY))
    Path(unquote(file.removeprefix("file://"))).write_bytes(b"damaged")
    run = check(lake, SUITES[1:2], RUN_AT, lambda _: None, Scope(Cause.ASKED, "silver"))
    with caplog.at_level(logging.WARNING):
        store_run(lake, run)
    assert [row[1:] for row in failed_events(lake)] == [(None, None, None, None)]
    assert "kept without their payloads" in caplog.text


def test_hostile_values_do_no_harm_to_table_page_xml_or_terminal(lake: Lake, tmp_path: Path) -> None:
    messages = [value.encode() for value in hostile.ALL] + [BINARY]
    write(lake, "bronze.events", *(event(0, n, message) for n, message in enumerate(messages)))
    devices = [
        reading(0, n, value, device)
        for n, (device, value) in enumerate(zip(hostile.ALL, (NAN, INFINITY, -INFINITY, 1.0, 1.0), strict=True))
    ]
    write(lake, "silver.readings", *devices)
    windows = [window(device_id=value, metric="temperature") for value in hostile.ALL]
    write(lake, "gold.kitchen_aggregates", *windows)
    run = run_quality(lake, tmp_path)

    rows = kept(lake)
    of_devices = [row for row in rows if row["description"] == NAMED["description"]]
    assert [row["payload"] for row in of_devices] == messages[:5]
    assert [row["row_values"]["device_id"] for row in of_devices[:4]] == list(hostile.ALL[:4])
    assert of_devices[4]["row_values"]["device_id"] == "x" * 500 + "… (1,048,576 characters)"
    assert sorted(row["row_values"]["value"] for row in rows if row["description"] == FINITE["description"]) == ["-inf", "inf", "nan"]
    assert [row["payload"] for row in rows if row["table_name"].startswith("gold")] == messages[:5]
    for log in (path_of(lake.conf.lake, FAILED_ROWS).local / "_delta_log").iterdir():
        assert len(log.read_bytes()) < 10_000
    results = DeltaTable(path_of(lake.conf.lake, RESULTS).local).to_pyarrow_table().to_pylist()
    assert all(len(row["details"]) < 10_000 and json.loads(row["details"]) for row in results)

    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not Elements(page).names & {"script", "img", "link", "iframe", "object", "embed", "svg", "form", "base"}
    assert all(link.startswith("href=#t") for link in Elements(page).links)
    assert len(page) < 100_000
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff]", page)
    text = "".join(failures(run))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]", text)
    assert len(text) < 30_000


def test_the_declared_columns_are_those_of_the_table_with_their_comments(lake: Lake, tmp_path: Path) -> None:
    run_quality(lake, tmp_path)
    fields = DeltaTable(path_of(lake.conf.lake, FAILED_ROWS).local).schema().fields
    assert [field.name for field in fields] == FAILED_ROW_SCHEMA.names
    assert all(field.metadata.get("comment") for field in fields)
