"""What `tidemark init --from` takes for device, time, metric, flag and unit in a stranger's events, and what it is unsure of."""

import codecs
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestration.conf.load import load
from orchestration.conf.proposal import proposal_of
from orchestration.conf.starter import findings_of, write_proposal
from tests.orchestration.conf.conftest import START, Propose


def in_minutes(count: int = 6, **fields: Any) -> list[dict[str, Any]]:
    """Events a minute apart; a field that is a function is asked for the value of each event."""
    return [{"ts": START + 60 * n} | {name: field(n) if callable(field) else field for name, field in fields.items()} for n in range(count)]


def list_of(*elements: dict[str, Any]) -> Callable[[int], list[dict[str, Any]]]:
    """Elements whose numbers grow from event to event."""
    return lambda n: [{name: value + n if isinstance(value, float) else value for name, value in of.items()} for of in elements]


LONG = [{"id": "Press01.Oil", "v": 54.2, "q": True, "t": START}, {"id": "Press01.Door", "v": True, "q": True, "t": START}]
READ = [
    pytest.param(
        [{"timestamp": START + 1, "values": [*LONG, {"id": "Press01.Recipe", "v": "A-1043", "q": False, "t": START}]}] * 2,
        {"each": "values", "metric": "each.id", "value": "each.v", "time": "each.t", "attributes": {"quality": "each.q"}},
        id="a list of ids, values, flags and times",
    ),
    pytest.param(
        in_minutes(src="plug-1", temp=lambda n: n + 0.5, events=lambda n: [{"id": 0, "event": "push"}] if n == 1 else []),
        {"each": None, "device": "src", "metrics": {"temp": "temp"}},
        id="a rare list",
    ),
    pytest.param(
        in_minutes(
            ids={"device_id": "p", "application_id": "a"}, f_cnt=lambda n: n, f_port=2, up={"temp": 20.5}, rx=list_of({"rssi": -97.5})
        ),
        {"each": None, "device": "ids.device_id", "metrics": {"temp": "up.temp"}},
        id="a list of gateways, counters and ports",
    ),
    pytest.param(
        in_minutes(
            deviceInfo={"tenantId": "52f1", "devEui": "0101010101010101"},
            devAddr="00189440",
            shortAddr="0042",
            dr=1,
            fCnt=lambda n: n,
            object={"temp": 21.5},
            rxInfo=list_of({"rssi": -36, "snr": 10.5, "timestamp": 463457000, "location": {"latitude": 52.5}}),
            settings={"frequency": 867100000, "lora": {"bandwidth": 125000}, "timestamp": 2463457000},
        ),
        {"each": None, "device": "deviceInfo.devEui", "metrics": {"temp": "object.temp"}, "time": "ts"},
        id="ChirpStack: ids in hexadecimal digits, and how the message was sent and received",
    ),
    pytest.param(
        in_minutes(rx_metadata=list_of({"rssi": -97, "timestamp": 463457000, "location": {"latitude": 52.5}}), up={"f_port": 2}, temp=20.5)
        + in_minutes(rx_metadata=list_of({"rssi": -97, "timestamp": 463457000}), device="a"),
        {"each": None, "metrics": {"temp": "temp"}},
        id="The Things Stack: gateways with a clock of their own",
    ),
    pytest.param(
        in_minutes(tags=list_of({"mac": "a4c1", "rssi": -60, "temp": 20.5})),
        {"each": "tags", "device": "each.mac", "metrics": {"rssi": "each.rssi", "temp": "each.temp"}},
        id="a list of beacons, with what they measure",
    ),
    pytest.param(
        in_minutes(
            src="plug-1", params={"switch:0": {"id": 0, "apower": 11.5}, "temperature:0": {"id": 0, "tC": 40.5}, "sys": {"mac": "B8D61A"}}
        ),
        {"device": "src", "metrics": {"apower": "params.switch:0.apower", "tC": "params.temperature:0.tC"}},
        id="Shelly: parts of a device with small ids",
    ),
    pytest.param(
        in_minutes(device={"friendlyName": "probe", "ieeeAddr": "0x00158d00032"}, temp=20.5),
        {"device": "device.friendlyName", "metrics": {"temp": "temp"}},
        id="Zigbee2MQTT: a device in an object",
    ),
    pytest.param(
        in_minutes(AM2301={"Temperature": 21.4, "Humidity": 45.2}, BMP={"Pressure": 1013.5}, TempUnit="C", PressureUnit="hPa"),
        {"unit": None, "metrics": {"Temperature": "AM2301.Temperature", "Humidity": "AM2301.Humidity", "Pressure": "BMP.Pressure"}},
        id="Tasmota: units of one metric each",
    ),
    pytest.param(
        in_minutes(body={"temp": 20.5}, properties={"batchId": "7f3f", "sequenceNumber": 101}, system={"hub-device-id": "press"}),
        {"device": "system.hub-device-id", "metrics": {"temp": "body.temp"}},
        id="a device by the end of its name, beside an id of a batch",
    ),
    pytest.param(
        in_minutes(device="a", old_state={"state": "20"}, new_state={"state": 21.5}),
        {"metrics": {"state": "new_state.state"}},
        id="the state before is not measured again",
    ),
    pytest.param(
        in_minutes(dev="a", battery=3.6, alarms=list_of({"code": 3, "severity": 2.5}), readings=list_of({"name": "t", "value": 20.5})),
        {"each": "readings", "device": "dev", "metric": "each.name"},
        id="the list with metrics and values, of two, beside a number of the event",
    ),
    pytest.param(
        in_minutes(
            MessageId=lambda n: str(1300 + n), Messages=list_of({"WriterId": 1, "P": {"X": {"Value": 1}}}, {"WriterId": 2, "P": {"X": 2.5}})
        ),
        {"each": "Messages", "device": "each.WriterId", "metrics": {"X": "each.P.X"}},
        id="a device whose id is a number of the list",
    ),
    pytest.param(
        in_minutes(gateway="gw", sensors=list_of({"id": "s1", "temp": 20.5}, {"id": "s2", "temp": 30.5})),
        {"each": "sensors", "device": "each.id", "metrics": {"temp": "each.temp"}},
        id="a list of several devices",
    ),
    pytest.param(
        in_minutes(device=lambda n: f"truck-{n}", speed=lambda n: n + 0.5),
        {"device": "device", "metrics": {"speed": "speed"}},
        id="one line a device",
    ),
    pytest.param(
        in_minutes(a=lambda n: {"Id": "A"} if n else {}, temp=lambda n: n + 0.5),
        {"device": None, "metrics": {"temp": "temp"}},
        id="a device in some events",
    ),
    pytest.param(
        in_minutes(station="s", no2=lambda n: n + 0.5, valid=1, status="ok"),
        {"metrics": {"no2": "no2"}, "attributes": {"quality_valid": "valid", "quality_status": "status"}},
        id="flags of an archive",
    ),
    pytest.param(
        in_minutes(device="door", status=lambda n: n % 2 == 0),
        {"metrics": {"status": "status"}, "attributes": {}},
        id="nothing but a status",
    ),
    pytest.param(
        in_minutes(temp={"value": 20.5, "unit": "C"}, pressure={"value": 1013, "unit": "hPa"}, type="air"),
        {"metrics": {"temp": "temp.value", "pressure": "pressure.value"}, "unit": None},
        id="values and units in objects",
    ),
    pytest.param(in_minutes(temp=20.5, TempUnit="C"), {"metrics": {"temp": "temp"}, "unit": "TempUnit"}, id="the unit of a wide row"),
]


