"""The ledger on a lake in which events came twice: the same account, whether they are looked at one by one or known by their bytes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from orchestration.conf.model import Source
from orchestration.jobs import turned_away_few
from silver import few
from silver.schema import DUPLICATES
from silver.spec import Origin, Shape, Time
from tests.lakes import conf, event, land, minutes, multiset, run, table
from tests.rows import at

START = at("2026-01-05T00:00:00")
ROOMS = Shape("csv", Origin(file_name=r"(\w+)\."), Time("when"), metrics={"temperature": "T", "power": "P"}, has_header=True)
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
