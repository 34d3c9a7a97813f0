"""Claimed files become rows of bronze in pieces of any length, as Spark reads the same files."""

import gzip
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from orchestration.conf.model import Source
from orchestration.connectors.sources import file_reader
from orchestration.connectors.sources.file_reader import BYTE_ORDER_MARK, first_line, pieces, rows
from orchestration.connectors.sources.intake import claim_settled
from orchestration.location import Location
from orchestration.storage.checkpoints import NewFile
from orchestration.storage.retired_sources import INTAKE
from tests.lakes import SHAPE
from tests.rows import INGESTED_AT

NOW = 1_700_000_000.0
CONTENT = st.lists(st.sampled_from([b"\n", b"\r\n", b"abc", b"\xff\x00", BYTE_ORDER_MARK]), max_size=12).map(b"".join)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(CONTENT, st.integers(1, 9), st.booleans())
def test_pieces_are_whole_lines_and_together_the_file(tmp_path: Path, content: bytes, length: int, is_packed: bool) -> None:
    file = tmp_path / f"{length}.json{'.gz' if is_packed else ''}"
    file.write_bytes(gzip.compress(content) if is_packed else content)
    found = list(pieces(file, length))
    assert b"".join(found) == content.removeprefix(BYTE_ORDER_MARK)
    assert all(piece.endswith(b"\n") for piece in found[:-1])


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"a", b"a\n\nb\r\n", BYTE_ORDER_MARK + b"a\n", BYTE_ORDER_MARK, BYTE_ORDER_MARK + b"\na", b"\xff\x00\n\n"]
)
@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_lines_are_those_that_spark_reads(spark: SparkSession, tmp_path: Path, content: bytes, ending: str) -> None:
    file = tmp_path / f"a{ending}"
    file.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    by_spark = spark.read.text(str(file), lineSep="\n").selectExpr("cast(value as binary)").toArrow()["value"].to_pylist()
    (tmp_path / INTAKE / "plant" / "version").mkdir(parents=True)
    claim = tmp_path / INTAKE / "plant" / "version" / file.name
    os.link(file, claim)
    found = rows([NewFile("plant", claim.as_uri(), 0)], Location(tmp_path / INTAKE), [], INGESTED_AT, 0)
    assert [payload for piece in found for payload in piece["payload"].to_pylist()] == by_spark


@pytest.mark.parametrize(
    ("content", "header"), [(b"a,b\r\n1,2", "a,b\r"), (BYTE_ORDER_MARK + b"a\n", "a"), (b"\na\n", None), (b"a\xff", "a\ufffd")]
)
def test_the_first_line_of_a_file_is_its_header(tmp_path: Path, content: bytes, header: str | None) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(content)
    assert first_line(file) == header


def test_events_of_small_files_come_together_and_long_or_many_ones_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group each; a header alone, or a long line at the beginning, says nothing of those behind it."""
    monkeypatch.setattr(file_reader, "PIECE_BYTES", 50_000)
    monkeypatch.setattr(file_reader, "PIECE_ROWS", 100)
    folder = tmp_path / INTAKE / "plant" / "version"
    folder.mkdir(parents=True)
    contents = [b"header\n", *([b"header\n1\n"] * 150), b"header\n" + b"x" * 60_000 + b"\n2\n", b"header\n" + b"\n" * 250]
    files = [folder / f"{n:03d}.csv" for n in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)
    found = list(rows((NewFile("plant", file.as_uri(), 0) for file in files), Location(tmp_path / INTAKE), ["plant"], INGESTED_AT, 0))
    assert (len(found), max(map(len, found))) == (6, 100)
    assert [row for piece in found for row in piece["bronze_row"].to_pylist()] == list(range(402))


EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("milliseconds", "received"),
    [
        (-62_135_596_800_000, EARLIEST),
        (-62_135_596_800_001, EARLIEST),
        (-(2**63), EARLIEST),
        (253_402_300_799_999, datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)),
        (253_402_300_800_000, LATEST),
        (2**63 - 1, LATEST),
    ],
)
def test_a_file_whose_time_python_has_not_is_read_all_the_same(tmp_path: Path, milliseconds: int, received: datetime) -> None:
    claim = tmp_path / INTAKE / "plant" / "version" / "a.json"
    claim.parent.mkdir(parents=True)
    claim.write_bytes(b"1\n2\n")
    (found,) = rows([NewFile("plant", claim.as_uri(), milliseconds)], Location(tmp_path / INTAKE), [], INGESTED_AT, 0)
    assert found.select(["payload", "received_at"]).to_pylist() == [
        {"payload": payload, "received_at": received} for payload in (b"1", b"2")
    ]


@pytest.mark.parametrize("lake", ["lake", "a lake", "Anlage süd", "a+b & c", "50%"])
@pytest.mark.parametrize("name", ["a.json", "north/a b.json", "intake/plant/a.json", "ofen-ü.json", "50%25.json", "12:30.json"])
def test_the_position_is_the_path_below_the_landing_folder_whatever_the_names(
    spark: SparkSession, tmp_path: Path, lake: str, name: str
) -> None:
    plant = Source("plant", tmp_path / "landing", SHAPE)
    file = plant.path / name
    file.parent.mkdir(parents=True)
    file.write_bytes(b"1\n")
    os.utime(file, (NOW - 9, NOW - 9))
    claim_settled(plant, Location(tmp_path / lake), NOW)
    intake = tmp_path / lake / INTAKE
    uris = spark.read.format("text").option("recursiveFileLookup", "true").load(str(intake / "plant")).inputFiles()
    (found,) = rows([NewFile("plant", uri, 1_000) for uri in uris], Location(intake), [], INGESTED_AT, 0)
    assert found["position"].to_pylist() == [name]