@pytest.mark.parametrize(("events", "expected"), READ)
def test_what_measures_is_read_and_what_counts_or_judges_is_not(
    events: list[dict[str, Any]], expected: dict[str, Any], propose: Propose
) -> None:
    shape = propose([json.dumps(event) for event in events]).sources["sample"].payload_format
    found = vars(shape) | {
        key: origin and origin.field for key in ("device", "metric", "time", "unit", "value") if (origin := getattr(shape, key)) or True
    }
    assert {key: found[key] for key in expected} == expected


FLAGS = [
    pytest.param({"q": lambda n: n > 1}, {"quality_is_good": "attributes['quality'] = 'true'"}, id="true and false"),
    pytest.param({"is_bad": lambda n: n > 1}, {"quality_is_good": "attributes['quality'] = 'false'"}, id="true is bad"),
    pytest.param(
        {"x_valid": lambda n: int(n > 0)}, {"quality_is_good": "metric <> 'x' or attributes['quality'] = '1'"}, id="of one metric"
    ),
    pytest.param({"quality": lambda n: 192 if n else 0}, {"quality_is_good": "attributes['quality'] = '192'"}, id="OPC"),
    pytest.param(
        {"quality": lambda n: "Good" if n else None}, {"quality_is_good": "coalesce(attributes['quality'], 'Good') = 'Good'"}, id="rare"
    ),
    pytest.param({"error": lambda n: n % 2}, {"quality_is_good": "attributes['quality'] = '0'"}, id="errors"),
    pytest.param({"sts": lambda n: "OK" if n else "bad"}, {"quality_is_good": "attributes['quality'] = 'OK'"}, id="sts"),
    pytest.param({"code": 7}, {}, id="a code that nobody knows is left to the reader"),
    pytest.param({"status_x": "ok"}, {}, id="the status of one metric in another order"),
    pytest.param(
        {"y": lambda n: {"v": 2.5, "q": "good" if n else "bad"}},
        {"quality_is_good": "metric <> 'y' or attributes['quality'] = 'good'"},
        id="below one value",
    ),
    pytest.param({"status": "running"}, {}, id="words that do not say what is good are left to the reader"),
]


