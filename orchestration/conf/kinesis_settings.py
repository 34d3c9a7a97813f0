"""Settings of a source that takes records of a Kinesis stream."""

from typing import Annotated, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from orchestration.conf.endpoint_settings import SpoolBytes
from orchestration.conf.secrets import Secret
from orchestration.conf.values import OrAbsent, Setting, Starting, Text, of_pattern

Url = Annotated[str, of_pattern(r"^https?://[^/?#@\s]+/?$", "write where it is, such as https://kinesis.example.com:4567", 1000)]


@dataclass(frozen=True, kw_only=True)
class KinesisSettings(Setting):
    """Which stream `tidemark collect` reads, all shards of it."""

    kind: ClassVar[str] = "kinesis"
    stream: Text = Field(examples=["plant-events"])
    """Its name."""
    region: OrAbsent[Text] = Field(default=None, examples=["eu-central-1"])
    """Else as boto3 finds it: variables, profile."""
    endpoint: OrAbsent[Url] = Field(default=None, examples=["https://kinesis.example.com:4567"])
    """Of a server that is not AWS."""
    access_key: OrAbsent[Secret] = Field(default=None, examples=["${env:KINESIS_ACCESS_KEY}"])
    """Else keys as boto3 finds them: variables, profile, the role of the machine."""
    secret_key: OrAbsent[Secret] = Field(default=None, examples=["${env:KINESIS_SECRET_KEY}"])
    """Belongs to access_key."""
    starting: Starting = Field(default="earliest", examples=["earliest", "latest", "2026-01-05T00:00:00Z"])
    """Where the stream is read from for the first time: `earliest`, `latest`, or with the records since an instant."""
    max_spool_bytes: SpoolBytes = 1_073_741_824
    """While about so much waits on the disk for a run, nothing is read: records wait in the stream."""
