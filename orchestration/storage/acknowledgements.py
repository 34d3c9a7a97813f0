"""Who has seen an alert, and what they said: rows of ops.acknowledgements, append only."""

from dataclasses import asdict, dataclass
from datetime import datetime

import pyarrow as pa

from orchestration.location import Location
from orchestration.storage.commit import append_shared
from orchestration.storage.delta import INSTANT, path_of, rows_of

TABLE = "ops.acknowledgements"
SCHEMA = pa.schema([("alert_id", pa.string()), ("author", pa.string()), ("noted_at", INSTANT), ("note", pa.string())])


@dataclass(frozen=True)
class Acknowledgement:
    """Grain: one acknowledgement of one episode of an alert. It ends repeats of its messages. UTC."""

    alert_id: str
    author: str
    noted_at: datetime
    note: str


def append_acknowledgement(lake: Location, made: Acknowledgement) -> None:
    append_shared(path_of(lake, TABLE), pa.Table.from_pylist([asdict(made)], SCHEMA))


def acknowledgements(lake: Location) -> dict[str, Acknowledgement]:
    """The newest of each alert, by its id."""
    rows = sorted(rows_of(path_of(lake, TABLE)), key=lambda row: row["noted_at"])
    return {row["alert_id"]: Acknowledgement(**row) for row in rows}
