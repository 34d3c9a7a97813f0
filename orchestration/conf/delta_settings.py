"""Settings of a source that reads a Delta table of somebody else."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from orchestration.conf.values import AbsolutePath, OrAbsent, Setting, Whole


@dataclass(frozen=True, kw_only=True)
class DeltaSettings(Setting):
    """Which table a source reads: what its versions add are events."""

    kind: ClassVar[str] = "delta"
    table: AbsolutePath = Field(examples=["/data/warehouse/readings"])
    """Its folder. A relative path starts at the parent of the conf folder; ~ and ${VARIABLE} expand."""
    starting: Literal["earliest", "latest"] = Field(default="earliest", examples=["earliest", "latest"])
    """Where the first read begins: with the rows that the table has, or with the next version."""
    starting_version: OrAbsent[Annotated[Whole, Field(ge=0)]] = Field(default=None, examples=[17])
    """It begins instead with what the version of this number added."""
