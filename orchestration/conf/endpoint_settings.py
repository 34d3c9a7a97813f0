"""Settings of sources.yml for events that are pushed: where `tidemark collect` listens, and what it accepts."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from orchestration.conf.secrets import Secret
from orchestration.conf.values import AbsolutePath, Flag, Number, OrAbsent, Setting, Text, Whole

Port = Annotated[Whole, Field(ge=0, le=65_535)]
SpoolBytes = Annotated[Whole, Field(ge=1_048_576, le=1_099_511_627_776)]


@dataclass(frozen=True)
class TlsSettings(Setting):
    """Encryption of connections: two files in PEM."""

    certificate: AbsolutePath = Field(examples=["./tls/server.crt"])
    """The server's certificate, with those between it and its root behind it."""
    key: AbsolutePath = Field(examples=["./tls/server.key"])
    """The private key of the certificate."""


@dataclass(frozen=True, kw_only=True)
class HttpSettings(Setting):
    """Where `tidemark collect` answers `POST /events`."""

    kind: ClassVar[str] = "http"
    host: Text = Field(default="127.0.0.1", examples=["127.0.0.1", "0.0.0.0"])
    """Address to listen on; 0.0.0.0 for all of the machine."""
    port: Port = Field(examples=[8080])
    """0: any free port, which is told at the start."""
    token: OrAbsent[Secret] = Field(default=None, examples=["${env:TIDEMARK_TOKEN}"])
    """Who sends must send it: `Authorization: Bearer TOKEN`."""
    tls: OrAbsent[TlsSettings] = Field(default=None, examples=[{"certificate": "./tls/server.crt", "key": "./tls/server.key"}])
    """HTTPS instead of HTTP."""
    max_body_bytes: Annotated[Whole, Field(ge=1, le=1_073_741_824)] = 8_388_608
    """A longer body is refused with 413, also one that is longer once it is unpacked."""
    max_spool_bytes: SpoolBytes = 1_073_741_824
    """While about so much waits on the disk for a run, requests are refused with 429."""


@dataclass(frozen=True, kw_only=True)
class TcpSettings(Setting):
    """Where `tidemark collect` takes connections, each of which sends one event a frame."""

    kind: ClassVar[str] = "tcp"
    host: Text = Field(default="127.0.0.1", examples=["127.0.0.1", "0.0.0.0"])
    """Address to listen on; 0.0.0.0 for all of the machine."""
    port: Port = Field(examples=[9000])
    """0: any free port, which is told at the start."""
    framing: Literal["lines", "length"] = Field(default="lines", examples=["lines"])
    """`lines`: each event ends with a line feed. `length`: before each event stand 4 bytes, its length, the greatest first."""
    key: OrAbsent[Secret] = Field(default=None, examples=["${env:TIDEMARK_KEY}"])
    """Who sends must send it as the first frame of a connection."""
    tls: OrAbsent[TlsSettings] = Field(default=None, examples=[{"certificate": "./tls/server.crt", "key": "./tls/server.key"}])
    """Connections are encrypted."""
    acknowledge: Flag = Field(default=True, examples=[True])
    """Answer with lines of a number: so many events of this connection are on the disk."""
    max_frame_bytes: Annotated[Whole, Field(ge=1, le=1_073_741_824)] = 2_097_152
    """A connection that sends a longer event is closed. Above `max_payload_bytes`, so that one a little too long goes to quarantine."""
    max_connections: Annotated[Whole, Field(ge=1, le=100_000)] = 2_000
    """Further connections are closed at once."""
    idle_seconds: Annotated[Number, Field(gt=0, le=86_400)] = 600.0
    """A connection that sends nothing for so long is closed."""
    max_spool_bytes: SpoolBytes = 1_073_741_824
    """While about so much waits on the disk for a run, nothing more is read from connections."""
