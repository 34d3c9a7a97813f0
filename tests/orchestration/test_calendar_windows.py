"""Windows by the calendar in whole lakes: days, weeks and months of Berlin while clocks change, from landing to verify and replay."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from gold.windows.spec import Group, Late, Vector
from orchestration.audit.reconciliation.gold_account import gold_account, gold_discrepancies, open_gold_tables, open_windows
from orchestration.audit.verify.check import verify
from orchestration.audit.verify.lake_snapshot import latest_snapshot
from orchestration.conf.model import Conf, Device
from orchestration.engine.lake import Lake
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.storage.snapshots import find_snapshot
from silver.aggregation import Aggregation
from silver.metric import CalendarStep, Metric, Weekday
from tests.lakes import conf, differences, event, land, latest, replay, run
from tests.rows import at

BERLIN = "Europe/Berlin"
METRICS = {
    "kwh": Metric("kwh", Aggregation.SUM, step=CalendarStep.DAY, time_zone=BERLIN),
    "weekly": Metric("weekly", Aggregation.SUM, step=CalendarStep.WEEK, time_zone=BERLIN),
    "shopping": Metric("shopping", Aggregation.SUM, step=CalendarStep.WEEK, time_zone=BERLIN, week_starts=Weekday.SUNDAY),
    "monthly": Metric("monthly", Aggregation.TIME_WEIGHTED_AVERAGE, step=CalendarStep.MONTH, time_zone="America/Sao_Paulo"),
    "meter": Metric("meter", Aggregation.COUNTER_INCREASE, step=CalendarStep.DAY, time_zone=BERLIN),
    "hourly": Metric("hourly", Aggregation.MAX, 3600),
}
KEY = ["device_id", "metric", "window_end"]


def meters(folder: Path) -> Conf:
    """A group of daily and weekly vectors that amends, and one that keeps late readings aside, with a month beside hours."""
    days = Group("days", ("kwh", "weekly", "shopping", "meter"), 3600, "days", Vector("device", ("kwh", "weekly"), 86_400 * 8))
    months = Group("months", ("kwh", "monthly", "hourly"), 3600, "days", late=Late.KEEP_ASIDE)
    made = conf(folder, metrics=METRICS, groups={"days": days, "months": months}, devices={"meter": Device("meter", ("days", "months"))})
    return replace(made, policy=replace(made.policy, lateness_seconds=3600))


def hourly(metric: str, first: str, count: int, step: int = 1) -> list[str]:
    return [event("meter", metric, 1.0, at(first) + timedelta(hours=n * step)) for n in range(count)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Conf:
    """28 to 30 March 2026, of which the 29th has 23 hours; two weeks from 16 March; then a late reading of the 29th."""
    made = meters(tmp_path_factory.mktemp("meters"))
    lines = [*hourly("monthly", "2026-02-28T23:00:00", 5), *hourly("weekly", "2026-03-16T11:00:00", 14, 24)]
    lines += [event("meter", "meter", 100.0 + n, at("2026-03-27T23:30:00") + timedelta(hours=n)) for n in range(71) if n != 40]
    land(made.folder, "1.json", [*lines, *hourly("shopping", "2026-03-16T11:00:00", 14, 24), *hourly("kwh", "2026-03-27T23:30:00", 71)])
    run(made, spark)
    late = event("meter", "meter", 140.0, at("2026-03-29T15:30:00"))
    land(made.folder, "2.json", [event("meter", "kwh", 0.5, at("2026-03-29T12:40:00")), late])
    run(made, spark)
    land(made.folder, "3.json", [event("meter", name, 1.0, at("2026-03-31T07:00:00")) for name in ("kwh", "hourly")])
    run(made, spark)
    return made


def rows(made: Conf, group: str, metric: str) -> list[tuple[Any, ...]]:
    found = latest(made, f"gold.{group}_aggregates", KEY).sort_values("window_end")
    found = found[found["metric"] == metric]
    hours = (found["window_end"] - found["window_start"]).dt.total_seconds() // 3600
    return list(zip([f"{start:%m-%dT%H}" for start in found["window_start"]], hours, found["value"], found["revision"], strict=True))


def test_a_day_when_clocks_change_has_23_hours_and_a_late_reading_is_folded_in(made: Conf) -> None:
    assert rows(made, "days", "kwh") == [("03-27T23", 24, 24.0, 0), ("03-28T23", 23, 23.5, 1), ("03-29T22", 24, 24.0, 0)]
    assert rows(made, "months", "kwh") == [("03-27T23", 24, 24.0, 0), ("03-28T23", 23, 23.0, 0), ("03-29T22", 24, 24.0, 0)]


def test_what_a_meter_rose_by_is_counted_by_days_of_the_calendar(made: Conf) -> None:
    """The first day begins with the first reading."""
    assert [row[:3] for row in rows(made, "days", "meter")] == [("03-27T23", 24, 23.0), ("03-28T23", 23, 23.0), ("03-29T22", 24, 24.0)]


def test_weeks_begin_on_monday_or_as_conf_says(made: Conf) -> None:
    assert rows(made, "days", "weekly") == [("03-15T23", 168, 7.0, 0), ("03-22T23", 167, 7.0, 0)]
    assert rows(made, "days", "shopping") == [("03-14T23", 168, 6.0, 0), ("03-21T23", 168, 7.0, 0)]


def test_a_vector_has_the_day_that_ends_and_the_week_with_it(made: Conf) -> None:
    vectors = latest(made, "gold.days_vectors", ["entity", "window_end"]).sort_values("window_end")
    found = [(f"{row['window_start']:%m-%dT%H}", list(row["vector"]), list(row["filled"])) for row in vectors.to_dict("records")]
    assert found[1:] == [
        ("03-27T23", [24.0, 7.0], ["weekly"]),
        ("03-28T23", [23.5, 7.0], []),
        ("03-29T22", [24.0, 7.0], ["weekly"]),
    ]


def test_open_windows_are_those_of_the_calendar(made: Conf) -> None:
    engine = DuckDbEngine(made, Limits(seconds=60, rows=1000))
    query = "select metric, window_start, window_end, value, count from gold.live where device_group = 'months' order by metric"
    found = [tuple(row.values()) for row in engine.ask(Question(query)).rows.to_pylist()]
    assert [row for row in found if row[0] != "hourly"] == [
        ("kwh", at("2026-03-30T22:00:00"), at("2026-03-31T22:00:00"), 1.0, 1),
        ("monthly", at("2026-03-01T03:00:00"), at("2026-04-01T03:00:00"), 1.0, 1),
    ]


def test_every_event_is_accounted_for_and_a_second_evaluator_finds_no_difference(made: Conf) -> None:
    assert differences(made) == []
    outcomes = verify(latest_snapshot(made), made, since=date(2026, 3, 28)).outcomes
    of_gold = {outcome.table: (outcome.differences, outcome.rows > 0) for outcome in outcomes if outcome.table.startswith("gold.")}
    assert of_gold == dict.fromkeys(("gold.days_aggregates", "gold.days_vectors", "gold.months_aggregates"), (0, True))
    lake, snapshot = Lake(made, None), find_snapshot(made.lake)
    assert snapshot is not None
    for since in (None, date(2026, 3, 28)):
        tables = open_gold_tables(lake, snapshot, since)
        assert tables is not None
        assert gold_discrepancies(tables) == []
        (kwh,) = (row for row in gold_account(lake, tables) if (row["group"], row["metric"]) == ("months", "kwh"))
        assert (kwh["kept_aside"], kwh["missing"], kwh["duplicated"]) == (1, 0, 0)
    assert {row["group_name"] for row in open_windows(lake, snapshot, -1)} == {"days", "months"}


def test_a_replay_gives_the_same_windows(made: Conf, spark: SparkSession) -> None:
    before = {name: rows(made, group, name) for group, name in (("days", "kwh"), ("days", "weekly"), ("months", "kwh"))}
    assert replay(made, spark) == 2
    assert {name: rows(made, group, name) for group, name in (("days", "kwh"), ("days", "weekly"), ("months", "kwh"))} == before
    assert differences(made) == []
