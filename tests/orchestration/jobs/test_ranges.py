"""What is read of a table piece by piece: all of it, in pieces that fit in memory however long rows are."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from orchestration.engine.lake import Lake
from orchestration.jobs import ranges
from orchestration.storage import row_pieces
from tests.lakes import conf

SCHEMA = pa.schema([("bronze_row", pa.int64()), ("payload", pa.binary()), ("source", pa.string())])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Events of 1 kB, one of 1 MB and an empty one."""
    made = Lake(conf(tmp_path))
    lengths = [*[1_000] * 500, 1_000_000, *[1_000] * 500, 0]
    rows = [{"bronze_row": n, "payload": bytes([n % 256]) * length, "source": "plant"} for n, length in enumerate(lengths)]
    write_deltalake(made.table_path("bronze.events").local, pa.Table.from_pylist(rows, SCHEMA))
    return made


def found(lake: Lake) -> list[pa.Table]:
    return list(ranges.pieces(lake, "bronze.events", "select * from rows"))


def test_a_piece_is_bounded_by_bytes(lake: Lake) -> None:
    (whole,) = found(lake)
    pieces = list(ranges.pieces(lake, "bronze.events", "select * from rows", most_bytes=100_000))
    assert pa.concat_tables(pieces).combine_chunks() == whole.combine_chunks()
    assert pa.concat_tables(pieces).schema == SCHEMA
    assert [piece.nbytes > 200_000 for piece in pieces].count(True) == 1  # that of the event of 1 MB
    assert len(pieces) > 5


def test_a_piece_is_bounded_by_rows(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_pieces, "PIECE_ROWS", 500)
    assert [len(piece) for piece in found(lake)] == [1002]
