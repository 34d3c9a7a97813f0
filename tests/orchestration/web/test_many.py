"""Views of a lake of 10,000 devices and 10,000 groups: bounded, with a way to the rest, and in time. No browser, no Spark."""

import html
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake

from orchestration.location import Location
from orchestration.storage.delta import path_of, table_of
from orchestration.storage.registry import TABLE
from tests.page_lakes import living, many
from tests.pages import Served, served

COUNT, MOST_ROWS, MOST_CHARACTERS, MOST_SECONDS = 10_000, 250, 300_000, 20.0
"""The limit of a query of a view is 30 s."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(many(tmp_path_factory.mktemp("many"), COUNT)) as running:
        yield running


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/", ["10,000 events came"]),
        ("/groups", ["10,000 groups, the worst first", 'The first 200 are shown. <label>Name of another one: <input name="group"']),
        (
            "/groups?group=group_00000",
            [
                "10,000 of 10,000 devices are up to date",
                "The first 200 of 10,000",
                "the least and the greatest of all 10,000",
                "Another one:",
            ],
        ),
        ("/groups?group=group_00000&device=dev-07777", ["Charts show dev-07777."]),
        ("/groups?group=group_07777", ["1 of 1 devices are up to date"]),
        ("/devices", ["10,000 devices, those first that were not seen for the longest", "The first 200 are shown.", 'name="find"']),
        ("/devices?find=dev-0777", ["10 devices, those first"]),
        ("/devices?device=dev-07777", ["<dt>readings</dt><dd>2</dd>"]),
        ("/readings?device=dev-07777&metric=temperature&end=2026-01-01T12:10:00Z", ["1.jsonl"]),
        ("/batches", []),
        ("/quarantine", ['<td class="n">10,000</td>']),
        ("/quality", []),
        ("/runs", []),
        ("/sql?query=from+silver.readings", ["20,000 rows"]),
    ],
)
def test_each_view_answers_in_time_with_bounded_rows_and_a_way_to_the_others(server: Served, path: str, shown: list[str]) -> None:
    begin = time.monotonic()
    status, _, body = server.ask(path)
    assert status == 200, body
    assert time.monotonic() - begin < MOST_SECONDS
    assert body.count("<tr") <= MOST_ROWS
    assert len(body) < MOST_CHARACTERS
    assert [text for text in shown if text not in body] == []


def test_a_program_gets_its_numbers_and_no_name_of_a_device_makes_a_series(server: Served) -> None:
    assert server.ask("/api/overview")[0] == 200
    status, _, metrics = server.ask("/metrics")
    assert status == 200
    assert "dev-0" not in metrics
    assert metrics.count("\n") < 500


def test_a_window_that_is_still_open_is_drawn_up_to_now_and_not_in_the_future(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    with served(living(tmp_path, now)) as running:
        status, _, body = running.ask("/groups?group=kitchen&span=day")
    assert status == 200, body
    (line,) = [line for line in first_plot(body)["lines"] if line["kind"] == "open"]
    assert line["y"] == [20.0, 21.0]
    assert now.timestamp() <= line["x"][-1] <= time.time()


def test_a_device_has_the_states_that_flows_keep_of_it_as_marks(tmp_path: Path) -> None:
    with served(living(tmp_path, datetime.now(UTC))) as running:
        status, _, body = running.ask("/devices?device=oven")
    assert status == 200, body
    assert [(band["text"], band["tone"]) for band in first_plot(body)["bands"]] == [("hot", "info")]


def test_a_lake_that_no_run_has_opened_since_devices_can_move_shows_what_it_has(tmp_path: Path) -> None:
    conf, registry = living(tmp_path, datetime.now(UTC)), path_of(Location(tmp_path / "lake"), TABLE)
    write_deltalake(registry.local, table_of(registry).drop_columns("moved_at"), mode="overwrite", schema_mode="overwrite")
    with served(conf) as running:
        for path in ("/groups", "/groups?group=kitchen", "/devices", "/devices?device=oven"):
            status, _, body = running.ask(path)
            assert (status, "oven" in body) == (200, True), body


def first_plot(body: str) -> dict[str, Any]:
    """What the first chart of a page draws."""
    told: dict[str, Any] = json.loads(html.unescape(body.partition('data-plot="')[2].partition('"')[0]))
    return told
