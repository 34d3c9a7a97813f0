"""The account evaluates rules in its own process, and asks Spark only about a rule that nobody else knows."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from expectations.rule import Rule
from orchestration.engine.lake import Lake
from orchestration.jobs import ledger
from orchestration.storage.positions import accounted_for
from tests.lakes import conf, event, land, minutes, run, table
from tests.rows import at

LINES = [event("oven" if n % 2 else "fridge", "temperature", n, time) for n, time in enumerate(minutes(at("2026-01-05T00:00:00"), 8))]
KNOWN, ONLY_SPARK = (
    Rule("device_is_an_oven", "device_id = 'oven'"),
    Rule("device_sounds_like_an_oven", "soundex(device_id) = soundex('oven')"),
)


@pytest.mark.parametrize("rule", [KNOWN, ONLY_SPARK], ids=["translated", "by_spark"])
def test_a_rule_of_conf_puts_the_same_measurements_in_quarantine_whoever_evaluates_it(
    rule: Rule, spark: SparkSession, tmp_path: Path
) -> None:
    made = conf(tmp_path, groups={}, rules=(rule,))
    land(tmp_path, "1.json", [*LINES, "{broken"])
    run(made, spark)
    quarantine = table(made, "silver.quarantine").sort_values("bronze_row")
    assert [[*rules] for rules in quarantine["broken_rules"]] == [[rule.name]] * 4 + [["payload_is_readable"]]
    assert len(table(made, "silver.readings")) == 4


def test_the_account_of_broken_late_and_duplicate_events_asks_no_spark(spark: SparkSession, tmp_path: Path) -> None:
    made = conf(tmp_path, groups={}, rules=(KNOWN,))
    land(tmp_path, "1.json", [*LINES, "{broken", '{"device":"oven","metric":"temperature","value":99,"ts":"2026-01-05T00:01:00+00:00"}'])
    run(made, spark, ["bronze.events", "silver.readings"])

    class NoSpark:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"the account asked Spark for {name}")

    lake = Lake(made, NoSpark())  # type: ignore[arg-type]
    assert list(ledger.account_for_all(lake, lambda _: pytest.fail("the account asked for tables of Spark"))) == [len(LINES) + 2]
    assert accounted_for(lake) == 0
    assert (len(table(made, "silver.quarantine")), len(table(made, "silver.duplicates"))) == (5, 1)
