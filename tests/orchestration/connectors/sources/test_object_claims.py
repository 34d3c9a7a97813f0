"""Claims of objects in `ops.objects`: a lake that moves to another host reads nothing twice, and neither does one of an earlier version."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from orchestration.connectors.sources.source import SourceDownError
from orchestration.jobs.bronze import poll
from orchestration.location import lake_at
from orchestration.storage.commit import compact
from orchestration.storage.delta import open_table, rows_of, version_of
from orchestration.storage.lake_layout import claims_folder
from orchestration.storage.lease import sole_writer
from orchestration.storage.ops_tables import OBJECTS
from orchestration.storage.tables import LakeStore
from orchestration.stores.object_store import ObjectStore
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store
from tests.orchestration.connectors.sources.test_s3 import events, gaps, lake_of, source, take, transport
from tests.s3_proxy import Fault, Proxy
from tests.taking import opened

SQLITE = """
create table objects (
  number integer primary key, key text not null, version text not null, modified_us integer not null, bytes integer not null, fate text
);
create unique index claimed on objects (key, version) where fate is not 'gone';
"""


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_S3", ACCESS_KEY)
    monkeypatch.setenv("SECRET_OF_S3", SECRET_KEY)


@contextmanager
def lake_in_store(store: Store, folder: Path, endpoint: str) -> Iterator[LakeStore]:
    """A lake in a bucket, which reads another one; this process holds it."""
    plant = lake_of(folder, transport(store, store.bucket()))
    place = ObjectStore(endpoint, None, "${env:KEY_OF_S3}", "${env:SECRET_OF_S3}", attempts=1)
    with sole_writer(lake := lake_at(f"s3://{store.bucket()}/lake", place)):
        yield opened(replace(plant.conf, lake=lake))


def payloads(lake: LakeStore) -> list[bytes]:
    return sorted(row["payload"] for row in rows_of(lake.table_path("bronze.events"), ["payload"]))


def bucket_of(lake: LakeStore) -> str:
    return source(lake).transport.bucket


def test_a_run_on_another_host_reads_what_was_claimed_and_nothing_twice(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "one host"))
    with lake_in_store(store, tmp_path, store.endpoint) as lake:
        store.put(bucket_of(lake), {"a.json": b"1"})
        take(lake)
        store.put(bucket_of(lake), {"b.json": b"2"})
        source(lake).latest_offset({"object": 0})  # claims b, and reads nothing
        store.delete(bucket_of(lake), ["b.json"])
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another host"))
        take(lake)
        store.put(bucket_of(lake), {"c.json": b"3"})
        take(lake)
        assert payloads(lake) == [b"1", b"3"]
        assert [row["first_offset"] for row in rows_of(lake.table_path("ops.gaps"))] == [1]


def test_a_claim_whose_commit_fails_is_made_again_and_one_whose_answer_is_lost_is_made_once(
    store: Store, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "host"))
    with lake_in_store(store, tmp_path, proxy.endpoint) as lake:
        entries = "ops/objects/_delta_log/"
        of = source(lake)
        for number, does in enumerate(("refuse", "lose"), 1):
            store.put(bucket_of(lake), {f"{number}.json": b"%d" % number})
            proxy.set_faults(Fault(does, ("PUT",), entries))  # type: ignore[arg-type]
            for _ in range(2):
                try:
                    take(lake, of)
                except SourceDownError:
                    proxy.set_faults()
            take(lake, of)
        take(lake)
        assert payloads(lake) == [b"1", b"2"]
        assert sorted(row.number for row in OBJECTS.rows(lake.conf.lake)) == [0, 1]


def test_a_listing_with_something_new_is_one_commit_and_one_without_is_none(store: Store, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, transport(store, bucket := store.bucket()))
    store.put(bucket, {f"{n}.json": b"%d" % n for n in range(3)})
    of, versions = source(lake), []
    for _ in range(2):
        take(lake, of)
        versions.append(version_of(OBJECTS.path(lake.conf.lake)))
    store.put(bucket, {"3.json": b"3", "4.json": b"4"})
    take(lake, of)
    versions.append(version_of(OBJECTS.path(lake.conf.lake)))
    assert versions == [1, 1, 2]


def test_many_objects_that_are_gone_are_one_commit(store: Store, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, transport(store, bucket := store.bucket()))
    store.put(bucket, keys := {f"{n}.json": b"%d" % n for n in range(20)})
    of = source(lake)
    of.latest_offset({})
    store.delete(bucket, [*keys])
    take(lake, of)
    assert (len(gaps(lake)), version_of(OBJECTS.path(lake.conf.lake))) == (20, 2)


def test_names_that_are_hostile_are_each_claimed_once_also_after_a_compaction(store: Store, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, transport(store, bucket := store.bucket()))
    names = ["a'b.json", 'a"b.json', "a;drop table objects;--.json", "%41.json", "A.json", "ü/ü.json", "x" * 200 + "/" + "y" * 200]
    for name in names:
        store.put(bucket, {name: name.encode()})
        take(lake)
    compact(OBJECTS.path(lake.conf.lake), 1 << 20)
    assert len(open_table(OBJECTS.path(lake.conf.lake)).file_uris()) == 1
    take(lake)
    assert [(name, name.encode()) for name in names] == events(lake)


def test_the_list_of_an_earlier_version_is_taken_over_once(store: Store, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, transport(store, bucket := store.bucket()))
    store.put(bucket, {name: name.encode() for name in ("read", "waits", "came back", "unreadable")})
    listed = {entry["Key"]: entry for entry in store.client.list_objects_v2(Bucket=bucket)["Contents"]}
    claims = {"read": None, "unreadable": "not utf-8", "came back": "gone", "waits": None}
    file = claims_folder(lake.conf.lake, "plant").local / "objects.sqlite"
    file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file)) as earlier, earlier:
        earlier.executescript(SQLITE)
        for number, (key, fate) in enumerate(claims.items()):
            row = (number, key, listed[key]["ETag"], int(listed[key]["LastModified"].timestamp() * 1e6), len(key), fate)
            earlier.execute("insert into objects values (?, ?, ?, ?, ?, ?)", row)
    kept = file.read_bytes()
    of = source(lake)
    assert of.latest_offset({"object": 2}) == {"object": 3}
    assert not file.exists()
    take(lake)  # bronze of this lake has read nothing yet
    assert [payload for _, payload in events(lake)] == [b"read", b"waits", b"came back"]
    assert sorted(gaps(lake)) == ["came back", "unreadable"]
    file.write_bytes(kept)  # as after a kill that came before it was deleted
    assert poll(lake, source(lake)) is None
    assert not file.exists()
