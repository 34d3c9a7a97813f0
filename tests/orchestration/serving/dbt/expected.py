"""What marts must hold, computed anew from silver and gold with pandas: it shares no line with their SQL."""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from orchestration.conf.model import Conf
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.tables import LakeStore
from tests.lakes import recorded
from tests.orchestration.serving.dbt.plant import rows

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
Row = dict[str, Any]


def windows(conf: Conf, snapshot: Snapshot) -> pd.DataFrame:
    """The newest revision of each, and of sliding metrics those that follow one another."""
    tables = []
    for group in conf.groups:
        history = pd.DataFrame(recorded(LakeStore(conf), f"gold.{group}_aggregates", snapshot.versions).to_pandas()).sort_values("revision")
        newest = history.drop_duplicates(["device_id", "metric", "window_end"], keep="last")
        steps = {name: metric.window_seconds for name, metric in conf.metrics.items()}
        kept = [row["window_start"].timestamp() % steps[row["metric"]] == 0 for row in newest.to_dict("records")]
        tables.append(newest[kept].assign(device_group=group))
    return pd.concat([table for table in tables if len(table)], ignore_index=True)


def rolled_up(conf: Conf, snapshot: Snapshot, period: timedelta, keys: list[str]) -> pd.DataFrame:
    """hourly, daily and their sums by group."""
    parts = windows(conf, snapshot)
    name = "hour_at" if period == HOUR else "day"
    parts[name] = parts["window_start"].map(lambda start: _floor(start, period))
    made = []
    for key, of_key in parts.groupby([*keys, name], sort=False):
        metric = conf.metrics[of_key["metric"].iloc[0]]
        ordered = of_key.sort_values(["window_end", "device_id"])
        row = dict(zip([*keys, name], key, strict=True)) | {
            "unit": metric.unit,
            "aggregation": str(metric.aggregation),
            "readings": ordered["count"].sum(),
            "mean": ordered["sum"].sum() / ordered["count"].sum(),
            "min": ordered["min"].min(),
            "max": ordered["max"].max(),
            "sum": ordered["sum"].sum(),
            "latest": ordered["latest"].iloc[-1],
            "from_at": ordered["window_start"].min(),
            "until_at": ordered["window_end"].max(),
            "windows": len(ordered),
            "amended": (ordered["revision"] > 0).sum(),
        }
        row["value"] = _value(row, of_key.sort_values(["window_start", "device_id"]))
        made.append(row | ({} if "device_id" in keys else {"devices": ordered["device_id"].nunique()}))
    return _days(pd.DataFrame(made))


def measured(conf: Conf, snapshot: Snapshot) -> pd.DataFrame:
    """Readings and late rows of the snapshot."""
    tables = []
    for name in ("silver.readings", "silver.late"):
        of_table = rows(conf.lake.local, name, snapshot.versions[name])
        of_table = of_table[of_table["bronze_batch"] <= snapshot.bronze_batch]
        retried = of_table["retry"].notna() if "retry" in of_table else False
        tables.append(of_table.assign(is_late=name == "silver.late", is_retried=retried))
    all_of = pd.concat(tables, ignore_index=True)
    seconds = (all_of["ingested_at"] - all_of["event_time"]).map(lambda delay: math.floor(delay / timedelta(milliseconds=1)) / 1000)
    return all_of.assign(delay=seconds, hour_at=all_of["event_time"].map(lambda when: _floor(when, HOUR)))


def arrivals(conf: Conf, snapshot: Snapshot) -> pd.DataFrame:
    readings = measured(conf, snapshot)
    made = []
    for key, of_key in readings.groupby(["device_id", "metric", "hour_at"], sort=False):
        row = dict(zip(("device_id", "metric", "hour_at"), key, strict=True)) | {
            "measurements": len(of_key),
            "late": of_key["is_late"].sum(),
            "retried": of_key["is_retried"].sum(),
            "minutes_present": of_key["event_time"].map(lambda when: when.minute).nunique(),
            "first_at": of_key["event_time"].min(),
            "last_at": of_key["event_time"].max(),
            "mean_delay_seconds": of_key["delay"].mean(),
            "max_delay_seconds": of_key["delay"].max(),
        }
        made.append(row)
    return pd.DataFrame(made)


