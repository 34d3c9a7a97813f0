"""An account that was killed between two of its tables is ended as it was begun, whatever became of the rules."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from orchestration import crash
from orchestration.audit.reconciliation import account
from orchestration.audit.reconciliation.discrepancies import discrepancies
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from tests.lakes import METRICS, conf, event, land, minutes, run, table
from tests.rows import at

START = at("2026-01-05T00:00:00")
SILVER = ("bronze.events", "silver.readings", "silver.ledger")


class KilledError(BaseException):
    """As a kill would, past every handler."""


@pytest.mark.parametrize("written", [1, 2])  # quarantine; late as well
def test_what_is_in_quarantine_already_stays_there_and_what_is_not_is_late(
    written: int, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = conf(tmp_path, groups={})
    land(tmp_path, "1.json", [event("oven", "temperature", 70, time) for time in minutes(START, 31)])
    run(bounded(made, 0.0, 100.0), spark, SILVER)
    hot, late = (event("oven", "temperature", value, START + timedelta(minutes=5.5, seconds=value)) for value in (500, 50))
    land(tmp_path, "2.json", [hot, late])
    passed: list[Any] = []

    def point(at: crash.Point) -> None:
        passed.append(at)
        if passed.count(crash.Point.LEDGER_TABLE_WRITTEN) == written:
            raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(crash, "point", point)
        run(bounded(made, 0.0, 100.0), spark, SILVER)
    run(bounded(made, 60.0, 1000.0), spark, SILVER)  # now it is the other one that would be refused
    assert [sorted(table(made, f"silver.{name}").value) for name in ("quarantine", "late", "duplicates")] == [[500], [50], []]
    tables = account.open_tables(Lake(made))
    assert discrepancies(tables, account.account(tables), {}) == []


def bounded(made: Conf, least: float, most: float) -> Conf:
    """With such bounds for a temperature."""
    return replace(made, metrics=METRICS | {"temperature": replace(METRICS["temperature"], minimum=least, maximum=most)})
