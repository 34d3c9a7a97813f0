"""What cannot be reached is told by a small file, which lasts as long as the outage."""

import os
from datetime import UTC, datetime
from pathlib import Path

from orchestration.connectors.outages import FOLDER, Outage, Outages, answers_since, begin_outage, current_outage, end_outage
from orchestration.location import Location
from tests.rows import at

NOON = at("2026-01-05T12:00:00")


def test_an_outage_keeps_its_beginning_and_its_first_reason_until_it_ends(tmp_path: Path) -> None:
    lake, outage = Location(tmp_path), Outage("2026-01-05T12:00:00Z", "no answer")
    assert begin_outage(lake, "source", "fleet", "no answer", NOON) == outage
    assert begin_outage(lake, "source", "fleet", "still none", at("2026-01-05T13:00:00")) == outage
    assert (current_outage(lake, "source", "fleet"), current_outage(lake, "sink", "fleet")) == (outage, None)
    assert (end_outage(lake, "source", "fleet"), end_outage(lake, "source", "fleet")) == (outage, None)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_a_damaged_file_still_tells_since_when(tmp_path: Path) -> None:
    lake = Location(tmp_path)
    begin_outage(lake, "sink", "export", "no answer", NOON)
    file = tmp_path / FOLDER / "sink" / "export.json"
    file.write_bytes(file.read_bytes().replace(b"answer", b"banana"))
    reason = f"{file} is damaged: its bytes differ from those that were written.\n  It tells only since when."
    damaged = Outage("2026-01-05T12:00:00Z", reason)
    assert current_outage(lake, "sink", "export") == damaged == end_outage(lake, "sink", "export")
    assert current_outage(lake, "sink", "export") is None


def test_what_answers_says_since_when_whatever_time_its_file_has(tmp_path: Path) -> None:
    lake = Location(tmp_path)
    assert answers_since(lake, "source", "fleet") is None
    Outages(lake, "source", lambda _: None).answered("fleet")
    (file,) = (file for file in tmp_path.rglob("*") if file.is_file())
    os.utime(file, (NOON.timestamp(), NOON.timestamp()))
    since = answers_since(lake, "source", "fleet")
    assert since is not None
    assert NOON < since <= datetime.now(UTC)
