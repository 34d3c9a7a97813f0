"""What `tidemark run --once` ends with: counts in, rows and sentences out."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from orchestration.storage.ops_tables import LEDGER_SCHEMA
from orchestration.supervisor.summary import Summary, bounds, by_source, closed_by
from tests.lakes import KITCHEN, conf
from tests.rows import at

END = (at("2026-01-05T00:10") - at("1970-01-01T00:00")) // timedelta(microseconds=1)
BROKEN = {"rule": "value_is_a_number", "rows": 9, "source": "plant", "position": "1.json:0", "example": "{}"}
WINDOWS = {"group": "kitchen", "closed": 3, "amended": 0, "open": 0, "closed_by": None}


def counts(batch: int, source: str, **became: int) -> dict[str, object]:
    """A row of ops.ledger."""
    return dict.fromkeys(LEDGER_SCHEMA.names, 0) | {"bronze_batch": batch, "source": source} | became


def summary(events: int, **became: int) -> Summary:
    sources = by_source(pa.Table.from_pylist([counts(0, "plant", events=events, **became)] if events else [], LEDGER_SCHEMA))
    return Summary(sources, [BROKEN] if "quarantined" in became else [], [])


def test_counts_of_batches_are_summed_by_source() -> None:
    rows = [
        counts(3, "plant", events=5, readings=4, late=1),
        counts(3, "fleet", events=1, readings=1),
        counts(4, "plant", events=2, late=2),
    ]
    found = [(row["source"], row["events"], row["readings"], row["late"]) for row in by_source(pa.Table.from_pylist(rows, LEDGER_SCHEMA))]
    assert found == [("fleet", 1, 1, 0), ("plant", 7, 4, 3)]


@pytest.mark.parametrize(
    ("of_run", "is_in_vain"),
    [
        (summary(9, quarantined=9), True),
        (summary(9, without_measurements=9), True),
        (summary(9, quarantined=8, readings=1), False),
        (summary(9, duplicates=9), False),
        (summary(9, late=1, quarantined=8), False),
        (summary(0), False),
        (replace(summary(0), left_out=[{"source": "plant", "left_out": "a.csv", "reason": "odd"}]), True),
    ],
)
def test_a_run_is_in_vain_if_nothing_that_came_is_or_was_a_reading(of_run: Summary, is_in_vain: bool) -> None:
    assert of_run.is_in_vain is is_in_vain


@pytest.mark.parametrize(
    ("of_run", "expected"),
    [
        (
            summary(9, quarantined=9),
            [
                ("None of 9 events became a reading: 9 quarantined.", "red"),
                ("next: tidemark quarantine show --rule value_is_a_number", None),
            ],
        ),
        (
            summary(9, readings=7, quarantined=2),
            [("In quarantine: 2 of 9 measurements.", "yellow"), ("next: tidemark quarantine show --rule value_is_a_number", None)],
        ),
        (
            summary(4, without_measurements=3, duplicates=1),
            [
                ("None of 4 events became a reading: 3 without measurements, 1 duplicate.", "yellow"),
                ('next: tidemark sql "select * from silver.readings limit 10"', None),
            ],
        ),
        (
            replace(summary(4, readings=4), windows=[WINDOWS]),
            [('next: tidemark sql "select * from gold.kitchen_aggregates limit 10"', None)],
        ),
        (
            replace(summary(0), waiting=5, tidemark="tidemark --conf plant"),
            [
                ("Nothing has come to silver since the last run.", None),
                ("Not in silver yet: 5 events of bronze; the next run goes on from there.", "yellow"),
                ("next: tidemark --conf plant status", None),
            ],
        ),
    ],
)
def test_a_run_without_readings_does_not_look_like_success(of_run: Summary, expected: list[tuple[str, str | None]]) -> None:
    assert list(of_run.sentences()) == expected


def test_an_open_window_says_which_reading_or_pause_closes_it(tmp_path: Path) -> None:
    """The lateness and the patience are those of the stream, which the group shares."""
    noon, patient = at("2026-01-06T12:00:00.5"), replace(KITCHEN, name="bakery", lateness_seconds=1200, idle_close_seconds=60)
    assert closed_by(*bounds(conf(tmp_path).streams["kitchen"]), END, noon) == "a reading of 2026-01-05T00:20:00Z or later"
    shared = conf(tmp_path, groups={"kitchen": KITCHEN, "bakery": patient})
    assert (
        closed_by(*bounds(shared.streams["kitchen"]), END, noon)
        == "a reading of 2026-01-05T00:30:00Z or later, or a run after 2026-01-06T12:01:00Z"
    )
