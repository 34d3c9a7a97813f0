"""`tidemark init DIR --from FILE`: what is found in a stranger's file, and that the conf written from it can be loaded."""

import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.conf.load import load
from orchestration.conf.proposal import proposal_of
from orchestration.conf.starter import findings_of, write_proposal
from orchestration.errors import ConfError
from silver.spec import Origin
from tests.orchestration.conf.conftest import START, Propose, landing_of


def wide_rows(count: int = 12) -> list[list[str]]:
    """One a minute: time, temperature, humidity."""
    return [[f"2026-01-05 00:{minute:02d}:00", str(20 + minute / 10), str(40 + minute)] for minute in range(count)]


def test_wide_csv_with_an_unnamed_row_number_and_partly_quoted(propose: Propose) -> None:
    rows = [f'"{n}","{time}",{a},{b}' if n % 2 else f'"{n}",{time},{a},{b}' for n, (time, a, b) in enumerate(wide_rows())]
    conf = propose(['"date","Temperature","Humidity"', *rows], "room1.txt")
    shape = conf.sources["sample"].payload_format
    assert (shape.format, shape.has_header, shape.columns, shape.time.field, shape.time.format) == ("csv", True, (), "date", "iso")
    assert shape.metrics == {"Temperature": "Temperature", "Humidity": "Humidity"}
    assert shape.device.file_name == r"([^/]+?)\.txt(?:\.gz)?$"
    assert list(conf.devices) == ["room1"]
    assert {metric.step_seconds for metric in conf.metrics.values()} == {600}
    assert conf.groups["all"].metrics == ("Temperature", "Humidity")


def test_csv_with_semicolons_without_a_header_and_european_dates(propose: Propose) -> None:
    rows = [f"{'ab'[n % 2]};{13 + n}.01.2026 08:{n:02d};{n + 0.5}" for n in range(10)]
    shape = propose(rows, "in.csv").sources["sample"].payload_format
    assert (shape.separator, shape.has_header, shape.columns) == (";", False, ("c1", "c2", "c3"))
    assert (shape.time.field, shape.time.format, shape.metrics) == ("c2", "dd.MM.yyyy HH:mm", {"c3": "c3"})


def test_csv_in_single_quotes_with_tabs_and_a_named_device(propose: Propose) -> None:
    rows = [f"'pump {n % 2}'\t'{START + 60 * n}'\t'{n}.5'" for n in range(10)]
    conf = propose(["'Sensor ID'\t'Timestamp'\t'Flow'", *rows])
    shape = conf.sources["sample"].payload_format
    assert (shape.separator, shape.quote, shape.device.field, shape.time.format) == ("\t", "'", "Sensor ID", "epoch_s")
    assert list(conf.devices) == ["pump 0", "pump 1"]


def test_a_header_with_names_twice_or_missing_is_replaced_by_columns(propose: Propose) -> None:
    shape = propose(["time,t,t,", *(f"{time},{a},{b},{a}" for time, a, b in wide_rows())]).sources["sample"].payload_format
    assert (shape.has_header, shape.columns) == (True, ("time", "t", "t_3", "c4"))


def test_a_separator_at_the_end_of_rows_is_no_row_number(propose: Propose, tmp_path: Path) -> None:
    shape = propose(["time,t,h", *(f"{','.join(row)}," for row in wide_rows())]).sources["sample"].payload_format
    assert (shape.has_header, shape.columns, shape.ragged, shape.metrics) == (True, (), True, {"t": "t", "h": "h"})
    assert "some rows lack values at their end, or have empty ones more: see ragged in sources.yml" in findings_of(
        proposal_of(tmp_path / "sample.txt")
    )


