"""`tidemark ledger` as a command: what it prints, draws and answers. Lakes are written by hand: two batches of a long source."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from orchestration.audit.reconciliation.account import COLUMNS, KINDS
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.serving.plots.account import FATES, MAX_BARS, bars_of, draw
from orchestration.storage.ops_tables import COUNTED, LEDGER, LEDGER_FLOW, LEDGER_SCHEMA
from silver.schema import SOMETHING_IS_MEASURED
from tests.commands import Tidemark
from tests.lakes import conf, write

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
EVENTS_OF_A_BATCH = 3


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Conf:
    """Two batches of three events, a day apart, all of them readings; the ledger has passed both. The command finds this lake."""
    found = conf(tmp_path)
    monkeypatch.setattr(Lake, "open", classmethod(lambda *_: Lake(found)))
    silver(found, "readings", [])
    for kind in KINDS.values():
        silver(found, kind, [])
    for batch in range(2):
        sent(found, batch)
        silver(found, "readings", [(batch, row) for row in range(EVENTS_OF_A_BATCH)])
        passed(found, batch)
    return found


def sent(made: Conf, batch: int) -> None:
    """Events of a batch, as bronze has them; the first has a payload that would steer a terminal."""
    at = NOON + timedelta(days=batch)
    same = {"bronze_batch": batch, "source": "plant", "ingested_at": at, "ingested_on": at.date()}
    payloads = [b"\x1b[31m" + b"x" * 1000, *[b"{}"] * (EVENTS_OF_A_BATCH - 1)]
    write(Lake(made), "bronze.events", *(same | {"bronze_row": row, "payload": payload} for row, payload in enumerate(payloads)))


def silver(made: Conf, kind: str, identities: Sequence[tuple[int, int]], *, rule: str = "device_is_known") -> None:
    """Measurements of events that have one; a duplicate is a conflict if its row of bronze is odd."""
    same = {"part": 0, "parts": 1, "source": "plant", "broken_rules": [rule]}
    rows = ({"bronze_batch": batch, "bronze_row": row, "is_conflict": row % 2 == 1} | same for batch, row in identities)
    write(Lake(made), f"silver.{kind}", *rows)


def passed(made: Conf, batch: int) -> None:
    """What the ledger writes when it has accounted for a batch of nothing but readings."""
    counts = dict.fromkeys(COUNTED, 0) | {"events": EVENTS_OF_A_BATCH, "readings": EVENTS_OF_A_BATCH}
    row = pa.Table.from_pylist([{"bronze_batch": batch, "source": "plant"} | counts], LEDGER_SCHEMA)
    done = CommitProperties(app_transactions=[Transaction(Lake(made).app_id(LEDGER_FLOW, LEDGER), batch)])
    write_deltalake(made.lake.local / "ops/ledger", row, mode="append", commit_properties=done)


def answered(tidemark: Tidemark, *options: str) -> tuple[int, list[list[object]], str]:
    """Exit code, rows without their source, and stderr."""
    said = tidemark("ledger", "--format", "json", *options)
    assert all(tuple(row) == COLUMNS for row in said.rows)
    return said.code, [list(row.values())[1:] for row in said.rows], said.err


def test_a_clean_lake_is_a_row_a_day_and_a_yes(made: Conf, tidemark: Tidemark) -> None:
    days = [["2026-01-05", 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], ["2026-01-06", 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]
    assert answered(tidemark) == (0, days, "")


def test_since_a_day_counts_from_its_first_batch_on(made: Conf, tidemark: Tidemark) -> None:
    DeltaTable(made.lake.local / "silver/readings").delete("bronze_batch = 0")
    assert answered(tidemark, "--since", "2026-01-06") == (0, [["2026-01-06", 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]], "")
    assert answered(tidemark, "--since", "2026-01-07") == (0, [], "")
    assert answered(tidemark, "--since", "2026-01-05")[0] == 1


def test_events_that_the_ledger_has_not_come_to_are_waiting_whatever_silver_has_of_them(made: Conf, tidemark: Tidemark) -> None:
    sent(made, 2)
    silver(made, "readings", [(2, 0), (2, 1)])
    silver(made, "quarantine", [(2, 2)])  # a run that was killed while it accounted for the batch
    code, rows, _ = answered(tidemark, "--since", "2026-01-07")
    assert (code, rows) == (0, [["2026-01-07", 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3]])
    passed(made, 2)
    code, rows, _ = answered(tidemark, "--since", "2026-01-07")
    assert (code, rows) == (1, [["2026-01-07", 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0]])


def test_what_is_wrong_is_told_after_the_table_beside_a_payload_that_is_short_and_harmless(made: Conf, tidemark: Tidemark) -> None:
    DeltaTable(made.lake.local / "silver/readings").delete("bronze_row = 0")
    code, out, err = tidemark("ledger")
    assert (code, err) == (1, "")
    assert out.index("missing") < out.index("in no table of silver")
    assert "\\x1b[31mxxx" in out and "... (1,005 bytes)" in out
    assert "\x1b" not in out
    assert len(max(out.splitlines(), key=len)) < 300


def test_for_programs_stdout_is_rows_alone_and_what_is_wrong_is_on_stderr(made: Conf, tidemark: Tidemark) -> None:
    silver(made, "late", [(1, 2)])
    code, rows, err = answered(tidemark)
    assert (code, rows[1]) == (1, ["2026-01-06", 3, 3, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0])
    assert err.splitlines() == [
        "bronze_batch 1 bronze_row 2 part 0: more than once: in silver.readings and silver.late  {}",
        "bronze_batch 1: plant: late 1, was 0 when it was written",
    ]


def test_events_without_measurements_and_conflicts_have_columns_of_their_own(made: Conf, tidemark: Tidemark) -> None:
    sent(made, 2)
    silver(made, "quarantine", [(2, 0)], rule=SOMETHING_IS_MEASURED)
    silver(made, "duplicates", [(2, 1), (2, 2)])
    code, rows, _ = answered(tidemark, "--since", "2026-01-07")
    assert (code, rows) == (0, [["2026-01-07", 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3]])
    passed(made, 2)
    code, rows, err = answered(tidemark, "--since", "2026-01-07")
    assert (code, rows) == (1, [["2026-01-07", 3, 0, 0, 1, 0, 2, 1, 0, 0, 0, 1, 0]])
    assert "without_measurements 1, was 0 when it was written; duplicates 2, was 0" in err


def test_of_many_identities_the_first_ten_are_told(made: Conf, tidemark: Tidemark) -> None:
    silver(made, "readings", [(7, row) for row in range(99)])
    code, rows, err = answered(tidemark)
    assert (code, rows[0]) == (1, [None, 0, 0, 0, 0, 0, 0, 0, 0, 0, 99, 0, 0])
    assert [line.split(":")[0] for line in err.splitlines()] == [f"bronze_batch 7 bronze_row {row} part 0" for row in range(10)]


def test_a_lake_that_does_not_exist_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tidemark: Tidemark) -> None:
    monkeypatch.setattr(Lake, "open", classmethod(lambda *_: Lake(conf(tmp_path))))
    wanted = f"tidemark: there is no bronze.events in the lake at {tmp_path / 'lake'}: bring it up to date with `tidemark run --once`.\n"
    assert tidemark("ledger") == (4, "", wanted)


def test_a_picture_is_drawn_of_the_same_account(made: Conf, tmp_path: Path, tidemark: Tidemark) -> None:
    picture = tmp_path / "new" / "ledger.png"
    code, rows, err = answered(tidemark, "--plot", str(picture))
    assert (code, len(rows), err) == (0, 2, f"{picture}\n")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert answered(tidemark, "--since", "2026-01-07", "--plot", str(picture))[0] == 4


def test_many_batches_share_bars_and_lose_nothing() -> None:
    same = dict.fromkeys(FATES, 0) | {"duplicates": 1, "ingested_at": NOON, "ingested_on": date(2026, 1, 5)}
    batches = [same | {"bronze_batch": n, "readings": n, "events": n + 1} for n in range(1000)]
    bars = bars_of(batches)
    assert MAX_BARS / 2 < len(bars) <= MAX_BARS
    assert sum(bar["readings"] for bar in bars) == sum(range(1000))
    assert [(bar["first"], bar["last"]) for bar in bars[:2]] == [(0, 16), (17, 33)]
    titles = [panel.get_title(loc="left") for panel in draw(batches).axes]
    assert titles == ["all, on one scale", "duplicates", "late", "quarantined"]
