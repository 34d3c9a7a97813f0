"""A real Postgres server of the tests' own: its port, its folder, and its end with the process that started it."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from tests.conftest import PATH
from tests.waiting import PATIENCE_SECONDS

USER = "postgres"
PASSWORD = "canary-4711-secret"


@contextmanager
def running() -> "Iterator[PostgresServer]":
    """A server that is gone afterwards."""
    made = PostgresServer()
    try:
        made.start()
        yield made
    finally:
        made.close()


class PostgresServer:
    """Started by hand, killed as hard as a test likes, started again on the same data."""

    def __init__(self) -> None:
        """A new empty database cluster; root gives it to the user of Debian's package, as the server refuses root."""
        self.folder = Path(tempfile.mkdtemp(prefix="tidemark-postgres-"))
        self._as_user = ["setpriv", "--pdeathsig=KILL"]  # so that a killed session leaves no server
        if os.geteuid() == 0:
            shutil.chown(self.folder, USER, USER)
            self._as_user += [f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        initdb = str(shutil.which("initdb", path=PATH))
        (self.folder / "password").write_text(PASSWORD)
        os.chmod(self.folder / "password", 0o644)
        command = [*self._as_user, initdb, "-D", str(self.folder / "data"), "-U", USER, "-A", "scram-sha-256", "-E", "UTF8", "--no-sync"]
        subprocess.run([*command, "--pwfile", str(self.folder / "password")], check=True, capture_output=True, cwd=self.folder)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        """With the password."""
        return f"host=127.0.0.1 port={self.port} user={USER} password={PASSWORD} dbname=postgres"

    def start(self) -> None:
        """Until it answers. Backends of a killed one may still be leaving: then it is tried again."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            options = ["-D", str(self.folder / "data"), "-p", str(self.port), "-k", str(self.folder), "-c", "max_wal_size=256MB"]
            command = [*self._as_user, str(shutil.which("postgres", path=PATH)), *options]
            with (self.folder / "log").open("ab") as log:
                self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
            while self._process.poll() is None:
                with suppress(psycopg.OperationalError), psycopg.connect(self.dsn, connect_timeout=60):
                    return
                time.sleep(0.05)
        raise TimeoutError((self.folder / "log").read_text()[-2000:])

    def kill(self) -> None:
        """With -9: the server and every process of it."""
        assert self._process is not None
        for pid in (*self._children(), self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """And nothing is left."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The answer to a query."""
        with psycopg.connect(self.dsn) as connection:
            cursor = connection.execute(query)
            return cursor.fetchall() if cursor.description else []

    def _children(self) -> list[int]:
        assert self._process is not None
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self._process.pid)], capture_output=True, text=True, check=False)
        return [int(pid) for pid in found.stdout.split()]
