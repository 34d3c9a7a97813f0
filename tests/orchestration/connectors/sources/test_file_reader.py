"""Files become events in pieces of any length, as Spark reads the same files."""

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from orchestration.connectors.sources.file_reader import BYTE_ORDER_MARK, events_of, pieces
from tests.lakes import SHAPE

CONTENT = st.lists(st.sampled_from([b"\n", b"\r\n", b"abc", b"\xff\x00", BYTE_ORDER_MARK]), max_size=12).map(b"".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    found = events_of("plant", file, "a", 0, SHAPE)
    assert [payload for piece in found for payload in piece["payload"].to_pylist()] == by_spark


EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("nanoseconds", "received"),
    [
        (-62_135_596_800_000_000_000, EARLIEST),
        (-62_135_596_800_000_000_001, EARLIEST),
        (-(2**73), EARLIEST),
        (1_999, datetime(1970, 1, 1, 0, 0, 0, 1, UTC)),
        (253_402_300_799_999_999_999, LATEST),
        (253_402_300_800_000_000_000, LATEST),
        (2**73, LATEST),
    ],
)
def test_a_file_whose_time_python_has_not_is_read_all_the_same(tmp_path: Path, nanoseconds: int, received: datetime) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"1\n2\n")
    (found,) = events_of("plant", file, "a.json", nanoseconds, SHAPE)
    assert found.select(["payload", "received_at"]).to_pylist() == [
        {"payload": payload, "received_at": received} for payload in (b"1", b"2")
    ]
