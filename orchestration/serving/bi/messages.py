"""Messages between the host and the sandboxed process, one JSON object a line: a ServerSpec, then SnapshotViews and their answers."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Service(StrEnum):
    """Spark's two servers: Thrift for JDBC and ODBC clients, Connect for notebooks."""

    THRIFT = "thrift"
    CONNECT = "connect"


class Message:
    """One line in either direction."""

    def line(self) -> str:
        return json.dumps(self.__dict__) + "\n"

    @classmethod
    def of_line(cls, line: str) -> Self:
        """Parse; TypeError or ValueError if the line is no message of this class."""
        return cls(**json.loads(line))


@dataclass(frozen=True)
class ServerSpec(Message):
    """The server to start. `port`: the port of Spark's server, on the loopback interface of the sandbox. `scratch`: the only writable
    folder.

    `control_socket`: the file descriptor that receives client sockets. `seconds`: the longest query; 0: no limit. `token`: the token that
    Spark Connect asks clients for; None if the host authenticates them. `user`: the user id to switch to; None: stay the same user.
    """

    service: str
    port: int
    control_socket: int
    jars: list[str]
    scratch: str
    driver_memory: str
    cores: int
    seconds: int
    is_sandboxed: bool
    token: str | None = None
    user: int | None = None


@dataclass(frozen=True)
class SnapshotViews(Message):
    """The views of one snapshot: queries by SQL name, such as gold.kitchen_vectors. Empty: the same views as before, for new clients."""

    views: dict[str, str]


@dataclass(frozen=True)
class ViewsReady(Message):
    """New sessions see the views. `left_out`: tables that cannot be read, and why."""

    left_out: dict[str, str]
