"""Rules that fail for a measurement are broken by it; the account evaluates them without Spark."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from expectations.rule import Rule
from orchestration.audit.verify.silver_evaluator import Registered, SilverEvaluator
from orchestration.conf.model import Source
from orchestration.conf.transport_settings import LandingFolder
from orchestration.engine.lake import Lake
from orchestration.jobs.account import ledger
from orchestration.storage.positions import accounted_for
from silver.schema import REFERENCES
from tests.lakes import conf, event, land, minutes, run, table
from tests.rows import LONG, METRICS, POLICY, at, devices, events, silver

LINES = [event("oven" if n % 2 else "fridge", "temperature", n, time) for n, time in enumerate(minutes(at("2026-01-05T00:00:00"), 8))]
BREAKING = {
    "try_cast(zone as double) > 3 and try_cast(zone as double) < 9": "bc",
    "cast(floor(value) as text) = '2.0'": "a",
    "cast(zone as double) > 3 or value > 1": "",
    "100 / value > 10": "a",
    "value > 1 or 100 / value > 1": "a",
    "value % step_seconds > 1": "a",
    "'kitchen' in groups": "b",
    "length(groups) = 2": "ab",
    "try_cast(zone as timestamp) is null": "",
    "try_cast(zone as timestamp) > event_time": "abc",
}
"""Rules that cannot be computed for some readings, and the devices whose readings they turn away."""


def test_what_cannot_be_computed_of_a_reading_is_broken_by_it_and_ends_nothing(tmp_path: Path) -> None:
    """Of a: zone 5, 0 degrees, one group; b: zone hall-1, 2 degrees, no group; c: no zone, 2.5 degrees, two groups."""
    known = {"a": ("5", ["kitchen"]), "b": ("hall-1", []), "c": (None, ["kitchen", "x"])}
    registry = devices(*((name, zone, groups, None, True, "conf", at("1970-01-01")) for name, (zone, groups) in known.items()))
    rows = events([event(name, "temperature", value, at("00:00:01")) for name, value in zip(known, (0, 2, 2.5), strict=True)])
    rules = tuple(Rule(f"r{n}", predicate) for n, predicate in enumerate(BREAKING))
    expected = {name: [rule.name for rule in rules if name in BREAKING[rule.holds]] for name in known}

    _, quarantined = silver(rows, rules=rules, devices=registry)
    assert {row.device_id: row.broken_rules for row in quarantined} == expected
    for device in known:
        kept = tuple(rule for rule in rules if device not in BREAKING[rule.holds])
        assert device in {row.device_id for row in silver(rows, rules=kept, devices=registry)[0]}

    made = conf(tmp_path, metrics=METRICS, policy=POLICY, rules=rules, sources={"plant": Source("plant", LONG, LandingFolder(tmp_path))})
    rejected = SilverEvaluator.of(made, Registered(registry, REFERENCES.empty_table())).evaluate(rows).rejected.to_pylist()
    assert {row["device_id"]: row["broken_rules"] for row in rejected} == expected


def test_a_rule_of_conf_puts_measurements_in_quarantine_and_the_account_of_them_and_of_duplicates_asks_no_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = conf(tmp_path, groups={}, rules=(Rule("device_is_an_oven", "device_id = 'oven'"),))
    land(tmp_path, "1.json", [*LINES, "{broken", '{"device":"oven","metric":"temperature","value":99,"ts":"2026-01-05T00:01:00+00:00"}'])
    run(made, spark, ["bronze.events", "silver.readings"])

    class NoSpark:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"the account asked Spark for {name}")

    lake = Lake(made, NoSpark())  # type: ignore[arg-type]
    assert list(ledger.account_for_all(lake)) == [len(LINES) + 2]
    assert accounted_for(lake) == 0
    quarantine = table(made, "silver.quarantine").sort_values("bronze_row")
    assert [[*rules] for rules in quarantine["broken_rules"]] == [["device_is_an_oven"]] * 4 + [["payload_is_readable"]]
    assert (len(table(made, "silver.readings")), len(table(made, "silver.duplicates"))) == (4, 1)
