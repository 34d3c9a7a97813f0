"""Claims that every source keeps: offsets lead on, a range is the same whenever it is read, a batch is bounded, a run ends, and kills."""

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from bronze.events import ARRIVED
from orchestration.conf.model import Conf, Source
from orchestration.conf.transport_settings import DeltaSettings, HttpSettings, KafkaSettings, LandingFolder, S3Settings
from orchestration.connectors.sources.all import source_of
from orchestration.connectors.sources.source import Offset
from orchestration.connectors.sources.source import Source as Opened
from orchestration.connectors.sources.spool_records import encoded, segment_file
from orchestration.storage.lake_layout import spool_folder
from tests.lakes import SHAPE, conf, land, table, with_batches_of
from tests.object_store import ACCESS_KEY, SECRET_KEY
from tests.taking import opened, take_all, taking

MARK = b"\x01mark\xff\n\x00"
Put = Callable[[int, bytes], object]
"""Adds an event, by a file, an object, a message, a version or a record of its own."""


def files(request: pytest.FixtureRequest, folder: Path) -> tuple[Put, Any]:
    landing = LandingFolder(folder / "landing", settle_seconds=0)
    return lambda number, event: land(folder, f"{number:04}.json", [event]), landing


def objects(request: pytest.FixtureRequest, folder: Path) -> tuple[Put, Any]:
    store, variables = request.getfixturevalue("store"), request.getfixturevalue("monkeypatch")
    variables.setenv("KEY_OF_S3", ACCESS_KEY)
    variables.setenv("SECRET_OF_S3", SECRET_KEY)
    settings = S3Settings(
        bucket=store.bucket(), endpoint=store.endpoint, list_seconds=0.0, access_key="${env:KEY_OF_S3}", secret_key="${env:SECRET_OF_S3}"
    )
    return lambda number, event: store.put(settings.bucket, {f"{number:04}.json": event}), settings


def messages(request: pytest.FixtureRequest, folder: Path) -> tuple[Put, Any]:
    running, topic = request.getfixturevalue("running"), request.getfixturevalue("topic")
    return lambda _, event: running.send(topic, [event]), KafkaSettings(running.servers, (topic,))


def versions(request: pytest.FixtureRequest, folder: Path) -> tuple[Put, Any]:
    path = folder / "a table"
    return lambda _, event: write_deltalake(str(path), pa.table({"v": [json.loads(event)["v"]]}), mode="append"), DeltaSettings(table=path)


def records(request: pytest.FixtureRequest, folder: Path) -> tuple[Put, Any]:
    segment = segment_file(spool_folder(conf(folder).lake, "plant").local, 0)
    segment.parent.mkdir(parents=True)
    segment.write_bytes(MARK)

    def put(number: int, event: bytes) -> None:
        with segment.open("ab") as stream:
            stream.write(encoded(MARK, 0, f"request/{number}", 1, [event]))

    return put, HttpSettings(port=0)


class Feed:
    """What a source of a lake is fed by."""

    def __init__(self, put: Put, transport: Any, folder: Path) -> None:
        self.put = put
        self.conf: Conf = conf(folder, sources={"plant": Source("plant", SHAPE, transport)})

    def start(self, most: int = 1 << 30) -> Opened:
        return source_of(with_batches_of(self.conf, most), "plant")


@pytest.fixture
def feed(request: pytest.FixtureRequest, tmp_path: Path) -> Feed:
    put, transport = request.param(request, tmp_path)
    return Feed(put, transport, tmp_path)


def way(source: Opened, start: Offset) -> list[Offset]:
    """Offsets from one to the end of what is there."""
    offsets = [start]
    while (end := source.latest_offset(offsets[-1])) != offsets[-1]:
        offsets.append(end)
    return offsets


def read(source: Opened, offsets: Sequence[Offset]) -> list[list[bytes]]:
    """Events of each step that brings some."""
    steps = []
    for start, end in pairwise(offsets):
        tables = [table for partition in source.partitions(start, end) for table in source.read(partition)]
        assert all(table.schema == ARRIVED for table in tables)
        steps += [[payload for table in tables for payload in table["payload"].to_pylist()]] if tables else []
    return steps


ONE, TWO, THREE = b'{"v":1}', b'{"v":2}', b'{"v":3}'


@pytest.mark.parametrize("feed", [files, objects, messages, versions, records], indirect=True)
def test_an_offset_leads_to_the_next_and_a_range_is_the_same_whenever_it_is_read(feed: Feed) -> None:
    feed.put(1, ONE)
    first = way(feed.start(), {})
    feed.put(2, TWO)
    feed.put(3, THREE)
    second = way(feed.start(), first[-1])
    assert json.loads(json.dumps(second)) == second
    kept = feed.start()
    for source in (kept, kept, feed.start()):
        assert way(source, second[-1]) == second[-1:]
        assert (read(source, first), read(source, second)) == ([[ONE]], [[TWO, THREE]])
        assert source.gaps(*first[-2:]) == source.gaps(*second[-2:]) == []
        assert (source.describe({}), source.describe(second[-1]) == "") == ("", False)


@pytest.mark.parametrize("feed", [files, objects, records], indirect=True)
def test_a_batch_has_as_much_as_fits_and_one_piece_at_least(feed: Feed) -> None:
    for number, length in enumerate((100_000, 3_000, 3_000, 3_000, 100_000)):
        feed.put(number, b"x" * length)
    source = feed.start(7_000)
    assert list(map(len, read(source, way(source, {})))) == [1, 2, 1, 1]


@pytest.mark.parametrize("feed", [objects, messages, versions, records], indirect=True)
def test_a_run_that_ends_reads_what_was_there_when_it_began(feed: Feed) -> None:
    feed.put(1, ONE)
    source = feed.start()
    source.stop_at_present()
    offsets = way(source, {})
    feed.put(2, TWO)
    assert way(source, offsets[-1]) == offsets[-1:]
    assert read(source, offsets) == [[ONE]]
    assert read(feed.start(), way(feed.start(), offsets[-1])) == [[TWO]]


@pytest.mark.parametrize("rounds", [1, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("feed", [objects, versions], indirect=True)
def test_killed_again_and_again_while_others_add_events_it_reads_each_once(feed: Feed, rounds: int) -> None:
    feed.put(0, b'{"v":0}')
    lake, count = opened(feed.conf), 1
    for round_at in range(1, rounds + 1):
        with taking(with_batches_of(feed.conf, 1)):
            while len(table(feed.conf, "bronze.events")) < 25 * round_at:
                for _ in range(5):
                    feed.put(count, b'{"v":%d}' % count)
                    count += 1
    take_all(lake)
    events = table(feed.conf, "bronze.events")
    assert sorted(json.loads(payload)["v"] for payload in events.payload) == list(range(count))
    assert events.position.is_unique
