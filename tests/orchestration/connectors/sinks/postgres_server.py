"""A real Postgres server of the tests' own: its port, its folder, and its end with the process that started it."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import psycopg

from tests.conftest import PATH
from tests.server_process import ServerProcess, free_ports
from tests.waiting import PATIENCE_SECONDS

USER = "postgres"
PASSWORD = "canary-4711-secret"


class PostgresServer(ServerProcess):
    """Started by hand, killed as hard as a test likes, started again on the same data."""

    def __init__(self) -> None:
        """A new empty database cluster; root gives it to the user of Debian's package, as the server refuses root."""
        self.folder = Path(tempfile.mkdtemp(prefix="tidemark-postgres-"))
        self._as_user = ["setpriv", "--pdeathsig=KILL"]  # again, as a process that becomes another user loses it
        if os.geteuid() == 0:
            shutil.chown(self.folder, USER, USER)
            self._as_user += [f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        (self.port,) = free_ports(1)
        initdb = str(shutil.which("initdb", path=PATH))
        (self.folder / "password").write_text(PASSWORD)
        os.chmod(self.folder / "password", 0o644)
        command = [*self._as_user, initdb, "-D", str(self.folder / "data"), "-U", USER, "-A", "scram-sha-256", "-E", "UTF8", "--no-sync"]
        subprocess.run([*command, "--pwfile", str(self.folder / "password")], check=True, capture_output=True, cwd=self.folder)

    @property
    def dsn(self) -> str:
        """With the password."""
        return f"host=127.0.0.1 port={self.port} user={USER} password={PASSWORD} dbname=postgres"

    def start(self) -> None:
        """Until it answers. Backends of a killed one may still be leaving: then it is tried again."""
        options = ["-D", str(self.folder / "data"), "-p", str(self.port), "-k", str(self.folder), "-c", "max_wal_size=256MB"]
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            self.launch([*self._as_user, str(shutil.which("postgres", path=PATH)), *options], self.folder / "log", cwd=self.folder)
            while not self.is_killed:
                with suppress(psycopg.OperationalError), psycopg.connect(self.dsn, connect_timeout=60):
                    return
                time.sleep(0.05)
        raise TimeoutError((self.folder / "log").read_text()[-2000:])

    def kill(self) -> None:
        """With -9: every process of the server, and itself."""
        if self.process is not None and not self.is_killed:
            children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False)
            for pid in map(int, children.stdout.split()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        super().kill()

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Gone afterwards, with its folder."""
        try:
            with super().running():
                yield self
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn) as connection:
            cursor = connection.execute(query)
            return cursor.fetchall() if cursor.description else []