def late_arrivals(conf: Conf, snapshot: Snapshot) -> pd.DataFrame:
    readings = measured(conf, snapshot)
    made = []
    for (metric, day), of_key in readings.groupby(["metric", readings["event_time"].map(lambda when: _floor(when, DAY))]):
        late = of_key[of_key["is_late"]]
        row = {
            "metric": metric,
            "day": day,
            "measurements": len(of_key),
            "late": len(late),
            "retried": of_key["is_retried"].sum(),
            "late_share": len(late) / len(of_key),
            "devices": of_key["device_id"].nunique(),
            "devices_late": late["device_id"].nunique(),
            "p50_delay_seconds": late["delay"].quantile(0.5),
            "p95_delay_seconds": late["delay"].quantile(0.95),
            "max_delay_seconds": late["delay"].max(),
        }
        made.append(row)
    return _days(pd.DataFrame(made))


def uptime(conf: Conf, snapshot: Snapshot, devices: Mapping[str, Any]) -> pd.DataFrame:
    """Hour by hour. `devices`: the newest version of each device."""
    readings: Any = measured(conf, snapshot)
    heard = {(row["device_id"], row["hour_at"]) for row in readings.to_dict("records")}
    plant = {hour for _, hour in heard}
    made = []
    for device in sorted({device for device, _ in heard}):
        own = {hour for other, hour in heard if other == device}
        end = max(plant) if device not in devices or devices[device]["is_known"] else max(own)
        for day in sorted({_floor(hour, DAY) for hour in plant}):
            expected = {hour for hour in _steps(day, DAY, HOUR) if min(own) <= hour <= end}
            if expected:
                row = {"device_id": device, "day": day, "hours_expected": len(expected), "hours_present": len(expected & own)}
                row |= {"hours_plant_silent": len(expected - plant), "uptime": len(expected & own) / len(expected)}
                hours = readings[(readings["device_id"] == device) & (readings["hour_at"].map(lambda hour: _floor(hour, DAY)) == day)]
                made.append(row | {"measurements": len(hours)})
    return _days(pd.DataFrame(made))


def completeness(conf: Conf, snapshot: Snapshot, devices: Mapping[str, Any]) -> pd.DataFrame:
    """Window by window."""
    made = []
    every: Any = windows(conf, snapshot)
    for (group, metric), of_metric in every.groupby(["device_group", "metric"]):
        step, starts = timedelta(seconds=conf.metrics[metric].window_seconds), set(of_metric["window_start"])
        for device, of_device in of_metric.groupby("device_id"):
            own = set(of_device["window_start"])
            is_member = device not in devices or (devices[device]["is_known"] and group in devices[device]["groups"])
            end = max(starts) if is_member else max(own)
            for day in sorted({_floor(start, DAY) for start in starts}):
                expected = {start for start in _steps(day, DAY, step) if min(own) <= start <= end}
                if expected:
                    row = {"device_group": group, "device_id": device, "metric": metric, "day": day, "step_seconds": step.seconds}
                    row |= {"windows_expected": len(expected), "windows_present": len(expected & own)}
                    readings = of_device[of_device["window_start"].isin(expected)]["count"].sum()
                    made.append(row | {"completeness": len(expected & own) / len(expected), "readings": readings})
    return _days(pd.DataFrame(made))


