"""`tidemark quarantine` as a command: what it lists and shows without Spark, and when a retry is refused."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestration.audit.quarantine import COUNTED, SHOWN
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.storage.lease import sole_writer
from tests.commands import Rows, Tidemark
from tests.lakes import conf, write

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Conf:
    """Five rows a minute apart: three of one rule, one of two rules, one of another source whose payload would steer a terminal."""
    found = conf(tmp_path)
    monkeypatch.setattr(Lake, "open", classmethod(lambda *_: Lake(found)))
    rules = [["value_is_in_range"]] * 3 + [["value_is_in_range", "device_is_known"], ["payload_is_utf8"]]
    rows: list[dict[str, Any]] = [
        {"bronze_batch": 0, "bronze_row": n, "part": 0, "source": "plant", "ingested_at": NOON + timedelta(minutes=n)}
        | {"broken_rules": broken, "payload": b'{"n":%d}' % n}
        for n, broken in enumerate(rules)
    ]
    rows[3] |= {"device_id": "x9", "value": 900.0}
    rows[4] |= {"source": "o'hare", "payload": b"\x1b[31m\xff" + b"x" * 1000}
    write(Lake(found), "silver.quarantine", *rows)
    return found


def answer(tidemark: Tidemark, *arguments: str) -> Rows:
    said = tidemark("quarantine", *arguments, "--format", "json")
    assert said.code == 0, said.err
    return said.rows


def test_list_counts_by_rule_and_source_and_says_since_when(made: Conf, tidemark: Tidemark) -> None:
    rows = answer(tidemark, "list")
    assert [tuple(row.values()) for row in rows] == [
        ("value_is_in_range", "plant", 4, "2026-01-05T12:00:00Z", "2026-01-05T12:03:00Z"),
        ("device_is_known", "plant", 1, "2026-01-05T12:03:00Z", "2026-01-05T12:03:00Z"),
        ("payload_is_utf8", "o'hare", 1, "2026-01-05T12:04:00Z", "2026-01-05T12:04:00Z"),
    ]
    assert tuple(rows[0]) == COUNTED


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], [4, 3, 2, 1, 0]),
        (["--limit", "2"], [4, 3]),
        (["--rule", "device_is_known"], [3]),
        (["--rule", "value_is_in_range", "--source", "plant"], [3, 2, 1, 0]),
        (["--source", "o'hare"], [4]),
        (["--rule", "no such rule' or true --"], []),
    ],
)
def test_show_gives_the_newest_rows_of_a_rule_and_a_source(
    arguments: list[str], expected: list[int], made: Conf, tidemark: Tidemark
) -> None:
    rows = answer(tidemark, "show", *arguments)
    assert [row["bronze_row"] for row in rows] == expected
    assert {tuple(row) for row in rows} <= {SHOWN}


def test_each_row_has_the_reason_of_each_rule_that_it_breaks(made: Conf, tidemark: Tidemark) -> None:
    (other,) = answer(tidemark, "show", "--source", "o'hare")
    (row,) = answer(tidemark, "show", "--rule", "device_is_known")
    assert (other["reason"], row["reason"]) == ("", "900.0 is not in any to any; 'x9' is not in devices.yml")


def test_a_payload_is_whole_for_programs_and_short_and_harmless_for_people(made: Conf, tidemark: Tidemark) -> None:
    (row,) = answer(tidemark, "show", "--source", "o'hare")
    assert row["payload"] == "\x1b[31m\\xff" + "x" * 1000
    assert "\\x1b[31m\\xff" + "x" * 94 + "... (1,006 bytes)" in tidemark("quarantine", "show", "--source", "o'hare").out


def test_a_retry_is_refused_while_another_process_writes_the_lake(made: Conf, tidemark: Tidemark) -> None:
    with sole_writer(made.lake):
        code, out, err = tidemark("quarantine", "retry")
    assert (code, out, err.startswith(f"tidemark: process {os.getpid()} on ")) == (3, "", True)
    assert err.endswith(f" writes the lake at {made.lake}; stop it first, or wait for its end.\n")


def test_a_lake_without_quarantine_has_nothing_to_list_or_to_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tidemark: Tidemark
) -> None:
    monkeypatch.setattr(Lake, "open", classmethod(lambda *_: Lake(conf(tmp_path))))
    assert [answer(tidemark, *words) for words in (["list"], ["show"], ["retry"], ["retry", "--dry-run"])] == [[], [], [], []]
