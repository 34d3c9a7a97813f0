"""Settings of a source that reads objects of an S3-compatible store."""

from typing import Annotated, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from orchestration.conf.secrets import Secret
from orchestration.conf.values import Flag, Number, OrAbsent, Setting, Text, of_pattern

Endpoint = Annotated[str, of_pattern(r"^https?://[^/?#@\s]+/?$", "write where the store is, such as https://s3.example.com:9000", 1000)]


@dataclass(frozen=True, kw_only=True)
class S3Settings(Setting):
    """Which objects of which bucket a source reads."""

    kind: ClassVar[str] = "s3"
    bucket: Text = Field(examples=["plant-events"])
    """Its name."""
    prefix: Annotated[str, Field(strict=True, max_length=1000)] = Field(default="", examples=["readings/"])
    """With what the names of the objects begin. All of them are listed each time: 1,000 a request."""
    files: Text = Field(default="*", examples=["*", "*.json.gz"])
    """Glob on what stands behind the last / of their names."""
    region: OrAbsent[Text] = Field(default=None, examples=["eu-central-1"])
    """Else as boto3 finds it: variables, profile."""
    endpoint: OrAbsent[Endpoint] = Field(default=None, examples=["https://s3.example.com:9000"])
    """Of a store that is not AWS."""
    access_key: OrAbsent[Secret] = Field(default=None, examples=["${env:S3_ACCESS_KEY}"])
    """Else keys as boto3 finds them: variables, profile, the role of the machine."""
    secret_key: OrAbsent[Secret] = Field(default=None, examples=["${env:S3_SECRET_KEY}"])
    """Belongs to access_key."""
    versions: Flag = Field(default=False, examples=[True])
    """Each version of an object is read, also one that was overwritten or deleted since; the bucket has to keep versions. Else an object is
    read as it is when it is listed."""
    list_seconds: Annotated[Number, Field(ge=0, le=86_400)] = 5.0
    """Objects are listed no more often than this."""
