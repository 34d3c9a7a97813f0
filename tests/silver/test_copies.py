"""An event that came a second time, to the byte, is a duplicate of what the first one is: no rule looks at it."""

from typing import Any

import pyarrow as pa

from silver import account
from silver.account import OF_EVENT
from tests.rows import at

NAMES = (*OF_EVENT, *account.CONTENT)


def events(*rows: tuple[Any, ...]) -> pa.Table:
    types = [pa.int64(), pa.int64(), pa.string(), pa.binary(), pa.string(), pa.string()]
    return pa.table({name: pa.array(column, of) for name, column, of in zip(NAMES, zip(*rows, strict=True), types, strict=True)})


def copied(events_: pa.Table, originals: pa.Table, by_name: tuple[str, ...] = ()) -> list[tuple[int, int, int]]:
    found = account.copies(events_, [originals.slice(0, 1), originals.slice(1)], by_name)
    return sorted(tuple(row.values()) for row in found.to_pylist())


def test_a_copy_is_of_the_first_event_of_its_batch_that_holds_the_same_bytes() -> None:
    originals = events((0, 9, "plant", b"a", None, "1.json"), (0, 4, "plant", b"a", None, "2.json"), (1, 1, "plant", b"b", None, "1.json"))
    candidates = events((0, 7, "plant", b"a", None, "3.json"), (1, 8, "plant", b"a", None, "3.json"), (1, 9, "plant", b"b", None, "1.json"))
    assert copied(candidates, originals) == [(0, 7, 4), (1, 9, 1)]  # another batch was ingested at another time


def test_source_and_header_have_to_be_the_same_and_the_file_where_events_are_read_by_its_name() -> None:
    originals = events((0, 0, "plant", b"a", None, "1.json"), (0, 1, "rooms", b"1,2", "T,P", "oven.csv"))
    candidates = events(
        (0, 5, "annex", b"a", None, "1.json"),
        (0, 6, "rooms", b"1,2", "P,T", "oven.csv"),
        (0, 7, "rooms", b"1,2", "T,P", "fridge.csv"),
        (0, 8, "rooms", b"1,2", "T,P", "oven.csv"),
    )
    assert copied(candidates, originals) == [(0, 7, 1), (0, 8, 1)]
    assert copied(candidates, originals, ("rooms",)) == [(0, 8, 1)]


def test_each_measurement_of_a_copy_is_a_duplicate_of_that_of_the_other() -> None:
    readings = pa.Table.from_pylist(
        [
            {
                "device_id": "oven",
                "metric": metric,
                "event_time": at("12:00"),
                "value": float(part),
                "source": "rooms",
                "ingested_at": at("12:01"),
                "bronze_batch": 0,
                "bronze_row": 4,
                "part": part,
                "parts": 2,
            }
            for part, metric in enumerate(("temperature", "power"))
        ]
    )
    events_ = readings.select(OF_EVENT).slice(0, 1)
    assert len(account.incomplete(events_, [readings.slice(0, 1), readings.slice(1)])) == 0
    assert account.incomplete(events_, [readings.slice(1)]).to_pylist() == events_.to_pylist()
    copies = pa.table({"bronze_batch": [0, 0], "bronze_row": [7, 8], "kept_row": [4, 4]})
    rows = pa.concat_tables(account.duplicates_of(copies, readings)).sort_by([("bronze_row", "ascending"), ("part", "ascending")])
    duplicates = rows.select(["bronze_row", "part", "metric", "value", "kept_batch", "kept_row", "kept_part", "retry"]).to_pylist()
    assert [tuple(row.values()) for row in duplicates] == [
        (row, part, metric, float(part), 0, 4, part, None) for row in (7, 8) for part, metric in enumerate(("temperature", "power"))
    ]
