"""The batch twin: what silver and gold must hold, computed by pandas from the simulator's truth.

It shares no code with silver/ and gold/, only the specs and the words. Everything is in UTC; a window holds its first instant
and not its end; a null is NaN, NaT or None. Grain and columns are those of the tables, without lineage, revision and batch.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gold.spec import Group, Vector
from orchestration.conf.model import Device
from silver.spec import Aggregation, Metric

Times: TypeAlias = "pd.Series[pd.Timestamp]"
START = pd.Timestamp(0, tz="UTC")
"""Spark's watermark before there is one: what was measured before 1970 is late at once."""
KEY = ["device_id", "metric", "event_time"]
READING = [*KEY, "value", "unit"]
WINDOW = ["device_id", "metric", "window_start", "window_end"]
AGGREGATES = [*WINDOW, "value", "count", "min", "max", "sum", "latest"]
VECTORS = ["entity", "window_start", "window_end", "vector", "missing", "filled"]
VALID_KINDS = ("good", "late", "duplicate")


def readings(truth: pd.DataFrame, batches: Sequence[Sequence[str]] | None = None, lateness_seconds: int | None = None) -> pd.DataFrame:
    """The accepted measurements of the truth: of each key the first that arrived; malformed and future ones are none.

    `batches` (the files of each micro-batch, in order) leaves out what the watermark of the silver stream turns away;
    without it nothing is late. Keeps the order of arrival.
    """
    valid = truth[truth["kind"].isin(VALID_KINDS)].sort_values(["file", "line", "part"], kind="stable")
    if batches is not None:
        assert lateness_seconds is not None, "batches without a lateness"
        of_batch = [valid[valid["file"].isin(files)] for files in batches]
        late = which_are_late([rows["event_time"] for rows in of_batch], lateness_seconds)
        valid = pd.concat([rows[~is_late] for rows, is_late in zip(of_batch, late, strict=True)])
    return valid.drop_duplicates(KEY)[READING].reset_index(drop=True)


def watermarks(batches: Sequence[Times], lateness_seconds: int) -> list[pd.Timestamp]:
    """The watermark that judges each micro-batch, from the event times of all batches in order.

    Batch n is judged by the newest event time of all batches before it, minus the lateness: Spark sets the watermark when
    a batch begins, so rows of one batch never make each other late, and the first batch loses nothing. Measured with Spark
    4.2, also over restarts, under the product's setting `spark.sql.streaming.statefulOperator.allowMultiple=false`; with
    Spark's default of true a batch is judged by the watermark under which the batch before it ran, empty ones counted.
    """
    newest = [times.max() - pd.Timedelta(seconds=lateness_seconds) if len(times) else START for times in batches]
    return [max(newest[:n], default=START) for n in range(len(batches))]


def which_are_late(batches: Sequence[Times], lateness_seconds: int) -> list[NDArray[np.bool_]]:
    """For each micro-batch of event times: true for the rows that silver's watermark turns away. A row exactly at it is late."""
    judges = watermarks(batches, lateness_seconds)
    return [(times <= judge).to_numpy(bool) for times, judge in zip(batches, judges, strict=True)]


def with_watermarks(batches: Sequence[pd.DataFrame], lateness_seconds: int) -> pd.DataFrame:
    """The readings of all micro-batches of a gold stream, each with the watermark that judged it: see `aggregates`."""
    judges = watermarks([rows["event_time"] for rows in batches], lateness_seconds)
    return pd.concat([rows.assign(watermark=judge) for rows, judge in zip(batches, judges, strict=True)], ignore_index=True)


def of_group(accepted: pd.DataFrame, devices: Mapping[str, Device], group: Group) -> pd.DataFrame:
    """Readings that count for the group: of its devices and of its metrics."""
    members = [device_id for device_id, device in devices.items() if group.name in device.groups]
    return accepted[accepted["device_id"].isin(members) & accepted["metric"].isin(group.metrics)]


def watermark(accepted: pd.DataFrame, lateness_seconds: int) -> pd.Timestamp:
    """How far the stream is sure: its newest reading minus its lateness. NaT without readings.

    Give the readings of all groups that share a stream, and the largest lateness of these groups.
    """
    newest: pd.Timestamp = accepted["event_time"].max()
    return newest - pd.Timedelta(seconds=lateness_seconds)


def aggregates(accepted: pd.DataFrame, metrics: Mapping[str, Metric], group: Group) -> pd.DataFrame:
    """Every window that holds a reading, open ones too, sorted by window. `accepted` are readings of the group (see `of_group`).

    Gold turns a reading away from the windows that ended at or before the watermark, and counts it in those that are still
    open: that is left out here where readings have a column `watermark` (see `with_watermarks`).
    """
    tables = [_windows_of(accepted[accepted["metric"] == name], metrics[name]) for name in group.metrics]
    return pd.concat(tables, ignore_index=True)[AGGREGATES].sort_values(WINDOW, ignore_index=True)


