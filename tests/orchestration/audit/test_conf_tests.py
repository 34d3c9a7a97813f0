"""`tidemark test`: tests of a conf pass where it is right, and find what is wrong with it."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.audit.conf_tests.files import read_tests
from orchestration.audit.conf_tests.outcome import ConfUnderTest, Difference
from orchestration.conf.load import load
from orchestration.conf.starter import examples, write_starter
from orchestration.errors import ConfError
from tests.commands import Tidemark

PLANT = Path(__file__).with_name("plant_tests.yml")
ALONE = {"oven_state": "(?s)\n  silent_devices:.*", "much_is_quarantined": "(?s)\n  much_is_quarantined:.*"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default conf with an example of alerts and one of states, and the tests of the plant."""
    folder = tmp_path_factory.mktemp("plant")
    write_starter(folder)
    for example, rest in (("alerts", ALONE["much_is_quarantined"]), ("state", ALONE["oven_state"])):
        name, text = examples()[example]
        (folder / f"{name}.yml").write_text(re.sub(rest, "\n", text))
    (folder / "tests" / "plant.yml").write_text(PLANT.read_text())
    return folder


@pytest.fixture
def plant(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path, dirs_exist_ok=True)


def differences(folder: Path, *files: Path) -> Iterator[Difference]:
    conf = ConfUnderTest(load(folder))
    return (one for file in read_tests(folder, files) for test in file.tests for one in conf.differences(test, file.path.parent))


def test_all_tests_pass_where_the_conf_is_right(plant: Path) -> None:
    assert [*differences(plant)] == []


MISTAKES = [
    ("metrics", "multiply: 0.5555555555555556, add: -17.77777777777778", "multiply: 0.5555555555555556, add: 0"),
    ("metrics", "K: {add: -273.15}", "K: {add: -273}"),
    ("metrics", "unit: degC", "unit: C"),
    ("metrics", "m/s: {multiply: 1000}", "m/s: {multiply: 100}"),
    ("metrics", "kW: {multiply: 1000}", "kW: {multiply: 1}"),
    ("metrics", "maximum: 400", "maximum: 4000"),
    ("metrics", "minimum: -60", "minimum: -40"),
    ("metrics", "aggregation: median", "aggregation: average"),
    ("metrics", "aggregation: latest", "aggregation: max"),
    ("metrics", "    slide_seconds: 300 .*\n", ""),
    ("metrics", "step_seconds: 3600", "step_seconds: 600"),
    ("metrics", "maximum: 100\n", "maximum: 1000\n"),
    ("sources", "    zone: {field: zone}\n", ""),
    ("sources", "    unit: {field: unit}\n", ""),
    ("sources", "time_zone: UTC", "time_zone: Europe/Brussels"),
    ("sources", "device: {field: device}", "device: {field: zone}"),
    ("sources", "value: {field: value}", "value: {field: vlaue}"),
    ("devices", "press-01: {groups: \\[press_line, building\\], zone: hall-2}", "press-01: {groups: [building], zone: hall-2}"),
    ("devices", "oven-01: {groups: \\[kitchen, building\\], zone: hall-1}", "oven-01: {groups: [kitchen, building], zone: hall-2}"),
    ("groups", "features: \\[oven-01.temperature, fridge-01.temperature, ", "features: [oven-01.temperature, "),
    ("groups", "features: \\[temperature, humidity, power, door_open\\]", "features: [temperature, power, humidity, door_open]"),
    ("groups", "max_fill_seconds: 3600 .*", "max_fill_seconds: 60"),
    ("rules", "value <> 85.0", "value <> 58.0"),
    ("rules", "value in \\(0, 1\\)", "value >= 0"),
    ("rules", "2020-01-01", "2010-01-01"),
    ("pipeline", "lateness_seconds: 600", "lateness_seconds: 60"),
    ("pipeline", "lateness_seconds: 600", "lateness_seconds: 6000"),
    ("pipeline", "max_future_seconds: 300", "max_future_seconds: 3000"),
    ("pipeline", "unknown_device: quarantine", "unknown_device: unassigned"),
    ("alerts", "recover_when: value < 250", "recover_when: value < 280"),
    ("alerts", "for_seconds: 120", "for_seconds: 600"),
    ("alerts", "severity: critical", "severity: info"),
    ("alerts", "for_times: 3", "for_times: 4"),
    ("alerts", "every_seconds: 900", "every_seconds: 1800"),
    ("flows", "when: value < 500}", "when: value < 800}"),
    ("flows", "when: value > 1000", "when: value > 10000"),
]


