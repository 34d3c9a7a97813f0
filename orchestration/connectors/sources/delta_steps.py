"""Positions in a Delta table, and the way from one to the next, file by file.

A position is the id of the table, the version that was read, and how many files of that version where it was not all of them; with
`snapshot` they are the files that the table had at that version, else those that the version added.
"""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, TypeAlias

from orchestration.storage.foreign_table import Added, Commit, ForeignTable

ID, VERSION, FILES, SNAPSHOT = "table_id", "version", "files", "snapshot"
Position: TypeAlias = Mapping[str, Any]


def steps(table: ForeignTable, begin: Position) -> Iterator[tuple[Position, Commit | None, Added | None]]:
    """Behind a position: each file with the position behind it, and each version that has none."""
    for version in range(begin[VERSION], table.version + 1):
        of_begin = begin if version == begin[VERSION] else {FILES: 0}
        if FILES not in of_begin:
            continue
        commit = Commit(table.present(version)) if SNAPSHOT in of_begin else table.commit(version)
        files = commit.files if commit else ()
        behind = {ID: table.table_id, VERSION: version}
        for n, file in enumerate(files[of_begin[FILES] :], of_begin[FILES] + 1):
            partly = {FILES: n} | ({SNAPSHOT: True} if SNAPSHOT in of_begin else {})
            yield behind | (partly if n < len(files) else {}), commit, file
        if not files:
            yield behind, commit, None


def order(position: Position) -> tuple[int, float]:
    """Return the sort key of a position."""
    return position[VERSION], position.get(FILES, inf)
