"""The device registry: what conf and files say becomes versions, once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from gold.windows.spec import Group
from orchestration.conf.model import Device
from orchestration.errors import ConfError
from orchestration.location import Location
from orchestration.storage import registry
from orchestration.storage.generations import Generation
from silver.schema import DEVICES
from tests.lakes import conf as small_conf

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
OVEN = Device("oven-01", ("kitchen",), "hall-1")
PUMP = Device("pump-01")
KITCHEN = {"kitchen": Group("kitchen", ("temperature",), 600, "kitchen")}
FIRST, SECOND = Generation(), Generation(1, 2, places={"silver/device_corrections": 2})


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
    assert [str(field.type) for field in fields if field.name.endswith("_at")] == ['PrimitiveType("timestamp")'] * 2


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


def counting(lake: Location, device_id: str, generation: Generation = FIRST) -> list[tuple[datetime, datetime | None, list[str] | None]]:
    """Since when the device counts, for what was measured since when, in which groups; None where it is unknown."""
    rows = registry.in_force(lake, generation).to_pylist()
    of_device = sorted(
        (row for row in rows if row["device_id"] == device_id), key=lambda row: (row["registered_at"], row["moved_at"] or ALWAYS)
    )
    return [(row["registered_at"], row["moved_at"], row["groups"] if row["is_known"] else None) for row in of_device]


def test_a_device_that_was_never_known_may_count_from_earlier_on_and_one_that_was_keeps_its_past(tmp_path: Path, lake: Location) -> None:
    registry.sync(lake, by_id(OVEN), NOON)
    file, since, loaded = csv(tmp_path, "device_id\noven-01\npump-01\n"), NOON - timedelta(days=3), NOON + timedelta(seconds=10)
    assert [registry.load(lake, file, NOON), registry.load(lake, file, NOON)] == [2, 0]
    assert [registry.load_since(lake, FIRST, file, since), registry.load_since(lake, FIRST, file, since)] == [1, 0]
    assert counting(lake, "oven-01") == [(ALWAYS, None, ["kitchen"]), (loaded, None, [])]
    assert counting(lake, "pump-01") == [(since, None, []), (loaded, None, [])]


def test_a_device_that_conf_had_lost_for_a_while_is_known_all_along_once_that_is_mended(tmp_path: Path, lake: Location) -> None:
    lost, back = NOON, NOON + timedelta(minutes=2)
    for devices, at in (((OVEN,), NOON), ((), lost), ((replace(OVEN, groups=("building",)),), back)):
        registry.sync(lake, by_id(*devices), at)
    assert counting(lake, "oven-01") == [(ALWAYS, None, ["kitchen"]), (lost, None, None), (back, None, ["building"])]
    file = csv(tmp_path, "device_id,groups\noven-01,building\n")
    registry.load(lake, file, back)
    assert registry.load_since(lake, FIRST, file, back) == 0, "it was known again then"
    assert registry.load_since(lake, FIRST, file, lost + timedelta(minutes=1)) == 1
    since = [at for at, _, groups in counting(lake, "oven-01") if groups == ["building"]]
    assert since == [lost + timedelta(minutes=1), back, back + timedelta(seconds=10)]
    registry.correct(lake, FIRST, [*registry.mended(registry.in_force(lake, FIRST), ["oven-01", "nobody"])])
    assert [groups for _, _, groups in counting(lake, "oven-01")] == [["kitchen"], *[["building"]] * 4]


def test_of_a_device_that_is_unknown_now_nothing_is_mended(lake: Location) -> None:
    registry.sync(lake, by_id(OVEN, PUMP), NOON)
    registry.sync(lake, by_id(OVEN), NOON)
    assert [*registry.mended(registry.in_force(lake, FIRST), ["oven-01", "pump-01"])] == []


MOVED = NOON - timedelta(days=2)


def test_a_dated_move_counts_by_the_time_of_the_measurement_and_what_was_recorded_before_it_stays(lake: Location) -> None:
    registry.sync(lake, by_id(OVEN), NOON)
    moved = by_id(replace(OVEN, groups=("building",), since=MOVED))
    assert [registry.sync(lake, moved, NOON), registry.sync(lake, moved, NOON)] == [1, 0]
    assert counting(lake, "oven-01") == [(ALWAYS, None, ["kitchen"]), (NOON, MOVED, ["building"])]


def test_before_the_first_move_of_a_device_without_a_past_it_is_known_and_in_no_group(lake: Location) -> None:
    moved = by_id(replace(OVEN, since=MOVED))
    assert [registry.sync(lake, moved, NOON), registry.sync(lake, moved, NOON)] == [1, 0]
    assert counting(lake, "oven-01") == [(ALWAYS, None, []), (ALWAYS, MOVED, ["kitchen"])]


def replayed(lake: Location, start: datetime = ALWAYS, **conf: Any) -> None:
    """The corrections of a second generation that a replay under this conf makes."""
    rows = registry.as_declared(replace(small_conf(lake.local), lake=lake, **conf), registry.in_force(lake, FIRST), start)
    registry.correct(lake, SECOND, rows)


@pytest.fixture
def divided(lake: Location) -> Location:
    """The oven was in `all`, is in the kitchen since an hour after noon, and was unknown for the hour after that."""
    for hour, devices in enumerate([[replace(OVEN, groups=("all",))], [OVEN], [], [OVEN]]):
        registry.sync(lake, by_id(*devices), NOON + timedelta(hours=hour))
    return lake


def test_a_replay_counts_all_that_a_device_ever_sent_in_the_groups_that_conf_has_now(divided: Location) -> None:
    before = counting(divided, "oven-01")
    replayed(divided, devices=by_id(OVEN), groups=KITCHEN)
    instants = [ALWAYS, *(NOON + timedelta(hours=hour) for hour in (1, 2, 3))]
    assert counting(divided, "oven-01", SECOND) == [(at, None, ["kitchen"]) for at in instants]
    assert counting(divided, "oven-01") == before, "the generation before has its own"


def test_a_replay_from_a_day_on_leaves_what_came_before_it(divided: Location) -> None:
    start = NOON + timedelta(hours=2)
    replayed(divided, start, devices=by_id(OVEN), groups=KITCHEN)
    assert [groups for _, _, groups in counting(divided, "oven-01", SECOND)] == [["all"], ["kitchen"], ["kitchen"], ["kitchen"]]


def test_before_a_dated_move_a_replay_leaves_what_was_recorded(divided: Location) -> None:
    replayed(divided, devices=by_id(replace(OVEN, groups=("building",), since=MOVED)), groups=KITCHEN)
    of_move = [groups for _, moved, groups in counting(divided, "oven-01", SECOND) if moved == MOVED]
    before = [groups for _, moved, groups in counting(divided, "oven-01", SECOND) if moved is None]
    assert (of_move, before) == ([["building"]] * 4, [["all"], ["kitchen"], None, ["kitchen"]])


def test_a_device_that_left_conf_and_one_of_a_file_keep_their_dates_and_get_the_groups_that_name_them(
    tmp_path: Path, lake: Location
) -> None:
    groups = {
        name: replace(KITCHEN["kitchen"], name=name, devices=(pattern,)) for name, pattern in {"ovens": "oven-*", "pumps": "pump-*"}.items()
    }
    registry.sync(lake, by_id(replace(OVEN, groups=("all",))), NOON)
    registry.load(lake, csv(tmp_path, "device_id,groups\npump-01,all\n"), NOON)
    registry.sync(lake, {}, NOON)
    replayed(lake, devices={}, groups=groups)
    assert counting(lake, "oven-01", SECOND) == [(ALWAYS, None, ["ovens"]), (NOON, None, None)]
    assert counting(lake, "pump-01", SECOND) == [(NOON + timedelta(seconds=10), None, ["pumps"])]


def test_where_conf_says_what_is_recorded_a_replay_corrects_nothing(tmp_path: Path, lake: Location) -> None:
    registry.sync(lake, by_id(OVEN, PUMP), NOON)
    registry.load(lake, csv(tmp_path, "device_id,groups\npump-01,kitchen\n"), NOON)
    replayed(lake, devices=by_id(OVEN, PUMP), groups=KITCHEN)
    assert not (tmp_path / "generations").exists()


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
