"""One setting of a wrong kind is one line, with the way out."""

from collections.abc import Callable

import pytest

CASES = [
    pytest.param(
        "groups",
        "    lateness_seconds",
        "    latness_seconds",
        "conf/groups.yml:9: kitchen.latness_seconds is not a setting; did you mean 'lateness_seconds'?",
        id="unknown key",
    ),
    pytest.param(
        "metrics",
        "metrics:\n",
        "metric: {}\nmetrics:\n",
        "conf/metrics.yml:5: metric is not a setting; did you mean 'metrics'?",
        id="unknown top key",
    ),
    pytest.param(
        "metrics",
        "step_seconds: 600",
        "step_seconds: ten",
        "conf/metrics.yml:10: temperature.step_seconds is a text, but must be a whole number; write for example 600",
        id="text for a number",
    ),
    pytest.param(
        "metrics",
        "step_seconds: 600",
        "step_seconds: 0.5",
        "conf/metrics.yml:10: temperature.step_seconds is 0.5, but must be a whole number; write for example 600",
        id="fraction for a whole number",
    ),
    pytest.param(
        "sources",
        "device: {field: device}",
        "device: [device]",
        ('conf/sources.yml:11: plant.device is a list, but must be a mapping; write for example {"field": "device"}'),
        id="list for a mapping",
    ),
    pytest.param(
        "devices",
        "zone: hall-1",
        "zone: 12",
        "conf/devices.yml:6: oven-01.zone is a number, but must be a text; put it in quotes",
        id="number for a text",
    ),
    pytest.param(
        "metrics",
        "step_seconds: 600",
        "step_seconds: 0",
        "conf/metrics.yml:10: temperature.step_seconds is 0; it must be at least 1",
        id="step of zero",
    ),
    pytest.param(
        "metrics",
        "slide_seconds: 300",
        "slide_seconds: 0",
        "conf/metrics.yml:30: vibration.slide_seconds is 0; it must be at least 1",
        id="bound of a setting without a default",
    ),
    pytest.param(
        "metrics",
        "    label: Vibration",
        "    label:",
        "conf/metrics.yml:26: vibration.label is empty, but must be a text; write for example Temperature",
        id="key with nothing behind it",
    ),
    pytest.param(
        "pipeline",
        "  cores: 2",
        "  cores: true",
        "conf/pipeline.yml:19: engine.cores is true or false, but must be a whole number; write for example 2",
        id="true is no number",
    ),
    pytest.param(
        "pipeline",
        "  cores: 2\n",
        "  small_batch_bytes: 16777216\n",
        "conf/pipeline.yml:19: engine.small_batch_bytes is not a setting; did you mean 'max_batch_bytes'?",
        id="setting of an earlier version",
    ),
    pytest.param(
        "metrics",
        "step_seconds: 600",
        "step_seconds: 3000000000",
        "conf/metrics.yml:10: temperature.step_seconds is 3000000000; it must be at most 2147483647",
        id="step too long",
    ),
    pytest.param(
        "metrics",
        "aggregation: average",
        "aggregation: mean",
        "conf/metrics.yml:9: temperature.aggregation is 'mean'; did you mean 'median'?",
        id="not one of the choices",
    ),
    pytest.param(
        "sources",
        "    format: json\n",
        "",
        "conf/sources.yml:7: plant.format is missing; add for example `format: json`",
        id="missing setting",
    ),
    pytest.param(
        "sources",
        "{field: unit}",
        "{field: unit, constant: W}",
        "conf/sources.yml:16: plant.unit sets field and constant; set only one of field, constant, file_name, topic",
        id="two origins",
    ),
    pytest.param(
        "sources",
        "{field: unit}",
        "{}",
        "conf/sources.yml:16: plant.unit is empty; set one of field, constant, file_name, topic",
        id="no origin",
    ),
    pytest.param(
        "groups",
        "  kitchen:\n",
        "  Kitchen-2: {metrics: [power]}\n  kitchen:\n",
        "conf/groups.yml:6: 'Kitchen-2' cannot be a name here; use lower-case letters, digits and _, a letter first",
        id="name of a table that Spark would refuse",
    ),
    pytest.param(
        "pipeline",
        "driver_memory: 2g",
        "driver_memory: 2 GB",
        "conf/pipeline.yml:18: engine.driver_memory is '2 GB'; write digits and m or g",
        id="memory with a blank",
    ),
    pytest.param(
        "groups",
        "metrics: [temperature, humidity, power, door_open]",
        "metrics: []",
        'conf/groups.yml:8: kitchen.metrics is an empty list; write for example ["temperature", "humidity"]',
        id="empty list",
    ),
    pytest.param(
        "devices",
        "[kitchen, building]",
        "[kitchen, building, kitchen]",
        "conf/devices.yml:6: oven-01.groups names 'kitchen' twice; remove one",
        id="name twice in a list",
    ),
    pytest.param(
        "groups",
        "  kitchen:\n",
        "  office: 5\n  kitchen:\n",
        ('conf/groups.yml:6: office is a number, but must be a mapping; write for example {"metrics": ["temperature"]}'),
        id="entry that is no mapping",
    ),
    pytest.param(
        "pipeline",
        "pipeline: tidemark",
        "pipeline: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ("conf/pipeline.yml:5: pipeline is 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'; write at most 64 characters"),
        id="long text",
    ),
    pytest.param(
        "metrics",
        "maximum: 400",
        "maximum: .inf",
        "conf/metrics.yml:12: '.inf' is not a number that can be used; write a finite one of at most 18 digits",
        id="infinite number",
    ),
    pytest.param(
        "groups",
        "  kitchen:\n",
        '  "two\\n": {metrics: [power]}\n  kitchen:\n',
        "conf/groups.yml:6: 'two\\n' cannot be a name here; use lower-case letters, digits and _, a letter first",
        id="line end in a name",
    ),
    pytest.param(
        "sources",
        "zone: {field: zone}",
        'zone: {constant: "a\\nb"}',
        "conf/sources.yml:12: plant.zone.constant is 'a\\nb'; write a text without control characters",
        id="constant with a line end",
    ),
]


@pytest.mark.parametrize(("file", "old", "new", "line"), CASES)
def test_a_setting_of_a_wrong_kind_is_told_on_its_line(
    file: str, old: str, new: str, line: str, mistakes_after: Callable[..., list[str]]
) -> None:
    assert mistakes_after((file, old, new)) == [line]
