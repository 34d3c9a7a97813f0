"""Windows by the calendar, compared with their definition: the local clock of a zone, piece by piece between its changes."""

from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from pyspark.sql import SparkSession

from expectations.settings import problems_of_zone
from gold.windows.aggregates import aggregates
from gold.windows.calendar import SPAN, window_of, windows_of_spans
from gold.windows.spec import Group
from silver.aggregation import Aggregation
from silver.metric import Calendar, CalendarStep, Metric, Weekday
from tests.rows import measured

ZONES = (
    "Europe/Berlin",  # +-1 hour at 01:00 UTC
    "America/New_York",
    "America/St_Johns",  # put back at 00:01: a minute of the next date, then the old one again; two hours in 1988
    "America/Sao_Paulo",  # put forward at midnight
    "America/Havana",  # two midnights
    "Australia/Lord_Howe",  # half an hour
    "Pacific/Apia",  # 30 December 2011 was skipped
    "Antarctica/Casey",  # three hours
    "Africa/Casablanca",  # winter time in summer
    "Asia/Kathmandu",  # by a quarter of an hour, once
)
FIRST, LAST = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1970, 2038))
DAY, WEEK, MONTH = CalendarStep


def offset(zone: ZoneInfo, instant: int) -> int:
    return int((datetime.fromtimestamp(instant, zone).utcoffset() or timedelta()).total_seconds())


@cache
def pieces(zone: ZoneInfo) -> list[tuple[int, int]]:
    """The instants from which the clock of a zone differs from UTC by so many seconds, in order."""
    of_zone = [(FIRST - 100 * 86_400, offset(zone, FIRST - 100 * 86_400))]
    for midnight in range(of_zone[0][0], LAST + 100 * 86_400, 86_400):
        while offset(zone, midnight) != (before := of_zone[-1])[1]:
            since, change = max(midnight - 86_400, before[0]), midnight
            while change - since > 1:
                middle = (since + change) // 2
                since, change = (middle, change) if offset(zone, middle) == before[1] else (since, middle)
            of_zone.append((change, offset(zone, change)))
    return of_zone


@cache
def first_instants(zone: ZoneInfo) -> list[tuple[date, int]]:
    """Dates, and the first instant at which the clock shows each, or a later one."""
    starts, of_dates = [begin for begin, _ in pieces(zone)], []
    for midnight in range(FIRST - 60 * 86_400, LAST + 60 * 86_400, 86_400):
        first, last = (bisect_right(starts, midnight + days * 86_400) for days in (-2, 2))
        near = zip(pieces(zone)[first - 1 : last], [*starts[first:last], LAST + 200 * 86_400], strict=True)
        midnights = ((max(begin, midnight - shift), end) for (begin, shift), end in near)
        of_dates.append((date(1970, 1, 1) + timedelta(seconds=midnight), min(at for at, end in midnights if at < end)))
    return of_dates


def begins(metric: Metric) -> list[int]:
    """The first instants of the first dates of windows."""
    week = 6 if metric.week_starts else 0
    of_zone = first_instants(ZoneInfo(metric.time_zone or ""))
    return sorted({at for day, at in of_zone if {DAY: True, WEEK: day.weekday() == week, MONTH: day.day == 1}[metric.step or DAY]})


def around_changes(zone: ZoneInfo) -> set[int]:
    near = (-90_000, -86_400, -7_200, -3_660, -3_600, -3_541, -1_860, -60, -1, 0, 1, 30, 60, 3_599, 3_600, 7_200, 90_000)
    return {change + seconds for change, _ in pieces(zone)[1:] for seconds in near if FIRST <= change < LAST} | {FIRST, 0, LAST}


def test_around_every_zone_change_an_instant_is_in_the_window_of_the_local_clock(spark: SparkSession) -> None:
    """Of 1970 to 2037; by Spark, by Python and by spans of time alike, and windows have neither gaps nor overlaps."""
    metrics = {
        f"{zone} {step} {starts}": Metric(f"{zone} {step} {starts}", Aggregation.COUNT, step=step, time_zone=zone, week_starts=starts)
        for zone in ZONES
        for step, starts in ((DAY, None), (WEEK, None), (WEEK, Weekday.SUNDAY), (MONTH, None))
    }
    instants = {
        name: sorted(around_changes(ZoneInfo(name.split()[0])) | {*begins(metric)[200:260], 1_000_000_000})
        for name, metric in metrics.items()
    }
    rows = [(f"{n}", name, 1.0, datetime.fromtimestamp(at, UTC)) for name in metrics for n, at in enumerate(instants[name])]
    in_spark = aggregates(measured(spark, rows), [Group("kitchen", tuple(metrics), 600, "kitchen")], metrics)
    found = {(row.metric, int(row.device_id)): (row.s, row.e) for row in in_spark.selectExpr("metric", "device_id", *SECONDS).collect()}
    for name, metric in metrics.items():
        calendar, of_metric = metric.calendar, begins(metric)
        assert calendar is not None
        for n, instant in enumerate(instants[name]):
            following = bisect_right(of_metric, instant)
            window = of_metric[following - 1], of_metric[following]
            _, begin, changes, later = next(windows_of_spans(calendar, [instant // SPAN]))
            by_span = (begin, changes) if instant < changes else (changes, later)
            assert found[name, n] == window_of(calendar, instant) == by_span == window, (name, datetime.fromtimestamp(instant, UTC))


SECONDS = ("unix_seconds(window_start) as s", "unix_seconds(window_end) as e")


def test_spark_knows_each_time_zone_that_check_takes(spark: SparkSession) -> None:
    taken = [(name,) for name in available_timezones() if all(problem.is_warning for problem in problems_of_zone("time_zone", name))]
    names = spark.createDataFrame(taken, "name string")
    local = names.selectExpr("name", "from_utc_timestamp(timestamp_seconds(1700000000), name) as local").collect()
    assert len(local) == len(taken) > 500
    local_clocks = {row["name"]: row["local"] for row in local}
    assert local_clocks["Asia/Taipei"] == local_clocks["Asia/Manila"] != local_clocks["UTC"]


def test_days_have_23_24_and_25_hours() -> None:
    berlin = Calendar(DAY, "Europe/Berlin", 0)
    noons = (datetime(2026, month, day, 12, tzinfo=UTC) for month, day in ((3, 28), (3, 29), (10, 25)))
    assert [(end - begin) // 3600 for begin, end in (window_of(berlin, int(noon.timestamp())) for noon in noons)] == [24, 23, 25]