@pytest.mark.parametrize(("flags", "expected"), FLAGS)
def test_a_flag_becomes_a_rule_where_its_words_say_what_is_good(flags: dict[str, Any], expected: dict[str, str], propose: Propose) -> None:
    conf = propose([json.dumps(row) for row in in_minutes(dev="a", x=1.5, **flags)])
    assert {rule.name: rule.holds for rule in conf.rules if rule.name.startswith("quality")} == expected


def test_words_for_no_value_and_of_switches_are_declared(propose: Propose) -> None:
    rows = [
        "entity_id,state,at",
        *(f"{('temp', 'door')[n % 2]},{state},{START + n}" for n, state in enumerate(["8.4", "on", "unknown", "OFF", "---"])),
    ]
    shape = propose(rows).sources["sample"].payload_format
    assert (shape.not_measured, shape.words, shape.device.field) == (("---", "unknown"), {"state": {"on": 1, "off": 0}}, "entity_id")


UNITS = [
    pytest.param({"temp": 20.5, "power_kw": 3.5, "Flow [m3/h]": 1.5, "Druck (bar)": 2.5}, ["kW", "m3/h", "bar", None], id="names"),
    pytest.param({"t": {"v": 20.5, "u": "degC"}, "p": {"v": 1.5, "u": "hPa"}, "temp": 1.5}, ["degC", "hPa", None], id="beside each value"),
    pytest.param({"temp": 20.5, "temp_unit": "C", "hum": 40.5}, ["C", None], id="a field named after the metric"),
    pytest.param({"Temperature": 20.5, "Humidity": 40.5, "TempUnit": "C"}, ["C", None], id="a field named after the metric in short"),
    pytest.param({"Consumo_kWh": 20.5}, ["kWh"], id="capital letters within a unit"),
    pytest.param({"temp (2)": 20.5, "mean_m": 1.5}, [None, None], id="no units"),
]


@pytest.mark.parametrize(("fields", "units"), UNITS)
def test_units_stand_in_names_or_beside_values(fields: dict[str, Any], units: list[str | None], propose: Propose) -> None:
    metrics = propose([json.dumps(event) for event in in_minutes(dev="a", **fields)]).metrics
    assert sorted(map(str, (metric.unit for metric in metrics.values()))) == sorted(map(str, units))


def test_what_only_rises_is_a_counter_soon_where_its_name_says_so(propose: Propose) -> None:
    rows = in_minutes(
        40, dev="a", energy=lambda n: n // 2 + 0.5, temp=lambda n: 20.5 + n % 7, level=lambda n: n + 0.5, total=lambda n: 9.5 - n
    )
    aggregations = {name: str(metric.aggregation) for name, metric in propose([json.dumps(row) for row in rows[::-1]]).metrics.items()}
    assert aggregations == {"energy": "counter_increase", "temp": "average", "level": "counter_increase", "total": "average"}


def test_a_field_that_divides_the_fleet_gives_groups_with_the_metrics_of_their_devices(propose: Propose) -> None:
    kinds = {"p1": "Pump", "p2": "Pump", "f1": "Fan"}
    rows = [
        {"ts": START + n, "device": name, "asset": {"type": kind}, ("flow" if kind == "Pump" else "speed"): n + 0.5 - n % 3}
        for n in range(4)
        for name, kind in kinds.items()
    ]
    conf = propose([json.dumps(row) for row in rows])
    assert {name: group.metrics for name, group in conf.groups.items()} == {"fan": ("speed",), "pump": ("flow",)}
    assert {name: device.groups for name, device in conf.devices.items()} == {"f1": ("fan",), "p1": ("pump",), "p2": ("pump",)}


def test_units_with_known_conversions_are_converted_where_they_are_of_one_metric(propose: Propose) -> None:
    events = in_minutes(dev="a", temp=20.5, unit=lambda n: "F" if n else "C")
    (metric,) = propose([json.dumps(event) for event in [events[0], *events]]).metrics.values()
    assert (metric.unit, metric.conversions["C"].multiply, metric.conversions["C"].add) == ("F", 1.8, 32)


