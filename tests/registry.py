"""Schema registries for tests: a stand-in that answers as Confluent's does, and Apicurio, a real one, where a test can wait for it."""

import hashlib
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from orchestration.engine.jars import ivy, sole_fetcher
from orchestration.engine.java import cache, java_command
from tests.http_server import Answer, Asked, http_server
from tests.server_process import ServerProcess, free_ports
from tests.waiting import until

APICURIO, VERSION = "apicurio-registry-app", "2.6.13.Final"
SHA256 = "3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba"
IVY = f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="tidemark" module="registry"/>
  <dependencies>
    <dependency org="io.apicurio" name="{APICURIO}" rev="{VERSION}" transitive="false">
      <artifact name="{APICURIO}" type="tar.gz" ext="tar.gz" m:classifier="all"/>
    </dependency>
  </dependencies>
</ivy-module>
"""
JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class StandIn:
    """`schemas` by id, and `versions` of subjects by path, as JSON. It counts `asked` ids, and needs `credentials` where there are any."""

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.versions: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.headers: list[str | None] = []
        self.answer: tuple[int, dict[str, Any]] | None = None
        """To any request instead."""
        self.url = ""

    def found(self, path: str) -> tuple[int, dict[str, Any]]:
        self.asked.append(path)
        if self.answer:
            return self.answer
        kind, _, rest = path.removeprefix("/schemas/ids/"), path, path.removeprefix("/subjects/")
        there = self.schemas.get(int(kind)) if kind.isdecimal() else self.versions.get(rest)
        return (200, there) if there else (404, {"error_code": 40403 if kind.isdecimal() else 40402, "message": "not found"})


@contextmanager
def stand_in() -> Iterator[StandIn]:
    registry = StandIn()

    def answer(asked: Asked) -> Answer:
        registry.headers.append(asked.headers.get("Authorization"))
        status, body = registry.found(asked.path)
        return status, json.dumps(body).encode()

    with http_server(answer) as registry.url:
        yield registry


class Apicurio(ServerProcess):
    """A process with the interface of Confluent's at `url`; what it knows is gone with it."""

    def __init__(self, folder: Path) -> None:
        (self._port,), self._folder = free_ports(1), folder
        self.url = f"http://127.0.0.1:{self._port}/apis/ccompat/v7"

    def start(self) -> None:
        """Until it answers; it is empty."""
        variables = {**os.environ, "QUARKUS_HTTP_HOST": "127.0.0.1", "QUARKUS_HTTP_PORT": str(self._port)}
        command = [java_command(), *JVM, "-jar", str(_unpacked() / f"{APICURIO}-{VERSION}-runner.jar")]
        self.launch(command, self._folder / "registry.log", env=variables)
        until(self._is_answering)

    def _is_answering(self) -> bool:
        assert not self.is_killed
        with suppress(URLError, ConnectionError):
            urlopen(f"{self.url}/subjects").close()
            return True
        return False

    def register(self, subject: str, schema: str, kind: str = "AVRO", references: tuple[dict[str, Any], ...] = ()) -> int:
        body = json.dumps({"schema": schema, "schemaType": kind, "references": references}).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        with urlopen(Request(f"{self.url}/subjects/{subject}/versions", body, headers)) as answer:
            return int(json.loads(answer.read())["id"])


def _unpacked() -> Path:
    """Its folder in the cache; fetched once (142 MB)."""
    folder = cache() / f"{APICURIO}-{VERSION}"
    if not folder.is_dir():
        with sole_fetcher() as scratch:
            (scratch / "ivy.xml").write_text(IVY)
            command = [java_command(), "-jar", str(ivy()), "-ivy", str(scratch / "ivy.xml"), "-cache", str(scratch / "ivy")]
            archive = scratch / "out" / f"{APICURIO}.tar.gz"
            subprocess.run([*command, "-retrieve", f"{archive.parent}/[artifact].[ext]"], check=True, capture_output=True)
            with archive.open("rb") as file:
                assert hashlib.file_digest(file, "sha256").hexdigest() == SHA256
            with tarfile.open(archive) as content:
                content.extractall(scratch / "unpacked", filter="data")
            (scratch / "unpacked").rename(folder)
    return folder
