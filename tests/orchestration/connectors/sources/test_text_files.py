"""Text files of any encoding and line end: each line is an event, as Spark reads it, or the file is left out as a whole and told."""

import gzip
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from orchestration.audit.verify import measurements as verify
from orchestration.conf.transport_settings import LandingFolder
from orchestration.connectors.sources import file_reader
from orchestration.connectors.sources.file_reader import BYTE_ORDER_MARK, events_of, foreign, pieces
from orchestration.connectors.sources.files import Files
from silver.measurements import measurements
from silver.spec import Origin, PayloadFormat, Time
from tests.lakes import SHAPE, land_bytes

HEADED = PayloadFormat("csv", Origin(constant="oven"), Time("t"), metrics={"temperature": "T"}, has_header=True)
LOG = PayloadFormat("csv", Origin(constant="l"), Time("unix", "epoch_s"), metrics={"t": "temp"}, has_header=True, separator=";")
EARLY = "2026-01-01 00:00:00"
EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
ENCODINGS = ("utf-8", "iso8859-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp500", "shift_jis")


def events(folder: Path, content: bytes, shape: PayloadFormat, name: str = "a.csv") -> pa.Table:
    file = land_bytes(folder, name, gzip.compress(content) if name.lower().endswith(".gz") else content)
    return pa.concat_tables(events_of("plant", file, name, 0, shape, notices=[]))


def values(found: pa.Table, shape: PayloadFormat) -> list[float | None]:
    """A value an event, None where it is in quarantine; silver and verify agree on them."""
    rows = pa.concat_tables(measurements(found, shape, 1_000)).sort_by("event_at")
    other = verify.measurements(found, shape, 1_000).sort_by("event_at")
    for name in ("event_at", "is_readable", "is_utf8", "metric", "number"):
        assert rows[name].to_pylist() == other[name].to_pylist()
    return [float(row["number"]) if row["number"] is not None and row["event_time"] else None for row in rows.to_pylist()]


@pytest.mark.parametrize("name", ["a.csv", "A.CSV.GZ", "a.csv.Gz"])
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_each_row_is_read_in_any_encoding_with_any_line_end(tmp_path: Path, encoding: str, end: str, name: str) -> None:
    shape = replace(HEADED, encoding=encoding)
    text = end.join(["", "t,T", f"{EARLY},1.5", f"{EARLY},2.5", "t,T", f"{EARLY},3.5"])
    found = events(tmp_path, text.encode(encoding), shape, name)
    assert foreign(tmp_path / "landing" / name, shape) is None
    assert [header.strip("\r") for header in found["header"].unique().to_pylist()] == ["t,T"]
    assert [value for value in values(found, shape) if value] == [1.5, 2.5, 3.5]


NO_TEXT = "\0"
"""Stands for bytes that are no text."""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(st.sampled_from(f"\n\r,\u0a00\u0100\ufeffa{NO_TEXT}"), max_size=12),
    st.integers(1, 9),
    st.sampled_from(["utf-8", "utf-16-be", "utf-32-le"]),
    st.booleans(),
)
def test_pieces_are_whole_lines_and_together_the_file(tmp_path: Path, text: str, length: int, encoding: str, is_packed: bool) -> None:
    content = b"".join(b"\xff\x00\xff\x00" if letter == NO_TEXT else letter.encode(encoding) for letter in text)
    file, end, mark = tmp_path / f"{length}.csv{'.gz' if is_packed else ''}", "\n".encode(encoding), "\ufeff".encode(encoding)
    file.write_bytes(gzip.compress(content) if is_packed else content)
    found = list(pieces(file, length, end, mark))
    assert b"".join(found) == content.removeprefix(mark)
    assert all(piece.endswith(end) and len(piece) % len(end) == 0 for piece in found[:-1])


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"a", b"a\n\nb\r\n", BYTE_ORDER_MARK + b"a\n", BYTE_ORDER_MARK, BYTE_ORDER_MARK + b"\na", b"\xff\x00\n\n"]
)
@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_lines_are_those_that_spark_reads(spark: SparkSession, tmp_path: Path, content: bytes, ending: str) -> None:
    file = tmp_path / f"a{ending}"
    file.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    by_spark = spark.read.text(str(file), lineSep="\n").selectExpr("cast(value as binary)").toArrow()["value"].to_pylist()
    found = events_of("plant", file, "a", 0, SHAPE, notices=[])
    assert [payload for piece in found for payload in piece["payload"].to_pylist()] == by_spark


