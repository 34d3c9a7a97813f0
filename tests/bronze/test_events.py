"""Bronze: what a file holds becomes events, byte for byte."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bronze.events import File, events, identified, lines

AT = datetime(2026, 1, 5, 23, 59, 59, 999_000, tzinfo=UTC)
CONTENT = st.lists(st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\x00", b"\xff", b"{}", b"a,b", "ü".encode()])).map(b"".join)


@given(CONTENT)
def test_lines_are_what_stands_between_line_feeds_byte_for_byte(content: bytes) -> None:
    *whole, last = content.split(b"\n")
    assert lines(content).to_pylist() == [*whole, *([last] if last else [])]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "cp500"])
@pytest.mark.parametrize("end", ["\n", "\r"])
@given(st.lists(st.text(st.sampled_from("\n\ra,\u0a00\u000a\u0100")), max_size=6))
def test_lines_of_any_encoding_and_line_end_are_those_of_the_text(encoding: str, end: str, texts: list[str]) -> None:
    text = end.join(texts).encode(encoding, "ignore").decode(encoding)
    *whole, last = text.split(end)
    found = lines(text.encode(encoding), end.encode(encoding)).to_pylist()
    assert [line.decode(encoding) for line in found] == [*whole, *([last] if last else [])]


def test_bytes_behind_the_last_whole_letter_stay_with_the_last_line() -> None:
    assert lines("a\n".encode("utf-16-le") + b"\n", b"\n\x00").to_pylist() == [b"a\x00", b"\n"]


def test_a_header_is_told_of_each_line_of_its_file_and_is_no_event_wherever_it_stands() -> None:
    found = events(lines(b"when,T\n1,2\nwhen,T\n3,4\n"), File("rooms", "a.csv", AT, ",when,T", b"when,T"))
    assert found.select(["payload", "header", "source", "position"]).to_pylist() == [
        {"payload": payload, "header": ",when,T", "source": "rooms", "position": "a.csv"} for payload in (b"1,2", b"3,4")
    ]


@pytest.mark.parametrize("header", [None, "when,T"])
def test_identities_count_on_from_the_files_before(header: str | None) -> None:
    found = identified(events(lines(b"1,2\n3,4"), File("rooms", "a.csv", AT, header)), AT, bronze_batch=7, first_row=5)
    same = {"ingested_at": AT, "ingested_on": AT.date(), "bronze_batch": 7}
    assert found.select([*same, "bronze_row"]).to_pylist() == [same | {"bronze_row": row} for row in (5, 6)]


def test_a_file_of_headers_alone_has_no_events() -> None:
    found = identified(events(lines(b"when,T\n"), File("rooms", "a.csv", AT, "when,T", b"when,T")), AT, 0, 0)
    assert (len(found), found.schema.field("payload").type) == (0, pa.binary())
