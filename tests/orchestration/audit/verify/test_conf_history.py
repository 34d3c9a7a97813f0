"""verify by the conf of each batch: events, those that a retry judged anew, and windows that a change of conf reaches into."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from bronze.schema import EVENTS
from expectations.rule import Rule
from gold.windows.spec import Group
from orchestration.audit.verify.confs import ConfEra, ConfHistory
from orchestration.audit.verify.gold_windows import windows_by_conf
from orchestration.audit.verify.retries import judge_retried
from orchestration.audit.verify.silver_evaluator import Registered, evaluate_into
from orchestration.audit.verify.store import DUPLICATES, LATE, QUARANTINE, READINGS, evaluated_view, opened
from orchestration.conf.model import Conf
from silver.aggregation import Aggregation
from silver.metric import Metric
from silver.schema import REFERENCES
from silver.spec import Origin
from tests.lakes import SHAPE, conf
from tests.rows import INGESTED_AT, devices, events

BEGIN = INGESTED_AT - timedelta(hours=1)
REGISTRY = Registered(devices(), REFERENCES.empty_table())


def sent(batch: int, *values: float) -> list[dict[str, Any]]:
    """Events of a bronze batch, one a minute."""
    lines = [
        f'{{"device": "oven", "metric": "temperature", "value": {value}, "ts": "{(BEGIN + timedelta(minutes=n)).isoformat()}"}}'
        for n, value in enumerate(values)
    ]
    return [row | {"bronze_batch": batch} for row in events(lines).to_pylist()]


def cold(made: Conf, limit: int) -> Conf:
    return replace(made, rules=(Rule("is_cold", f"value < {limit}"),))


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with opened(tmp_path) as connection:
        for name, columns in {"readings": READINGS, "late": LATE, "quarantine": QUARANTINE, "duplicates": DUPLICATES}.items():
            connection.execute(f"create table {name} ({columns})")
        yield connection


def evaluated(store: duckdb.DuckDBPyConnection, folder: Path, history: ConfHistory, rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Batch and value of what is accepted and rejected."""
    arrived = pa.Table.from_pylist(rows, EVENTS)
    evaluate_into(folder / "rows", [arrived], len(rows), REGISTRY, history.eras, lambda _: None)
    for kind, columns in (("accepted", READINGS), ("rejected", QUARANTINE)):
        evaluated_view(store, f"{kind}_0", columns, folder / "rows" / kind)
    judge_retried(store, folder, history, REGISTRY, lambda _: [arrived])
    return {kind: store.sql(f"select bronze_batch, value from {kind} order by all").fetchall() for kind in ("accepted", "rejected")}


