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
        (
            "conf/sources.yml:13: plant.time.format '%Y-%m-%d' is not a datetime pattern of Spark (% has no "
            "meaning); write one of iso, epoch_s, epoch_ms, epoch_us, or a pattern such as yyyy-MM-dd HH:mm:ss"
        ),
        id="format of times in Python's way",
    ),
    pytest.param(
        "sources",
        "format: iso",
        "format: epoch",
        ("conf/sources.yml:13: plant.time.format 'epoch' is not a datetime pattern of Spark (e has no meaning); did you mean 'epoch_s'?"),
        id="format of times misspelt",
    ),
    pytest.param(
        "sources",
        "format: iso",
        "format: HH:mm:ss",
        (
            "conf/sources.yml:13: plant.time.format 'HH:mm:ss' has no year or no day; write one of iso, epoch_s, "
            "epoch_ms, epoch_us, or a pattern such as yyyy-MM-dd HH:mm:ss"
        ),
        id="format of times without a year",
    ),
    pytest.param(
        "sources",
        "format: iso",
        "format: yyyyMMddHHmmssSSS",
        (
            "conf/sources.yml:13: plant.time.format 'yyyyMMddHHmmssSSS' is never read by Spark, as yyyy takes the digits of SSS too; "
            "write '20'yy for yyyy, or divide the two"
        ),
        id="a fraction right behind a row of digits",
    ),
    pytest.param(
        "sources",
        "zone: {field: zone}",
        "zone: {file_name: '(.+'}",
        (
            "conf/sources.yml:12: plant.zone.file_name '(.+' is not a regular expression (missing ), unterminated "
            "subpattern at position 0); correct it, for example '^(.+)\\.txt$'"
        ),
        id="regular expression that is none",
    ),
    pytest.param(
        "sources",
        "zone: {field: zone}",
        "zone: {file_name: '.+'}",
        ("conf/sources.yml:12: plant.zone.file_name '.+' has no group; put ( ) around the part to take, for example '^(.+)\\.txt$'"),
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
        *(("yyyyMMddHHmmssSSSXX", "yyyy takes the digits of SSS"), ("dd-MM-yyyyHHmmssSSS", "yyyy takes the digits of SSS")),
        *(("dMyyyy", "d takes the digits of M"), ("yyyyMMddHmm", "yyyy takes the digits of H"), ("yyMdHHmm", "M takes the digits of d")),
        *(("yyyyMMdd[HHmmss]", "yyyy takes the digits of HH"), ("DyyyyHH", "write DDD for D"), ("dMMyyyy", "write dd for d")),
        *((pattern, None) for pattern in ("'20'yyMMddHHmmssSSS", "yyyyMMddHHmmssS", "yyyyMMdd'T'HHmmssSSS", "yyyyMMMddHHmmssSSS")),
        *((pattern, None) for pattern in ("ddMMyyyyHHmm", "HHmmssSSSyyyyMMdd", "yyyy-MM-ddHmmss", "yyyyMMdd[ HHmmss][.SSS]", "yyyyDDDHH")),
    ],
)
def test_a_pattern_whose_digits_nothing_divides_is_refused_where_spark_never_reads_it(
    pattern: str, told: str | None, mistakes_after: Callable[..., list[str]]
) -> None:
    found = mistakes_after(("sources", "format: iso", f'format: "{pattern}"'))
    assert [told in line for line in found if told] == ([True] if told else [])
    assert len(found) == (told is not None)
