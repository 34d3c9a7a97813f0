"""The ledger on a lake in which events came twice: the same account, whether they are looked at one by one or known by their bytes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from orchestration.conf.model import Source
from orchestration.engine.lake import Lake
from orchestration.jobs import turned_away_few
from orchestration.jobs.ranges import Range
from silver import few
from silver.schema import DUPLICATES
from silver.spec import Origin, PayloadFormat, Time
from tests.lakes import conf, event, land, minutes, multiset, run, table
from tests.rows import at

START = at("2026-01-05T00:00:00")
ROOMS = PayloadFormat("csv", Origin(file_name=r"(\w+)\."), Time("when"), metrics={"temperature": "T", "power": "P"}, has_header=True)
SILVER = ("bronze.events", "silver.readings", "silver.ledger")
OF_A_DUPLICATE = [line.split()[0] for line in DUPLICATES.strip().splitlines() if not line.strip().startswith("ingested_at")]


def accounted(spark: SparkSession, folder: Path) -> dict[str, Any]:
    plain = conf(folder, groups={})
    made = replace(plain, sources=plain.sources | {"rooms": Source("rooms", folder / "rooms", ROOMS, settle_seconds=0.0)})
    lines = [event("oven", "temperature", n, time) for n, time in enumerate(minutes(START, 31))]
    other = event("oven", "temperature", 99, START + timedelta(minutes=5))  # the same key, another value
    land(folder, "1.json", [*lines, lines[3], lines[3], "{broken", "{broken", other])
    for name in ("oven", "fridge"):  # the same bytes, another device
        land(folder, f"{name}.csv", ["T,when,P", "1,2026-01-05 01:00,2", "1,2026-01-05 01:00,2"], "rooms")
    run(made, spark, SILVER)
    kinds = {"duplicates": OF_A_DUPLICATE, "quarantine": ["payload", "source"], "late": ["value"]}
    return {name: multiset(table(made, f"silver.{name}"), columns) for name, columns in kinds.items()}


def test_copies_are_told_as_when_they_are_judged(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[int] = []
    judge: Callable[..., Any] = turned_away_few._judged

    def counting(*given: Any) -> Any:
        judged.append(len(given[3]))
        return judge(*given)

    monkeypatch.setattr(turned_away_few, "_judged", counting)
    known_by_their_bytes = accounted(spark, tmp_path / "known")
    monkeypatch.setattr(
        few, "copies", lambda events, *_: pa.table({name: pa.array([], pa.int64()) for name in ("bronze_batch", "bronze_row", "kept_row")})
    )
    assert known_by_their_bytes == accounted(spark, tmp_path / "judged")
    assert sum(known_by_their_bytes["duplicates"].values()) == 7
    assert judged == [3, 7]


def test_what_is_too_long_for_memory_spark_sorts_out(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = accounted(spark, tmp_path / "short")
    assert not any("Spark" in writer for writer in writers(tmp_path / "short"))
    monkeypatch.setattr(turned_away_few, "MOST_BYTES", 0)
    assert short == accounted(spark, tmp_path / "long")
    assert any("Spark" in writer for writer in writers(tmp_path / "long"))


def writers(folder: Path) -> list[str]:
    return [
        commit.get("engineInfo", "") for commit in DeltaTable(folder / "lake/silver/quarantine").history() if commit["operation"] == "WRITE"
    ]


@pytest.mark.parametrize(("most", "readings", "is_read"), [(114, 3, True), (113, 3, False), (114, 2, False)])
def test_events_are_few_by_payloads_headers_and_what_they_may_hold(
    most: int, readings: int, is_read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turned_away_few, "MOST_READINGS", readings)
    monkeypatch.setattr(turned_away_few, "SMALL_BATCH_BYTES", most)
    lake = Lake(conf(tmp_path))
    rows = [{"payload": b"1,2", "header": "when," * 7, "bronze_batch": 0, "bronze_row": n} for n in range(4)]
    write_deltalake(lake.table_path("bronze.events"), pa.Table.from_pylist(rows))
    keys = pa.table({"bronze_batch": [0, 0, 0], "bronze_row": [0, 1, 3]})
    found = turned_away_few.read(lake, Range(-1, 0), keys)
    assert (found is not None) == is_read
