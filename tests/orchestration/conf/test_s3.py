"""`s3` and `delta` of a source: what it means, and mistakes told on their line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.conf.transport_settings import DeltaSettings, S3Settings
from tests.orchestration.conf.conftest import changed, mistakes_of

OF_FILES = 'path: ./landing\n    files: "*"'
CASES = [
    ("s3: {prefix: a}", "plant.s3.bucket is missing"),
    (
        "s3: {bucket: a, access_key: '${env:KEY}'}",
        "plant.s3 sets one of access_key and secret_key; set both, or none",
    ),
    ("s3: {bucket: a, access_key: AKIA, secret_key: '${env:KEY}'}", "plant.s3.access_key"),
    ("s3: {bucket: a, endpoint: 'http://user:secret@localhost'}", "plant.s3.endpoint"),
    ("s3: {bucket: a}\n    path: ./landing", "plant sets path and s3; keep one of them"),
]


def test_parquet_is_for_files_and_has_no_csv_settings(mistakes_after: Callable[..., list[str]]) -> None:
    changes = (("sources", OF_FILES, "tcp: {port: 9000}\n    separator: ','"), ("sources", "format: json", "format: parquet"))
    said = "\n".join(mistakes_after(*changes))
    assert "plant.format is parquet, which is for files and objects, but events come by tcp; choose another" in said
    assert "plant.separator is for csv, but plant.format is parquet; remove it" in said


def test_a_delta_table_is_read_as_json_and_lies_outside_of_the_lake(folder: Path, mistakes_after: Callable[..., list[str]]) -> None:
    changed(folder, "sources", OF_FILES, "delta: {table: ./warehouse/readings, starting_version: 3}")
    assert load(folder).sources["plant"].transport == DeltaSettings(table=Path.cwd() / "warehouse/readings", starting_version=3)
    (line,) = mistakes_after(("sources", "./warehouse", "./lake"))
    assert "plant.delta.table lies inside the folder of the lake; give each a folder of its own" in line


@pytest.mark.parametrize(("written", "text"), CASES)
def test_a_contradiction_is_told(written: str, text: str, folder: Path, mistakes_after: Callable[..., list[str]]) -> None:
    lines = [line.split(": ", 1)[1] for line in mistakes_after(("sources", OF_FILES, written))]
    assert [line for line in lines if line.startswith(text)]


def test_objects_are_read_as_declared_and_named_as_files_are(folder: Path) -> None:
    keys = "access_key: '${env:A}', secret_key: '${file:b.txt}'"
    changed(folder, "sources", OF_FILES, f"s3: {{bucket: events, prefix: in/, files: '*.gz', endpoint: 'http://localhost:9000', {keys}}}")
    changed(folder, "sources", "device: {field: device}", "device: {file_name: '/([^/]+)@'}")
    assert mistakes_of(folder) == []
    secret = f"${{file:{Path.cwd()}/b.txt}}"
    assert load(folder).sources["plant"].transport == S3Settings(
        bucket="events",
        prefix="in/",
        files="*.gz",
        endpoint="http://localhost:9000",
        access_key="${env:A}",
        secret_key=secret,
    )
