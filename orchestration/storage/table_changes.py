"""Rows of a table that are new since a version, or gone, or may have been changed on the disk: by the ends of the files that hold them.

A compaction counts as no change, if what it wrote still has the digest of rows that its commit names; see row_digest.py.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from orchestration.location import Location
from orchestration.storage.damaged_logs import DamagedLogError
from orchestration.storage.delta import INSTANT, OpenTable, actions, files_of, in_log, log_of, open_table
from orchestration.storage.duckdb_view import sized_files
from orchestration.storage.row_digest import INFO, row_digest
from orchestration.storage.seals import touched_since
from orchestration.utc import from_iso, to_micros

COLUMNS = ("bronze_batch", "window_end", "registered_at")
MINUTE, LONG_SPAN = 60_000_000, 3_600_000_000
"""Microseconds. A file of which windows end within LONG_SPAN is one part."""
Ends = Mapping[str, tuple[int, int]]
"""The least and the greatest value of each of COLUMNS that a log tells of a file; instants in microseconds since 1970."""
UNKNOWN: Ends = {}


def changes(path: Location, since: int, until: int, at: datetime) -> list[Ends]:
    """List the ends of files by which rows came or went after a version up to another one, or that were written on since an instant.

    UNKNOWN stands for a table of which the log does not go back so far, and for a file without ends.
    """
    try:
        ends_of = _ends_by_file(open_table(path, since))
    except DamagedLogError:
        return [UNKNOWN]
    table = open_table(path, until)
    live = {*files_of(table)}
    changed = [ends_of[name] for name in touched_since(path, ends_of.keys() & live, at)]
    for version in range(since + 1, until + 1):
        if not log_of(path, version).exists():
            return [UNKNOWN]
        entry = [*actions(log_of(path, version), "add", "remove", "commitInfo")]
        adds = {unquote(action["add"]["path"]): _ends(action["add"]) for action in entry if "add" in action}
        if not _is_rearranged(path, table, entry, live.intersection(adds)):
            gone = (ends_of.get(unquote(action["remove"]["path"]), UNKNOWN) for action in entry if "remove" in action)
            changed += [*(part for name, ends in adds.items() for part in _parts(path / name, ends)), *gone]
        ends_of |= adds
    return changed


def _parts(file: Location, ends: Ends) -> list[Ends]:
    """Return ends of the minutes in which windows of a file end: an amendment has some of long ago beside new ones."""
    first, last = ends.get("window_end", (0, 0))
    if last - first <= LONG_SPAN or not file.exists():
        return [ends]
    with file.open_input() as source:
        column = pq.read_table(source, columns=["window_end"])["window_end"].cast(INSTANT).cast(pa.int64())
    minutes = np.unique(column.to_numpy() // MINUTE * MINUTE).tolist()
    return [{**ends, "window_end": (minute, minute + MINUTE - 1)} for minute in minutes]


def _is_rearranged(path: Location, table: OpenTable, entry: Iterable[Mapping[str, Any]], live: Collection[str]) -> bool:
    """Whether an entry is that of a compaction, and those of its files that are still in the table hold the rows of which it has the
    digest. Those that are not were compacted again, and read for that."""
    digest = next((info[INFO] for action in entry if INFO in (info := action.get("commitInfo", {}))), None)
    if digest is None or any(action["add"]["dataChange"] for action in entry if "add" in action):
        return False
    partitions = table.metadata().partition_columns
    columns = pa.schema([field for field in pa.schema(table.schema().to_arrow()) if field.name not in partitions])
    files = {file: size for file, size in sized_files(path, table).items() if file.below(path) in live}
    return len(files) < sum("add" in action for action in entry) or row_digest(files, columns) == digest


def _ends(add: Mapping[str, Any]) -> Ends:
    stats = json.loads(add.get("stats") or "{}")
    least, greatest = stats.get("minValues", {}), stats.get("maxValues", {})
    return {name: (_number(least[name]), _number(greatest[name])) for name in COLUMNS if name in least and name in greatest}


def _number(value: int | str) -> int:
    return value if isinstance(value, int) else to_micros(from_iso(value))


def _ends_by_file(table: OpenTable) -> dict[str, Ends]:
    log, ends_of = in_log(table), dict[str, dict[str, tuple[int, int]]]((name, {}) for name in files_of(table))
    for column in (name for name in COLUMNS if f"max.{name}" in log.column_names):
        for ends, first, last in zip(ends_of.values(), *(_numbers(log[f"{end}.{column}"]) for end in ("min", "max")), strict=True):
            ends.update({} if first is None else {column: (first, last)})
    return {**ends_of}


def _numbers(column: pa.ChunkedArray) -> Iterator[Any]:
    for chunk in column.chunks:
        yield from (chunk.view(pa.int64()) if pa.types.is_timestamp(chunk.type) else chunk).to_pylist()
