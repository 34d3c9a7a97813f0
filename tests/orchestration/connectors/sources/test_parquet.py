"""Rows of Parquet files as events: each once, as JSON that says exactly what the row holds, in landing folders and in object stores."""

import json
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bronze.events import ARRIVED
from orchestration.conf.transport_settings import LandingFolder
from orchestration.connectors.sources.files import Files
from orchestration.connectors.sources.parquet_rows import as_json, rows_of
from silver.spec import Origin, PayloadFormat, Time

SHAPE = PayloadFormat("parquet", Origin(field="device"), Time("ts"), metrics={"temperature": "t"})
NOON = datetime(2026, 1, 5, 12, 0, 0, 123456, tzinfo=UTC)
EXACT: dict[str, tuple[pa.Array, str]] = {
    "int64": (pa.array([2**63 - 1]), "9223372036854775807"),
    "uint64": (pa.array([2**64 - 1], pa.uint64()), "18446744073709551615"),
    "double": (pa.array([0.1]), "0.1"),
    "float": (pa.array([0.1], pa.float32()), "0.1"),
    "decimal": (pa.array([Decimal("12345678901234567890.123456789")], pa.decimal128(38, 9)), "12345678901234567890.123456789"),
    "instant": (pa.array([NOON], pa.timestamp("us", "UTC")), '"2026-01-05T12:00:00.123456Z"'),
    "instant with a zone": (pa.array([NOON], pa.timestamp("us", "Europe/Brussels")), '"2026-01-05T13:00:00.123456+01:00"'),
    "nanoseconds": (pa.array([1], pa.timestamp("ns", "UTC")), '"1970-01-01T00:00:00.000000001Z"'),
    "local time": (pa.array([NOON.replace(tzinfo=None)], pa.timestamp("us")), '"2026-01-05T12:00:00.123456"'),
    "day": (pa.array([date(2026, 1, 5)]), '"2026-01-05"'),
    "text": (pa.array(['ü"\\\n\u2028\x00']), '"ü\\"\\\\\\n\u2028\\u0000"'),
    "bytes": (pa.array([b"\x00\xff"]), '"00ff"'),
    "list of structs": (pa.array([[{"a": 2**60, "b": [None, 0.5]}]]), '[{"a":1152921504606846976,"b":[null,0.5]}]'),
    "map": (pa.array([[("k", 1.5)]], pa.map_(pa.string(), pa.float64())), '{"k":1.5}'),
    "dictionary": (pa.array(["x"]).dictionary_encode(), '"x"'),
}
ABSENT = {"null": None, "NaN": math.nan, "infinity": math.inf}


def source(folder: Path, most: int = 1 << 30) -> Files:
    return Files("plant", folder / "claims", SHAPE, most, LandingFolder(folder / "landing", settle_seconds=0))


def write(file: Path, rows: pa.Table, **more: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, file, **more)
    return file


def read(of: Files) -> Iterator[dict[str, Any]]:
    for partition in of.partitions({}, of.latest_offset({})):
        for piece in of.read(partition):
            assert piece.schema == ARRIVED
            yield from piece.to_pylist()


@pytest.mark.parametrize("name", EXACT)
def test_a_value_is_written_exactly(name: str, tmp_path: Path) -> None:
    values, text = EXACT[name]
    write(tmp_path / "landing/a.parquet", pa.table({"v": values}))
    (row,) = read(source(tmp_path))
    assert row["payload"].decode() == f'{{"v":{text}}}'


@pytest.mark.parametrize("name", ABSENT)
def test_what_json_has_no_word_for_is_null_or_left_out(name: str) -> None:
    assert json.loads(as_json(pa.table({"v": pa.array([ABSENT[name]], pa.float64())}))[0].as_py()).get("v") is None


def test_instants_as_spark_writes_them_by_default_are_read_in_the_years_that_they_are_of(tmp_path: Path) -> None:
    times = pa.array([-11_676_096_000_000_000, 19_880_899_200_000_000], pa.timestamp("us"))
    file = write(tmp_path / "a.parquet", pa.table({"v": times}), use_deprecated_int96_timestamps=True)
    assert [json.loads(text.as_py())["v"][:5] for rows in rows_of(file) for text in as_json(rows)] == ["1600-", "2600-"]


def test_each_row_is_an_event_with_its_file_and_number(tmp_path: Path) -> None:
    write(tmp_path / "landing/day/a.parquet", pa.table({"v": np.arange(3_000)}), row_group_size=700)
    found = list(read(source(tmp_path)))
    assert [row["position"] for row in found] == [f"day/a.parquet/{n}" for n in range(3_000)]
    assert [row["payload"] for row in found] == [b'{"v":%d}' % n for n in range(3_000)]
    assert {(row["source"], row["header"], row["key"]) for row in found} == {("plant", None, None)}


def damaged(content: bytes) -> bytes:
    """Only the pages: what is at the end says that all is well."""
    return content[:4] + b"\xff" * 200 + content[204:]


def test_what_is_no_whole_parquet_file_or_no_json_is_left_out_and_told_and_costs_no_other_file(tmp_path: Path) -> None:
    good = write(tmp_path / "landing/good.parquet", pa.table({"v": np.arange(100_000)})).read_bytes()
    for name, content in {"rubbish": b"rubbish", "cut": good[:-9], "damaged": damaged(good), "lines": b'{"v":1}\n'}.items():
        (tmp_path / f"landing/{name}.parquet").write_bytes(content)
    write(tmp_path / "landing/map.parquet", pa.table({"v": pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64()))}))
    of = source(tmp_path)
    assert {row["position"].partition("/")[0] for row in read(of)} == {"good.parquet"}
    told = {Path(notice.facts["file"]).stem: notice.facts["reason"] for notice in of.notices()}
    assert told.keys() == {"rubbish", "cut", "damaged", "lines", "map"}
    assert all(reason.startswith("it cannot be read as Parquet (") for reason in told.values())


def test_a_file_without_rows_has_no_event(tmp_path: Path) -> None:
    write(tmp_path / "landing/a.parquet", pa.table({"v": pa.array([], pa.int64())}))
    of = source(tmp_path)
    assert (list(read(of)), of.latest_offset({})) == ([], {"claim": 0})
