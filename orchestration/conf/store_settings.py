"""Settings of the object store of a lake."""

from collections.abc import Iterator

from pydantic import Field
from pydantic.dataclasses import dataclass

from expectations.settings import OrAbsent, Problem, Setting, Text
from orchestration.conf.secrets import Secret
from orchestration.conf.transport_settings import ServerUrl, problems_of_keys
from orchestration.stores.object_store import ObjectStore


@dataclass(frozen=True)
class StoreSettings(Setting):
    """Which object store has the lake, and how it is asked. Nothing here changes a result."""

    endpoint: OrAbsent[ServerUrl] = Field(default=None, examples=["https://s3.example.com:9000"])
    """Address of a store that is not AWS. It has to honour If-None-Match and If-Match."""
    region: OrAbsent[Text] = Field(default=None, examples=["eu-central-1"])
    """Left out: as this machine has it, by variables or a profile."""
    access_key: OrAbsent[Secret] = Field(default=None, examples=["${env:STORE_KEY}"])
    """Left out: as this machine has it, by variables, a profile or its role."""
    secret_key: OrAbsent[Secret] = Field(default=None, examples=["${env:STORE_SECRET}"])
    """Belongs to access_key."""

    @property
    def place(self) -> ObjectStore:
        return ObjectStore(self.endpoint, self.region, self.access_key, self.secret_key)

    def problems(self) -> Iterator[Problem]:
        return problems_of_keys(self.access_key, self.secret_key)
