"""Section `quality` of pipeline.yml: what it cannot mean is one line each, with the way out."""

from datetime import UTC, datetime
from pathlib import Path

from orchestration.conf.load import load
from orchestration.conf.model import GateMode, Quality, Reference
from tests.orchestration.conf.conftest import changed

SCHEDULE, SCHEDULES, GATES, WEBHOOK = "schedule: null", "schedules: {}", "gates: {}", "webhook: null"


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
