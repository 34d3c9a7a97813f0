"""Objects of an S3-compatible store as a source, with a real store: each version once, and nothing that went unread in silence."""

import gzip
import re
from collections import deque
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orchestration.conf.model import Source
from orchestration.conf.transport_settings import S3Settings
from orchestration.connectors.sources import s3
from orchestration.connectors.sources.all import sources
from orchestration.connectors.sources.s3 import S3
from orchestration.connectors.sources.source import SourceDownError
from orchestration.jobs.bronze import poll
from orchestration.storage.tables import LakeStore
from silver.spec import Origin, PayloadFormat, Time
from tests.lakes import SHAPE, conf, table
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store
from tests.taking import opened, take_all

HEADED = PayloadFormat("csv", Origin(field="d"), Time("t"), metrics={"temperature": "T"}, has_header=True)
LEFT_OUT = "object left out"
CANARY = "canary-stranger"


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_S3", ACCESS_KEY)
    monkeypatch.setenv("SECRET_OF_S3", SECRET_KEY)


def transport(of: Store, bucket: str, **more: Any) -> S3Settings:
    settings: dict[str, Any] = {"endpoint": of.endpoint, "list_seconds": 0.0}
    keys = {"access_key": "${env:KEY_OF_S3}", "secret_key": "${env:SECRET_OF_S3}"}
    return S3Settings(**settings | keys | {"bucket": bucket} | more)


def lake_of(folder: Path, wanted: S3Settings, shape: PayloadFormat = SHAPE) -> LakeStore:
    return opened(conf(folder, sources={"plant": Source("plant", shape, wanted)}))


def source(lake: LakeStore) -> S3:
    (of,) = sources(lake.conf)
    assert isinstance(of, S3)
    return of


def take(lake: LakeStore, of: S3 | None = None) -> None:
    take_all(lake, of or source(lake))


def events(lake: LakeStore) -> list[tuple[str, bytes]]:
    """Object and payload, in the order of bronze, without the version."""
    found = table(lake.conf, "bronze.events").sort_values(["bronze_batch", "bronze_row"])
    return [
        (position.split("/", 1)[1].rpartition("@")[0], payload) for position, payload in zip(found.position, found.payload, strict=True)
    ]


def gaps(lake: LakeStore) -> list[str]:
    return [key_of(topic) for topic in table(lake.conf, "ops.gaps").topic]


def key_of(position: str) -> str:
    return position.split("/", 1)[1].rpartition("@")[0]


def test_an_event_has_bucket_key_and_etag_and_the_time_of_its_object(store: Store, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, transport(store, bucket := store.bucket()))
    store.put(bucket, {"a.json.gz": gzip.compress(b"1\n2")})
    take(lake)
    (entry,) = store.client.list_objects_v2(Bucket=bucket)["Contents"]
    found = table(lake.conf, "bronze.events")
    assert found.payload.tolist() == [b"1", b"2"]
    etag = entry["ETag"].strip('"')
    assert {*found.position} == {f"{bucket}/a.json.gz@{etag}"}
    assert {*found.received_at} == {entry["LastModified"]}


def test_an_object_that_is_overwritten_is_read_again_and_one_that_is_not_is_read_once(store: Store, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, transport(store, bucket := store.bucket()))
    for content in (b"1", b"1", b"1\n2"):
        store.put(bucket, {"a.json": content})
        take(lake)
    assert events(lake) == [("a.json", b"1"), ("a.json", b"1"), ("a.json", b"2")]


def test_in_a_bucket_with_versions_each_is_read_also_one_that_was_overwritten_or_deleted(store: Store, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, transport(store, bucket := store.bucket(versions=True), versions=True))
    for content in (b"1", b"2", b"2"):
        store.put(bucket, {"a.json": content})
    store.delete(bucket, ["a.json"])
    take(lake)
    take(lake)
    assert events(lake) == [("a.json", b"1"), ("a.json", b"2"), ("a.json", b"2")]
    known = {version["VersionId"] for version in store.client.list_object_versions(Bucket=bucket)["Versions"]}
    assert {position.rpartition("@")[2] for position in table(lake.conf, "bronze.events").position} == known


