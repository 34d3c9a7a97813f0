"""The device registry: what conf and files say becomes versions, once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from gold.windows.spec import Group
from orchestration.conf.model import Device
from orchestration.errors import ConfError
from orchestration.location import Location
from orchestration.storage import registry
from silver.schema import DEVICES

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
OVEN = Device("oven-01", ("kitchen",), "hall-1")
PUMP = Device("pump-01")
KITCHEN = {"kitchen": Group("kitchen", ("temperature",), 600, "kitchen")}


@pytest.fixture
def lake(tmp_path: Path) -> Location:
    return Location(tmp_path)


def by_id(*devices: Device) -> dict[str, Device]:
    return {device.device_id: device for device in devices}


def history(lake: Location) -> list[tuple[str, tuple[str, ...], bool, str, datetime]]:
    rows = sorted(registry.versions(lake), key=lambda row: (row["device_id"], row["registered_at"]))
    return [(row["device_id"], tuple(row["groups"]), row["is_known"], row["origin"], row["registered_at"]) for row in rows]


def csv(folder: Path, text: str) -> Path:
    path = folder / "plant.csv"
    path.write_text(text)
    return path


def test_the_table_has_the_declared_columns_in_order(tmp_path: Path, lake: Location) -> None:
    registry.sync(lake, {}, NOON)
    fields = DeltaTable(tmp_path / "silver/devices").schema().fields
    assert [field.name for field in fields] == DEVICES.names
    assert [str(field.type) for field in fields if field.name == "registered_at"] == ['PrimitiveType("timestamp")']


def test_the_first_fill_counts_for_events_already_ingested(lake: Location) -> None:
    assert registry.sync(lake, {}, NOON) == 0
    assert registry.sync(lake, by_id(OVEN, PUMP), NOON) == 2
    assert history(lake) == [("oven-01", ("kitchen",), True, "conf", ALWAYS), ("pump-01", (), True, "conf", ALWAYS)]


def test_a_repeated_sync_appends_nothing(tmp_path: Path, lake: Location) -> None:
    registry.sync(lake, by_id(OVEN, PUMP), NOON)
    assert registry.sync(lake, by_id(OVEN, PUMP), NOON) == 0
    assert DeltaTable(tmp_path / "silver/devices").version() == 1


def test_a_device_that_changes_leaves_and_returns_has_a_version_for_each(lake: Location) -> None:
    registry.sync(lake, by_id(OVEN, PUMP), NOON)
    moved = Device("oven-01", ("kitchen", "building"), "hall-2")
    counts = [registry.sync(lake, by_id(*devices), NOON + timedelta(hours=hour)) for hour, devices in enumerate([[moved], [], [moved]])]
    assert counts == [2, 1, 1]
    assert [(known, at.hour) for name, _, known, _, at in history(lake) if name == "oven-01"] == [
        (True, 0),
        (True, 12),
        (False, 13),
        (True, 14),
    ]


def test_a_load_counts_from_ten_seconds_on_and_only_once(tmp_path: Path, lake: Location) -> None:
    registry.sync(lake, by_id(OVEN), NOON)
    file = csv(tmp_path, "device_id,groups\npump-01, press_line ;building\n")
    assert [registry.load(lake, file, NOON), registry.load(lake, file, NOON)] == [1, 0]
    assert history(lake)[1] == ("pump-01", ("press_line", "building"), True, "plant.csv", NOON + timedelta(seconds=10))


def test_a_device_that_was_never_known_may_count_from_earlier_on_and_one_that_was_keeps_its_past(tmp_path: Path, lake: Location) -> None:
    registry.sync(lake, by_id(OVEN), NOON)
    file, since = csv(tmp_path, "device_id\noven-01\npump-01\n"), NOON - timedelta(days=3)
    assert [registry.load(lake, file, NOON, since=since), registry.load(lake, file, NOON, since=since)] == [
        2,
        0,
    ]
    assert [row[-1] for row in history(lake)] == [ALWAYS, NOON + timedelta(seconds=10), since]


def test_the_first_load_of_an_empty_registry_counts_always(tmp_path: Path, lake: Location) -> None:
    assert registry.load(lake, csv(tmp_path, "\ufeffdevice_id\npump-01\n"), NOON) == 1
    assert history(lake) == [("pump-01", (), True, "plant.csv", ALWAYS)]


def test_of_conf_and_file_the_one_that_changed_last_holds(tmp_path: Path, lake: Location) -> None:
    registry.sync(lake, by_id(OVEN), NOON)
    registry.load(lake, csv(tmp_path, "device_id,groups\noven-01,building\n"), NOON)
    assert registry.sync(lake, by_id(OVEN), NOON) == 0, "conf did not change, so the file holds"
    changed = Device("oven-01", ("press_line",))
    # A second after the load, which itself counts from ten seconds on: the later word still wins.
    assert registry.sync(lake, by_id(changed), NOON + timedelta(seconds=1)) == 1
    assert [row["groups"] for row in registry.current(lake)] == [["press_line"]]


def test_a_loaded_device_stays_known_when_it_leaves_conf(tmp_path: Path, lake: Location) -> None:
    registry.sync(lake, by_id(OVEN), NOON)
    file = csv(tmp_path, "device_id,zone,groups\noven-01,hall-1,kitchen\n")
    assert [registry.load(lake, file, NOON), registry.load(lake, file, NOON)] == [1, 0]
    assert registry.sync(lake, {}, NOON + timedelta(hours=1)) == 0


def test_a_loaded_device_is_in_the_groups_that_name_it_too(tmp_path: Path, lake: Location) -> None:
    groups = {name: replace(KITCHEN["kitchen"], name=name, devices=(pattern,)) for name, pattern in {"all": "*", "ovens": "oven-?"}.items()}
    registry.load(lake, csv(tmp_path, "device_id,groups\noven-1,ovens\noven-22,\n"), NOON, groups)
    assert {row["device_id"]: row["groups"] for row in registry.current(lake)} == {"oven-1": ["ovens", "all"], "oven-22": ["all"]}


def test_json_lines_load_as_csv_does(tmp_path: Path, lake: Location) -> None:
    file = csv(
        tmp_path, '{"device_id": "käse", "groups": ["kitchen"], "label": "a \\"b\\", c"}\n\n{"device_id": "pump-01", "zone": null}\n'
    )
    assert registry.load(lake, file, NOON, KITCHEN) == 2
    assert [(row["device_id"], row["zone"], row["label"]) for row in registry.current(lake)] == [
        ("käse", None, 'a "b", c'),
        ("pump-01", None, None),
    ]


def test_every_bad_row_is_named_and_then_nothing_is_appended(tmp_path: Path, lake: Location) -> None:
    text = 'device_id,groups,label\nok,kitchen,x\n,kitchen,x\na,kitchen,"two\nlines"\nok,kitchen,y\nb,kitchn,x\nc,kitchen\n'
    with pytest.raises(ConfError) as error:
        registry.load(lake, csv(tmp_path, text), NOON, KITCHEN)
    lines = [line.removeprefix(str(tmp_path)) for line in str(error.value).splitlines()]
    assert [line[: line.index(": ")] for line in lines] == [f"/plant.csv:{line}" for line in (3, 4, 6, 7, 8)]
    assert "did you mean 'kitchen'?" in lines[3]
    assert registry.versions(lake) == []


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"name,zone\na,b\n", ":1: the first line is 'name,zone', not a header"),
        (b"", ":1: the first line is ''"),
        (b"device_id\n\xff\n", ":2: is not UTF-8"),
        (b'{"device_id": 5}', ":1: device_id is 5"),
        (b'{"device_id": "a", "zone": 5, "group": "x"}', "a.group is not a setting; did you mean 'groups'?"),
        (b'{"device_id": "a", "groups": "kitchen"}', "a.groups is a text, but must be a list"),
        (b'{"device_id": "a"}\n[1]\n{', ":2: is JSON, but not an object"),
        (b'device_id\n"a"b\n', ":2: is not CSV"),
        (b"device_id\na\x1b[31m\n", "without control characters"),
        (b'{"device_id": " a"}\n', "without blanks at its ends"),
    ],
)
def test_a_file_that_is_no_device_list_is_refused_with_its_line(tmp_path: Path, lake: Location, content: bytes, told: str) -> None:
    file = tmp_path / "devices"
    file.write_bytes(content)
    with pytest.raises(ConfError) as error:
        registry.load(lake, file, NOON)
    assert told in str(error.value)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path, lake: Location) -> None:
    with pytest.raises(ConfError, match=r"absent.csv: cannot be read \(No such file or directory\)"):
        registry.load(lake, tmp_path / "absent.csv", NOON)
