"""The spool as a source: whole records, each once, however it was cut; and only what bronze has is removed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from bronze.events import ARRIVED
from orchestration.connectors.sources.source import Offset
from orchestration.connectors.sources.spool import Spool
from orchestration.connectors.sources.spool_records import MARK_BYTES, encoded, records, segment_file, segments

MARK = b"\x01mark\xff\n\x00"
PAYLOADS = st.lists(st.binary(max_size=12), max_size=4)
RECEIVED = 1_767_571_200_123_456


def segment(*groups: list[bytes]) -> bytes:
    return MARK + b"".join(encoded(MARK, RECEIVED, f"request/a-{n}", 1, group) for n, group in enumerate(groups))


def contents(content: bytes) -> list[tuple[int, int, int]]:
    return [(record.begin, record.end, record.events) for record in records(content)]


def put(folder: Path, number: int, content: bytes) -> None:
    segment_file(folder, number).write_bytes(content)


def read(source: Spool, start: Offset, end: Offset) -> list[tuple[str, bytes]]:
    tables = [table for partition in source.partitions(start, end) for table in source.read(partition)]
    assert all(table.schema == ARRIVED for table in tables)
    return [(row["position"], row["payload"]) for table in tables for row in table.to_pylist()]


@given(st.lists(PAYLOADS, max_size=5), st.data())
def test_of_a_segment_that_was_cut_anywhere_all_records_before_the_cut_are_read(groups: list[list[bytes]], data: st.DataObject) -> None:
    content = segment(*groups)
    whole = contents(content)
    assert [events for _, _, events in whole] == list(map(len, groups))
    cut = data.draw(st.integers(0, len(content)))
    assert contents(content[:cut]) == [record for record in whole if record[1] <= cut]


@given(st.lists(PAYLOADS, min_size=1, max_size=5), st.data())
def test_a_damaged_byte_costs_one_record_at_most(groups: list[list[bytes]], data: st.DataObject) -> None:
    content = bytearray(segment(*groups))
    whole = contents(bytes(content))
    at = data.draw(st.integers(MARK_BYTES, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    assert contents(bytes(content)) == [record for record in whole if not record[0] <= at < record[1]]


def test_what_somebody_sends_never_looks_like_a_record_of_another_segment() -> None:
    other = encoded(b"otherone", RECEIVED, "request/b-1", 1, [b"forged"])
    torn = segment([b"a"], [other * 3])[:-1]
    assert contents(torn) == contents(segment([b"a"]))
    assert contents(bytes(1000)) == []


def test_rows_have_positions_counted_from_the_first_and_the_time_at_which_they_came(tmp_path: Path) -> None:
    content = (
        MARK + encoded(MARK, RECEIVED, "connection/a-1", 7, [b"x\ny", b"", b"\xff"]) + encoded(MARK, RECEIVED + 5, "request/a-2", 1, [b"z"])
    )
    put(tmp_path, 4, content)
    source = Spool("plant", tmp_path, 1 << 30)
    end = source.latest_offset({})
    (table,) = [table for part in source.partitions({}, end) for table in source.read(part)]
    came = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=RECEIVED)
    assert table.to_pylist() == [
        {"payload": payload, "source": "plant", "position": position, "received_at": came + timedelta(microseconds=later)}
        | dict.fromkeys(("header", "key", "headers"))
        for payload, position, later in [
            (b"x\ny", "connection/a-1/7", 0),
            (b"", "connection/a-1/8", 0),
            (b"\xff", "connection/a-1/9", 0),
            (b"z", "request/a-2/1", 5),
        ]
    ]


def test_only_what_bronze_has_is_removed_and_never_the_newest_segment(tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path, number, segment([b"%d" % number]))
    source = Spool("plant", tmp_path, 1 << 30)
    end = source.latest_offset({})
    assert list(segments(tmp_path)) == [0, 1, 2]
    assert source.latest_offset({}) == end
    assert list(segments(tmp_path)) == [0, 1, 2]
    assert source.latest_offset(end) == end
    assert list(segments(tmp_path)) == [2]
    put(tmp_path, 3, b"")
    assert source.latest_offset(end) == end
    assert list(segments(tmp_path)) == [3]
    put(tmp_path, 3, segment([b"new"]))
    assert [payload for _, payload in read(source, end, source.latest_offset(end))] == [b"new"]


def test_a_torn_tail_is_passed_over_and_told_once_a_newer_segment_is_there(tmp_path: Path) -> None:
    whole = segment([b"1"])
    put(tmp_path, 0, segment([b"1"], [b"2"])[:-1])
    source = Spool("plant", tmp_path, 1 << 30)
    end = source.latest_offset({})
    assert (end, list(source.notices())) == ({"segment": 0, "byte": len(whole)}, [])
    put(tmp_path, 1, segment([b"3"]))
    following = source.latest_offset(end)
    assert [payload for _, payload in read(source, end, following)] == [b"3"]
    assert [dict(notice.facts)["file"] for notice in (*source.notices(), *source.notices())] == [str(segment_file(tmp_path, 0))]
    assert list(source.notices()) == []


def test_a_segment_that_lost_its_end_with_the_power_hides_no_later_one(tmp_path: Path) -> None:
    put(tmp_path, 0, segment([b"1"], [b"2"]))
    source = Spool("plant", tmp_path, 1 << 30)
    end = source.latest_offset({})
    put(tmp_path, 0, segment([b"1"]))
    put(tmp_path, 1, segment([b"3"]))
    assert [payload for _, payload in read(source, end, source.latest_offset(end))] == [b"3"]


def test_a_source_that_came_from_files_before_begins_at_the_first_segment(tmp_path: Path) -> None:
    put(tmp_path, 0, segment([b"1"]))
    source = Spool("plant", tmp_path, 1 << 30)
    assert [payload for _, payload in read(source, {"claim": 7}, source.latest_offset({"claim": 7}))] == [b"1"]