@pytest.mark.parametrize(
    ("nanoseconds", "received"),
    [
        (-62_135_596_800_000_000_000, EARLIEST),
        (-62_135_596_800_000_000_001, EARLIEST),
        (-(2**73), EARLIEST),
        (1_999, datetime(1970, 1, 1, 0, 0, 0, 1, UTC)),
        (253_402_300_799_999_999_999, LATEST),
        (253_402_300_800_000_000_000, LATEST),
        (2**73, LATEST),
    ],
)
def test_a_file_whose_time_python_has_not_is_read_all_the_same(tmp_path: Path, nanoseconds: int, received: datetime) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"1\n2\n")
    (found,) = events_of("plant", file, "a.json", nanoseconds, SHAPE, notices=[])
    assert found.select(["payload", "received_at"]).to_pylist() == [
        {"payload": payload, "received_at": received} for payload in (b"1", b"2")
    ]


def test_a_file_with_both_line_ends_is_cut_at_line_feeds_alone(tmp_path: Path) -> None:
    assert events(tmp_path, b"1\r2\n3\r", SHAPE)["payload"].to_pylist() == [b"1\r2", b"3\r"]


@pytest.mark.parametrize(
    ("header", "rows", "read"),
    [
        ("seq;unix;temp", ["1;60;21.5", "2;120;21.6", "3;180;21.7;40.1", "4;240;21.8;40.3", "5;300"], [21.5, 21.6, None, None, None]),
        ("seq;unix;temp", ["3;180;21.7;40.1", "1;60;21.5"], [None, 21.5]),
        ("seq;unix;temp", ["1;60;21.5", *["3;180;21.7;40.1"] * 3], [21.5, None, None, None]),
        ("unix;temp", [*[f"{n};60;21.5" for n in range(5)], "3;180", "unix;temp", "1;240;", "", "2;300;1;1"], [*[21.5] * 5, *[None] * 4]),
        ("unix;temp", ["60;21.5", "1;120;21.6", "2;180;21.7"], [21.5, None, None]),
        ("unix;temp", ["1;60;21.5", "2;120;21.6", "4;180;21.7"], [None, None, None]),
        ("unix;temp", ["3;60;21.5", "4;120;21.6"], [None, None]),
        ("unix;temp", ["0;60;21.5"], [None]),
        ("temp;unix", ["20;5;60", "20;7;120"], [None, None]),
        ('"unix";"temp"', ["", '"140";60;21.5', '"142";120;21.6'], [None, 21.5, 21.6]),
        ('"unix";"temp"', ['"Mazda";60;21.5'], [21.5]),
        ('"unix";"temp"', ['"140";60;21.5', '"140";120;21.6'], [None, None]),
        ('"unix";"temp"', ['"7";"60";"21.5"', '"8";"120";"21.6"'], [None, None]),
        ("unix;temp", ["60;21.5;", "120;21.6;"], [None, None]),
        ("unix;temp", ["60;21.5;", "120;21.6;7"], [None, None]),
        (";unix;temp", ["1;60;21.5", "60;21.5", "2;120;21.6;"], [21.5, None, None]),
    ],
)
def test_a_row_has_as_many_values_as_its_file_has_names_and_none_is_shifted(
    tmp_path: Path, header: str, rows: list[str], read: list[float | None]
) -> None:
    found = events(tmp_path, "\n".join([header, *rows]).encode(), LOG)
    assert values(found, LOG) == read