def test_only_objects_that_match_are_read_and_a_csv_header_stands_beside_each_line(store: Store, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, transport(store, bucket := store.bucket(), prefix="in/", files="*.csv"), HEADED)
    wanted = {"in/a b+ü%.csv": b"d,t,T\n1,2,3\n", "in/deep/b.csv": b"t,d,T\n4,5,6"}
    others = {"out/a.csv": b"d\nx", "in/c.json": b"x", "in/_temporary/a.csv": b"x", "in/.a.csv": b"x", "in/empty.csv": b""}
    store.put(bucket, wanted | others)
    take(lake)
    found = table(lake.conf, "bronze.events")
    assert sorted(zip(found.header, found.payload, strict=True)) == [("d,t,T", b"1,2,3"), ("t,d,T", b"4,5,6")]
    assert {key for key, _ in events(lake)} == wanted.keys()


def test_what_is_overwritten_or_deleted_between_claim_and_read_is_a_gap_and_what_it_is_then_is_read(store: Store, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, transport(store, bucket := store.bucket()))
    store.put(bucket, {"a.json": b"old", "b.json": b"kept", "c.json": b"gone"})
    of = source(lake)
    of.latest_offset({})  # claims all three
    store.put(bucket, {"a.json": b"new"})
    store.delete(bucket, ["c.json"])
    take(lake, of)
    assert sorted(events(lake)) == [("a.json", b"new"), ("b.json", b"kept")]
    assert sorted(gaps(lake)) == ["a.json", "c.json"]
    assert [(notice.what, notice.facts["reason"]) for notice in (*of.notices(), *of.notices())] == [(LEFT_OUT, s3.IS_GONE)] * 2
    store.put(bucket, {"a.json": b"old", "c.json": b"gone"})  # as they were when nobody read them
    take(lake)
    assert sorted(events(lake)) == [("a.json", b"new"), ("a.json", b"old"), ("b.json", b"kept"), ("c.json", b"gone")]


def test_a_version_that_is_removed_between_claim_and_read_is_a_gap(store: Store, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, transport(store, bucket := store.bucket(versions=True), versions=True))
    store.put(bucket, {"a.json": b"1"})
    of = source(lake)
    of.latest_offset({})
    (version,) = store.client.list_object_versions(Bucket=bucket)["Versions"]
    store.client.delete_object(Bucket=bucket, Key="a.json", VersionId=version["VersionId"])
    take(lake, of)
    assert (events(lake), gaps(lake)) == ([], ["a.json"])


def test_an_object_that_is_no_gzip_file_is_told_once_and_costs_no_other_one(store: Store, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, transport(store, bucket := store.bucket()))
    cut = gzip.compress(b"1\n2\n" * 1000)[:-9]
    store.put(bucket, {"a.json.gz": b"rubbish", "b.json": b"2", "c.json.gz": cut})
    of = source(lake)
    take(lake, of)
    assert {notice.facts["reason"] for notice in of.notices()} == {"it is not a whole gzip file; it is read once it has been replaced"}
    take(lake)
    assert (events(lake), sorted(gaps(lake))) == ([("b.json", b"2")], ["a.json.gz", "c.json.gz"])
    store.put(bucket, {"a.json.gz": gzip.compress(b"1")})
    take(lake)
    assert events(lake) == [("b.json", b"2"), ("a.json.gz", b"1")]


