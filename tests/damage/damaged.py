"""A lake to damage, as often as a test likes."""

import io
import shutil
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from gold.flows.spec import FlowSpec, Sessions
from orchestration.cli.app import exit_code
from orchestration.conf.model import Conf
from orchestration.connectors.sinks.dead_rows import DEAD_ROWS, DeadRow, State
from orchestration.engine import queries, writing
from orchestration.engine.lake import Lake
from orchestration.engine.session import HEAP_STORE
from orchestration.storage.ops_tables import OBJECTS, ClaimedObject
from orchestration.storage.sealing import Sealing
from tests.lakes import KITCHEN, conf, copy_tree, event, land, minutes, multiset, run, table
from tests.rows import at

START = at("2026-01-05T00:00:00")
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
REFUSED = DeadRow("far", "silver.readings", "1", "odd", State.DEAD, 0, "1", START)
CLAIMED = ClaimedObject("bucket", 1, "a.json", '"1"', START, 1, START)
CLOCK = {"ingested_at", "ingested_on", "received_at"}
TABLES = (
    *("bronze.events", "silver.readings", "silver.quarantine", "silver.late", "silver.duplicates", "ops.ledger"),
    *("gold.aggregates", "gold.vectors", "gold.late", "gold.sessions"),
)


@dataclass(frozen=True)
class Damaged:
    """A lake to damage, again and again: at the same place, since bronze knows files by where they are."""

    made: Conf
    spark: SparkSession

    @property
    def folder(self) -> Path:
        return self.made.folder

    def restore(self) -> None:
        """As it was before any damage."""
        shutil.rmtree(self.made.lake.local)
        copy_tree(self.folder / "whole", self.made.lake.local)
        (self.folder / "landing" / "3.json").unlink(missing_ok=True)
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]

    def go_on(self) -> None:
        """With events of which some are late, some were there before, one is broken."""
        late = event("oven", "temperature", 5, START + timedelta(minutes=4, seconds=7))
        land(self.folder, "3.json", [*readings(78, 120, 1), *readings(120, 122, 2), "{broken", late])
        _run(self.made, self.spark)

    def content(self) -> dict[str, Mapping[Any, int]]:
        """Every table as a multiset of its rows, without the instants at which something was run."""
        tables = {name: table(self.made, name) for name in TABLES}
        return {name: multiset(rows, sorted({*rows.columns} - CLOCK)) for name, rows in tables.items()}

    @cached_property
    def undisturbed(self) -> dict[str, Mapping[Any, int]]:
        """What the tables hold when nothing was damaged."""
        self.restore()
        self.go_on()
        content = self.content()
        self.restore()
        return content

    def serve(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """To the command line, whatever conf it is told."""
        for loader in ("conf.load.load", "engine.lake.load", "storage.confs.load", "cli.replay.read_conf"):
            monkeypatch.setattr(f"orchestration.{loader}", lambda _: self.made)

    def answers(self, command: str, *options: str) -> tuple[int, str]:
        """Exit code and output of a command."""
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            code = exit_code([command, *options])
        return code, printed.getvalue()


def readings(first: int, last: int, value: int) -> list[str]:
    """A reading a minute, from the first to before the last."""
    return [event("oven", "temperature", value * n, time) for n, time in enumerate(minutes(START, last)) if n >= first]


def opened(folder: Path, spark: SparkSession) -> Damaged:
    """One that was built there."""
    return Damaged(conf(folder, groups={"kitchen": KITCHEN}, flows={"warm": FlowSpec("warm", sessions=Sessions(60, "temperature"))}), spark)


def build(folder: Path, spark: SparkSession, provider: str = HEAP_STORE) -> Damaged:
    """Two bronze batches, with late rows and duplicates; the lake as it was after the first is in `earlier`."""
    lake = opened(folder, spark)
    made, readings_table = lake.made, lake.made.lake.local / "silver" / "readings"
    spark.conf.set(PROVIDER, provider)
    with patch.dict(queries.SNAPSHOTS, maintenanceInterval="100ms", minDeltasForSnapshot="1"):  # two short runs would leave none
        land(folder, "1.json", [*readings(0, 45, 1), "{broken", *readings(3, 5, 1)])
        DEAD_ROWS.append(made.lake, [REFUSED])
        OBJECTS.append(made.lake, [CLAIMED])
        _run(made, spark)
        DeltaTable(readings_table).create_checkpoint()
        copy_tree(made.lake.local, folder / "earlier")
        land(folder, "2.json", [*readings(45, 80, 1), event("fridge", "power", 5, START + timedelta(minutes=3))])
        OBJECTS.append(made.lake, [replace(CLAIMED, number=2, key="with a longer name.json")])
        DEAD_ROWS.append(made.lake, [replace(REFUSED, row_key="2", reason="odd, and for another reason")])
        _run(made, spark)
    DeltaTable(readings_table).create_checkpoint()
    Sealing(Lake(made), ["silver.readings", "gold.kitchen"]).seal_finished_batches()
    copy_tree(made.lake.local, folder / "whole")
    spark.conf.set(PROVIDER, HEAP_STORE)
    return lake


def _run(made: Conf, spark: SparkSession) -> None:
    """All by Spark, whose commits have checksums, which can be damaged too."""
    with patch.object(writing, "FEW_BYTES", -1):
        run(made, spark)
