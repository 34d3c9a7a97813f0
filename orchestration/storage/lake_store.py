"""A lake as it is stored: its conf, the generation that is worked on, and where its tables and checkpoints are. No Spark."""

from functools import cached_property

from orchestration.conf.model import Conf
from orchestration.location import Location
from orchestration.storage.generations import Generation, active_generation
from orchestration.storage.tables import Table, tables


class LakeStore:
    """What every room may ask of a lake without a session; engine.lake.Lake adds the session."""

    def __init__(self, conf: Conf, generation: Generation | None = None) -> None:
        """`generation`: work on this one, instead of the active one."""
        self.conf = conf
        self.generation = generation or active_generation(conf.lake)

    @cached_property
    def tables(self) -> dict[str, Table]:
        """Every table that flows write, by its SQL name."""
        return tables(self.conf, self.generation)

    def app_id(self, flow: str, table: str) -> str:
        """The application id of a flow's appends to a table, by which Delta knows a repeated one."""
        return f"{self.conf.pipeline}/{flow}/{table}/{self.generation.holder(flow)}"

    def table_path(self, name: str) -> Location:
        """Where a table is, whether it exists or not."""
        return self.generation.table(self.conf.lake, name)

    def checkpoint(self, flow: str) -> Location:
        """Where a flow keeps its position."""
        return self.generation.checkpoint(self.conf.lake, flow)
