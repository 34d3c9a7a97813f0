"""The ledger where events came twice: the same account in pieces of any size."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from orchestration.conf.model import Source
from orchestration.conf.transport_settings import LandingFolder
from orchestration.jobs.account import measurements
from orchestration.storage import row_pieces
from silver import account
from silver.schema import DUPLICATES
from silver.spec import Origin, PayloadFormat, Time
from tests.lakes import conf, event, land, minutes, multiset, run, table
from tests.rows import at

START = at("2026-01-05T00:00:00")
ROOMS = PayloadFormat("csv", Origin(file_name=r"(\w+)\."), Time("when"), metrics={"temperature": "T", "power": "P"}, has_header=True)
SILVER = ("bronze.events", "silver.readings", "silver.ledger")
OF_A_DUPLICATE = [name for name in DUPLICATES.names if name != "ingested_at"]


def accounted(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """What the account has, by table."""
    plain = conf(folder, groups={})
    made = replace(plain, sources=plain.sources | {"rooms": Source("rooms", ROOMS, LandingFolder(folder / "rooms", settle_seconds=0.0))})
    lines = [event("oven", "temperature", n, time) for n, time in enumerate(minutes(START, 31))]
    other = event("oven", "temperature", 99, START + timedelta(minutes=5))  # the same key, another value
    land(folder, "1.json", [*lines, lines[3], lines[3], "{broken", "{broken", other])
    for name in ("oven", "fridge"):  # the same bytes, another device
        land(folder, f"{name}.csv", ["T,when,P", "1,2026-01-05 01:00,2", "1,2026-01-05 01:00,2"], "rooms")
    run(made, spark, SILVER)
    kinds = {"duplicates": OF_A_DUPLICATE, "quarantine": ["payload", "source"], "late": ["value"]}
    return {name: multiset(table(made, f"silver.{name}"), columns) for name, columns in kinds.items()}


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return accounted(spark, tmp_path_factory.mktemp("whole"))


def test_each_measurement_of_an_event_that_came_again_is_a_duplicate(whole: dict[str, Any]) -> None:
    assert {name: sum(rows.values()) for name, rows in whole.items()} == {"duplicates": 7, "quarantine": 2, "late": 0}


def test_the_account_does_not_depend_on_how_it_is_cut(
    whole: dict[str, Any], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((row_pieces, "PIECE_ROWS"), (measurements, "KEYS_AT_ONCE"), (measurements, "BATCH_ROWS")):
        monkeypatch.setattr(module, name, 2)
    monkeypatch.setattr(account, "MAX_QUARANTINE_BYTES", 1)
    assert accounted(spark, tmp_path) == whole
    groups = {name: row_groups(tmp_path / "lake" / "silver" / name) for name in ("quarantine", "duplicates")}
    assert groups["quarantine"] == 2 < groups["duplicates"]


def row_groups(table: Path) -> int:
    """Of its only file: as many as there were pieces."""
    (file,) = DeltaTable(table).file_uris()
    return int(pq.read_metadata(file).num_row_groups)
