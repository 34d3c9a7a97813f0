"""Sparklines of the last hour: rows a minute from history, and lags as they were seen. No browser, no Spark."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestration.location import Location
from orchestration.supervisor.history import newer, note
from orchestration.web.last_hour import MINUTES, LastHour


def test_rows_of_batches_are_summed_up_by_minute_and_what_is_noted_later_is_added(tmp_path: Path) -> None:
    lake, now, hour = Location(tmp_path), datetime.now(UTC), LastHour()
    for minutes, rows in ((90, 7), (2, 10), (2, 20), (0, 5)):
        note(lake, {"at": (now - timedelta(minutes=minutes)).isoformat(), "flow": "silver.readings", "rows": rows})
    hour.note(lake, now, [])
    assert [*hour.rates("silver.readings", now)][-3:] == [30.0, 0.0, 5.0]
    assert sum(hour.rates("silver.readings", now)) == 35
    assert hour.batches["silver.readings"]["rows"] == 5
    note(lake, {"at": now.isoformat(), "flow": "silver.readings", "rows": 1})
    hour.note(lake, now, [])
    assert hour.rates("silver.readings", now)[-1] == 6.0
    assert [*hour.rates("gold.kitchen", now)] == [0.0] * MINUTES


def test_the_greatest_lag_of_a_minute_is_kept_for_an_hour(tmp_path: Path) -> None:
    lake, hour, now = Location(tmp_path), LastHour(), datetime(2026, 1, 1, 12, 30, 30, tzinfo=UTC)
    for seconds, lag in ((0, 3.0), (10, 9.0), (20, None), (60, 1.0)):
        hour.note(lake, now + timedelta(seconds=seconds), [("bronze.events", lag)])
    assert [*hour.lags("bronze.events", now + timedelta(seconds=60))][-2:] == [9.0, 1.0]
    hour.note(lake, now + timedelta(hours=2), [])
    assert [*hour.lags("bronze.events", now + timedelta(hours=2))] == [0.0] * MINUTES


def test_a_line_that_is_half_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    lake, read = Location(tmp_path), dict[Path, int]()
    note(lake, {"flow": "a"})
    (file,) = (tmp_path / "history").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:5])
    assert [facts["flow"] for facts in newer(lake, read)] == ["a"]
    file.write_bytes(whole + whole)
    assert [facts["flow"] for facts in newer(lake, read)] == ["a"]
    assert [*newer(lake, read)] == []
