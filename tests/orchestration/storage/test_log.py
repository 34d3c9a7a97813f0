"""Logs: records in, rows out, in order; the newest without a look at old files; what is old goes, what is needed stays."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pytest
from msgspec import Meta

from orchestration.location import Location
from orchestration.storage.delta import INSTANT, files_of, open_table
from orchestration.storage.log import Log, schema_of

DAY = timedelta(days=1)
START = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(frozen=True)
class Place:
    zone: str
    floors: tuple[int, ...]


@dataclass(frozen=True)
class Visit:
    visitor: Annotated[str, Meta(description="who came")]
    at: datetime
    place: Place | None = None
    counts: dict[str, int] | None = None
    hours: float | None = None
    is_over: bool = False


VISITS = Log("ops.visits", Visit, order="at")


@pytest.fixture
def lake(tmp_path: Path) -> Location:
    return Location(tmp_path)


def visit(visitor: str, day: int) -> Visit:
    return Visit(visitor, START + day * DAY, Place("hall", (1, day)), {"doors": day}, 0.5, is_over=True)


def test_columns_are_the_fields_of_the_record() -> None:
    place = pa.struct([("zone", pa.string()), ("floors", pa.list_(pa.int64()))])
    counts, hours, is_over = ("counts", pa.map_(pa.string(), pa.int64())), ("hours", pa.float64()), ("is_over", pa.bool_())
    assert schema_of(Visit) == pa.schema([("visitor", pa.string()), ("at", INSTANT), ("place", place), counts, hours, is_over])
    assert schema_of(Visit).field("visitor").metadata == {b"comment": b"who came"}


def test_rows_come_back_as_they_were_appended_and_in_order(lake: Location) -> None:
    second, first = visit("b", 2), Visit("a", START)
    assert VISITS.rows(lake) == []
    VISITS.append(lake, [second])
    VISITS.append(lake, [first])
    assert VISITS.rows(lake) == [first, second]
    assert VISITS.rows(lake, [("visitor", "=", "b")]) == [second]


def test_the_last_row_of_each_value_holds(lake: Location) -> None:
    for visitor, day in (("a", 3), ("b", 1), ("a", 2)):
        VISITS.append(lake, [visit(visitor, day)])
    assert VISITS.last_of_each(lake, "visitor") == {"a": visit("a", 3), "b": visit("b", 1)}


def test_the_newest_rows_are_read_without_the_files_of_older_ones(lake: Location) -> None:
    for day in range(10):
        VISITS.append(lake, [visit("a", 2 * day), visit("b", 2 * day + 1)])
    newest_first = files_of(open_table(VISITS.path(lake)))  # in the order of the log
    for file in newest_first[2:]:
        (VISITS.path(lake) / file).local.unlink()
    assert VISITS.newest(lake, 3) == [visit("b", 19), visit("a", 18), visit("b", 17)]


def test_the_newest_rows_that_fulfil_a_condition_are_found_wherever_they_are(lake: Location) -> None:
    for day in range(30):
        VISITS.append(lake, [visit("rare" if day == 4 else "often", day)])
    assert VISITS.newest(lake, 2, [("visitor", "=", "rare")]) == [visit("rare", 4)]
    assert VISITS.newest(lake, 2, [("visitor", "=", "often")]) == [visit("often", 29), visit("often", 28)]
    assert VISITS.newest(lake, 100, [("visitor", "=", "nobody")]) == []


def test_old_rows_go_and_needed_ones_stay(lake: Location) -> None:
    for day in range(6):
        VISITS.append(lake, [visit("a", day), visit("b", day)])
    VISITS.retire(lake, START + 3 * DAY, lambda row: row.visitor == "b" and row.place == Place("hall", (1, 1)))
    assert VISITS.rows(lake) == [visit("b", 1), *(visit(visitor, day) for day in (3, 4, 5) for visitor in "ab")]


@dataclass(frozen=True)
class LaterVisit(Visit):
    mood: str | None = None


def test_a_record_that_got_a_field_goes_on_in_the_table_that_it_had(lake: Location) -> None:
    later = Log("ops.visits", LaterVisit, order="at")
    VISITS.append(lake, [visit("a", 1)])
    later.append(lake, [LaterVisit("b", START + 2 * DAY, mood="glad")])
    assert [(row.visitor, row.mood) for row in later.rows(lake)] == [("a", None), ("b", "glad")]
    assert [row.visitor for row in VISITS.rows(lake)] == ["a", "b"]


def test_a_log_without_old_rows_is_not_written(lake: Location) -> None:
    VISITS.append(lake, [visit("a", 5), visit("b", 1)])
    VISITS.retire(lake, START)
    VISITS.retire(lake, START + 2 * DAY, lambda _: True)
    assert open_table(VISITS.path(lake)).version() == 1


def test_a_log_of_more_than_a_hundred_files_becomes_one(lake: Location) -> None:
    for day in range(102):
        VISITS.append(lake, [visit("a", day)])
    assert len(files_of(open_table(VISITS.path(lake)))) < 5
    assert [row.at for row in VISITS.rows(lake)] == [START + day * DAY for day in range(102)]