def test_long_json_lines_in_epoch_milliseconds(propose: Propose) -> None:
    events = [
        {"dev": f"d{n % 3}", "m": "temp" if n % 2 else "hum", "v": n, "u": "degC" if n % 2 else "%", "room": "r", "t": (START + n) * 1000}
        for n in range(60)
    ]
    conf = propose([json.dumps(event) for event in events])
    shape = conf.sources["sample"].payload_format
    assert (shape.device.field, shape.time.field, shape.time.format, shape.value) == ("dev", "t", "epoch_ms", Origin("v"))
    assert shape.metric and shape.unit and shape.zone
    assert (shape.metric.field, shape.unit.field, shape.zone.field) == ("m", "u", "room")
    assert {name: metric.unit for name, metric in conf.metrics.items()} == {"hum": "%", "temp": "degC"}
    assert list(conf.devices) == ["d0", "d1", "d2"]
    assert conf.metrics["temp"].step_seconds == 60  # one a device and metric every 6 s


def test_nested_wide_json(propose: Propose) -> None:
    events = [
        {
            "meta": {"device": {"id": f"press-{n % 2}"}, "seq": n},
            "at": f"2026-01-05T00:00:{n:02d}+01:00",
            "data": {"temp": n / 3, "door": n % 2 == 0},
        }
        for n in range(20)
    ]
    shape = propose([json.dumps(event) for event in events], "x.jsonl").sources["sample"].payload_format
    assert (shape.device.field, shape.time.field, shape.time.format) == ("meta.device.id", "at", "iso")
    assert shape.metrics == {"temp": "data.temp", "door": "data.door"}  # the sequence number counts up by one: no measurement


def test_a_list_of_measurements_an_event(propose: Propose) -> None:
    readings: Callable[[int], list[dict[str, Any]]] = lambda n: [{"name": name, "value": n + 0.5} for name in ("temp", "hum")]  # noqa: E731
    events = [{"gw": {"device_id": f"g{n % 2}"}, "ts": f"2026-01-05T00:00:{n:02d}Z", "data": {"readings": readings(n)}} for n in range(20)]
    shape = propose([json.dumps(event) for event in events]).sources["sample"].payload_format
    assert (shape.each, shape.device.field, shape.value, shape.time.field) == ("data.readings", "gw.device_id", Origin("each.value"), "ts")
    assert shape.metric and shape.metric.field == "each.name"


def test_a_gzipped_sample_with_broken_lines(tmp_path: Path) -> None:
    lines = [json.dumps({"device": "a", "ts": "2026-01-05T00:00:00Z", "x": 1.5})] * 4 + ["{broken"]
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    proposal = proposal_of(tmp_path / "a.jsonl.gz")
    assert "1 of 5 lines are no JSON object; such events go to silver.quarantine" in findings_of(proposal)
    write_proposal(tmp_path / "conf", proposal)
    assert landing_of(load(tmp_path / "conf"), "sample").files == "*.jsonl.gz"


def test_the_only_number_beside_a_metric_is_its_value(propose: Propose) -> None:
    events = [{"id": "a", "ts": START + n, "list": [{"name": name, "T": n} for name in ("temp", "hum")]} for n in range(5)]
    conf = propose([json.dumps(event) for event in events])
    assert (conf.sources["sample"].payload_format.value, list(conf.metrics)) == (Origin("each.T"), ["temp", "hum"])


def test_a_field_that_is_a_value_and_an_object_is_what_it_is_more_often(propose: Propose) -> None:
    events = [{"ts": START, "x": 1.5}, {"ts": START, "x": 2.5}, {"ts": START, "x": {"y": 3.5}}]
    assert propose([json.dumps(event) for event in events]).sources["sample"].payload_format.metrics == {"x": "x"}


def test_fields_that_differ_in_case_are_read_both(propose: Propose) -> None:
    assert propose([json.dumps({"t": START, "x": 1.5, "X": 2.5})]).sources["sample"].payload_format.metrics == {"x": "x", "X": "X"}


def test_only_a_thousand_lines_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,x\n" + "".join(f"{START + n},{n % 7}.5\n" for n in range(5_000)))
    assert proposal_of(tmp_path / "a.csv").metrics["x"].count == 999


