"""The sql-server as a process over the small lake of [attacked](../sql/attacks.py), which Spark has no part in."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tests.bench.factory import TIDEMARK
from tests.orchestration.serving.sql.attacks import SECRET, attacked
from tests.server_process import ServerProcess, free_ports
from tests.waiting import until

REPOSITORY = Path(__file__).parents[4]
USERS = {"ann": "0123456789abcdef", "bob": "fedcba9876543210"}
"""Passwords by name."""


@dataclass
class Served(ServerProcess):
    """A server over the lake in a folder, with the users `USERS`. `options`: more of its command. Its output is in `log`."""

    folder: Path
    conf: Path
    options: tuple[str, ...] = ()
    port: int = field(default_factory=lambda: free_ports(1)[0])

    @property
    def log(self) -> Path:
        return self.folder / "sql-server.log"

    def start(self) -> None:
        """Returns once it listens."""
        users = self.folder / "users.txt"
        users.write_text("".join(f"{name}:{password}\n" for name, password in USERS.items()))
        users.chmod(0o600)
        command = [*TIDEMARK, "--conf", str(self.conf), "sql-server", "--port", str(self.port), "--users", str(users), *self.options]
        self.launch(command, self.log, cwd=REPOSITORY, env=os.environ | {"XDG_STATE_HOME": str(self.folder / "state"), "SECRET": SECRET})
        until(lambda: self.listens(self.port), self.log.read_text)

    def connect(self, user: str = "ann", **options: Any) -> "psycopg.Connection[Any]":
        """A connection by psycopg, each statement for itself unless `autocommit` is False. `options`: more of its arguments."""
        chosen: dict[str, Any] = {"autocommit": True, "dbname": "plant"} | self.address(user) | options
        return psycopg.connect(**chosen)

    def address(self, user: str = "ann") -> dict[str, Any]:
        """Arguments `host`, `port`, `user` and `password` of a client."""
        return {"host": "127.0.0.1", "port": self.port, "user": user, "password": USERS[user]}

    def url(self, scheme: str = "postgresql", user: str = "ann") -> str:
        return f"{scheme}://{user}:{USERS[user]}@127.0.0.1:{self.port}/plant"

    def workers(self) -> list[psutil.Process]:
        """Processes of the connections that are open."""
        assert self.process is not None
        return [child for child in psutil.Process(self.process.pid).children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]


@contextmanager
def serving(folder: Path, *options: str, build: Callable[[Path], object] = attacked) -> Iterator[Served]:
    """A server over a new lake in this folder, which `build` makes, and the conf of the repository."""
    shutil.copytree(REPOSITORY / "conf", conf := folder / "conf", ignore=shutil.ignore_patterns("__*"))
    build(folder)
    with Served(folder, conf, options).running() as server:
        yield server