def closed(windows: pd.DataFrame, until: pd.Timestamp) -> pd.DataFrame:
    """Windows (or vectors) that ended at or before the watermark: the ones that an append stream has emitted."""
    return windows[windows["window_end"] <= until].reset_index(drop=True)


def vectors(windows: pd.DataFrame, metrics: Mapping[str, Metric], group: Group) -> pd.DataFrame:
    """A vector of each entity at every instant at which a window of one of its features ends.

    A feature is the value of the window that ends there; else of its newest earlier window, if that ended at most
    `max_fill_seconds` before (named in `filled`); else null (named in `missing`). A window without a value (stddev of one
    reading) makes a vector due and gives it nothing. The vector's window is as long as the shortest step (or slide).
    """
    spec = group.vector
    assert spec is not None, f"group {group.name} has no vector"
    features = _features_of(windows, group, spec)
    due = features[["entity", "window_end"]].drop_duplicates().sort_values("window_end", ignore_index=True)
    fill = pd.Timedelta(seconds=spec.max_fill_seconds)
    found = [_newest_at(due, features[(features["feature"] == name) & features["value"].notna()], fill) for name in spec.features]
    base = min(m.slide_seconds or m.step_seconds for m in _metrics_of(group, spec, metrics))
    due["window_start"] = due["window_end"] - pd.Timedelta(seconds=base)
    values = np.column_stack([each["value"] for each in found])
    is_missing = np.isnan(values)
    is_filled = np.column_stack([each["ended_at"] < due["window_end"] for each in found])
    due["vector"] = [
        [None if missing else value for value, missing in zip(*row, strict=True)] for row in zip(values.tolist(), is_missing, strict=True)
    ]
    due["missing"] = _named(spec.features, is_missing)
    due["filled"] = _named(spec.features, is_filled)
    return due[VECTORS].sort_values(["entity", "window_end"], ignore_index=True)


def _windows_of(accepted: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    """Windows of one metric: all that start at a multiple of the slide since 1970 and hold the reading."""
    step, slide = (pd.Timedelta(seconds=s) for s in (metric.step_seconds, metric.slide_seconds or metric.step_seconds))
    newest_start = accepted["event_time"].dt.floor(slide)
    copies = pd.concat([accepted.assign(window_start=newest_start - n * slide) for n in range(step // slide)])
    if "watermark" in copies:
        copies = copies[copies["window_start"] + step > copies["watermark"]]
    grouped = copies.sort_values("event_time").groupby(["device_id", "metric", "window_start"])["value"]
    table = grouped.agg(["count", "min", "max", "sum", "first", "last", "mean", "median", "std"]).reset_index()
    column = {
        Aggregation.AVERAGE: "mean",
        Aggregation.LATEST: "last",
        Aggregation.STDDEV: "std",
    }.get(metric.aggregation, metric.aggregation.value)
    return table.assign(window_end=table["window_start"] + step, value=table[column].astype("float64"), latest=table["last"])


def _features_of(windows: pd.DataFrame, group: Group, spec: Vector) -> pd.DataFrame:
    """Windows with their entity and feature; only those that the vector names."""
    named = windows.assign(
        entity=windows["device_id"] if spec.entity == "device" else group.name,
        feature=windows["metric"] if spec.entity == "device" else windows["device_id"] + "." + windows["metric"],
    )
    return named[named["feature"].isin(spec.features)]


def _newest_at(due: pd.DataFrame, windows: pd.DataFrame, at_most: pd.Timedelta) -> pd.DataFrame:
    """For each due vector the newest window of one feature that ended by then, if it is not too old; else nulls."""
    ended = windows[["entity", "window_end", "value"]].assign(ended_at=windows["window_end"]).sort_values("window_end")
    return pd.merge_asof(due[["entity", "window_end"]], ended, on="window_end", by="entity", tolerance=at_most)


def _named(features: Sequence[str], marks: NDArray[np.bool_]) -> list[list[str]]:
    return [[name for name, is_marked in zip(features, row, strict=True) if is_marked] for row in marks]


def _metrics_of(group: Group, spec: Vector, metrics: Mapping[str, Metric]) -> list[Metric]:
    """The metric of each feature; of a `device.metric` it is the longest name that the feature ends with, since both may hold dots."""
    if spec.entity == "device":
        return [metrics[name] for name in spec.features]
    longest_first = sorted(group.metrics, key=len, reverse=True)
    return [metrics[next(name for name in longest_first if feature.endswith(f".{name}"))] for feature in spec.features]
