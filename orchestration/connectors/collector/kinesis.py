"""Kinesis as a kind of collected source: how far a shard is read is written down once its records are on the disk.

A kill repeats what was not written down, and loses nothing. A position is shard/sequence number; the key is the partition key. A shard is
read when its parents are read to their ends, so that the records of a key keep their order when shards are split or merged.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from orchestration.conf.transport_settings import KinesisSettings
from orchestration.connectors.collector.kind import FULL, Pushed, Served
from orchestration.connectors.sources.spool_records import KEY
from orchestration.errors import sentence_of
from orchestration.location import Location
from orchestration.secrets import aws_keys
from orchestration.storage.state_file import StateFile

READ = "kinesis.json"
"""Beside the spool: `read` has for each shard the sequence number up to which it is read, or OVER; `at` is when that was true."""
OVER = "over"
PAUSE_SECONDS, RETRY_SECONDS = 0.25, 1.0  # between two reads of a shard, of which AWS allows five a second; and after an error
LIST_SECONDS, WRITE_SECONDS = 2.0, 60.0  # between two listings of shards; between two writes of READ when nothing came
AT_ONCE = 4  # shards that are asked, each of which may answer with 10 MB
PARENTS = ("ParentShardId", "AdjacentParentShardId")


async def serve(pushed: Pushed) -> Served:
    """Goes on trying for as long as the stream cannot be read."""
    settings = pushed.endpoint
    assert isinstance(settings, KinesisSettings)
    client = await asyncio.to_thread(KinesisClient, settings)
    collector = KinesisCollector(settings, client, pushed)
    task = asyncio.create_task(collector.run())

    async def stop() -> None:
        collector.stopping.set()
        await asyncio.wait([task])

    return Served(task, stop)


class StreamError(Exception):
    """Why the stream cannot be read now."""


@dataclass(frozen=True)
class Stream:
    """`created_at`: a stream that was deleted and made anew has the same name, and other records. `keeps`: for how long."""

    name: str
    created_at: str
    keeps: timedelta


@dataclass(frozen=True)
class Shard:
    """`parents`: what it was split off or merged from. `is_closed`: no record is added any more."""

    name: str
    parents: tuple[str, ...]
    is_closed: bool


@dataclass(frozen=True)
class Answer:
    """`following`: the next iterator, None behind the end of a shard. `is_at_tip`: nothing more is there now."""

    records: list[Any]
    following: str | None
    is_at_tip: bool


class KinesisClient:
    """Every call is one request, or a few, and may raise a StreamError. Threads may share it."""

    def __init__(self, kinesis: KinesisSettings) -> None:
        self._name = kinesis.stream
        settings = Config(connect_timeout=5, read_timeout=30, retries={"max_attempts": 1})
        with _stream_errors():
            session = boto3.session.Session()
            self._client = session.client(
                "kinesis", region_name=kinesis.region, endpoint_url=kinesis.endpoint, config=settings, **aws_keys(kinesis)
            )

    def stream(self) -> Stream:
        with _stream_errors():
            summary = self._client.describe_stream_summary(StreamName=self._name)["StreamDescriptionSummary"]
        created_at = summary["StreamCreationTimestamp"].timestamp()
        return Stream(summary["StreamARN"], str(int(created_at)), timedelta(hours=summary["RetentionPeriodHours"]))

    def shards(self) -> dict[str, Shard]:
        """Return the shards by name, without those of which no record is kept any more."""
        with _stream_errors():
            pages = self._client.get_paginator("list_shards").paginate(StreamName=self._name)
            descriptions = [shard for page in pages for shard in page["Shards"]]
        return {
            shard["ShardId"]: Shard(
                shard["ShardId"],
                tuple(shard[parent] for parent in PARENTS if parent in shard),
                "EndingSequenceNumber" in shard["SequenceNumberRange"],
            )
            for shard in descriptions
        }

    def iterator(self, shard: str, behind: str | None, since: datetime | None) -> str:
        """To what follows a sequence number; else to what came since an instant; else to all that is kept."""
        where: dict[str, Any] = {"ShardIteratorType": "TRIM_HORIZON"}
        if behind is not None:
            where = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": behind}
        elif since is not None:
            where = {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": since}
        with _stream_errors():
            return str(self._client.get_shard_iterator(StreamName=self._name, ShardId=shard, **where)["ShardIterator"])

    def records(self, iterator: str) -> Answer:
        """Read records: 10,000 or 10 MB at most. The answer may be empty though more follow."""
        with _stream_errors():
            answer = self._client.get_records(ShardIterator=iterator)
        return Answer(answer["Records"], answer.get("NextShardIterator"), answer.get("MillisBehindLatest") == 0)


@contextmanager
def _stream_errors() -> Iterator[None]:
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise StreamError(str(error).strip().rstrip(".")) from error


class KinesisCollector:
    """`stopping`: set when it is to end."""

    def __init__(self, settings: KinesisSettings, client: KinesisClient, pushed: Pushed) -> None:
        self._settings, self._client, self._spool, self._outage = settings, client, pushed.spool, pushed.outage
        way_out = "Remove it to read the stream as if for the first time."
        self._file = StateFile(Location(pushed.spool.folder / READ), dict[str, Any], way_out)
        self.stopping = asyncio.Event()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._note: dict[str, Any] = {}
        self._read: dict[str, str] = {}
        self._iterators: dict[str, str] = {}

    async def run(self) -> None:
        while not self.stopping.is_set():
            try:
                self._begin(await asyncio.to_thread(self._client.stream))
                await self._collect()
            except (StreamError, OSError) as error:  # OSError: a disk that takes no note of what is read
                self._outage.down(sentence_of(error))
            await self._pause(RETRY_SECONDS)

    def _begin(self, stream: Stream) -> None:
        note = self._file.read() or {}
        now, starting = datetime.now(UTC), self._settings.starting
        if note.get("stream") != stream.name:
            since = {"earliest": None, "latest": now}[starting] if isinstance(starting, str) else starting
            note = {"read": {}, "since": since and since.isoformat()}
        elif note["made"] != stream.created_at:
            self._outage.say(f"stream {self._settings.stream} was made anew; what was not read of the one before is gone")
            note = {"read": {}, "since": None}
        elif now - (at := datetime.fromisoformat(note["at"])) > stream.keeps:
            hours = stream.keeps / timedelta(hours=1)
            self._outage.say(
                f"it was not read since {at:%Y-%m-%d %H:%M:%S} UTC, but keeps records for {hours:g} hours; those before are gone"
            )
        self._note = {**note, "stream": stream.name, "made": stream.created_at}
        self._read, self._iterators = note["read"], {}
        self._write()

    async def _collect(self) -> None:
        shards = dict[str, Shard]()
        listed = written = 0.0
        while not self.stopping.is_set():
            clock = asyncio.get_running_loop().time()
            if not self._spool.has_room():
                # Full: report it. Otherwise much waits to be written, or the disk refused a write a moment ago: wait silently.
                self._outage.down(FULL if self._spool.is_full() else "")
            else:
                if clock > listed + LIST_SECONDS:
                    shards, listed = await asyncio.to_thread(self._client.shards), clock
                    self._forget_all_but(shards)
                    self._outage.up(f"records come from stream {self._settings.stream}")
                before = dict(self._read)
                errors = await asyncio.gather(*map(self._take, self._due(shards)), return_exceptions=True)
                if self._read != before or clock > written + WRITE_SECONDS:
                    await asyncio.to_thread(self._write)
                    written = clock
                if failed := next(filter(None, errors), None):
                    raise failed
            await self._pause(PAUSE_SECONDS)

    def _due(self, shards: dict[str, Shard]) -> list[Shard]:
        """List the shards that are not finished, and whose parents are finished or gone."""
        is_open = {name for name in shards if self._read.get(name) != OVER}
        return [shards[name] for name in sorted(is_open) if is_open.isdisjoint(shards[name].parents)]

    def _forget_all_but(self, shards: dict[str, Shard]) -> None:
        for name in self._read.keys() - shards.keys():
            if self._read.pop(name) != OVER:
                self._outage.say(f"shard {name} is gone before it was read to its end; what was left in it is lost")

    async def _take(self, shard: Shard) -> None:
        async with self._turns:
            if (iterator := self._iterators.pop(shard.name, None)) is None:
                since = self._note["since"] and datetime.fromisoformat(self._note["since"])
                iterator = await asyncio.to_thread(self._client.iterator, shard.name, self._read.get(shard.name), since)
            answer = await asyncio.to_thread(self._client.records, iterator)
            places = [
                (f"{shard.name}/{record['SequenceNumber']}{KEY}{record['PartitionKey']}", record["Data"]) for record in answer.records
            ]
            # 0: the name is the whole position. Behind KEY stands the key of the event.
            for stored in {self._spool.store(name, 0, [data]) for name, data in places}:
                if await stored is not None:
                    raise StreamError("the disk takes no more: it is full or has failed")
            if answer.records:
                self._read[shard.name] = answer.records[-1]["SequenceNumber"]
            if answer.following is None or (shard.is_closed and answer.is_at_tip and not answer.records):
                self._read[shard.name] = OVER
            else:
                self._iterators[shard.name] = answer.following

    def _write(self) -> None:
        self._file.write({**self._note, "read": self._read, "at": datetime.now(UTC).isoformat()})

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds)