def test_an_object_in_another_encoding_is_told_once_and_read_when_conf_names_it(store: Store, tmp_path: Path) -> None:
    wanted = transport(store, bucket := store.bucket())
    lake = lake_of(tmp_path, wanted, HEADED)
    store.put(bucket, {"a.CSV": b"t,d,T\xb0\n1,2,3\n", "b.csv": b"t,d,T\r4,5,6"})
    of = source(lake)
    take(lake, of)
    reason = "its header has the byte 0xB0 at place 5, which is not utf-8; set `encoding` to what it is, such as latin-1"
    assert [notice.facts["reason"] for notice in (*of.notices(), *of.notices())] == [reason]
    take(lake)
    assert (events(lake), gaps(lake)) == ([("b.csv", b"4,5,6")], ["a.CSV"])
    named = lake_of(tmp_path, wanted, replace(HEADED, encoding="iso8859-1"))
    take(named)
    take(named)
    assert events(named) == [("b.csv", b"4,5,6"), ("a.CSV", b"1,2,3")]


def test_rows_of_a_parquet_object_are_events_and_what_is_none_is_told(store: Store, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, transport(store, bucket := store.bucket()), replace(SHAPE, format="parquet"))
    pq.write_table(pa.table({"v": [1, 2]}), tmp_path / "a")
    store.put(bucket, {"a": (tmp_path / "a").read_bytes(), "b": b"rubbish"})
    take(lake)
    found = table(lake.conf, "bronze.events").sort_values("bronze_row")
    assert [position.rpartition("/")[2] for position in found.position] == ["0", "1"]
    assert (found.payload.tolist(), gaps(lake)) == ([b'{"v":1}', b'{"v":2}'], ["b"])


def test_more_objects_than_a_page_and_a_batch_are_each_read_once(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "MAX_OBJECTS", 400)
    lake = lake_of(tmp_path, transport(store, bucket := store.bucket()))
    objects = {f"{n:04}.json": b"%d" % n for n in range(1_050)}
    store.put(bucket, objects)
    take(lake)
    found = events(lake)
    assert (dict(found), len(found)) == (objects, 1_050)
    assert table(lake.conf, "bronze.events").bronze_batch.nunique() == 3


def test_a_store_that_is_killed_while_it_is_read_costs_and_doubles_nothing(store: Store, tmp_path: Path) -> None:
    lake = lake_of(tmp_path, transport(store, bucket := store.bucket()))
    objects = {f"{n:02}.json": b"%02d" % n + b"x" * 500_000 for n in range(60)}
    store.put(bucket, objects)
    of = source(lake)
    (part,) = of.partitions({}, of.latest_offset({}))
    pieces = of.read(part)
    next(pieces)
    store.kill()
    try:
        with suppress(SourceDownError):  # on a slow machine all were brought before the kill
            deque(pieces, maxlen=0)
        with pytest.raises(SourceDownError, match="source plant cannot read object"):
            deque(of.read(part), maxlen=0)
        with pytest.raises(SourceDownError, match=f"source plant cannot read .*bucket {bucket} at {store.endpoint}: "):
            poll(lake, of)
    finally:
        store.start()
    take(lake, of)
    take(lake)
    found = events(lake)
    assert (dict(found), len(found)) == (objects, 60)


REFUSED = {
    "there is no bucket of that name": {"bucket": "not-there"},
    "it does not know the access key": {"access_key": "${env:STRANGER}"},
    "the secret key is wrong": {"secret_key": "${env:STRANGER}"},
    "${env:NOT_THERE}, which": {"secret_key": "${env:NOT_THERE}"},
    "Could not connect": {"endpoint": "http://127.0.0.1:9"},
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_reached_is_down_with_the_reason_and_without_a_secret(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("STRANGER", CANARY)
    changes = {"bucket": store.bucket()} | REFUSED[text]
    with pytest.raises(SourceDownError, match=re.escape(text)) as error:
        source(lake_of(tmp_path, transport(store, **changes))).latest_offset({})
    said = str(error.getrepr(chain=True))
    assert not {secret for secret in (SECRET_KEY, CANARY) if secret in said}
