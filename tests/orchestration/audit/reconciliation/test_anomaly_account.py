"""The ledger's account of anomalies: a vector that has no row, or several, is named."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from orchestration.audit.reconciliation.anomaly_account import anomaly_account
from orchestration.cli.app import exit_code
from orchestration.engine.lake import Lake
from orchestration.storage.delta import version_of
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS
from orchestration.utc import from_micros
from tests.judged_lake import START, STEP, follow, lake_of, vectors
from tests.lakes import recorded, rewrite

ROWS = 400


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two ovens that learn for two days and a window; one is amended, and has a window that late rows alone made."""
    lake = lake_of(tmp_path)
    vectors(lake, ("oven-1", "oven-2"), [*range(ROWS - 1)], 0)
    vectors(lake, ("oven-2",), [350, ROWS - 1], 0, revision=1)
    follow(lake, 0, ROWS)
    return lake


def pinned(lake: Lake) -> Snapshot:
    closed = from_micros(START + ROWS * STEP)
    versions = {name: version_of(table.location) for name, table in lake.tables.items()}
    return Snapshot(0, closed, 1, 0, versions, {"gold.flows/anomalies/kitchen": closed})


def account(lake: Lake, since: date | None = None) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    return anomaly_account(lake, pinned(lake), since)


def test_every_vector_is_scored_or_has_a_reason(lake: Lake) -> None:
    counts = {"vectors": 799, "scored": 221, "learning": 578, "too_few_features": 0, "missing": 0, "duplicated": 0}
    assert account(lake) == ([{"group": "kitchen"} | counts], [])
    second_day = from_micros(START).date() + timedelta(days=2)
    assert account(lake, second_day)[0][0]["vectors"] == 799 - 2 * 288


@pytest.mark.parametrize(
    ("change", "count", "wrong"),
    [
        (lambda rows: rows.slice(1), "missing", "0 rows in gold.anomalies, 1 vector in gold.vectors"),
        (lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]), "duplicated", "2 rows in gold.anomalies, 1 vector in gold.vectors"),
    ],
)
def test_a_vector_without_a_row_and_one_with_two_are_named(
    lake: Lake, change: Callable[[pa.Table], pa.Table], count: str, wrong: str
) -> None:
    rewrite(lake, "gold.kitchen_anomalies", change(recorded(lake, "gold.kitchen_anomalies")))
    (row,), named = account(lake)
    assert (row[count], [of_vector["wrong"] for of_vector in named]) == (1, [wrong])


def test_the_command_shows_it_and_ends_with_exit_code_1_where_a_vector_has_no_row(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Lake, "open", classmethod(lambda *_: Lake(lake.conf)))
    SNAPSHOTS.append(lake.conf.lake, [pinned(lake)])
    assert exit_code(["ledger", "--gold"]) == 0
    assert "too_few_features" in capsys.readouterr().out
    rewrite(lake, "gold.kitchen_anomalies", recorded(lake, "gold.kitchen_anomalies").slice(1))
    SNAPSHOTS.append(lake.conf.lake, [replace(pinned(lake), snapshot_id=1)])
    assert exit_code(["ledger", "--gold", "--format", "json"]) == 1
    assert "(vector)" in capsys.readouterr().err
