"""Which objects of a store a source has claimed: a list on the disk of the lake, `intake/<source>/objects.sqlite`.

Grain: one version of one object. Numbers only grow; objects that are found together are numbered by their time. Rows are added and never
removed. Of a million objects only those are in memory that are about to be read.
"""

import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from orchestration.location import Location
from orchestration.storage.lake_layout import claims_folder

SCHEMA = """
create table if not exists objects (
  number integer primary key, key text not null, version text not null, modified_us integer not null, bytes integer not null, fate text
);
create unique index if not exists claimed on objects (key, version) where fate is not 'gone';
create temp table found (key text, version text, modified_us integer, bytes integer);
"""
NEW = """
insert into found select ?1, ?2, ?3, ?4
where not exists (select 1 from objects where key = ?1 and version = ?2 and fate is not 'gone')
"""
# A store lists the versions of a key from the newest to the oldest, and knows no more of their time than the second.
NUMBERED = """
insert or ignore into objects
select max(?, coalesce((select max(number) from objects), -1)) + row_number() over (order by modified_us, key, rowid desc),
  key, version, modified_us, bytes, null
from found
"""
GONE, UNREADABLE_AS = "gone", "not "
"""Why an object was never read; UNREADABLE_AS is followed by an encoding. One that is gone is claimed again when it comes back."""
NO_END = (1 << 63) - 1


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


class ObjectClaims:
    """The claims of one source, on a list that only this process writes."""

    def __init__(self, lake: Location, source: str) -> None:
        self._folder = claims_folder(lake, source).local

    def claim(self, pages: Iterable[Sequence[ObjectVersion]], after: int) -> None:
        """Claim what is listed and not claimed yet, all of it or, when listing fails, nothing. `after`: a number that was given already."""
        with self._opened() as store:
            for page in pages:
                store.executemany(NEW, page)
            store.execute(NUMBERED, (after,))

    def between(self, after: int, to: int = NO_END, most: int = -1) -> list[ObjectClaim]:
        """Claims with a number above `after`, up to and with `to`, in ascending order, so many at most."""
        with self._opened() as store:
            query = "select * from objects where number > ? and number <= ? order by number limit ?"
            return [ObjectClaim(*row) for row in store.execute(query, (after, to, most))]

    def give_up(self, number: int, fate: str) -> None:
        """Remember that a claim can never be read, before anybody is told."""
        with self._opened() as store:
            store.execute("update objects set fate = ? where number = ?", (fate, number))

    def take_again(self, encoding: str) -> None:
        """Let objects be claimed again that were given up when conf declared another encoding."""
        with self._opened() as store:
            store.execute(
                "update objects set fate = ? where fate glob ? and fate <> ?", (GONE, f"{UNREADABLE_AS}*", UNREADABLE_AS + encoding)
            )

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

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._folder / "objects.sqlite")) as store:
            store.executescript(SCHEMA)
            with store:
                yield store
