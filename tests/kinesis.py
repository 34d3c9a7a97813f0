"""A server of Kinesis for tests: moto, which is a mock that keeps streams in memory. Killed, it forgets them."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import boto3

from tests.server_process import ServerProcess, free_ports
from tests.waiting import until

STREAM = "plant"


class Moto(ServerProcess):
    """At `endpoint`, whether it runs or not."""

    def __init__(self) -> None:
        (self.port,) = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{self.port}"
        keys = {"aws_access_key_id": "of-a-test", "aws_secret_access_key": "of-a-test"}
        self.client: Any = boto3.session.Session().client("kinesis", endpoint_url=self.endpoint, region_name="eu-west-1", **keys)

    @property
    def setting(self) -> str:
        """As conf has it, open for more."""
        return (
            f"stream: {STREAM}, region: eu-west-1, endpoint: '{self.endpoint}', access_key: '${{env:KEY}}', secret_key: '${{env:SECRET}}'"
        )

    def start(self) -> None:
        """Until it listens; with a stream of one shard."""
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self.launch(command, Path(os.devnull))
        until(lambda: self.listens(self.port))
        self.client.create_stream(StreamName=STREAM, ShardCount=1)

    def put(self, records: Sequence[tuple[str, bytes]]) -> None:
        for begin in range(0, len(records), 500):
            entries = [{"PartitionKey": key, "Data": data} for key, data in records[begin : begin + 500]]
            assert self.client.put_records(StreamName=STREAM, Records=entries)["FailedRecordCount"] == 0
