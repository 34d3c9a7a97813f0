"""Models of anomalies: rows of gold.models, and beside them a file each. A replay keeps them.

A command asks that a model is put in force; the job that judges does so at the beginning of its next slice, so that no vector that is
judged already would be judged by another model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

from gold.anomalies.model import Model, from_table, to_table
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.log import Log

MAIN, SHADOW = "main", "shadow"
TRAINED, ASKED, IN_FORCE = "trained", "asked for", "in force"


@dataclass(frozen=True)
class ModelEvent:
    """Grain: a model that was trained, or is asked for, or came in force.

    `role`: main, or shadow: judged beside the main one, for comparison; empty of `trained`. Of `in force` `after`: vectors whose windows
    end after it are judged by the model until another one comes; null: from the first vector on. An empty `model_id`: none is in force
    from then. Of `trained`: `detector`, `features`, `snapshot_id` (null: the vectors that were there), `vectors`, `entities`,
    `threshold`, `conf` (the digest of the settings), `version` (of Tidemark).
    """

    at: datetime
    device_group: str
    model_id: str
    event: str
    role: str = ""
    after: datetime | None = None
    detector: str = ""
    features: list[str] = ()  # type: ignore[assignment]  # a list of Arrow
    snapshot_id: int | None = None
    vectors: int = 0
    entities: int = 0
    threshold: float | None = None
    conf: str = ""
    version: str = ""


MODELS = Log("gold.models", ModelEvent, order="at", is_maintained=True)


def write_model(lake: Location, model_id: str, model: Model) -> None:
    """Write the file of a model."""
    sink = pa.BufferOutputStream()
    pq.write_table(to_table(model), sink)
    _file(lake, model_id).write(sink.getvalue().to_pybytes())


@lru_cache(1_000)
def read_model(lake: Location, model_id: str) -> Model:
    """Read the file of a model; TidemarkError where it is gone or damaged."""
    file = _file(lake, model_id)
    try:
        return from_table(pq.read_table(pa.BufferReader(file.read())))
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        raise TidemarkError(
            f"the model {model_id} at {file} cannot be read: {error}.\n  Restore the file: rows were judged by it."
        ) from error


def in_force(events: Sequence[ModelEvent], group: str, role: str = MAIN) -> list[tuple[datetime | None, str]]:
    """Return the models of a group in order of time: after which end of a window each is in force."""
    rows = (event for event in events if (event.device_group, event.event, event.role) == (group, IN_FORCE, role))
    return [(event.after, event.model_id) for event in rows]


def _file(lake: Location, model_id: str) -> Location:
    return lake / "models" / f"{model_id}.parquet"
