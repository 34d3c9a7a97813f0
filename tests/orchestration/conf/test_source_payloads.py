"""A source whose payloads could not be read as declared is one line, with the way out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.conf.load import load
from tests.orchestration.conf.conftest import changed

CASES = [
    pytest.param(
        "sources",
        "time_zone: UTC",
        "time_zone: Europe/Brusels",
        ("conf/sources.yml:13: plant.time.time_zone 'Europe/Brusels' is not a time zone; did you mean 'Europe/Brussels'?"),
        id="unknown time zone",
    ),
    pytest.param(
        "sources",
        "time_zone: UTC",
        "time_zone: ../../etc/passwd",
        ("conf/sources.yml:13: plant.time.time_zone '../../etc/passwd' is not a time zone; write an IANA name such as Europe/Brussels"),
        id="time zone outside of the database",
    ),
    pytest.param(
        "sources",
        "format: iso",
        "format: '%Y-%m-%d'",
        ("conf/sources.yml:13: plant.time.format '%Y-%m-%d' has Y, which is not read; write yyyy-MM-dd"),
        id="format of times in Python's way",
    ),
    pytest.param(
        "sources",
        "format: iso",
        "format: epoch",
        ("conf/sources.yml:13: plant.time.format 'epoch' is no format of times; did you mean 'epoch_s'?"),
        id="format of times misspelt",
    ),
    pytest.param(
        "sources",
        "format: iso",
        "format: HH:mm:ss",
        (
            "conf/sources.yml:13: plant.time.format 'HH:mm:ss' is no format of times; write one of iso, epoch_s, epoch_ms, epoch_us, "
            "epoch_ns, or a pattern such as yyyy-MM-dd HH:mm:ss"
        ),
        id="format of times without a year",
    ),
    pytest.param(
        "sources",
        "zone: {field: zone}",
        "zone: {file_name: '(.+'}",
        (
            "conf/sources.yml:12: plant.zone.file_name is '(.+', which is no regular expression (missing ), unterminated "
            "subpattern at position 0); correct it"
        ),
        id="regular expression that is none",
    ),
    pytest.param(
        "sources",
        "zone: {field: zone}",
        "zone: {file_name: '.+'}",
        (
            "conf/sources.yml:12: plant.zone.file_name is '.+', which has no group; put ( ) around the part to take, "
            "for example '^(.+)\\.txt$'"
        ),
        id="regular expression without a group",
    ),
    pytest.param(
        "sources",
        "    unit: {field: unit}\n",
        "    metrics: {power: p}\n",
        "conf/sources.yml:16: plant sets metric and value (long rows) and metrics (wide rows); keep one of the two",
        id="long and wide",
    ),
    pytest.param(
        "sources",
        "    metric: {field: metric}\n    value: {field: value}\n",
        "",
        ("conf/sources.yml:7: plant does not say what it measures; set metric and value (long rows), or metrics (wide rows)"),
        id="neither long nor wide",
    ),
    pytest.param(
        "sources",
        "    value: {field: value}\n",
        "",
        "conf/sources.yml:14: plant.metric is set without plant.value; long rows need both",
        id="metric without value",
    ),
    pytest.param(
        "sources",
        "    unit: {field: unit}\n",
        "    header: true\n",
        "conf/sources.yml:16: plant.header is for csv, but plant.format is json; remove it",
        id="header of JSON",
    ),
    *(
        pytest.param(
            "sources",
            "    unit: {field: unit}\n",
            f"    encoding: {name}\n",
            f"conf/sources.yml:16: plant.encoding is '{name}'; "
            "write an encoding that Python knows, such as utf-8, latin-1, windows-1252 or utf-16",
            id=f"encoding {name}",
        )
        for name in ("latin-x", "base64", "utf-7", "unicode_escape", "undefined")
    ),
    pytest.param(
        "sources",
        "format: json",
        "format: parquet\n    encoding: latin-1",
        "conf/sources.yml:11: plant.encoding is for texts of json and csv, but plant.format is parquet; remove it",
        id="encoding of Parquet",
    ),
    pytest.param(
        "sources",
        'path: ./landing\n    files: "*"',
        "delta: {table: /data/readings}\n    encoding: latin-1",
        "conf/sources.yml:9: plant.encoding is for texts of json and csv, but rows of a table are read as JSON in utf-8; remove it",
        id="encoding of a table",
    ),
]


@pytest.mark.parametrize(("file", "old", "new", "line"), CASES)
def test_a_contradiction_in_a_source_is_told_on_its_line(
    file: str, old: str, new: str, line: str, mistakes_after: Callable[..., list[str]]
) -> None:
    assert mistakes_after((file, old, new)) == [line]


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
        *("yyyyDDDHH", "yyyy-DDD HH:mm", "yyyy-MM-dd'T'HH:mm:ssxxx", "yyyy-MM-dd HH:mm:ssZ", "h 'o''clock' a d/M/yyyy", "epoch_ns"),
    ],
)
def test_a_pattern_that_silver_reads_is_none_to_speak_of(pattern: str, folder: Path) -> None:
    changed(folder, "sources", "format: iso", f'format: "{pattern}"')
    assert load(folder).warnings == ()


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        *((pattern, "MM is the month") for pattern in ("yyyy-mm-dd HH:MM:ss", "dd/mm/yyyy HH:MM", "HH:MM dd.mm.yyyy", "yyyymmddHHMMss")),
        *(("yyyy-MM-dd hh:mm:ss", "write HH for hours"), ("yyyy-MM-dd HH:mm:SS", "write ss for seconds")),
    ],
)
def test_letters_that_are_probably_swapped_are_a_warning(pattern: str, told: str, folder: Path) -> None:
    changed(folder, "sources", "format: iso", f'format: "{pattern}"')
    (line,) = load(folder).warnings
    assert line.startswith("conf/sources.yml:13: warning: plant.time.format ")
    assert told in line


def test_the_hour_that_comes_twice_is_the_first_or_the_second(folder: Path, mistakes_after: Callable[..., list[str]]) -> None:
    changed(folder, "sources", "time_zone: UTC", "time_zone: Europe/Berlin, repeated_hour: second")
    assert load(folder).sources["plant"].payload_format.time.repeated_hour == "second"
    (line,) = mistakes_after(("sources", "repeated_hour: second", "repeated_hour: last"))
    assert "plant.time.repeated_hour is 'last'; choose one of first, second" in line
