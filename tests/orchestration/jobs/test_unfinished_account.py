"""An account that was killed between two of its tables is ended as it was begun, whatever became of the rules."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.audit.reconciliation import account
from orchestration.audit.reconciliation.discrepancies import discrepancies
from orchestration.conf.model import Conf
from orchestration.crash import Point
from orchestration.engine.lake import Lake
from tests.lakes import METRICS, conf, event, land, minutes, run, table
from tests.orchestration.jobs.killed import killed
from tests.rows import at

START = at("2026-01-05T00:00:00")
SILVER = ("bronze.events", "silver.readings", "silver.ledger")


@pytest.mark.parametrize("written", [1, 2])  # quarantine; late as well
def test_what_is_in_quarantine_already_stays_there_and_what_is_not_is_late(written: int, spark: SparkSession, tmp_path: Path) -> None:
    made = conf(tmp_path, groups={})
    land(tmp_path, "1.json", [event("oven", "temperature", 70, time) for time in minutes(START, 31)])
    run(bounded(made, 0.0, 100.0), spark, SILVER)
    hot, late = (event("oven", "temperature", value, START + timedelta(minutes=5.5, seconds=value)) for value in (500, 50))
    land(tmp_path, "2.json", [hot, late])
    with killed(Point.LEDGER_TABLE_WRITTEN, written):
        run(bounded(made, 0.0, 100.0), spark, SILVER)
    run(bounded(made, 60.0, 1000.0), spark, SILVER)  # now it is the other one that would be refused
    assert [sorted(table(made, f"silver.{name}").value) for name in ("quarantine", "late", "duplicates")] == [[500], [50], []]
    tables = account.open_tables(Lake(made))
    assert discrepancies(tables, account.account(tables), {}) == []


def bounded(made: Conf, least: float, most: float) -> Conf:
    """With such bounds for a temperature."""
    return replace(made, metrics=METRICS | {"temperature": replace(METRICS["temperature"], minimum=least, maximum=most)})