@pytest.mark.parametrize(("name", "right", "wrong"), MISTAKES, ids=[wrong.strip() or right.strip() for _, right, wrong in MISTAKES])
def test_a_mistake_that_somebody_makes_in_a_conf_is_found(plant: Path, name: str, right: str, wrong: str) -> None:
    file = plant / f"{name}.yml"
    text, count = re.subn(right, wrong, file.read_text(), count=1)
    file.write_text(text)
    if "unassigned" in wrong:
        groups = plant / "groups.yml"
        groups.write_text(groups.read_text() + "  unassigned: {metrics: [temperature]}\n")
    assert count == 1
    assert next(differences(plant, plant / "tests" / "plant.yml"), None) is not None


def test_the_command_shows_what_is_missing_and_what_came_instead(plant: Path, tidemark: Tidemark) -> None:
    passed = tidemark("--conf", plant, "test")
    assert (passed.code, passed.out.split(" in ")[0]) == (0, "17 of 17 tests passed")
    file = plant / "tests" / "kitchen.yml"
    file.write_text(file.read_text().replace("value: 200, unit", "value: 201, unit"))
    said = tidemark("--conf", plant, "test", file)
    assert said.code == 1
    assert "kitchen.yml:5: a reading in Fahrenheit is kept in Celsius" in said.out
    assert re.search(r"expected +oven-01 +temperature +2026-01-05T12:00:00Z +201", said.out)
    assert re.search(r"came +oven-01 +temperature +2026-01-05T12:00:00Z +200", said.out)
    assert tidemark("--conf", plant, "check", "--tests").code == 1


def test_an_update_writes_what_came_where_something_else_was_expected_and_leaves_all_else(plant: Path, tidemark: Tidemark) -> None:
    file = plant / "tests" / "kitchen.yml"
    right = file.read_text()
    file.write_text(right.replace("value: 200, unit", "value: 201, unit").replace("    quarantine: 0\n", ""))
    assert tidemark("--conf", plant, "test", file, "--update").code == 0
    updated = file.read_text()
    assert updated.split("\n- name")[2:] == right.split("\n- name")[2:]
    assert "value: 200, unit" in updated and updated.startswith(right[:100])
    assert [*differences(plant)] == []


def test_an_update_writes_readings_and_quarantine_where_nothing_was_expected(plant: Path, tidemark: Tidemark) -> None:
    file = plant / "tests" / "new.yml"
    given = '  - payload: {device: oven-01, metric: temperature, value: 20, ts: "2026-01-05T12:00:00Z"}\n'
    file.write_text(f"tests:\n- name: first\n  given:\n{given}\n# of the second\n- name: second\n  given:\n{given}")
    assert tidemark("--conf", plant, "test", file, "--update").code == 0
    row = '{device_id: "oven-01", metric: "temperature", event_time: "2026-01-05T12:00:00Z", value: 20, unit: "degC", zone: "hall-1"}'
    expected = f"  expect:\n    readings:\n    - {row}\n    quarantine: 0\n"
    assert file.read_text() == (
        f"tests:\n- name: first\n  given:\n{given}{expected}\n# of the second\n- name: second\n  given:\n{given}{expected}"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("tests:\n- name: a\n  given: []\n", "3: tests.1.given"),
        ("tests:\n- name: a\n  given:\n  - {payload: {}, base64: AA==}\n", "4: tests.1.given.1 sets payload and base64"),
        ("tests:\n- name: a\n  given:\n  - {payload: x, arrival: noon}\n", "4: tests.1.given.1.arrival is 'noon', which is no instant"),
        ("tests:\n- name: a\n  given: [payload: x]\n  expect: {readings: [{devic_id: x}]}\n", "did you mean 'device_id'?"),
        ("tests:\n- name: a\n  given: [payload: x]\n  expects: {}\n", "did you mean 'expect'?"),
        ("tests:\n- name: a\n  given: [{payload: x, source: plnat}]\n", "2: plnat is no source; write `source:` and one of plant"),
        ("tests:\n- name: a\n  given: [{sample: none.csv}]\n", "none.csv cannot be read (No such file or directory)"),
        ("tests:\n- name: a\n  given: [{base64: '%%'}]\n", "base64 is '%%', which is none"),
    ],
)
def test_a_mistake_in_a_test_is_told_with_file_and_line(plant: Path, tidemark: Tidemark, text: str, sentence: str) -> None:
    file = plant / "tests" / "wrong.yml"
    file.write_text(text)
    said = tidemark("--conf", plant, "test", file)
    assert said.code == 2
    assert "wrong.yml:" in said.err
    assert sentence in said.err


def test_a_conf_without_tests_says_where_they_are_explained(plant: Path) -> None:
    for file in (plant / "tests").iterdir():
        file.unlink()
    assert read_tests(plant) == []
    with pytest.raises(ConfError, match="no-such"):
        read_tests(plant, [plant / "no-such.yml"])
