"""How much a micro-batch holds, told before it is computed: a small one is written without Spark.

Measured, 5,000 rows appended to a table: 0.07 s instead of 0.9 s, 0.1 s of CPU instead of 1.7. Spark's commit takes three jobs of its own
to read the log, whatever is written.
"""

from deltalake import DeltaTable

from orchestration.delta_log import added
from orchestration.lake import Lake
from orchestration.status import Batch, read_up_to


def is_little_read(lake: Lake, flow: str, source: str, batch_id: int) -> bool:
    """Whether a micro-batch of a table is small, by the log of the table."""
    path = lake.table_path(source)
    table_id = str(DeltaTable(path).metadata().id)
    first, last = (read_up_to(lake.checkpoint(flow), batch, table_id)[0] for batch in (_before(batch_id), Batch(batch_id)))
    files = [add for version in range(first, last + 1) for add in added(path, version)]
    length: int = sum(add["size"] for add in files)
    return length <= lake.conf.engine.small_batch_bytes


def _before(batch_id: int) -> Batch:
    return Batch(batch_id - 1) if batch_id else Batch()
