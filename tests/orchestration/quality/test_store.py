"""Delta tables as views: values come as their columns declare them, whatever the folders above a table and its partitions look like."""

from contextlib import closing
from datetime import date
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from orchestration.location import Location
from orchestration.quality.store import create_view, open_store, pin_table


def rows(path: Path) -> list[tuple[object, ...]]:
    with closing(open_store()) as store:
        table = pin_table("silver.readings", Location(path))
        create_view(store, table)
        return store.execute(f'from "{table.view}" order by all').fetchall()


def test_a_folder_above_the_table_that_looks_like_a_partition_changes_no_value(tmp_path: Path) -> None:
    path = tmp_path / "metric=7" / "source=gone" / "readings"
    path.mkdir(parents=True)
    written = pa.table({"metric": ["temperature"], "day": [date(2026, 1, 5)]})
    write_deltalake(path, written, partition_by=["day"])
    assert rows(path) == [("temperature", date(2026, 1, 5))]


def test_a_text_partition_stays_a_text(tmp_path: Path) -> None:
    texts = ["007", "7", None]
    write_deltalake(tmp_path / "readings", pa.table({"n": [1, 2, 3], "group": texts}), partition_by=["group"])
    assert rows(tmp_path / "readings") == [(n, text) for n, text in enumerate(texts, start=1)]
