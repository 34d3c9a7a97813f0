"""A Kinesis stream by boto3: its shards, and the records of one. Imported when such a source is collected: boto3 takes a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from orchestration.conf.secrets import aws_keys
from orchestration.conf.transport_settings import KinesisSettings

PARENTS = ("ParentShardId", "AdjacentParentShardId")


class StreamError(Exception):
    """Why the stream cannot be read now."""


@dataclass(frozen=True)
class Stream:
    """`made`: a stream that was deleted and made anew has the same name, and other records. `keeps`: for how long."""

    name: str
    made: str
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
        made = summary["StreamCreationTimestamp"].timestamp()
        return Stream(summary["StreamARN"], str(int(made)), timedelta(hours=summary["RetentionPeriodHours"]))

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