def worst_devices(conf: Conf, snapshot: Snapshot, devices: Mapping[str, Any]) -> pd.DataFrame:
    readings, hours = measured(conf, snapshot), uptime(conf, snapshot, devices)
    quarantined = rows(conf.lake.local, "silver.quarantine", snapshot.versions["silver.quarantine"])["device_id"].value_counts()
    duplicates = rows(conf.lake.local, "silver.duplicates", snapshot.versions["silver.duplicates"])["device_id"].value_counts()
    newest, made = max(readings["hour_at"]), list[Row]()
    for device in sorted({*readings["device_id"], *(name for name, version in devices.items() if version["is_known"])}):
        own, of_device = readings[readings["device_id"] == device], hours[hours["device_id"] == device]
        heard = sorted(set(own["hour_at"]))
        is_known = devices.get(device, {"is_known": False})["is_known"]
        ends = [*heard[1:], newest + HOUR if device not in devices or is_known else (heard[-1] + HOUR)] if heard else []
        row = {
            "device_id": device,
            "is_registered": is_known,
            "measurements": len(own),
            "late": own["is_late"].sum(),
            "quarantined": quarantined.get(device, 0),
            "duplicates": duplicates.get(device, 0),
            "late_share": own["is_late"].mean() if heard else 0.0,
            "quarantine_share": quarantined.get(device, 0) / max(len(own) + quarantined.get(device, 0) + duplicates.get(device, 0), 1),
            "gap_share": 1 - of_device["hours_present"].sum() / of_device["hours_expected"].sum() if heard else 1.0,
            "longest_gap_hours": max((end - start) / HOUR - 1 for start, end in zip(heard, ends, strict=True)) if heard else np.nan,
        }
        made.append(row | {"defect_score": row["late_share"] + row["quarantine_share"] + row["gap_share"]})
    ranked = pd.DataFrame(made).sort_values(["defect_score", "device_id"], ascending=[False, True])
    return ranked.assign(rank=range(1, len(ranked) + 1))


def noisiest_alerts(conf: Conf, snapshot: Snapshot) -> pd.DataFrame:
    """Change by change, in order of time."""
    changes, made = rows(conf.lake.local, "gold.alerts", snapshot.versions["gold.alerts"]), list[Row]()
    newest = max(changes["changed_at"])
    for (alert, entity), of_entity in changes.sort_values("changed_at", kind="stable").groupby(["alert", "entity"]):
        firing = of_entity[of_entity["state"] == "firing"]
        ends = [*of_entity["changed_at"][1:], newest]
        held = [(end - row["changed_at"]).total_seconds() for row, end in zip(of_entity.to_dict("records"), ends, strict=True)]
        if len(firing):
            row = {
                "alert": alert,
                "entity": entity,
                "times_fired": firing["alert_id"].nunique(),
                "last_fired_at": max(firing["changed_at"]),
            }
            made.append(row | {"seconds_firing": sum(np.array(held)[of_entity["state"] == "firing"])})
    ranked = pd.DataFrame(made).sort_values(["times_fired", "seconds_firing", "alert", "entity"], ascending=[False, False, True, True])[:10]
    return ranked.assign(rank=range(1, len(ranked) + 1))


def history(lake: Path) -> list[Row]:
    """Every version of every device, and when the next one followed."""
    versions = rows(lake, "silver.devices").sort_values(["device_id", "registered_at"])
    follows = versions.groupby("device_id")["registered_at"].shift(-1)
    rows_of_history: list[Any] = versions.assign(dbt_valid_from=versions["registered_at"], dbt_valid_to=follows).to_dict("records")
    return rows_of_history


def _value(row: Row, parts: pd.DataFrame) -> float:
    """Parts in the order of their starts."""
    match row["aggregation"]:
        case "average":
            return float(row["mean"])
        case "sum" | "min" | "max" | "latest":
            return float(row[row["aggregation"]])
        case "count":
            return float(row["readings"])
        case "first":
            return float(parts["value"].iloc[0])
        case "stddev" if row["readings"] > 1:
            squares = (parts["count"] - 1) * parts["value"].fillna(0) ** 2 + parts["count"] * (
                parts["sum"] / parts["count"] - row["mean"]
            ) ** 2
            return math.sqrt(squares.sum() / (row["readings"] - 1))
        case _:
            return math.nan


def _floor(when: datetime, period: timedelta) -> datetime:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch + (when.astimezone(UTC) - epoch) // period * period


def _steps(start: datetime, length: timedelta, step: timedelta) -> Iterator[datetime]:
    """Whole steps since 1970 that begin within."""
    first = _floor(start + step - timedelta(microseconds=1), step)
    while first < start + length:
        yield first
        first += step


def _days(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(day=table["day"].map(lambda day: day.date())) if "day" in table else table
