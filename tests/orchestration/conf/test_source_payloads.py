"""Encodings, patterns of times and lists of metrics: what silver reads is taken, and what is probably meant otherwise is told."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.conf.load import load
from tests.orchestration.conf.conftest import changed


@pytest.mark.parametrize(("written", "name"), [("UTF8", "utf-8"), ("utf-8-sig", "utf-8"), ("latin-1", "iso8859-1"), ("utf-16", "utf-16")])
def test_an_encoding_has_one_name(written: str, name: str, folder: Path) -> None:
    changed(folder, "sources", "    unit: {field: unit}\n", f"    encoding: {written}\n")
    assert load(folder).sources["plant"].payload_format.encoding == name


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        *((pattern, "which is not read") for pattern in ("VV yyyy-MM-dd", "yyyy-MM-dd kk:mm", "yyyy-LLL-dd", "yyyy-MM-dd O", "YYYY-ww-e")),
        *((pattern, "write dd for the day of the month") for pattern in ("yyyy-MM-DD", "yyyy DD")),
        *((pattern, "has no month; write") for pattern in ("yyyy-mm-dd", "dd.mm.yyyy")),
        *(("yyyy-mm-dd HH:mm:ss", "has mm and mm, of which one is enough"), ("yyyy-MM-dd HH:MM:ss", "MM is the month and mm are minutes")),
        *(("yyyy-MM-DDD", "the day of the year (D) beside M or d"), ("yyyy-MM-ddTHH:mm", "write 'T' with its quotes")),
        *(
            ("dMyyyy", "where d ends and M begins"),
            ("yyMdHHmm", "where M ends and d begins"),
            ("yyyyMMddHmmSSS", "where H ends and SSS begins"),
        ),
        *(("yyyy-MM-dd'T", "opens a quote '"), ("yyyy-MM-dd][", "has a bracket"), ("yyyy-MM-dd[ HH", "has a bracket")),
        *(("unix_ns", "write one of iso, epoch_s"), ("epoch_nanos", "did you mean 'epoch_ns'?")),
    ],
)
def test_a_pattern_that_silver_does_not_read_is_refused_with_what_is_wrong_with_it(
    pattern: str, told: str, mistakes_after: Callable[..., list[str]]
) -> None:
    (line,) = mistakes_after(("sources", "format: iso", f'format: "{pattern}"'))
    assert told in line


@pytest.mark.parametrize(
    "pattern",
    [
        *("yyyyMMddHHmmssSSS", "yyyyMMddHHmmssSSSXX", "dMMyyyy", "yyyyMMddHmm", "yyyyMMdd[HHmmss]", "yyyy-MM-dd[ HH[:mm[:ss[.SSS]]]]"),
        *(
            "yyyyDDDHH",
            "yyyy-DDD HH:mm",
            "yyyy-MM-dd'T'HH:mm:ssxxx",
            "yyyy-MM-dd HH:mm:ssZ",
            "h 'o''clock' a d/M/yyyy",
            "epoch_ns",
            "filetime",
        ),
    ],
)
def test_a_pattern_that_silver_reads_is_none_to_speak_of(pattern: str, folder: Path) -> None:
    changed(folder, "sources", "format: iso", f'format: "{pattern}"')
    assert load(folder).warnings == ()


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        *((pattern, "has seconds (s) beside the hour") for pattern in ("yyyy-MM-dd HH:ss:mm", "dd.MM.yy hh:ss:mm a")),
        *((pattern, "MM is the month") for pattern in ("yyyy-mm-dd HH:MM:ss", "dd/mm/yyyy HH:MM", "HH:MM dd.mm.yyyy", "yyyymmddHHMMss")),
        *(("yyyy-MM-dd hh:mm:ss", "write HH for hours"), ("yyyy-MM-dd HH:mm:SS", "write ss for seconds")),
    ],
)
def test_letters_that_are_probably_swapped_are_a_warning(pattern: str, told: str, folder: Path) -> None:
    changed(folder, "sources", "format: iso", f'format: "{pattern}"')
    (line,) = load(folder).warnings
    assert line.startswith("conf/sources.yml:13: warning: plant.time.format ")
    assert told in line


@pytest.mark.parametrize(("zone", "count"), [("UTC", 1), ("Etc/GMT-1", 1), ("Europe/Berlin", 0)])
def test_a_repeated_hour_in_a_zone_that_has_none_is_a_warning(zone: str, count: int, folder: Path) -> None:
    changed(folder, "sources", "time_zone: UTC", f"time_zone: {zone}, repeated_hour: in_order")
    assert sum("repeated_hour does nothing, as" in line for line in load(folder).warnings) == count


@pytest.mark.parametrize(
    ("zone", "told"),
    [
        ("CET", ["'CET', which is UTC+2 in summer; for UTC+1 in summer too write Etc/GMT-1, else"]),
        ("WET", ["'WET', which is UTC+1 in summer; for UTC+0 in summer too write Etc/GMT+0, else"]),
        ("EST5EDT", ["'EST5EDT', which is UTC-4 in summer; for UTC-5 in summer too write Etc/GMT+5, else"]),
        *((zone, []) for zone in ("UTC", "GMT", "Etc/GMT-1", "Europe/Berlin", "GB", "Poland", "EST")),
    ],
)
def test_letters_of_a_zone_that_has_summer_time_as_a_setting_are_a_warning(zone: str, told: list[str], folder: Path) -> None:
    changed(folder, "sources", "time_zone: UTC", f"time_zone: {zone}")
    assert [sentence for line, sentence in zip(load(folder).warnings, told, strict=True) if sentence not in line] == []


@pytest.mark.parametrize(
    ("zone", "instead"),
    [("America/Coyhaique", "America/Punta_Arenas, which"), ("ROC", "Asia/Taipei"), ("localtime", "the name"), ("posix/UTC", "UTC")],
)
def test_a_time_zone_that_java_lacks_is_refused_with_one_that_it_has(
    zone: str, instead: str, mistakes_after: Callable[..., list[str]]
) -> None:
    (line,) = mistakes_after(("sources", "time_zone: UTC", f"time_zone: {zone}"))
    assert f"time_zone is '{zone}', a time zone that Java does not know; write {instead}" in line


def test_the_hour_that_comes_twice_is_the_first_or_the_second(folder: Path, mistakes_after: Callable[..., list[str]]) -> None:
    changed(folder, "sources", "time_zone: UTC", "time_zone: Europe/Berlin, repeated_hour: second")
    assert load(folder).sources["plant"].payload_format.time.repeated_hour == "second"
    (line,) = mistakes_after(("sources", "repeated_hour: second", "repeated_hour: last"))
    assert "plant.time.repeated_hour is 'last'; choose one of first, second" in line


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
