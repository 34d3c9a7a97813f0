"""Files of loggers, PLCs and spreadsheets: each value is right, or refused alone; verify reads the same from what bronze keeps."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestration.audit.verify import measurements as verify
from orchestration.connectors.sources import file_reader
from orchestration.connectors.sources.file_reader import events_of
from silver.measurements import measurements
from silver.numbers import to_numbers_or_switches, with_points
from silver.spec import Origin, PayloadFormat, Time
from tests.lakes import land_bytes
from tests.rows import at

CSV = PayloadFormat("csv", Origin(constant="l"), Time("t"), metrics={"v": "v"}, has_header=True, separator=";")
UNNAMED, MARKS = replace(CSV, has_header=False, columns=("t", "v")), {"decimal": ",", "thousands": "."}
HALF = replace(CSV, time=Time("t", "dd.MM.yyyy HH:mm", "Europe/Berlin", "in_order"))
LOST = (None, None)


def arrived(folder: Path, content: str, shape: PayloadFormat) -> pa.Table:
    file = land_bytes(folder, "a.csv", content.encode(shape.encoding))
    return pa.concat_tables(events_of("plant", file, "a.csv", 1_000_000_000, shape, notices=[]))


def read(events: pa.Table, shape: PayloadFormat) -> tuple[list[tuple[datetime | None, float | None]], int]:
    """Time and value of each measurement, null where it is in quarantine; and how many events measure nothing. As verify reads them."""
    rows = pa.concat_tables(measurements(events, shape, 1_000)).sort_by([("event_at", "ascending"), ("part", "ascending")])
    other = verify.measurements(events, shape, 1_000).sort_by([("event_at", "ascending"), ("part", "ascending")])
    other = other.set_column(other.column_names.index("event_time"), "event_time", other["event_time"].cast(pa.timestamp("us", "UTC")))
    for name in ("event_at", "is_readable", "is_measured", "number", "event_time", "is_local_time_unique"):
        assert rows[name].to_pylist() == other[name].to_pylist()
    found = [row for row in rows.to_pylist() if row["is_measured"] or not row["is_readable"]]
    whole = [row["is_readable"] and row["is_local_time_unique"] for row in found]
    readings = [(row["event_time"], row["number"]) if is_whole else LOST for row, is_whole in zip(found, whole, strict=True)]
    return readings, len(rows) - len(found)


A, B, C = ((at(f"2026-03-02T08:0{n}:00"), n + 0.5) for n in (1, 2, 3))
ROW = [f"2026-03-02T08:0{n}:00Z;{n}.5" for n in range(5)]
FILES: dict[str, tuple[PayloadFormat, str, list[tuple[object, float | None]], int]] = {
    "lines are skipped": (replace(CSV, skip_lines=2), f"9;9;9\n\nt;v\n{ROW[1]}\n", [A], 2),
    "lines are skipped without a header": (replace(UNNAMED, skip_lines=2), f"t;v\nwhat is;said\n{ROW[1]}\n", [A], 2),
    "comments and footers": (
        replace(CSV, comment=("#", "Total")),
        f"# station;7\n#t;v\nt;v\n# deg\n{ROW[1]}\n#{ROW[2]}\n{ROW[3]}\nTotal;4.5\n",
        [A, C],
        5,
    ),
    "units and kinds below a header": (replace(CSV, skip_lines=1), f"TOA5;x\nt;v\nTS;degC\n;Avg\n{ROW[1]}\n", [A], 3),
    "more columns than 64": (CSV, f"t;v{''.join(f';c{n}' for n in range(300))}\n{ROW[1]}{';7' * 300}\n", [A], 0),
    "two fields of the time": (
        replace(CSV, time=Time(fields=("d", "t"), format="dd.MM.yy HH:mm:ss")),
        "d;t;v\n02.03.26;08:01:00;1.5\n;08:02:00;7\n",
        [A, (None, 7.0)],
        0,
    ),
    "days of a spreadsheet with commas": (replace(CSV, time=Time("t", "excel"), decimal=","), "t;v\n46083,33402778;1,5\n", [A], 0),
    "line ends within quotes": (CSV, f't;v;note\n{ROW[1]};"a\nb;c\n""d"""\n{ROW[2]};x\n', [A, B], 0),
    "a quote that nothing closes": (CSV, f't;v;note\n{ROW[1]};a\n{ROW[2]};"b\n{ROW[3]};c\n', [A, LOST, C], 0),
    "signs of inches": (CSV, f't;v;note\n{ROW[1]};5"\n{ROW[2]};b\n{ROW[3]};7"\n', [LOST, B, LOST], 0),
    "two quotes out of place": (CSV, f't;v;note\n{ROW[1]};"5\n{ROW[2]};"b\n{ROW[3]};c\n', [LOST, LOST, C], 0),
    "ragged rows": (replace(CSV, ragged=True), f"t;v;note\n{ROW[1]}\n{ROW[2]};;;;\n{ROW[3]};x;y\n2026-03-02T08:04:00Z\n", [A, B, LOST], 1),
    "uneven rows": (CSV, f"t;v;note\n{ROW[1]}\n{ROW[2]};;\n{ROW[3]};x\n", [LOST, LOST, C], 0),
}


