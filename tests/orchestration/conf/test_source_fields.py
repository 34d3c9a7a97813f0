"""A source that reads fields which cannot be there is one line, with the way out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.conf.load import load

CASES = [
    pytest.param(
        "sources",
        "format: json",
        "format: csv",
        "conf/sources.yml:7: plant has neither header nor columns; set `header: true`, or name the columns in order",
        id="CSV without header and columns",
    ),
    pytest.param(
        "sources",
        "format: json",
        "format: csv\n    header: true\n    each: list",
        "conf/sources.yml:12: plant.each is for json, but plant.format is csv; remove it",
        id="each of CSV",
    ),
    pytest.param(
        "sources",
        "format: json",
        "format: csv\n    header: true\n    separator: '\"'",
        "conf/sources.yml:7: plant.quote is also its separator; choose another",
        id="separator that is the quote",
    ),
    pytest.param(
        "sources",
        "format: json",
        "format: csv\n    header: true\n    separator: '\\'",
        "conf/sources.yml:12: plant.separator is '\\'; write one character, no line end and no backslash",
        id="separator that Spark takes for an escape",
    ),
    pytest.param(
        "sources",
        "format: json",
        "format: csv\n    header: true\n    quote: \U0001f600",
        "conf/sources.yml:12: plant.quote is '\U0001f600'; write one character that is no letter, digit, blank, backslash or picture",
        id="quote that Spark takes for two characters",
    ),
    pytest.param(
        "sources",
        "format: json",
        "format: csv\n    columns: [device, zone, metric, value, unit, time]",
        (
            "conf/sources.yml:14: plant.time.field is 'ts', which is not among plant.columns; they are device, "
            "zone, metric, value, unit, time"
        ),
        id="field that is no column",
    ),
    pytest.param(
        "sources",
        "format: json",
        "format: csv\n    columns: [device, zone, metric, value, unit, ts, ts]",
        "conf/sources.yml:11: plant.columns names 'ts' twice; remove one",
        id="column twice",
    ),
    pytest.param(
        "sources",
        "zone: {field: zone}",
        "zone: {field: device.zone}",
        ("conf/sources.yml:12: plant.zone.field is 'device.zone', but 'device' is read as one value; read one of the two"),
        id="field inside of a field",
    ),
    pytest.param(
        "sources",
        "zone: {field: zone}",
        "zone: {field: a..zone}",
        ("conf/sources.yml:12: plant.zone.field is 'a..zone', which has an empty part; write names with single dots between them"),
        id="field path with an empty part",
    ),
    *(
        pytest.param(
            "sources",
            "zone: {field: zone}",
            f"zone: {{field: '{path}'}}",
            f"conf/sources.yml:12: plant.zone.field is '{path}', but a path is names with dots between them; a list "
            "is read by `each` alone, all of its elements",
            id=path,
        )
        for path in ("a.*.zone", "$.zone", "zones[0].name", "zones[*]", "zones[]")
    ),
    pytest.param(
        "sources",
        "    unit: {field: unit}\n",
        "    unit: {field: each.u}\n    each: zone\n",
        "conf/sources.yml:12: plant.zone.field is the list of plant.each itself; begin at its elements with 'each.'",
        id="list as a field",
    ),
    pytest.param(
        "sources",
        "    unit: {field: unit}\n",
        "    each: list\n",
        "conf/sources.yml:16: plant.each is set, but no field begins at its elements; begin their paths with 'each.'",
        id="list without fields of its elements",
    ),
    pytest.param(
        "sources",
        "    metric: {field: metric}\n    value: {field: value}\n",
        "    metrics: {temprature: t}\n",
        ("conf/sources.yml:14: plant.metrics names 'temprature', which metrics.yml does not declare; did you mean 'temperature'?"),
        id="unknown metric of wide rows",
    ),
    pytest.param(
        "sources",
        "metric: {field: metric}",
        "metric: {constant: pressure}",
        "conf/sources.yml:14: plant.metric names 'pressure', which metrics.yml does not declare; declare it there",
        id="unknown constant metric",
    ),
]


@pytest.mark.parametrize(("file", "old", "new", "line"), CASES)
def test_a_field_that_cannot_be_read_is_told_on_its_line(
    file: str, old: str, new: str, line: str, mistakes_after: Callable[..., list[str]]
) -> None:
    assert mistakes_after((file, old, new)) == [line]


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
