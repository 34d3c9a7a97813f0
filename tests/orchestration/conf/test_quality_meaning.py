"""Section `quality` of pipeline.yml: what it cannot mean is one line each, with the way out."""

from datetime import UTC, datetime
from pathlib import Path

from orchestration.conf.load import load
from orchestration.conf.model import GateMode, Quality, Reference
from tests.orchestration.conf.conftest import changed

GATES, CHANNELS = "gates: {}", "channels: []"


def test_by_default_nothing_is_held_and_nobody_told(folder: Path) -> None:
    assert load(folder).quality == Quality()


def test_what_is_set_is_kept(folder: Path) -> None:
    (folder / "alerts.yml").write_text('channels: {pager: {webhook: {url: "https://alerts.example/x"}}}\n')
    changed(folder, "pipeline", GATES, "gates: {silver.readings: hold, bronze.events: off}")
    changed(folder, "pipeline", CHANNELS, "channels: [pager]")
    changed(folder, "pipeline", "# reference", "reference")
    quality = load(folder).quality
    assert quality.gates == {"silver.readings": GateMode.HOLD, "bronze.events": GateMode.OFF}
    assert quality.channels == ("pager",)
    assert quality.reference == Reference(datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 12, tzinfo=UTC))