@pytest.mark.parametrize("name", FILES)
def test_each_row_of_a_logger_is_read_or_refused_alone(name: str, tmp_path: Path) -> None:
    shape, content, right, nothing = FILES[name]
    found, without = read(arrived(tmp_path, content, shape), shape)
    assert (found, without) == (right, nothing)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("1.015,3", 1015.3), ("1015,3", 1015.3), (" -1,5e3 ", -1500.0), (",5", 0.5), ("5,", 5.0), ("1.234.567", 1234567.0), ("7", 7.0)),
        *(("1.5", None), ("12.34,5", None), ("1,5,5", None), ("1.0153", None), (".123", None), ("1,015.3", None), ("true", 1.0)),
    ],
)
def test_a_number_with_a_mark_out_of_place_is_none(text: str, number: float | None) -> None:
    assert to_numbers_or_switches(with_points(pa.array([text]), ",", ".")).to_pylist() == [number]


@given(
    st.lists(st.text("0123456789.,' \u202f+-eE\n", max_size=9) | st.from_regex(r"\A-?[0-9]{1,3}([.,' ][0-9]{3}){0,2}([.,][0-9]{0,2})?\Z")),
    st.sampled_from([(",", "."), (",", None), (".", ","), (".", "'"), (",", " ")]),
)
def test_numbers_with_marks_are_read_as_verify_reads_them(texts: list[str], marks: tuple[str, str | None]) -> None:
    shape = PayloadFormat("json", Origin(constant="l"), Time(arrival=True), metrics={"v": "v"}, decimal=marks[0], thousands=marks[1])  # type: ignore[arg-type]
    payloads = [b'{"v": "%s"}' % text.replace("\n", "").encode() for text in texts]
    columns = {"payload": pa.array(payloads, pa.binary()), "position": pa.nulls(len(texts), pa.string())}
    columns |= {"header": columns["position"], "received_at": pa.array([at("08:00")] * len(texts), pa.timestamp("us", "UTC"))}
    read(pa.table(columns), shape)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["a;b", 'a;"b', 'b";c', 'a;"b"', 'a";"b', '"', "c", 'a;"b ""c""', "a;b;c"]), max_size=12), st.integers(1, 20)
)
def test_rows_are_the_same_however_a_file_is_cut_into_pieces_and_no_byte_is_lost(tmp_path: Path, texts: list[str], length: int) -> None:
    content = "".join(f"{text}\n" for text in ("x", *texts))
    rows = arrived(tmp_path, content, UNNAMED)["payload"].to_pylist()
    assert b"".join(row + b"\n" for row in rows) == content.encode()
    with patch.object(file_reader, "PIECE_BYTES", length):
        assert arrived(tmp_path, content, UNNAMED)["payload"].to_pylist() == rows


def of_meter(rows: list[str], folder: Path) -> list[tuple[datetime | None, float | None]]:
    shape = replace(HALF, device=Origin(field="d"))
    return read(arrived(folder, "d;t;v\n" + "\n".join(rows), shape), shape)[0]


def test_an_hour_that_comes_twice_is_read_by_the_order_of_the_rows_of_each_device(tmp_path: Path) -> None:
    hourly = [f"a;26.10.2025 0{hour}:00;{n}" for n, hour in enumerate((1, 2, 2, 3))]
    other = [f"b;26.10.2025 {clock};{n}" for n, clock in enumerate(("02:30", "02:45", "02:30", "03:00"))]
    rows = [row for both in zip(hourly, other, strict=True) for row in both]
    times = [time and (time.hour, time.minute) for time, _ in of_meter(rows, tmp_path)]
    assert times == [(23, 0), (0, 30), (0, 0), (0, 45), (1, 0), (1, 30), (2, 0), (2, 0)]


def test_a_file_that_begins_within_the_hour_leaves_it_open_until_it_comes_again(tmp_path: Path) -> None:
    assert [value for _, value in of_meter([f"a;26.10.2025 02:{minute};{minute}" for minute in (15, 45)], tmp_path)] == [None, None]
    rows = of_meter([f"a;26.10.2025 02:{minute};{minute}" for minute in (15, 45, 15)] + ["a;29.03.2026 02:30;1"], tmp_path)
    assert rows == [LOST, LOST, (at("2025-10-26T01:15:00"), 15.0), (at("2026-03-29T01:30:00"), 1.0)]


def test_a_time_by_arrival_is_when_the_source_had_the_message(tmp_path: Path) -> None:
    shape = replace(CSV, time=Time(arrival=True))
    events = arrived(tmp_path, "v;x\n1.5;1\nv;x\n2.5;2\n", shape)
    assert read(events, shape) == ([(at("1970-01-01T00:00:01"), 1.5), (at("1970-01-01T00:00:01"), 2.5)], 0)
