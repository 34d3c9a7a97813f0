"""Real clients of both servers: beeline, pyhive, and a notebook in a process of its own."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyhive import hive  # type: ignore[import-untyped]

from orchestration.engine.java import java_command
from tests.orchestration.serving.bi.served import Server

PROMPT = re.compile(r"^\d+: jdbc:\S+> ")
Rows = list[list[Any]]


class FailedError(Exception):
    """What a server said to a notebook instead of an answer."""


class Pyhive:
    """A connection, which is a session."""

    def __init__(self, server: Server) -> None:
        """Any user will do."""
        self._connection = hive.connect("localhost", server.port, username="anybody", password=server.token, auth="LDAP")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._connection.close()
        finally:  # also where the server is gone
            self._connection._transport.close()

    def rows(self, query: str) -> Rows:
        """pyhive's errors where there are none."""
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(query)
            return [list(row) for row in cursor.fetchall()] if cursor.description else []


class Notebook:
    """A process; it has one session at a time."""

    def __init__(self, server: Server, token: str | None = None) -> None:
        """`token`: another one than the server's."""
        command = [sys.executable, str(Path(__file__).with_name("notebook.py")), str(server.port), token or server.token]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()

    def rows(self, query: str) -> Rows:
        """FailedError where there are none."""
        answer: Rows = self.asked(query=query)
        return answer

    def asked(self, **question: str) -> Any:
        """See notebook.py."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise FailedError(answer["error"])
        return answer.get("answer")


def by_beeline(server: Server, queries: Sequence[str]) -> list[str]:
    """Lines of CSV, a header and rows for each query, all in one session."""
    pyspark = find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.origin is not None
    command = [java_command(), "-cp", f"{Path(pyspark.origin).parent}/jars/*", "org.apache.hive.beeline.BeeLine", "--outputformat=csv2"]
    access = ["-u", f"jdbc:hive2://localhost:{server.port}/default", "-n", "anybody", "-p", server.token, "--silent=true"]
    asked = [word for query in queries for word in ("-e", query)]
    answer = subprocess.run([*command, *access, *asked], capture_output=True, text=True, check=True)
    return [PROMPT.sub("", line) for line in answer.stdout.splitlines() if line.strip()]
