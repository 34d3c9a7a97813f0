"""Tables of one kind are evaluated together first: each gets the results that it would get alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from gold.windows.spec import Group
from orchestration.engine.lake import Lake
from orchestration.quality import check as checking
from orchestration.quality.check import Scope, check
from orchestration.quality.outcome import TableResult
from orchestration.quality.suites import packaged
from orchestration.storage.generations import Generation
from tests.lakes import bare_conf, write
from tests.orchestration.quality.test_quality_suites import HEALTHY
from tests.rows import INGESTED_AT

GOOD = HEALTHY["gold_aggregates"]
TABLES = {
    "good": [GOOD, GOOD],
    "odd": [GOOD, GOOD | {"device_id": None}, GOOD | {"value": float("nan")}],
    "wider": [GOOD, GOOD | {"latest": 9.0}],
    "empty": [],
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A group for each of TABLES; that of `wider` is in a table of its own."""
    conf = bare_conf(tmp_path, groups={name: Group(name, ("temperature",), 600, name) for name in TABLES})
    lake = Lake(conf, generation=Generation(1, 2, places={"checkpoints/gold.wider": 2}))
    for name, rows in TABLES.items():
        write(lake, f"gold.{name}_aggregates", *rows)
    return lake


def evaluated(lake: Lake) -> dict[str, TableResult]:
    chosen = [suite for suite in packaged() if suite.name == "gold_aggregates"]
    run = check(lake, chosen, INGESTED_AT, lambda _: None, Scope(layer="gold"))
    return {table.table.removesuffix("_aggregates"): replace(table, table_id=None) for table in run.tables if table.results}


def test_what_is_asked_of_many_tables_at_once_is_told_of_each_as_if_it_were_alone(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    together = evaluated(lake)
    failed = {name: {result.expectation.description for result in table.failed} for name, table in together.items()}
    assert failed == {
        "gold.good": set(),
        "gold.odd": {
            "Every window names its device.",
            "Every value is a finite number.",
            "Every value can be explained by the readings of its window.",
        },
        "gold.wider": {"Every latest value lies between the least and the greatest."},
        "gold.empty": {"Some window of the group has closed."},
    }
    monkeypatch.setattr(checking, "true_of_every_row", lambda *_: set())
    assert evaluated(lake) == together
