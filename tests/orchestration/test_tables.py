"""Rows of a table that fit in memory are read without Spark; of more, or longer ones, none."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake

from orchestration.location import Location
from orchestration.storage.tables import read_bounded

LATER = pc.field("n") >= 10


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three commits of ten rows of 1 kB."""
    for first in (0, 10, 20):
        write_deltalake(tmp_path / "rows", pa.table({"n": range(first, first + 10), "name": ["x" * 1000] * 10}), mode="append")
    return tmp_path / "rows"


def test_rows_of_a_condition_are_read(path: Path) -> None:
    found = read_bounded(Location(path), LATER, 20, 25_000)
    assert found is not None
    assert sorted(found["n"].to_pylist()) == [*range(10, 30)]
    none = read_bounded(Location(path), pc.field("n") > 30, 0, 0)
    assert none is not None
    assert none.column_names == ["n", "name"]


def test_none_are_where_they_are_too_many_or_too_long(path: Path) -> None:
    assert read_bounded(Location(path), LATER, 19, 25_000) is None
    assert read_bounded(Location(path), LATER, 20, 15_000) is None
