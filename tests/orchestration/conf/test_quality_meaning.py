"""Section `quality` of pipeline.yml: what it cannot mean is one line each, with the way out."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.conf.model import GateMode, Quality, Reference
from tests.orchestration.conf.conftest import changed

SCHEDULE, SCHEDULES, GATES, WEBHOOK = "schedule: null", "schedules: {}", "gates: {}", "webhook: null"
CASES = [
    pytest.param(
        SCHEDULE,
        "schedule: 99 * * * *",
        "conf/pipeline.yml:30: quality.schedule is '99 * * * *', which is no schedule: bad minute; write minute, hour, day of month, month"
        " and day of week, such as '15 3 * * *'",
        id="minute 99",
    ),
    pytest.param(
        SCHEDULES,
        "schedules: {silver_readings: daily}",
        "conf/pipeline.yml:31: quality.schedules.silver_readings is 'daily', which is no schedule: wrong number of fields; write minute,"
        " hour, day of month, month and day of week, such as '15 3 * * *'",
        id="no cron expression",
    ),
    pytest.param(
        SCHEDULES,
        "schedules: {silver_reading: 0 * * * *}",
        "conf/pipeline.yml:31: quality.schedules names 'silver_reading', which is no suite; did you mean 'silver_readings'?",
        id="unknown suite",
    ),
    pytest.param(
        GATES,
        "gates: {silver.reading: hold}",
        "conf/pipeline.yml:32: quality.gates names 'silver.reading', which is no table; did you mean 'silver.readings'?",
        id="unknown table",
    ),
    pytest.param(
        GATES,
        "gates: {gold.kitchen_aggregates: hold}",
        "conf/pipeline.yml:32: quality.gates.gold.kitchen_aggregates is 'hold', but only silver.readings is handed over to another layer;"
        " choose 'warn', or hold silver.readings",
        id="hold where nothing is handed over",
    ),
    pytest.param(
        GATES,
        "gates: {silver.readings: holt}",
        "conf/pipeline.yml:32: quality.gates.silver.readings is 'holt'; did you mean 'hold'?",
        id="unknown mode",
    ),
    pytest.param(
        WEBHOOK,
        "webhook: alerts.example",
        "conf/pipeline.yml:33: quality.webhook is 'alerts.example'; write an address that begins with https:// or http://",
        id="no address",
    ),
    pytest.param(
        "# reference: {from: 2026-01-05T00:00:00Z, until",
        "reference: {from: yesterday, until",
        "conf/pipeline.yml:34: quality.reference.from is 'yesterday', which is no instant; write one in ISO 8601, such as"
        " 2026-01-05T00:00:00Z",
        id="no instant",
    ),
    pytest.param(
        "# reference: {from: 2026-01-05T00:00:00Z, until",
        "reference: {from: 2026-02-05T00:00:00Z, until",
        "conf/pipeline.yml:34: quality.reference.from is '2026-02-05T00:00:00Z', not before until (2026-01-12T00:00:00Z); swap them or"
        " correct one",
        id="time that ends before it begins",
    ),
]


@pytest.mark.parametrize(("old", "new", "line"), CASES)
def test_a_mistake_is_told_on_its_line(old: str, new: str, line: str, mistakes_after: Callable[..., list[str]]) -> None:
    assert mistakes_after(("pipeline", old, new)) == [line]


def test_by_default_nothing_is_scheduled_and_nothing_held(folder: Path) -> None:
    assert load(folder).quality == Quality()


def test_what_is_set_is_kept_and_a_suite_of_the_conf_may_be_named(folder: Path) -> None:
    (folder / "expectations").mkdir()
    (folder / "expectations" / "ours.yml").write_text("{}")
    changed(folder, "pipeline", SCHEDULE, "schedule: 15 3 * * *")
    changed(folder, "pipeline", SCHEDULES, "schedules: {ours: 0 * * * *, gold_vectors: null}")
    changed(folder, "pipeline", GATES, "gates: {silver.readings: hold, bronze.events: off}")
    changed(folder, "pipeline", WEBHOOK, "webhook: https://alerts.example/x?y=1")
    changed(folder, "pipeline", "# reference", "reference")
    quality = load(folder).quality
    assert [quality.schedule_of(suite) for suite in ("silver_readings", "ours", "gold_vectors")] == ["15 3 * * *", "0 * * * *", None]
    assert quality.gates == {"silver.readings": GateMode.HOLD, "bronze.events": GateMode.OFF}
    assert quality.webhook == "https://alerts.example/x?y=1"
    assert quality.reference == Reference(datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 12, tzinfo=UTC))
