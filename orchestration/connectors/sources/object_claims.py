"""The objects of a store that a source has claimed: its rows of the table `ops.objects`, which are read once, when it is first asked.

Numbers only grow; objects that are found together are numbered by their time. Rows are added and never removed. In memory are a digest of
each claim, and the claims that are about to be read.
"""

import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orchestration.location import Location
from orchestration.storage.delta import INSTANT, is_table, table_of
from orchestration.storage.lake_layout import claims_folder
from orchestration.storage.ops_tables import OBJECTS

GONE, UNREADABLE_AS = "gone", "not "
"""Why an object was never read; UNREADABLE_AS is followed by an encoding. One that is gone is claimed again when it comes back."""
NO_END = (1 << 63) - 1
EARLIER_LIST, OF_EARLIER_LIST = "objects.sqlite", "select number, key, version, modified_us, bytes, fate from objects"
COLUMNS = ("number", "key", "version", "modified_at", "size_bytes", "fate")
CLAIMED = pa.schema([OBJECTS.schema.field(name) for name in COLUMNS])
PIECE_ROWS = 10_000


class ObjectVersion(NamedTuple):
    """`version`: an id of the store, or an ETag in its quotes where versions have no id. `modified_us`: since 1970."""

    key: str
    version: str
    modified_us: int
    length: int


class ObjectClaim(NamedTuple):
    """`fate`: None for one that can be read, or was."""

    number: int
    key: str
    version: str
    modified_us: int
    length: int
    fate: str | None


@dataclass
class _Memory:
    """`waiting`: claims behind `after`, in order. `digests`: of objects that are not claimed again. `fates`: by number."""

    after: int
    digests: set[bytes]
    newest: int
    waiting: pa.Table
    fates: dict[int, str]


class ObjectClaims:
    """The claims of one source, of which only this process adds any. `encoding`: of its objects, by conf."""

    def __init__(self, lake: Location, source: str, encoding: str) -> None:
        self._lake, self._source, self._encoding = lake, source, encoding
        self._folder = claims_folder(lake, source).local
        self._memory: _Memory | None = None

    def claim(self, pages: Iterable[Sequence[ObjectVersion]], after: int) -> None:
        """Claim what is listed and not claimed yet, all of it or, when listing fails, nothing. `after`: a number that was given already."""
        memory = self._read(after)
        listed, digests = _new(pages, memory.digests)
        memory.after, memory.waiting = after, _behind(memory.waiting, after)
        if digests:
            first = max(after, memory.newest) + 1
            claimed = listed.set_column(0, CLAIMED.field("number"), pa.array(np.arange(first, first + len(listed))))
            self._append(claimed)
            memory.digests |= digests
            memory.newest, memory.waiting = first + len(claimed) - 1, pa.concat_tables([memory.waiting, claimed])

    def between(self, after: int, to: int = NO_END, most: int = NO_END) -> list[ObjectClaim]:
        """Claims with a number above `after`, up to and with `to`, in ascending order, so many at most."""
        memory = self._read(after)
        rows = _behind(memory.waiting, after)
        rows = rows.slice(0, min(len(rows) - len(_behind(rows, to)), most))
        columns = rows.set_column(3, "modified_us", rows["modified_at"].cast(pa.int64())).drop_columns("fate").to_pydict().values()
        return [ObjectClaim._make((*row, memory.fates.get(row[0]))) for row in zip(*columns, strict=True)]

    def give_up(self, fates: Mapping[ObjectClaim, str]) -> None:
        """Remember, before anybody is told, that claims can never be read."""
        if fates:
            memory = self._memory or self._read(-1)
            self._append(_rows(claim._replace(fate=fate) for claim, fate in fates.items()))
            memory.fates |= {claim.number: fate for claim, fate in fates.items()}
            memory.digests -= {_digest(claim.key, claim.version) for claim, fate in fates.items() if self._comes_again(fate)}

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """An empty folder, also after a process was killed that had it."""
        folder = self._folder / "scratch"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)

    def _comes_again(self, fate: str | None) -> bool:
        """Whether an object that was given up is claimed again: one that comes back, and one for which conf has another encoding now."""
        return fate is not None and fate != UNREADABLE_AS + self._encoding

    def _append(self, rows: pa.Table) -> None:
        memory, self._memory = self._memory, None  # where the commit fails, nobody knows whether it was made: the table is read again
        noted_at = pa.array([datetime.now(UTC)] * len(rows), INSTANT)
        columns = dict(zip(COLUMNS, rows.columns, strict=True)) | {"source": pa.repeat(self._source, len(rows)), "noted_at": noted_at}
        OBJECTS.append_table(self._lake, pa.Table.from_pydict(columns, OBJECTS.schema))
        self._memory = memory

    def _read(self, after: int) -> _Memory:
        if self._memory is None or after < self._memory.after:
            rows, earlier = self._stored(), self._folder / EARLIER_LIST
            if earlier.exists():
                if not len(rows):  # else a process took it over, and was killed
                    self._append(_of_sqlite(earlier))
                    rows = self._stored()
                earlier.unlink()
            self._memory = self._summed_up(rows, after)
            del rows
            pa.default_memory_pool().release_unused()  # Arrow would keep what it read of a million objects
        return self._memory

    def _stored(self) -> pa.Table:
        path = OBJECTS.path(self._lake)
        return table_of(path, [*COLUMNS], [("source", "=", self._source)]) if is_table(path) else CLAIMED.empty_table()

    def _summed_up(self, rows: pa.Table, after: int) -> _Memory:
        """`rows`: one for each claim, and one more for each that was given up."""
        given_up, claimed = rows.filter(pc.is_valid(rows["fate"])), rows.filter(pc.is_null(rows["fate"]))
        fates = dict(zip(given_up["number"].to_pylist(), given_up["fate"].to_pylist(), strict=True))
        digests = {
            _digest(key, version)
            for piece in claimed.select(COLUMNS[:3]).to_batches(PIECE_ROWS)
            for number, key, version in zip(*piece.to_pydict().values(), strict=True)
            if not self._comes_again(fates.get(number))
        }
        waiting = claimed.filter(pc.greater(claimed["number"], after)).sort_by("number")
        newest = pc.max(claimed["number"]).as_py()
        return _Memory(after, digests, -1 if newest is None else newest, waiting, fates)


