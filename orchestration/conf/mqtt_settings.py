"""Settings of a source that takes messages from an MQTT broker."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from orchestration.conf.endpoint_settings import SpoolBytes
from orchestration.conf.secrets import Secret
from orchestration.conf.values import AbsolutePath, OrAbsent, Setting, Text, UniqueSome, Whole, of_pattern

Address = Annotated[str, of_pattern(r"^(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):[1-9][0-9]{0,4}$", "write host:port, such as broker-1:1883", 300)]


@dataclass(frozen=True)
class ClientTlsSettings(Setting):
    """Encryption of the connection to a server; `{}` trusts the authorities that the machine trusts."""

    ca: OrAbsent[AbsolutePath] = Field(default=None, examples=["./tls/ca.crt"])
    """Certificates of the authorities to trust instead, in PEM."""
    certificate: OrAbsent[AbsolutePath] = Field(default=None, examples=["./tls/client.crt"])
    """The client's own certificate, for a server that asks for one."""
    key: OrAbsent[AbsolutePath] = Field(default=None, examples=["./tls/client.key"])
    """The private key of the certificate."""


@dataclass(frozen=True, kw_only=True)
class MqttSettings(Setting):
    """Which topics of which broker `tidemark collect` subscribes to, with QoS 1 and a session that the broker keeps."""

    kind: ClassVar[str] = "mqtt"
    broker: Address = Field(examples=["broker-1:1883"])
    """Where the broker is: host:port."""
    topics: UniqueSome[Text] = Field(max_length=1000, examples=[["plant/+/+"]])
    """Filters of topics: `+` stands for one level, `#` at the end for all that follow."""
    version: Literal["v5", "v3.1.1"] = "v5"
    """Of MQTT."""
    client_id: OrAbsent[Text] = Field(default=None, examples=["tidemark-hall-1"])
    """Under which the broker keeps the session; without it `tidemark-<pipeline>-<source>`. No two clients of a broker may have the same."""
    username: OrAbsent[Text] = Field(default=None, examples=["plant"])
    """Who logs in."""
    password: OrAbsent[Secret] = Field(default=None, examples=["${env:MQTT_PASSWORD}"])
    """Of the user."""
    tls: OrAbsent[ClientTlsSettings] = Field(default=None, examples=[{"ca": "./tls/ca.crt"}])
    """The connection is encrypted."""
    shared_group: OrAbsent[Text] = Field(default=None, examples=["tidemark"])
    """Collectors that name the same group share its messages: each message comes to one of them."""
    session_expiry_seconds: Annotated[Whole, Field(ge=1, le=4_294_967_295)] = 604_800
    """v5: so long the broker keeps messages for a collector that is away; 4294967295: for ever. With v3.1.1 the broker decides."""
    receive_maximum: Annotated[Whole, Field(ge=1, le=65_535)] = 1_000
    """v5: messages that the broker sends before the first of them is acknowledged. With v3.1.1 the broker decides."""
    max_spool_bytes: SpoolBytes = 1_073_741_824
    """While about so much waits on the disk for a run, no messages are taken: they wait at the broker."""

    @property
    def host(self) -> str:
        """Where the broker is, without the brackets of an address of IPv6."""
        return self.broker.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.broker.rpartition(":")[2])
