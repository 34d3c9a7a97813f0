"""A list of metrics names the fields that are called as they are."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.conf.load import load


@pytest.mark.parametrize(
    ("measured", "fields"),
    [
        ("metrics: [temperature, humidity]", {"temperature": "temperature", "humidity": "humidity"}),
        ("each: readings\n    metrics: [temperature]", {"temperature": "each.temperature"}),
        ("metrics: [temperature]\n    each: readings", {"temperature": "each.temperature"}),
    ],
)
def test_a_list_of_metrics_names_the_fields_of_the_event_or_of_its_elements(measured: str, fields: dict[str, str], folder: Path) -> None:
    source = f"    path: ./landing\n    format: json\n    device: {{field: device}}\n    time: {{field: ts}}\n    {measured}\n"
    (folder / "sources.yml").write_text(f"sources:\n  plant:\n{source}")
    assert load(folder).sources["plant"].payload_format.metrics == fields


@pytest.mark.parametrize(
    ("measured", "mistake"),
    [
        ("[temperature, temperature]", "plant.metrics names 'temperature' twice; remove one"),
        ("[temprature]", "plant.metrics names 'temprature', which metrics.yml does not declare; did you mean 'temperature'?"),
        ("[]", 'plant.metrics is a list, but must be a mapping; write for example {"temperature": "data.temp"}'),
        ("[5]", 'plant.metrics is a list, but must be a mapping; write for example {"temperature": "data.temp"}'),
        ("[{temperature: t}]", 'plant.metrics is a list, but must be a mapping; write for example {"temperature": "data.temp"}'),
    ],
)
def test_a_list_of_metrics_that_names_none_is_told(
    measured: str, mistake: str, folder: Path, mistakes_after: Callable[..., list[str]]
) -> None:
    text = "sources:\n  plant: {path: ./landing, format: json, device: {field: device}, time: {field: ts}, metrics: %s}\n"
    (folder / "sources.yml").write_text(text % measured)
    assert mistakes_after() == [f"conf/sources.yml:2: {mistake}"]
