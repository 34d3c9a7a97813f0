"""What the host and the process behind the fence say to each other: an Order, then Cuts, each answered by Shown; one JSON object a line."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self


class Service(StrEnum):
    """Spark's two servers: of JDBC and ODBC clients, of notebooks."""

    THRIFT = "thrift"
    CONNECT = "connect"


class Message:
    """A line of either side."""

    def line(self) -> str:
        """As it is sent."""
        return json.dumps(self.__dict__) + "\n"

    @classmethod
    def of_line(cls, line: str) -> Self:
        """As it was sent; TypeError or ValueError where it is not of this kind."""
        fields: dict[str, Any] = json.loads(line)
        return cls(**fields)


@dataclass(frozen=True)
class Order(Message):
    """`port`: of the server, on the loopback of the network that it has. `door`: the file descriptor through which clients are handed in.

    `scratch`: the one folder to write to. `seconds`: the longest that a query may take; 0: as long as it likes. `token`: what a client has
    to say; None where the host asks for it. `user`: whom to become, None for who it is already.
    """

    service: str
    port: int
    door: int
    jars: list[str]
    scratch: str
    driver_memory: str
    cores: int
    seconds: int
    is_fenced: bool
    token: str | None = None
    user: int | None = None


@dataclass(frozen=True)
class Cut(Message):
    """The views of one snapshot: queries by SQL name, such as gold.kitchen_vectors; none: those of before, for new clients."""

    number: int
    views: dict[str, str]


@dataclass(frozen=True)
class Shown(Message):
    """New sessions see the cut of this number. `left_out`: tables that could not be read, and why."""

    number: int
    left_out: dict[str, str]
