"""A wrong reference in groups.yml or devices.yml is one line, with the way out."""

from collections.abc import Callable

import pytest

CASES = [
    pytest.param(
        "devices",
        "[kitchen, building]",
        "[kichen, building]",
        ("conf/devices.yml:6: oven-01.groups names 'kichen', which groups.yml does not declare; did you mean 'kitchen'?"),
        id="unknown group of a device",
    ),
    pytest.param(
        "devices",
        "  oven-03:",
        '  " oven-03":',
        "conf/devices.yml:8: ' oven-03' has a blank at an end, which the id of an event never has; remove it",
        id="device with a blank",
    ),
    pytest.param(
        "groups",
        "metrics: [temperature, humidity, power, door_open]",
        "metrics: [temperature, humidty, power, door_open]",
        ("conf/groups.yml:8: kitchen.metrics names 'humidty', which metrics.yml does not declare; did you mean 'humidity'?"),
        id="unknown metric of a group",
    ),
    pytest.param(
        "groups",
        "features: [temperature, humidity,",
        "features: [temperature, vibration,",
        ("conf/groups.yml:12: kitchen.vector.features names 'vibration', which is no metric of the group; add it to kitchen.metrics"),
        id="feature that is no metric of the group",
    ),
    pytest.param(
        "groups",
        "[oven-01.temperature",
        "[oven-1.temperature",
        (
            "conf/groups.yml:33: building.vector.features names 'oven-1.temperature', which is of a device that "
            "devices.yml does not declare; did you mean 'oven-01'?"
        ),
        id="feature of an unknown device",
    ),
    pytest.param(
        "groups",
        "[oven-01.temperature",
        "[oven-01.temprature",
        (
            "conf/groups.yml:33: building.vector.features names 'oven-01.temprature', which is no device.metric of "
            "the group; did you mean 'oven-01.temperature'?"
        ),
        id="feature of no metric",
    ),
    pytest.param(
        "devices",
        "oven-01: {groups: [kitchen, building]",
        "oven-01: {groups: [kitchen]",
        (
            "conf/groups.yml:33: building.vector.features names 'oven-01.temperature', which is of a device "
            "outside the group; add the group to oven-01 in devices.yml"
        ),
        id="feature of a device outside the group",
    ),
    pytest.param(
        "groups",
        "features: [temperature, humidity,",
        "features: [temperature, temperature,",
        "conf/groups.yml:12: kitchen.vector.features names 'temperature' twice; remove one",
        id="feature twice",
    ),
    pytest.param(
        "groups",
        (
            "      features: [oven-01.temperature, fridge-01.temperature, press-01.vibration, press-01.power, "
            "pump-01.vibration, pump-01.power]\n"
        ),
        "",
        (
            "conf/groups.yml:31: building.vector.features is missing, and entity group has no default; write for "
            "example [oven-01.temperature]"
        ),
        id="group vector without features",
    ),
    pytest.param(
        "groups",
        "    label: Press line\n",
        "    label: Press line\n    idle_close_seconds: 60\n",
        (
            "conf/groups.yml:27: building.idle_close_seconds is not set, but 60 for press_line, which shares the "
            "stream halls; make them equal"
        ),
        id="two ways to close one stream",
    ),
]


@pytest.mark.parametrize(("file", "old", "new", "line"), CASES)
def test_a_wrong_reference_is_told_on_its_line(file: str, old: str, new: str, line: str, mistakes_after: Callable[..., list[str]]) -> None:
    assert mistakes_after((file, old, new)) == [line]
