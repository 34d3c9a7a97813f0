"""The batch twin itself, on cases small enough to compute by hand."""

import math
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from gold.spec import Group, Vector
from orchestration.conf.model import Device
from silver.spec import Aggregation, Metric
from tests import twin

HOUR = datetime(2026, 1, 5, 12, tzinfo=UTC)


def at(seconds: float) -> pd.Timestamp:
    """So many seconds after noon."""
    return pd.Timestamp(HOUR + timedelta(seconds=seconds))


def measured(*rows: tuple[str, str, float, float]) -> pd.DataFrame:
    """Readings from (device, metric, seconds after noon, value)."""
    return pd.DataFrame([(device, metric, at(seconds), value) for device, metric, seconds, value in rows], columns=[*twin.KEY, "value"])


def truth(*rows: tuple[str, int, str, float]) -> pd.DataFrame:
    """Lines from (file, line, kind, seconds after noon)."""
    return pd.DataFrame(
        [(file, line, 0, kind, "oven", "heat", at(seconds), float(line), "degC") for file, line, kind, seconds in rows],
        columns=["file", "line", "part", "kind", *twin.KEY, "value", "unit"],
    )


def windows(aggregation: Aggregation, *rows: tuple[str, str, float, float], step: int = 60, slide: int | None = None) -> pd.DataFrame:
    metric = Metric("heat", aggregation, step, slide_seconds=slide)
    return twin.aggregates(measured(*rows), {"heat": metric}, Group("kitchen", ("heat",), 0, "kitchen"))


def ends(table: pd.DataFrame) -> list[float]:
    """Seconds after noon at which the windows end."""
    return [(end - at(0)).total_seconds() for end in table["window_end"]]


def test_of_resent_lines_the_first_is_the_reading_and_broken_ones_are_none() -> None:
    lines = truth(("b", 1, "duplicate", 0), ("a", 1, "good", 0), ("a", 2, "malformed", 1), ("a", 3, "future", 2), ("b", 2, "late", 3))
    assert twin.readings(lines)[["event_time", "value"]].values.tolist() == [[at(0), 1.0], [at(3), 2.0]]


def test_a_batch_is_judged_by_the_newest_reading_of_all_batches_before_it() -> None:
    # What Spark 4.2 was seen to do, as the session sets it, with these six files, one a micro-batch, and a lateness of 60 s.
    files = [[100], [200], [90, 139, 140, 141], [139, 140, 141, 300], [100, 150, 239, 240, 241], [10]]
    batches: list[twin.Times] = [pd.Series([at(seconds) for seconds in file]) for file in files]
    kept = [
        [s for s, is_late in zip(file, late, strict=True) if not is_late]
        for file, late in zip(files, twin.which_are_late(batches, 60), strict=True)
    ]
    assert kept == [[100], [200], [141], [141, 300], [241], []]


def test_a_batch_without_data_changes_no_watermark() -> None:
    batches: list[twin.Times] = [pd.Series([at(200)]), pd.Series([at(0)])[:0], pd.Series([at(140), at(141)])]
    assert [late.tolist() for late in twin.which_are_late(batches, 60)] == [[False], [], [True, False]]


def test_before_the_first_reading_the_watermark_is_1970() -> None:
    batches: list[twin.Times] = [pd.Series([pd.Timestamp(0, tz="UTC"), pd.Timestamp(1, unit="us", tz="UTC")])]
    assert [late.tolist() for late in twin.which_are_late(batches, 60)] == [[True, False]]


def test_readings_leave_out_what_the_watermark_turned_away() -> None:
    lines = truth(("a", 1, "good", 100), ("b", 1, "good", 200), ("c", 1, "late", 140), ("c", 2, "late", 150))
    accepted = twin.readings(lines, batches=[["a"], ["b"], ["c"]], lateness_seconds=60)
    assert accepted["event_time"].tolist() == [at(100), at(200), at(150)]


@pytest.mark.parametrize(
    ("aggregation", "value"),
    [("average", 4.0), ("latest", 6.0), ("min", 1.0), ("max", 6.0), ("sum", 12.0), ("count", 3.0), ("first", 5.0), ("median", 5.0)],
)
def test_each_aggregation_type_makes_one_value_of_a_window(aggregation: str, value: float) -> None:
    rows = [("oven", "heat", 59.0, 6.0), ("oven", "heat", 0.0, 5.0), ("oven", "heat", 30.0, 1.0), ("oven", "heat", 60.0, 100.0)]
    first = windows(Aggregation(aggregation), *rows).iloc[0]
    assert (first["value"], first["count"], first["min"], first["max"], first["sum"], first["latest"]) == (value, 3, 1.0, 6.0, 12.0, 6.0)
    assert (first["window_start"], first["window_end"]) == (at(0), at(60))


def test_stddev_is_that_of_a_sample_and_null_for_one_reading() -> None:
    two, one = windows(Aggregation.STDDEV, ("oven", "heat", 0, 1.0), ("oven", "heat", 1, 3.0), ("oven", "heat", 60, 9.0))["value"]
    assert two == pytest.approx(math.sqrt(2))
    assert math.isnan(one)


