"""Groups that name their devices by patterns."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.conf.devices import Membership
from orchestration.conf.load import load
from tests.orchestration.conf.conftest import changed

PATTERNS = {"line": ["hall-2/*"], "ovens": ["oven-*", "stove-[12]"], "one": ["oven-1"], "all": ["*"], "none": []}


@pytest.mark.parametrize(
    ("device_id", "named", "groups"),
    [
        ("oven-1", (), ("ovens", "one", "all")),
        ("oven-17", ("one",), ("one", "ovens", "all")),
        ("hall-2/press", ("line",), ("line", "all")),
        ("stove-3", (), ("all",)),
        ("stove-2", (), ("ovens", "all")),
        ("Oven-1", (), ("all",)),
    ],
)
def test_a_device_is_in_the_groups_that_it_names_and_that_name_it(device_id: str, named: tuple[str, ...], groups: tuple[str, ...]) -> None:
    assert Membership(PATTERNS).groups_of(device_id, named) == groups


def test_a_conf_says_by_either_file_which_devices_a_group_has(folder: Path) -> None:
    changed(folder, "groups", "    label: Kitchen\n", '    label: Kitchen\n    devices: ["press-0[12]", oven-01]\n')
    devices = load(folder).devices
    assert [devices[name].groups for name in ("press-01", "oven-01")] == [("press_line", "building", "kitchen"), ("kitchen", "building")]
    assert devices["press-03"].groups == ("press_line", "building")


def test_features_may_be_of_devices_that_a_pattern_names(mistakes_after: Callable[..., list[str]]) -> None:
    devices = "  pump-01: {groups: [press_line, building], zone: hall-2}"
    without = ("devices", devices, devices.replace(", building", ""))
    assert len(mistakes_after(without)) == 2
    assert mistakes_after(("groups", "    label: Whole building\n", '    label: Whole building\n    devices: ["pump-*"]\n')) == []