def test_each_event_is_judged_by_the_conf_of_its_batch(store: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    made = conf(tmp_path)
    history = ConfHistory([ConfEra(0, cold(made, 100)), ConfEra(2, cold(made, 20)), ConfEra(3, made)])
    rows = [row for batch in range(4) for row in sent(batch, 10, 50, 150)]
    found = evaluated(store, tmp_path, history, rows)
    assert found["accepted"] == [(0, 10), (0, 50), (1, 10), (1, 50), (2, 10), (3, 10), (3, 50), (3, 150)]
    assert found["rejected"] == [(0, 150), (1, 150), (2, 50), (2, 150)]


def test_a_source_whose_shape_has_changed_is_read_by_each(store: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    made = conf(tmp_path)
    renamed = replace(made.sources["plant"], payload_format=replace(SHAPE, value=Origin("v")))
    history = ConfHistory([ConfEra(0, made), ConfEra(1, replace(made, sources={"plant": renamed}))])
    rows = [*sent(0, 10), *(row | {"payload": row["payload"].replace(b'"value"', b'"v"')} for row in sent(1, 11)), *sent(2, 12)]
    found = evaluated(store, tmp_path, history, rows)
    assert found["accepted"] == [(0, 10), (1, 11)]
    assert [batch for batch, _ in found["rejected"]] == [2]


def test_what_a_retry_readmitted_is_judged_by_its_conf_and_what_it_was_not_asked_about_by_its_own(
    store: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    made = conf(tmp_path)
    history = ConfHistory([ConfEra(0, cold(made, 20)), ConfEra(2, cold(made, 100))], retried=[cold(made, 100)])
    rows = [*sent(0, 10, 50, 150), *sent(1, 60)]
    identity = "source, ingested_at, bronze_batch, bronze_row, part, parts"
    at = f"timestamp '{INGESTED_AT:%Y-%m-%d %H:%M:%S}'"
    store.execute(
        f"insert into readings by name (select 10.0 as value, 'plant' as source, {at} as ingested_at, 0 as bronze_batch,"
        " 0 as bronze_row, 0 as part, 1 as parts)"
    )
    store.execute(
        f"insert into late by name (select 50.0 as value, 1 as retry, {identity} from"
        f" (select 'plant' as source, {at} as ingested_at, 0 as bronze_batch, 1 as bronze_row, 0 as part, 1 as parts))"
    )
    for batch, row in ((0, 2), (1, 0)):  # the second one was not asked about again: of another source or rule
        store.execute(
            f"insert into quarantine by name (select ['is_cold'] as broken_rules, {batch} as bronze_batch, {row} as bronze_row,"
            " 0 as part, 1 as parts)"
        )
    found = evaluated(store, tmp_path, history, rows)
    assert found == {"accepted": [(0, 10), (0, 50)], "rejected": [(0, 150), (1, 60)]}


def test_what_no_retry_gave_is_still_a_difference(store: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """An event that is in quarantine for a rule that no conf of a retry has."""
    made = conf(tmp_path)
    history = ConfHistory([ConfEra(0, cold(made, 20))], retried=[cold(made, 100)])
    store.execute("insert into quarantine by name (select ['invented'] as broken_rules, 0 as bronze_batch, 0 as bronze_row, 0 as part)")
    assert evaluated(store, tmp_path, history, sent(0, 50)) == {"accepted": [], "rejected": [(0, 50)]}
    assert store.sql("select broken_rules from rejected").fetchall() == [(["is_cold"],)]


def counted(store: duckdb.DuckDBPyConnection, *rows: tuple[str, int, float, int]) -> None:
    """Readings of `oven`: metric, minutes after BEGIN, value, bronze batch."""
    listed = ", ".join(
        f"('oven', '{metric}', timestamp '{BEGIN + timedelta(minutes=minute):%Y-%m-%d %H:%M:%S}', {value}, {batch}, {n}, 0)"
        for n, (metric, minute, value, batch) in enumerate(rows)
    )
    store.execute(
        "create table counted as select *, ['kitchen'] as groups, false as is_late from (values " + listed + ")"
        " as rows(device_id, metric, event_time, value, bronze_batch, bronze_row, part)"
    )


def windows_of(store: duckdb.DuckDBPyConnection, history: ConfHistory, *values: tuple[str, int, float]) -> list[tuple[Any, ...]]:
    """Metric, minute of the end and value of each window that is expected. `values`: what gold has recorded."""
    store.execute("create table revisions (device_id VARCHAR, metric VARCHAR, window_end TIMESTAMP, value DOUBLE)")
    for metric, minute, value in values:
        end = BEGIN + timedelta(minutes=minute)
        store.execute(f"insert into revisions values ('oven', '{metric}', timestamp '{end:%Y-%m-%d %H:%M:%S}', {value})")
    windows_by_conf(store, history.running.groups["kitchen"], history, INGESTED_AT)
    begin = f"timestamp '{BEGIN:%Y-%m-%d %H:%M:%S}'"
    query = f"select metric, epoch_us(window_end - {begin}) // 60000000 as minute, value from windows order by all"
    return store.sql(query).fetchall()


def kitchen(made: Conf, aggregation: Aggregation, *metrics: str) -> Conf:
    declared = {name: Metric(name, aggregation, 600) for name in ("temperature", "power")}
    return replace(made, metrics=declared, groups={"kitchen": Group("kitchen", metrics, 600, "kitchen")})


def test_of_a_metric_that_is_aggregated_otherwise_a_window_has_the_value_of_either_conf_and_no_third(
    store: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    made = conf(tmp_path)
    eras = [ConfEra(0, kitchen(made, Aggregation.MAX, "temperature")), ConfEra(5, kitchen(made, Aggregation.MIN, "temperature"))]
    counted(store, *(("temperature", minute, float(minute % 10), minute // 10) for minute in (1, 3, 11, 13, 21, 23)))
    recorded = [("temperature", 10, 3.0), ("temperature", 20, 1.0), ("temperature", 30, 2.0)]
    assert windows_of(store, ConfHistory(eras), *recorded) == [("temperature", 10, 3.0), ("temperature", 20, 1.0), ("temperature", 30, 1.0)]


def test_of_a_metric_that_a_group_got_later_windows_that_reach_back_are_compared_on_neither_side(
    store: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    made = conf(tmp_path)
    eras = [ConfEra(0, kitchen(made, Aggregation.MAX, "temperature")), ConfEra(3, kitchen(made, Aggregation.MAX, "temperature", "power"))]
    counted(store, ("power", 1, 1.0, 0), ("power", 11, 2.0, 2), ("power", 12, 9.0, 3), ("power", 21, 4.0, 3), ("temperature", 1, 5.0, 0))
    recorded = [("power", 20, 9.0), ("power", 30, 4.0), ("temperature", 10, 5.0)]
    assert windows_of(store, ConfHistory(eras), *recorded) == [("power", 30, 4.0), ("temperature", 10, 5.0)]
    assert store.sql("select metric, value from revisions order by all").fetchall() == [("power", 4.0), ("temperature", 5.0)]
