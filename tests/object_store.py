"""An S3-compatible store for tests: SeaweedFS, one process with a folder of its own, which can be killed and started again."""

import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tests.server_process import ServerProcess, free_ports
from tests.waiting import PATIENCE_SECONDS, until

ACCESS_KEY, SECRET_KEY = "AKIATIDEMARK", "canary-4711-secret"
PORTS = (
    *("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc", "s3.port", "s3.port.grpc"),
    *("admin.port", "admin.port.grpc"),
)
OFF = ("master.telemetry", "admin.ui", "webdav")


class Store(ServerProcess):
    """Asked through `client` or by the short ways below; buckets are made by `bucket`."""

    def __init__(self, folder: Path, address: str = "127.0.0.1", inside: Sequence[str] = ()) -> None:
        """Start nothing yet. `inside`: begins a command on the machine of that address."""
        self.folder, self._address, self._inside = folder, address, inside
        self._ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        keys = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}
        identities = [{"name": "tests", "credentials": [keys], "actions": ["Admin", "Read", "List", "Write"]}]
        (folder / "data").mkdir()
        (folder / "keys.json").write_text(json.dumps({"identities": identities}))

    @property
    def endpoint(self) -> str:
        return f"http://{self._address}:{self._ports['s3.port']}"

    @cached_property
    def client(self) -> Any:
        """For several threads."""
        return client_at(self.endpoint)

    def start(self) -> None:
        weed = str(Path(sys.executable).with_name("weed"))
        settings = [f"-{name}={port}" for name, port in self._ports.items()] + [f"-{name}=false" for name in OFF]
        settings += [f"-dir={self.folder}/data", f"-ip={self._address}", f"-ip.bind={self._address}", f"-s3.config={self.folder}/keys.json"]
        settings += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.electionTimeout=1s", "-master.volumeSizeLimitMB=64"]
        settings += ["-volume.max=1000"]  # and not as many as would fill the free disk: each bucket has some of its own
        self.launch([*self._inside, weed, "-logtostderr=true", "mini", *settings], self.folder / "log", cwd=self.folder)
        until(self._is_ready, lambda: (self.folder / "log").read_text()[-2000:])

    def _is_ready(self) -> bool:
        assert not self.is_killed, (self.folder / "log").read_text()[-2000:]
        with suppress(BotoCoreError, ClientError):
            self.put(self.bucket(), {"ready": b"1"})
            return True
        return False

    def bucket(self, *, versions: bool = False) -> str:
        self.client.create_bucket(Bucket=(name := f"b-{uuid4().hex[:8]}"))
        if versions:
            self.client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        return name

    def put(self, bucket: str, objects: dict[str, bytes]) -> None:
        """Objects by their keys; the store has them when this returns."""
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda of: self.client.put_object(Bucket=bucket, Key=of[0], Body=of[1]), objects.items()))

    def delete(self, bucket: str, keys: Sequence[str]) -> None:
        for key in keys:
            self.client.delete_object(Bucket=bucket, Key=key)


def client_at(endpoint: str) -> Any:
    """Make a client that asks there, once; for several threads."""
    keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY}
    config = Config(
        connect_timeout=PATIENCE_SECONDS, read_timeout=PATIENCE_SECONDS, retries={"total_max_attempts": 1}, max_pool_connections=8
    )
    return boto3.session.Session().client("s3", region_name="us-east-1", endpoint_url=endpoint, config=config, **keys)