@pytest.mark.parametrize(("year", "is_archive"), [(1998, True), (1970, False), (2026, False)])
def test_an_archive_asks_for_a_larger_age_and_a_clock_that_was_not_set_does_not(year: int, is_archive: bool, propose: Propose) -> None:
    conf = propose([json.dumps({"device": "a", "ts": f"{year}-01-01T00:00:00Z", "x": 1.5})])
    assert (conf.policy.max_age_seconds > 20 * 365 * 86_400) is is_archive


def test_a_file_of_a_campbell_logger_is_read_by_its_second_line(propose: Propose) -> None:
    header = ['"TOA5","CR1000","1"', '"TIMESTAMP","RECORD","AirTC"', '"TS","RN","Deg C"', '"","","Avg"']
    shape = propose([*header, *(f'"2026-03-02 08:0{n}:00",{n},{n}.5' for n in range(5))]).sources["sample"].payload_format
    assert (shape.skip_lines, shape.columns, shape.time.field, shape.metrics) == (1, (), "TIMESTAMP", {"AirTC": "AirTC"})


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_text_in_another_encoding_is_read_and_its_encoding_said(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("Time;Temp(°C)\n2026-03-02 08:00:00;48.5\n".encode(encoding))
    proposal = proposal_of(tmp_path / "a.csv")
    write_proposal(tmp_path / "conf", proposal)
    shape = load(tmp_path / "conf").sources["sample"].payload_format
    assert (codecs.lookup(shape.encoding), list(shape.metrics)) == (codecs.lookup(encoding), ["Temp(°C)"])
    assert f"the text is {encoding}, not UTF-8: see encoding in sources.yml" in findings_of(proposal)


ODD_NAMES: dict[str, Any] = {"a.b": 1, "": 1, "l[0]": {"v": 1}, 'q"': 1, "b\\": 1}
DOUBTS = [
    pytest.param(in_minutes(dev="a", x=lambda n: n + 0.5 if n else None), "come only in some of 6 events: x (in 5)", id="rare"),
    pytest.param(
        in_minutes(dev="a", x=1.5)[:1] + in_minutes(dev="a", x=2.5), "1 value would be lost, as device, metric and time", id="conflict"
    ),
    pytest.param([*in_minutes(dev="a", x=1.5), {"ts": 188, "dev": "a", "x": 1.5}], "1 time of the sample cannot be read, or", id="clock"),
    pytest.param(in_minutes(device="a", gateway_id="g", x=1.5), "other fields that may name the device: gateway_id", id="devices"),
    pytest.param(
        in_minutes(a=list_of({"x": 1.5}), b=list_of({"x": 1.5})), "b: a list with numbers in 6 of 6 events, which is not read", id="lists"
    ),
    pytest.param(
        in_minutes(x=1.5, note=None, by_minute=[1], **ODD_NAMES),
        'not read: note, by_minute, a.b, a field without a name, l[0], q", b\\',
        id="all that no path names",
    ),
    pytest.param(
        in_minutes(dev="a", name="t", value=1.5, more=2.5, seq=3), "not read: more, seq (counts or names something)", id="long rows"
    ),
    pytest.param([{"ts": START + 0.5, "dev": "a", "x": 1.5, "y": "1,5"}], "not read: y", id="a comma beside times with a point"),
    pytest.param(in_minutes(dev="a", x=1.5, y="1,5"), "numbers are written as 1234,5: see decimal and thousands", id="decimal comma"),
    pytest.param(
        in_minutes(dev="a", list=list_of({"x": 1.5}, {"y": 2.5})),
        "come only in some of 12 elements: each.x (in 6), each.y (in 6)",
        id="elements",
    ),
    pytest.param([{"dev": "a", "x": 1.5}] * 3, "no field holds a time: the instant of arrival serves; confirm", id="arrival"),
    pytest.param(in_minutes(dev="a", shelf="0042", x=1.5), "not read: shelf (looks like an id)", id="an id of digits"),
    pytest.param(in_minutes(dev="a", x=1.5), "gold may be empty after the first run: see idle_close_seconds", id="idle"),
]


@pytest.mark.parametrize(("events", "sentence"), DOUBTS)
def test_what_is_not_sure_or_not_read_is_said(events: list[dict[str, Any]], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, events)))
    assert any(sentence in finding for finding in findings_of(proposal_of(tmp_path / "a.json")))


def test_other_files_beside_the_sample_are_no_devices(propose: Propose, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("")
    assert list(propose(["ts,x", "2026-01-05 00:00:00,1.5"], "room1.csv").devices) == ["room1"]