AMBIGUOUS = "day and month could change places in every time of the sample; confirm the format"


@pytest.mark.parametrize(
    ("time", "format", "is_ambiguous"),
    [
        ("2026-01-05T00:00:00.000Z", "iso", False),
        ("2026-01-05T00:00", "iso", False),
        ("1767571200", "epoch_s", False),
        ("1767571200.25", "epoch_s", False),
        ("1767571200000", "epoch_ms", False),
        ("1767571200000000", "epoch_us", False),
        ("1767571200000000000", "epoch_ns", False),
        ("134120448000000000", "filetime", False),
        ("05/01/2026 00:00:00", "dd/MM/yyyy HH:mm:ss", True),
        ("01/15/2026 00:00:00", "MM/dd/yyyy HH:mm:ss", False),
        ("1/15/2026 1:05:00 PM", "M/d/yyyy h:mm:ss a", False),
        ("2026/01/05 00:00:00", "yyyy/MM/dd HH:mm:ss", False),
        ("20260105000000", "yyyyMMddHHmmss", False),
        ("26-01-05 00:00:00", "yy-MM-dd HH:mm:ss", False),
        ("20260105T000000", "yyyyMMdd'T'HHmmss", False),
        ("2026-01-05", "yyyy-MM-dd", False),
        ("05-Jan-2026 00:00", "dd-MMM-yyyy HH:mm", False),
        ("5-Jan-26 1:05:00 AM", "d-MMM-yy h:mm:ss a", False),
        ("Jan 5, 2026 1:05:00 AM", "MMM d, yyyy h:mm:ss a", False),
    ],
)
def test_the_format_of_times_is_found(time: str, format: str, is_ambiguous: bool, propose: Propose, tmp_path: Path) -> None:
    conf = propose([json.dumps({"device": "a", "time": time, "x": n / 2}) for n in range(4)])
    assert conf.sources["sample"].payload_format.time.format == format
    assert (AMBIGUOUS in findings_of(proposal_of(tmp_path / "sample.txt"))) is is_ambiguous


NO_TIME = (
    "holds no field with a time that can be read (ISO 8601, epoch in s, ms, us or ns since 2000, FILETIME, or a common date pattern): "
)
UNREADABLE = [
    pytest.param(b"", "is empty; name a file of JSON lines or CSV", id="empty"),
    pytest.param(b"\x00\x01\x02", "is binary; name a file of JSON lines or CSV", id="binary"),
    pytest.param(b"PAR1\x15\x04\xff", "is Parquet, which a source of files or s3 reads by `format: parquet`", id="Parquet"),
    pytest.param(b"\x1f\x8b\x08broken", "cannot be read", id="broken gzip"),
    pytest.param(b"[\n1,\n2\n]\n", "looks like JSON, but not one object a line", id="array"),
    pytest.param(b'{\n  "a": 1\n}\n', "looks like JSON, but not one object a line", id="pretty"),
    pytest.param(
        b"plant/boiler/flow 68.5\nplant/boiler/pump ON\n", "has lines of a topic and a payload; keep the payloads alone", id="topics"
    ),
    pytest.param(b"key\theaders\tvalue\nmeter-12\t\tnull\n", "has no row with a cell that is a number or a time", id="no rows"),
    pytest.param(b"hello\nworld\n", "is neither JSON lines nor CSV with several columns", id="prose"),
    pytest.param(b"a,b\n1,2\n3,4\n", "holds no field with a time that can be read", id="no time"),
    pytest.param(
        b"ts,x\n2026-01-05 00:00:00,heating\n",
        "holds no field with numbers to measure: x has words such as heating in 1 of 1 event;",
        id="words",
    ),
    pytest.param(b'{"bn":"mote:","bt":1772438400,"e":[{"n":"temp","v":21.5}]}\n', "looks like a kind of senml", id="older"),
    pytest.param(
        b"Year,Month,Day,Hour,x\n2026,3,2,7,1.5\n2026,3,2,8,2.5\n", "has its time in several fields (Year, Month, Day, Hour)", id="parts"
    ),
    pytest.param(b'{"ts":188,"x":1.5}\n{"ts":0,"x":1.5}\n', NO_TIME + "ts holds numbers such as 188, no epoch", id="uptime"),
    pytest.param(
        b"ts,x\n2026-01-05 00:00:00,20,5\n2026-01-05 00:01:00,20,7\n",
        "has rows with 3 values below a header with 2 names, and no row numbers",
        id="decimal comma as a separator",
    ),
    pytest.param(b"time,x\n08:00:00,1.5\n", NO_TIME + "time holds times of day such as 08:00:00, without a date", id="time of day"),
    pytest.param(b"Time,x\n2026-03-02 08:00:00 CET,1.5\n", NO_TIME + "Time ends in letters of a zone (CET)", id="zone letters"),
    pytest.param(b"Date,x\n02-Foo-2026 08:00,1.5\n", NO_TIME + "Date has no format that is known (such as 02-Foo-2026 08:00)", id="months"),
    pytest.param(b'{"ts":[1772438400],"x":"a"}\n', NO_TIME + "none is called after a time; ts is a list;", id="columns"),
]


