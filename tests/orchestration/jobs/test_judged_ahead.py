"""Alerts that look at silver are judged ahead of gold."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from gold.alerts.spec import Alert, Signal
from orchestration.jobs.gold import slices
from orchestration.jobs.gold.exact_alerts import ExactAlert
from orchestration.jobs.gold.flows import judge_ahead
from orchestration.storage.commit import append_rows
from orchestration.storage.ops_tables import LEDGER, LEDGER_FLOW, LEDGER_SCHEMA
from tests.orchestration.jobs.test_alert_slices import FEW, HOT, VALUES, declared, followed, readings, rows_of

WARM = Alert("warm", Signal("window", "temperature", "kitchen"), "value > 250")


@pytest.mark.parametrize("ahead_at", [[0, 1, 2], [1], [2]])
def test_alerts_on_silver_that_are_judged_ahead_of_gold_have_the_same_rows_and_those_on_windows_wait(
    ahead_at: Sequence[int], tmp_path: Path
) -> None:
    whole, lake = declared(tmp_path / "whole", HOT, FEW), declared(tmp_path / "ahead", HOT, FEW, WARM)
    for batch in range(3):
        readings(lake, VALUES, 2, batch, since=batch * 1200)
        append_rows(lake.table_path(LEDGER), LEDGER_SCHEMA.empty_table(), lake.app_id(LEDGER_FLOW, LEDGER), batch)
        if batch in ahead_at:
            assert sum(judge_ahead(lake)) > 0
            assert sum(judge_ahead(lake)) == 0
    followed(whole, range(ahead_at[-1] + 1))
    assert [*rows_of(lake), *rows_of(lake, "few")] == [*rows_of(whole), *rows_of(whole, "few")]
    assert slices.position(lake, ExactAlert(WARM)).after.bronze_batch == -1