@pytest.mark.parametrize(
    ("lines", "read"),
    [
        (["unix;temp;b", "60;1;9", "unix;b;temp", "120;9;2", "unix;temp;b", "180;3;9"], [1, 2, 3]),
        (["unix;temp;b", "60;1;9", "b;temp;unix", "9;2;120"], [1, 2]),
        (["unix;temp", "60;1", '\ufeff"temp" ; "unix";b\r', "2;120;9"], [1, 2]),
        (["unix;temp;b", "60;1;9", "unix;b;c", "120;9;9"], [1, None]),
        (["unix;temp;b", "60;1;9", "unix;temp;temp", "120;2;9", "unix;temp", "180;3"], [1, None, 3]),
        (["sep=;", "unix;temp", "60;1", "120;2"], [1, 2]),
        (["", '\ufeff"SEP=;"\r', "", "unix;temp", "60;1"], [None, None, 1]),
        (["unix;temp", "0;60;1", "1;120;2", "temp;unix", "0;3;180"], [1, 2, 3]),
        (["unix;temp;b", "60;1;unix", "120;2;unix"], [1, 2]),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_rows_below_a_further_header_are_read_by_it(
    tmp_path: Path, lines: list[str], read: list[float | None], encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole, and in pieces of a line each."""
    shape = replace(LOG, encoding=encoding)
    for length in (1 << 20, 1):
        monkeypatch.setattr(file_reader, "PIECE_BYTES", length)
        assert values(events(tmp_path, "\n".join(lines).encode(encoding), shape), shape) == read


def test_columns_of_conf_have_row_numbers_before_them_where_the_header_has_their_number(tmp_path: Path) -> None:
    shape = replace(LOG, columns=("unix", "temp"))
    for header, read in (("a;b", [21.5, 21.6]), ("a title", [None, None]), (";a;b", [21.5, 21.6]), ("a;b;c", [None, None])):
        assert values(events(tmp_path, f"{header}\n1;60;21.5\n2;120;21.6".encode(), shape), shape) == read
    assert values(events(tmp_path, b"a;b\n60;21.5\n2;120;21.6", shape), shape) == [21.5, None]


def test_a_byte_that_is_not_in_the_encoding_is_a_matter_of_its_line(tmp_path: Path) -> None:
    shape = replace(HEADED, encoding="cp1252")
    found = events(tmp_path, f"t,T\n{EARLY},1\n{EARLY},2 ".encode() + b"\x81\n", shape)
    rows = pa.concat_tables(measurements(found, shape, 1_000)).sort_by("event_at")
    assert rows["is_utf8"].to_pylist() == verify.measurements(found, shape, 1_000)["is_utf8"].to_pylist() == [True, False]


UTF_16 = "its first bytes are ff fe 74 00, as in utf-16, and not utf-8; set `encoding: utf-16`"
UTF_16_BE = "its first bytes are fe ff 00 74, as in utf-16-be, and not utf-16; set `encoding: utf-16-be`"
UNMARKED = "its first bytes are 74 00 2c 00, as in utf-16, and not cp1252; set `encoding: utf-16`"
UTF_8 = "its first bytes are ef bb bf 74, as in utf-8, and not cp1252; set `encoding: utf-8`"
NO_UTF_16 = "its first bytes are 74 2c 54 0a, and nothing in it is of ASCII in utf-16; set `encoding` to what it is"
ODD = "its header has the byte 0x%s at place %d, which is not utf-8; set `encoding` to what it is, such as latin-1"

LINE_ENDS = "its header has a carriage return at place 4, where its line goes on; let its lines end alike, by line feeds"
TWICE = "its header names T twice; give each column a name of its own, or name all `columns` in sources.yml"


@pytest.mark.parametrize(
    ("content", "encoding", "said", "right"),
    [
        (b"t,T(\xb0C)\n1,2", "utf-8", ODD % ("B0", 4), "iso8859-1"),
        (b"t,T\x00\n1,2", "utf-8", ODD % ("00", 3), None),
        ("t,T\n".encode("utf-16"), "utf-8", UTF_16, "utf-16"),
        ("\ufefft,T\n".encode("utf-16-be"), "utf-16", UTF_16_BE, "utf-16-be"),
        ("t,T\n".encode("utf-16-le"), "cp1252", UNMARKED, "utf-16-le"),
        ("t,T\n".encode("utf-8-sig"), "cp1252", UTF_8, "utf-8"),
        (b"t,T\n1,2", "utf-16", NO_UTF_16, "utf-8"),
        (b"t,T\r1,2\r3,4\r\n", "utf-8", LINE_ENDS, None),
        (b"t,T,x,T,x\n1,2", "utf-8", TWICE, None),
    ],
)
def test_a_file_that_is_not_what_conf_says_is_left_out_and_told_and_read_once_conf_is_right(
    tmp_path: Path, content: bytes, encoding: str, said: str, right: str | None
) -> None:
    land_bytes(tmp_path, "odd.csv", content)
    land_bytes(tmp_path, "good.csv", "t,T\n1,2".encode(encoding))
    landing = LandingFolder(tmp_path / "landing", settle_seconds=0)
    before, after = (
        Files("plant", tmp_path / "claims", replace(HEADED, encoding=name or encoding), 1 << 30, landing) for name in (None, right)
    )
    offset = before.latest_offset({})
    assert [claim.position for claim in before.partitions({}, offset)] == ["good.csv"]
    (notice,) = (*before.notices(), *before.notices())
    assert (notice.what, notice.facts) == ("file left out", {"file": str(tmp_path / "landing/odd.csv"), "reason": said})
    assert [claim.position for claim in after.partitions(offset, after.latest_offset(offset))] == (["odd.csv"] if right else [])


TOA5 = (Path(__file__).parents[3] / "cases/landing/toa5/CR1000_Table1.dat").read_text().replace("NAN", "off")
CAMPBELL = PayloadFormat("csv", Origin(constant="yard"), Time("TIMESTAMP"), metrics={"air": "AirTC_Avg"}, has_header=True)
UNITS = replace(LOG, separator=",")


@pytest.mark.parametrize(
    ("content", "shape", "above", "read"),
    [
        (TOA5, CAMPBELL, 3, [21.5, "odd", 21.75]),
        (TOA5, replace(CAMPBELL, columns=("TIMESTAMP", "RECORD", "AirTC_Avg", "BP_mbar", "PM2.5")), 3, [21.5, "odd", 21.75]),
        ("unix,temp\ns,°C\n60,1.5\n120,2.5\ns,°C\n", UNITS, 1, [1.5, 2.5]),
        ("# by hand\n# at 08:00, 5 rows\nunix,temp\n60,1.5\n", replace(UNITS, columns=("unix", "temp")), 2, [1.5]),
        ("unix,temp\n60,1.5\ns,°C\n120,2.5", UNITS, 0, [1.5, "odd", 2.5]),
        ("unix,temp\ns,°C\nn/a,off", UNITS, 0, ["odd", "odd"]),
    ],
)
def test_lines_between_a_header_and_its_rows_are_events_that_hold_nothing_and_one_notice(
    tmp_path: Path, content: str, shape: PayloadFormat, above: int, read: list[float | str]
) -> None:
    for encoding in ("utf-8", "utf-16-le"):
        shape, folder = replace(shape, encoding=encoding), tmp_path / encoding
        land_bytes(folder, "a.csv", content.encode(encoding))
        source = Files("plant", folder / "claims", shape, 1 << 30, LandingFolder(folder / "landing", settle_seconds=0))
        (claim,) = source.partitions({}, source.latest_offset({}))
        found = pa.concat_tables(source.read(claim))
        assert [value for value in values(found, shape) if value is not None] == [value for value in read if value != "odd"]
        rows = pa.concat_tables(measurements(found, shape, 1_000)).to_pylist()
        assert {row["event_at"] for row in rows} == {*range(len(found))}
        assert sum(not row["is_readable"] or (row["metric"] is not None and row["number"] is None) for row in rows) == read.count("odd")
        told = [notice.facts["reason"] for notice in source.notices() if notice.what == "file with further headers"]
        assert [text.split()[0] for text in told] == [str(above)] * (above > 0)


def test_a_file_of_several_lines_without_an_event_is_told(tmp_path: Path) -> None:
    contents = {"one.csv": b"t,T\n", "two.csv": b"t,T\n\xef\xbb\xbfT,t\n", "three.csv": b"t,T\n1,2\n"}
    for name, content in contents.items():
        land_bytes(tmp_path, name, content)
    source = Files("plant", tmp_path / "claims", HEADED, 1 << 30, LandingFolder(tmp_path / "landing", settle_seconds=0))
    read = [sum(map(len, source.read(claim))) for claim in source.partitions({}, source.latest_offset({}))]
    assert read == [0, 0, 1]
    (notice,) = (*source.notices(), *source.notices())
    assert (notice.what, notice.facts) == ("file without events", {"file": "two.csv", "reason": "each of its lines is a header"})


@pytest.mark.parametrize(("encoding", "content"), [("utf-16", "{}\n".encode("utf-16")), ("utf-16-be", "{ }\n".encode("utf-16-be"))])
def test_json_in_utf_16_is_left_out_and_told(tmp_path: Path, encoding: str, content: bytes) -> None:
    file = land_bytes(tmp_path, "a.json", content)
    assert (foreign(file, SHAPE) or "").endswith(f"set `encoding: {encoding}`")
    assert foreign(file, replace(SHAPE, encoding=encoding)) is None


def test_a_zero_or_an_odd_byte_further_down_or_below_columns_of_conf_leaves_no_file_out(tmp_path: Path) -> None:
    assert foreign(land_bytes(tmp_path, "a.csv", b"t,T\n1,\xff\x00"), HEADED) is None
    assert foreign(land_bytes(tmp_path, "b.csv", b"t,\xb0\n1,2"), replace(HEADED, columns=("t", "T"))) is None
    assert foreign(land_bytes(tmp_path, "d.csv", b"t,T,x,x\r\r\n1,2,3,4"), HEADED) is None
    assert foreign(land_bytes(tmp_path, "c.json", b"\x00" * 64 + b"\n{}"), SHAPE) is None
    assert foreign(tmp_path / "gone.csv", HEADED) is None


def test_a_header_longer_than_the_beginning_of_its_file_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reader, "BEGINNING", 8)
    assert events(tmp_path, b"t,T,more and more\n1,2", HEADED)["header"].to_pylist() == [None, None]
    assert events(tmp_path, b"t,T\n1,2\n3,4,5\n", HEADED)["header"].to_pylist() == ["t,T", "t,T"]
