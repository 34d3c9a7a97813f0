"""Small inputs after public reports, through all layers of one lake: the right readings to the last digit, and a reason for all the rest.

README.md of tests says which case is which. Times are on the second of March 2026, UTC, where they do not say another day.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from bronze.events import ARRIVED
from orchestration.audit.reconciliation.account import ALARMS, account, by_day, open_tables
from orchestration.audit.verify.check import verify
from orchestration.audit.verify.lake_snapshot import latest_snapshot
from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.connectors.sampling import sample_of_file
from orchestration.engine.lake import Lake
from orchestration.errors import ConfError
from orchestration.jobs.preview import Preview, preview
from orchestration.jobs.watched_fields import missing_fields
from silver.measurements import measurements
from silver.spec import Locator, Origin, PayloadFormat, Time
from tests.built import built
from tests.lakes import table
from tests.rows import at

pytestmark = pytest.mark.lakes
HERE = Path(__file__).parent
RIGHT = {
    "press": """Press01 OilTemp 08:00:00.950 54.2; Press02 OilTemp 08:00:00.950 51.0;
        Press01 OilTemp 08:00:10.950 54.4; Press01 Pressure 08:00:10.950 182.5;
        Press01 Door 08:00:20.950 1.0; Press02 OilTemp 08:00:20.950 51.3""",
    "shelly": """shellyplus1pm-a1b2c3 power 08:00:00.880 11.5; shellyplus1pm-a1b2c3 current 08:00:00.880 0.071;
        shellyplus1pm-a1b2c3 voltage 08:00:01.020 231.4; shellyplus1pm-a1b2c3 energy 08:01:00 152669.987;
        shellyplus1pm-a1b2c3 power 08:01:10.500 12.0; shellyplus1pm-a1b2c3 current 08:01:10.500 0.074;
        shellyplus1pm-a1b2c3 voltage 08:01:10.500 231.3; shellyplus1pm-a1b2c3 energy 08:01:10.500 152670.1""",
    "tele": """tank top 08:00:00 21.4; tank top_1 08:05:00 21.5; tank bottom 08:05:00 35.0; tank top_1 08:10:00 21.611111111111;
        tank bottom 08:10:00 35.222222222222; tank bottom 08:15:00 85.0""",
    "lora": """probe-7 lora_temperature 08:00:00.918273 21.5; probe-7 battery 08:00:00.918273 3.6;
        probe-7 lora_temperature 08:20:00.900 21.8; probe-7 battery 08:20:00.900 3.59""",
    "cell": """40735 position 08:00:31.146219 -96.72; 40735 motor_temp 08:00:31.146219 48.5; 43738 position 08:00:31.146219 -43.13;
        43738 position 08:00:32.146219 -43.1; 40735 motor_temp 08:00:33.146219 48.7""",
    "packs": """mote urn:dev:mac:0024befffe804ff1:temp 08:00:00 21.5; mote urn:dev:mac:0024befffe804ff1:temp 07:59:00 21.3;
        mote urn:dev:mac:0024befffe804ff1:hum 08:00:00 40.2; mote urn:dev:mac:0024befffe804ff1:door 08:00:00 1.0;
        mote urn:dev:mac:0024befffe804ff1:temp 08:01:00.500 21.7; mote urn:dev:mac:0024befffe804ff1:temp 08:00:50.500 21.6;
        mote urn:dev:mac:0024befffe804ff1:temp arrival 22.0""",
    "gw": "gw-1 tempc 08:00:00 48.5; gw-1 tempc 08:01:00 48.6; truck-9 tempc 08:01:00 4.2",
    "history": """sensor.cellar_temp state 08:00:00 8.4; sensor.cellar_temp state 08:07:00 8.6;
        binary_sensor.cellar_door state 08:00:30 1.0; binary_sensor.cellar_door state 08:01:10 0.0""",
    "pi": "pi level 08:00:00 61.2; pi level 08:02:00 61.4",
    "log": "logger-1 log_temperature 08:00:00 21.5; logger-1 log_temperature 08:01:00 21.6",
    "campbell": """logger-2 log_temperature 08:00:00 21.5; logger-2 pressure 08:00:00 1013.2; logger-2 pressure 08:01:00 1013.3;
        logger-2 log_temperature 08:02:00 21.75; logger-2 pressure 08:02:00 1013.25""",
    "meter": """meter meter_energy 2025-10-25T23:45:00 100.0; meter meter_energy 2025-10-26T00:00:00 100.5;
        meter meter_energy 2025-10-26T00:15:00 101.0; meter meter_energy 2025-10-26T00:30:00 101.5;
        meter meter_energy 2025-10-26T00:45:00 102.0; meter meter_energy 2025-10-26T01:00:00 102.5;
        meter meter_energy 2025-10-26T01:15:00 103.0; meter meter_energy 2025-10-26T01:30:00 103.5;
        meter meter_energy 2025-10-26T01:45:00 104.0; meter meter_energy 2025-10-26T02:00:00 104.5""",
    "station": """station pressure 07:00:00 1015.0; station outside 07:00:00 28.9; station wind 07:00:00 16.1;
        station direction 07:00:00 0; station rain 07:00:00 0; station pressure 07:15:00 1015.1; station outside 07:15:00 29.2;
        station wind 07:15:00 4.02; station direction 07:15:00 22.5; station rain 07:15:00 0.2; station outside 07:30:00 29.4;
        station rain 07:30:00 0; station pressure 07:45:00 1015.3; station outside 07:45:00 29.5; station wind 07:45:00 12.0;
        station direction 07:45:00 67.5; station rain 07:45:00 0""",
    "consumos": """ES0021 consumption 2026-03-01T00:00:00 0.213; ES0021 consumption 2026-03-01T22:00:00 0.187;
        ES0021 consumption 2026-03-01T23:00:00 0.201; ES0021 consumption 2026-03-02T00:00:00 0.199""",
    "logger": "logger-2 Flow 08:00:00.125 3.5; logger-2 Flow 08:00:05.130 3.6",
    "line_protocol": """roof north temp 08:00:00.123456 21.5; roof north hum 08:00:00.123456 40.0; roof north door 08:00:00.123456 1.0;
        roof north temp 08:00:10.123456 21.6; p-7 rpm 08:00:00 1480.0; p-7 flow 08:00:00 35.0; p-7 rpm arrival 1482.0""",
    "flight": """glider-1 rpm 08:00:00 1480.0; glider-1 flight_temperature 08:00:00 48.5; glider-1 rpm 08:00:10 1482.0;
        glider-1 flight_temperature 08:00:10 48.7""",
    "export": "glider-2 rpm 08:00:00 1480.0; glider-2 flight_temperature 08:00:00 48.5",
}
BROKEN = {
    "press": {"quality_is_good": 1, "value_is_a_number": 1},
    "shelly": {"event_time_is_valid": 1, "something_is_measured": 1},
    "lora": {"something_is_measured": 2},
    "cell": {"value_is_a_number": 2, "position_is_not_bad": 1, "something_is_measured": 1},
    "packs": {"value_is_a_number": 1},
    "gw": {"event_time_is_not_too_old": 3, "event_time_is_not_in_the_future": 1, "event_time_is_valid": 1},
    "history": {"something_is_measured": 3},
    "pi": {"value_is_a_number": 1},
    "log": {"payload_is_readable": 3},
    "campbell": {"something_is_measured": 3, "value_is_a_number": 1},
    "line_protocol": {"something_is_measured": 1, "value_is_a_number": 1},
}


@pytest.fixture(scope="module")
def conf() -> Conf:
    """Of the lake of all cases after one run, to be read."""
    return load(built("cases") / "conf")


def expected(text: str, arrival: object = None) -> list[tuple[str, str, object, float]]:
    rows = (one.strip().rsplit(maxsplit=3) for one in text.replace("\n", " ").split(";") if one.strip())
    days = [
        (device, metric, time if "T" in time or time == "arrival" else f"2026-03-02T{time}", value) for device, metric, time, value in rows
    ]
    return sorted((device, metric, arrival if time == "arrival" else at(time), float(value)) for device, metric, time, value in days)


@pytest.mark.parametrize("source", RIGHT)
def test_the_readings_of_a_case_are_right_and_all_else_has_its_reason(source: str, conf: Conf) -> None:
    readings, quarantine = (table(conf, f"silver.{name}") for name in ("readings", "quarantine"))
    found = readings[readings.source == source][["device_id", "metric", "event_time", "value"]].itertuples(index=False, name=None)
    events = table(conf, "bronze.events")
    right = expected(RIGHT[source], events[events.source == source].received_at.max())
    assert [row[:3] for row in sorted(found)] == [row[:3] for row in right]
    found = readings[readings.source == source][["device_id", "metric", "event_time", "value"]].itertuples(index=False, name=None)
    assert [row[3] for row in sorted(found)] == pytest.approx([row[3] for row in right], rel=1e-12)
    assert Counter(rule for rules in quarantine[quarantine.source == source].broken_rules for rule in rules) == BROKEN.get(source, {})


def test_every_event_is_accounted_for_and_a_second_evaluator_finds_no_difference(conf: Conf) -> None:
    days = {day["source"]: day for day in by_day(account(open_tables(Lake(conf))).batches)}
    assert {day[alarm] for day in days.values() for alarm in ALARMS} == {0}
    assert (days["lora"]["duplicates"], days["lora"]["conflicts"]) == (2, 0)
    assert (days["spindle"]["duplicates"], days["spindle"]["conflicts"]) == (5, 4)
    assert {name: day["without_measurements"] for name, day in days.items() if day["without_measurements"]} == {
        "shelly": 1,
        "lora": 2,
        "cell": 1,
        "history": 3,
        "campbell": 3,
        "line_protocol": 1,
    }
    report = verify(latest_snapshot(conf), conf)
    assert [outcome.first for outcome in report.outcomes if outcome.differences] == []


def test_no_window_is_of_a_clock_that_was_never_set_and_a_flag_keeps_a_void_value_out_of_its_average(conf: Conf) -> None:
    windows = table(conf, "gold.plant_aggregates")
    assert set(windows.window_start.dt.year) == {2026}
    assert windows[windows.metric == "Pressure"].value.to_list() == [182.5]


def test_a_header_that_is_in_another_encoding_is_refused_with_its_file_and_read_by_nobody(conf: Conf) -> None:
    assert "flight_as_utf_8" not in set(table(conf, "bronze.events").source)
    with pytest.raises(ConfError, match=r"a run would skip .*flight.csv: its header has the byte 0xB0 at place 15.* set `encoding`"):
        sample_of_file(conf.sources["flight_as_utf_8"], conf.folder.parent / "landing/28a/flight.csv")


def test_a_sensor_whose_key_changes_is_told(conf: Conf) -> None:
    (told,) = [sentence for sentence in missing_fields(conf.lake) if "metric top of source tele" in sentence]
    assert told.endswith("and has none since, though 3 events came; new fields: DS18B20-1.Id, DS18B20-2.Id")


def test_a_row_that_lacks_values_is_not_shifted_into_other_columns() -> None:
    shape = PayloadFormat("csv", Origin(constant="dust"), Time("ms", "epoch_ms"), has_header=True, separator=";")
    shape = replace(shape, metrics={name: name for name in ("temperature", "humidity", "pressure")})
    header, *lines = (HERE / "landing/16b/dust.csv").read_text().splitlines()
    columns = {"payload": pa.array([line.encode() for line in lines]), "header": [header] * 3, "position": ["dust.csv"] * 3}
    rows = pa.concat_tables(measurements(pa.table(columns), shape, 1_000)).sort_by([("event_at", "ascending"), ("part", "ascending")])
    assert rows["number"].to_pylist() == [22.6, 42.9, 93409.06, None, 22.7, 42.8, 93401.1]


MESSAGES = {
    "03": PayloadFormat(
        "json",
        Origin(topic=2),
        Time(arrival=True),
        metric=Origin(topic=3),
        value=Origin("value"),
        decode=("text",),
        not_measured=("unavailable", "heating"),
        words={"pump": {"on": 1.0, "off": 0.0}},
    ),
    "09": PayloadFormat("sparkplug_b", Origin(topic=5), Time("each.timestamp", "epoch_ms"), each="metrics"),
    "13": PayloadFormat(
        "json",
        Origin(key=True),
        Time(header="ce_time", otherwise=Locator("ts")),
        metrics={"energy": "kwh"},
        decode=("confluent",),
    ),
}


@pytest.mark.parametrize(
    ("case", "rules"),
    [
        ("03", {"value_is_a_number": 1, "something_is_measured": 3}),
        ("09", {"something_is_measured": 1}),
        ("13", {"something_is_measured": 1}),
    ],
)
def test_messages_that_give_no_reading_have_a_reason_each(case: str, rules: dict[str, int]) -> None:
    found = of_messages(case)
    assert Counter(rule for row in found.measurements for rule in row["reasons"] if not rule.endswith("_is_known")) == rules
    assert all(reason for row in found.measurements for reason in row["reasons"].values())


@pytest.mark.parametrize(
    ("case", "values"),
    [
        (
            "03",
            [("boiler-1", *row) for row in (("flow_temp", 68.5), ("return_temp", 54.25), ("pump", 1), ("flow_temp", 68.7), ("pump", 0))],
        ),
        (
            "09",
            [
                ("press-01", metric, value)
                for metric, value in (
                    *(("Temperature", -12), ("Pressure", 182.5), ("Temperature", -11), ("Pressure", 183.0), ("Pressure", 181.0)),
                    *(("Pressure", 181.5), ("Pressure", 184.0), ("Pressure", 180.0), ("Temperature", -10), ("Pressure", 180.5)),
                )
            ],
        ),
        (
            "13",
            [(f"meter-{n}", "energy", value) for n, value in ((12, 10452.7), (13, 884.1), (12, 10452.9), (13, 884.2))],
        ),
    ],
)
def test_values_of_messages_that_are_no_json_objects_are_right(case: str, values: list[tuple[str, str, float]]) -> None:
    rows = [row for row in of_messages(case).measurements if all(rule.endswith("_is_known") for rule in row["reasons"])]
    assert [(row["device_id"], row["metric"], row["value"]) for row in rows] == values


def of_messages(case: str) -> Preview:
    """As if they had come by a broker."""
    file = next((HERE / "messages").glob(f"{case}.*"))
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
    shape, keys, headers = MESSAGES[case], list[bytes](), list[list[tuple[str, bytes]]]()
    if case == "09":
        shape = replace(shape, metric=Origin(field="each.name"), value=Origin("each.value"))
        messages = [(topic, bytes.fromhex(content)) for topic, content in rows]
    elif case == "03":
        messages = [(topic, content.encode()) for topic, content in rows]
    else:
        messages = [("meters", payload_of(value)) for *_, value in rows[1:]]
        keys, headers = [row[0].encode() for row in rows[1:]], [headers_of(row[1]) for row in rows[1:]]
    events = pa.table(
        {
            "payload": [payload for _, payload in messages],
            "header": pa.nulls(len(messages), pa.string()),
            "source": ["spindle"] * len(messages),
            "position": [f"{topic}/0/{n}" for n, (topic, _) in enumerate(messages)],
            "received_at": pa.array([at("2026-03-02T08:10:00")] * len(messages), pa.timestamp("us", "UTC")),
            "key": keys if case == "13" else pa.nulls(len(messages), pa.binary()),
            "headers": headers if case == "13" else pa.nulls(len(messages), ARRIVED.field("headers").type),
        },
        ARRIVED,
    )
    conf = load(HERE / "conf")
    source = replace(conf.sources["spindle"], payload_format=shape)
    return preview(replace(conf, sources={"spindle": source}), "spindle", events)


def payload_of(value: str) -> bytes:
    """As messages.tsv writes them."""
    if value == "null":
        return b""
    frame, _, text = value.removeprefix("hex:").partition(" ")
    return bytes.fromhex(frame) + text.encode() if value.startswith("hex:") else value.encode()


def headers_of(text: str) -> list[tuple[str, bytes]]:
    """As messages.tsv writes them."""
    pairs = (pair.partition("=") for pair in text.split(";") if pair)
    return [(name, value.encode()) for name, _, value in pairs]