def test_a_reading_is_in_every_sliding_window_that_holds_it() -> None:
    table = windows(Aggregation.COUNT, ("oven", "heat", 60.0, 1.0), ("oven", "heat", 119.9, 1.0), step=120, slide=60)
    assert list(zip(ends(table), table["count"], strict=True)) == [(120, 2), (180, 2)]


def test_windows_before_1970_start_at_multiples_of_the_step_too() -> None:
    early = measured(("oven", "heat", 0, 1.0)).assign(event_time=pd.Timestamp("1969-12-31T23:59:59Z"))
    table = twin.aggregates(early, {"heat": Metric("heat", Aggregation.SUM, 60)}, Group("kitchen", ("heat",), 0, "kitchen"))
    assert table["window_end"].tolist() == [pd.Timestamp(0, tz="UTC")]


def test_a_late_reading_counts_only_in_windows_that_its_watermark_left_open() -> None:
    batches = [measured(("oven", "heat", 0, 1.0)), measured(("oven", "heat", 120, 1.0)), measured(("oven", "heat", 10, 1.0))]
    metric = Metric("heat", Aggregation.COUNT, 120, slide_seconds=60)
    # The watermark is 60 s: the window that ends there is closed, the one that ends at 120 s takes the reading.
    judged = twin.with_watermarks(batches, lateness_seconds=60)
    table = twin.aggregates(judged, {"heat": metric}, Group("kitchen", ("heat",), 60, "kitchen"))
    assert dict(zip(ends(table), table["count"], strict=True)) == {60: 1, 120: 2, 180: 1, 240: 1}


def test_readings_of_a_group_are_those_of_its_devices_and_metrics() -> None:
    rows = measured(("oven", "heat", 0, 1.0), ("oven", "noise", 0, 1.0), ("pump", "heat", 0, 1.0))
    devices = {"oven": Device("oven", ("kitchen", "house")), "pump": Device("pump", ("house",))}
    found = twin.of_group(rows, devices, Group("kitchen", ("heat",), 0, "kitchen"))
    assert found[["device_id", "metric"]].values.tolist() == [["oven", "heat"]]


def test_a_window_is_closed_when_its_end_is_a_lateness_behind() -> None:
    rows = [("oven", "heat", 0.0, 1.0), ("oven", "heat", 60.0, 1.0), ("oven", "heat", 130.0, 1.0)]
    table = windows(Aggregation.SUM, *rows)
    assert ends(twin.closed(table, twin.watermark(measured(*rows), 10))) == [60, 120]
    assert ends(twin.closed(table, twin.watermark(measured(*rows), 11))) == [60]


METRICS = {"heat": Metric("heat", Aggregation.LATEST, 60), "noise": Metric("noise", Aggregation.STDDEV, 120)}


def vectors(vector: Vector, *rows: tuple[str, str, float, float]) -> list[tuple[object, ...]]:
    group = Group("kitchen", ("heat", "noise"), 0, "kitchen", vector)
    table = twin.vectors(twin.aggregates(measured(*rows), METRICS, group), METRICS, group)
    assert (table["window_end"] - table["window_start"] == pd.Timedelta(seconds=60)).all()
    return list(zip(table["entity"], ends(table), table["vector"], table["missing"], table["filled"], strict=True))


def test_a_feature_is_fresh_or_carried_forward_or_missing() -> None:
    rows = [("oven", "heat", 0.0, 1.0), ("oven", "heat", 180.0, 4.0), ("oven", "noise", 0.0, 2.0), ("oven", "noise", 1.0, 4.0)]
    assert vectors(Vector("device", ("noise", "heat"), 60), *rows) == [
        ("oven", 60, [None, 1.0], ["noise"], []),
        ("oven", 120, [math.sqrt(2), 1.0], [], ["heat"]),  # heat ended 60 s before: at most 60 s is not too old
        ("oven", 240, [None, 4.0], ["noise"], []),  # noise ended 120 s before
    ]


def test_a_window_without_a_value_makes_a_vector_due_and_gives_it_nothing() -> None:
    rows = [("oven", "noise", 0.0, 2.0), ("oven", "noise", 1.0, 2.0), ("oven", "noise", 120.0, 9.0), ("oven", "heat", 0.0, 7.0)]
    assert vectors(Vector("device", ("noise", "heat"), 120), *rows)[1:] == [
        ("oven", 120, [0.0, 7.0], [], ["heat"]),
        ("oven", 240, [0.0, None], ["heat"], ["noise"]),
    ]


def test_a_group_vector_takes_its_features_from_several_devices() -> None:
    rows = [("oven.1", "heat", 0.0, 1.0), ("pump", "heat", 60.0, 2.0), ("pump", "noise", 60.0, 9.0), ("other", "heat", 300.0, 1.0)]
    assert vectors(Vector("group", ("pump.heat", "oven.1.heat"), 60), *rows) == [
        ("kitchen", 60, [None, 1.0], ["pump.heat"], []),
        ("kitchen", 120, [2.0, 1.0], [], ["oven.1.heat"]),
    ]
