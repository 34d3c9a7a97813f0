"""Shards of Kinesis that are split, merged, slow and forgotten, as a fake has them: moto goes on writing to a shard that was split."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from orchestration.conf.load import load
from orchestration.conf.transport_settings import KinesisSettings
from orchestration.connectors.collector import kinesis
from orchestration.connectors.collector.kind import OutageReport, Pushed
from orchestration.connectors.collector.kinesis import Answer, KinesisClient, KinesisCollector, Shard, Stream, StreamError
from orchestration.connectors.collector.spool import SpoolWriter
from orchestration.location import Location
from tests.collectors import spooled, write_conf

AN_ANSWER = 3
SHARDS = {
    "a": Shard("a", (), True),
    "b": Shard("b", ("a",), True),
    "c": Shard("c", ("a",), True),
    "d": Shard("d", ("b", "c"), False),
    "e": Shard("e", ("gone",), False),
}
COUNT = 10


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinesis, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(kinesis, "RETRY_SECONDS", 0.001)


@dataclass
class Fake:
    """Each shard has COUNT records. An answer may be empty though records follow, and an iterator may have expired."""

    listed: dict[str, Shard] = field(default_factory=lambda: dict(SHARDS))
    asked: list[str] = field(default_factory=list)
    expire_at: int = -1

    def stream(self) -> Stream:
        return Stream("arn", "1", timedelta(hours=24))

    def shards(self) -> dict[str, Shard]:
        return self.listed

    def iterator(self, shard: str, behind: str | None, since: datetime | None) -> str:
        return f"{shard} {0 if behind is None else int(behind) - 10**30 + 1} 0"

    def records(self, iterator: str) -> Answer:
        shard, at, empty = iterator.split()
        self.asked.append(shard)
        if len(self.asked) == self.expire_at:
            raise StreamError("Iterator expired")
        begin = int(at)
        if not int(empty):
            return Answer([], f"{shard} {begin} 1", False)
        found = [
            {"SequenceNumber": str(10**30 + n), "PartitionKey": "press", "Data": f"{shard}{n}".encode()}
            for n in range(begin, min(begin + AN_ANSWER, COUNT))
        ]
        end = begin + len(found)
        is_behind_end = SHARDS[shard].is_closed and end == COUNT
        return Answer(found, None if is_behind_end else f"{shard} {end} 0", end == COUNT)


def collected(folder: Path, fake: Fake, is_done: Callable[[list[bytes]], bool]) -> list[str]:
    """What a collector says until it is done; it is then cancelled, as a kill would end it."""
    source = load(write_conf(folder, hall="kinesis: {stream: plant}")).sources["hall"]
    said: list[str] = []

    async def work() -> None:
        lake = Location(folder / "lake")
        spool = SpoolWriter(folder / "lake/spool/hall", 1 << 30)
        pushed = Pushed(source, cast(KinesisSettings, source.transport), spool, OutageReport(lake, "hall", said.append), said.append)
        collector = KinesisCollector(cast(KinesisSettings, source.transport), cast(KinesisClient, fake), pushed)
        task = asyncio.create_task(collector.run())
        while not is_done([payload for _, payload in spooled(folder, "hall")]):
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        await spool.drain()
        spool.close()

    asyncio.run(work())
    return said


def everything(payloads: list[bytes]) -> bool:
    return set(payloads) == {f"{shard}{n}".encode() for shard in SHARDS for n in range(COUNT)}


def test_shards_of_a_fake_are_read_behind_their_parents_and_each_record_once(tmp_path: Path) -> None:
    collected(tmp_path, Fake(), everything)
    found = [payload.decode() for _, payload in spooled(tmp_path, "hall")]
    assert len(found) == len(set(found))
    for child, parent in (("b", "a"), ("c", "a"), ("d", "b"), ("d", "c")):
        assert found.index(f"{child}0") > found.index(f"{parent}{COUNT - 1}")
    assert [position for position, payload in spooled(tmp_path, "hall") if payload == b"d4"] == [f"d/{10**30 + 4}"]


def test_a_collector_of_a_fake_that_ends_anywhere_repeats_what_was_not_noted_and_nothing_else(tmp_path: Path) -> None:
    for many in (4, 17):
        collected(tmp_path, Fake(), lambda payloads, count=many: len(payloads) >= count)  # type: ignore[misc]
    collected(tmp_path, Fake(), lambda payloads: not {b"b0", b"c0"}.isdisjoint(payloads))
    fake = Fake()
    collected(tmp_path, fake, everything)
    assert len(spooled(tmp_path, "hall")) <= len(SHARDS) * COUNT + 3 * 3 * AN_ANSWER
    assert "a" not in fake.asked  # it was over before


def test_an_error_of_a_fake_is_told_once_and_what_follows_is_read_from_where_it_was(tmp_path: Path) -> None:
    said = collected(tmp_path, Fake(expire_at=5), everything)
    assert [("is down since" in line, "records come" in line) for line in said] == [(False, True), (True, False), (False, True)]
    found = [payload for _, payload in spooled(tmp_path, "hall")]
    assert len(found) == len(set(found))
