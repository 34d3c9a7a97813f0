"""Settings of a schema registry, of a source or of a sink."""

from pydantic import Field
from pydantic.dataclasses import dataclass

from orchestration.conf.secrets import Endpoint, Secret
from orchestration.conf.values import OrAbsent, Setting, Text


@dataclass(frozen=True)
class RegistrySettings(Setting):
    """A schema registry with the interface of Confluent's. A message begins with a byte 0 and 4 bytes of the id of its schema."""

    url: Endpoint = Field(examples=["https://registry:8081"])
    """Address that begins with https:// or http://, or a reference to it."""
    username: OrAbsent[Text] = Field(default=None, examples=["tidemark", "${env:REGISTRY_USER}"])
    """Of basic authentication: a name, or a reference to it."""
    password: OrAbsent[Secret] = Field(default=None, examples=["${env:REGISTRY_PASSWORD}"])
    """Of basic authentication."""
