"""The statistics of gold/alerts/README.md count alarms of two devices as people would."""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from gold.alerts.spec import Escalation
from tests.gold.alert_steps import ALERT, START, Step, judged

PAGE = (Path(__file__).parents[2] / "gold" / "alerts" / "README.md").read_text(encoding="utf-8")
PER_DAY, LONGEST, CHATTERING = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
DAY = 86_400
SAMPLES = [
    *(("oven", 0, True), ("oven", 700, False), ("oven", 900, True), ("oven", 960, False), ("oven", 1000, True), ("oven", 1060, False)),
    *(("fridge", DAY - 60, True), ("fridge", DAY + 60, False), ("fridge", 2 * DAY, True), ("fridge", 2 * DAY + 10, None)),
    ("oven", 2 * DAY + 5, True),
    ("oven", 2 * DAY + 50, False),
]


@pytest.fixture(scope="module")
def store() -> duckdb.DuckDBPyConnection:
    """Oven: three alarms of 700, 60 and 60 s, 200 and 40 s apart, and one two days later. Fridge: one over midnight, one that goes on."""
    escalating = replace(ALERT, escalate=(Escalation(600, "critical"),))
    steps = [Step(second, [(entity, second, verdict)]) for entity, second, verdict in sorted(SAMPLES, key=lambda sample: sample[1])]
    changes = judged(escalating, {}, [*steps, Step(2 * DAY + 100)]).changes
    store = duckdb.connect()
    store.execute("set TimeZone = 'UTC'; create schema gold")
    store.register("changes", changes)
    store.execute("create table gold.alerts as from changes")
    return store


def asked(store: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return store.sql(query).fetchall()


def day(number: int) -> datetime:
    return START + timedelta(days=number)


def test_an_alarm_counts_on_the_day_on_which_it_fired(store: duckdb.DuckDBPyConnection) -> None:
    found = [(when.isoformat()[:10], entity, count) for when, entity, count in asked(store, PER_DAY)]
    days = [f"{day(number):%Y-%m-%d}" for number in range(3)]
    assert found == [(days[0], "oven", 3), (days[0], "fridge", 1), (days[2], "fridge", 1), (days[2], "oven", 1)]


def test_the_longest_come_first_and_what_still_fires_lasts_until_the_newest_change(store: duckdb.DuckDBPyConnection) -> None:
    found = [(entity, lasted.total_seconds(), ended is None) for _, entity, _, ended, lasted in asked(store, LONGEST)]
    assert found[:3] == [("oven", 700, False), ("fridge", 120, False), ("oven", 60, False)]
    assert ("fridge", 50, True) in found
    assert len(found) == 6


def test_what_comes_again_within_ten_minutes_of_its_end_chatters(store: duckdb.DuckDBPyConnection) -> None:
    assert asked(store, CHATTERING) == [("hot", "oven", 2)]