@pytest.mark.parametrize(("content", "sentence"), UNREADABLE)
def test_an_unreadable_sample_is_one_sentence(content: bytes, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(content)
    with pytest.raises(ConfError) as error:
        proposal_of(file)
    assert str(error.value).startswith(f"{file} {sentence}")
    assert "\n" not in str(error.value)


def test_a_missing_sample_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfError, match="cannot be read \\(No such file or directory\\); check the path"):
        proposal_of(tmp_path / "a.csv")


names = st.text(min_size=1, max_size=6)
cells = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8) | st.just("2026-01-05T00:00:00Z")
events = st.dictionaries(
    names | st.sampled_from(["ts", "device", "metric", "value", "unit"]), cells | st.dictionaries(names, cells, max_size=2), max_size=5
)


@given(st.lists(events, min_size=1, max_size=4), st.sampled_from(["json", "list", "csv"]))
def test_whatever_is_proposed_can_be_loaded(rows: list[dict[str, Any]], kind: str) -> None:
    lines = [json.dumps({"ts": START, "list": [row]} if kind == "list" else row) for row in rows]
    if kind == "csv":
        lines = ["ts,x,y", *(f"{START},{json.dumps(str(row))},1.5" for row in rows)]
    with tempfile.TemporaryDirectory() as parent:
        sample, folder = Path(parent) / "a.txt", Path(parent) / "conf"
        sample.write_text("\n".join(lines))
        try:
            proposal = proposal_of(sample)
        except ConfError as error:
            assert "\n" not in str(error)
        else:
            write_proposal(folder, proposal)
            load(folder)


def test_half_of_a_surrogate_pair_is_no_obstacle(propose: Propose) -> None:
    lines = [rf'{{"device": "a", "ts": {START + n}, "temp": {n}.5, "note": "\ud83d"}}' for n in range(5)]
    assert propose(lines).sources["sample"].payload_format.metrics == {"temp": "temp"}


def test_a_first_line_of_data_is_no_header_where_times_are_written_in_two_ways(propose: Propose) -> None:
    rows = ["2026-01-05T00:00:00Z;8.55", *(f"2026-01-05 00:{minute:02d}:00;{minute}.5" for minute in range(1, 5))]
    assert propose(rows, "in.csv").sources["sample"].payload_format.columns == ("c1", "c2")


def test_a_decimal_comma_is_no_separator(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("".join(f"2026-01-05 00:{minute:02d}:00\t{minute},5\t{minute}\n" for minute in range(2)))
    assert proposal_of(tmp_path / "in.csv").sample.settings["separator"] == "\t"