def _new(pages: Iterable[Sequence[ObjectVersion]], claimed: Set[bytes]) -> tuple[pa.Table, set[bytes]]:
    """Return what is listed and not claimed yet, in order of time and without numbers, and its digests."""
    listed, digests = [CLAIMED.empty_table()], set[bytes]()
    for page in pages:
        keyed = {_digest(version.key, version.version): version for version in page}
        new = {digest: version for digest, version in keyed.items() if digest not in claimed and digest not in digests}
        listed.append(_rows((0, *version, None) for version in new.values()))
        digests.update(new)
    rows = pa.concat_tables(listed).combine_chunks()
    # A store lists the versions of a key from the newest to the oldest, and knows no more of their time than the second.
    turned = rows.take(pa.array(np.arange(len(rows))[::-1]))
    return turned.sort_by([("modified_at", "ascending"), ("key", "ascending")]), digests


def _behind(claims: pa.Table, number: int) -> pa.Table:
    return claims.slice(int(np.searchsorted(claims["number"].to_numpy(), number, "right")))


def _rows(claims: Iterable[Sequence[Any]]) -> pa.Table:
    columns = [*zip(*claims, strict=True)] or [()] * len(COLUMNS)
    return pa.Table.from_arrays([pa.array(column, field.type) for column, field in zip(columns, CLAIMED, strict=True)], schema=CLAIMED)


def _of_sqlite(file: Path) -> pa.Table:
    """Read the list that lakes of earlier versions have. What was given up has a row more here."""
    with closing(sqlite3.connect(file)) as store:
        claims = store.execute(f"{OF_EARLIER_LIST.replace('fate', 'null')} union all {OF_EARLIER_LIST} where fate is not null")
        return pa.concat_tables([CLAIMED.empty_table(), *map(_rows, iter(partial(claims.fetchmany, PIECE_ROWS), []))])


def _digest(key: str, version: str) -> bytes:
    return blake2b(f"{key}\0{version}".encode(), digest_size=16).digest()
