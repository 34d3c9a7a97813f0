"""A server of Kinesis for tests: moto, which is a mock that keeps streams in memory. Killed, it forgets them."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import boto3

from tests.broker import die_with_parent, free_port
from tests.waiting import until

STREAM = "plant"


class Moto:
    """At `endpoint`, whether it runs or not."""

    def __init__(self) -> None:
        """Not yet started."""
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        keys = {"aws_access_key_id": "of-a-test", "aws_secret_access_key": "of-a-test"}
        self.client: Any = boto3.session.Session().client("kinesis", endpoint_url=self.endpoint, region_name="eu-west-1", **keys)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def setting(self) -> str:
        """As conf has it, open for more."""
        return (
            f"stream: {STREAM}, region: eu-west-1, endpoint: '{self.endpoint}', access_key: '${{env:KEY}}', secret_key: '${{env:SECRET}}'"
        )

    def start(self) -> None:
        """Until it listens; with a stream of one shard."""
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        output = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdout=output, stderr=output, preexec_fn=die_with_parent)  # noqa: PLW1509
        until(self._is_listening)
        self.client.create_stream(StreamName=STREAM, ShardCount=1)

    def _is_listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        """As `kill -9` does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def put(self, records: Sequence[tuple[str, bytes]]) -> None:
        """Keys and payloads."""
        for begin in range(0, len(records), 500):
            entries = [{"PartitionKey": key, "Data": data} for key, data in records[begin : begin + 500]]
            assert self.client.put_records(StreamName=STREAM, Records=entries)["FailedRecordCount"] == 0


@contextmanager
def moto() -> Iterator[Moto]:
    """One that runs; it is ended behind it."""
    server = Moto()
    try:
        server.start()
        yield server
    finally:
        server.kill()
