"""How much a micro-batch holds, told before it is computed: a small one is written without Spark (tables.append).

Measured, 5,000 rows appended to a table: 0.07 s instead of 0.9 s, 0.1 s of CPU instead of 1.7. Spark's commit takes three jobs of its own
to read the log, whatever is written.
"""

from deltalake import DeltaTable
from pyspark.sql import DataFrame

from orchestration.lake import Lake
from orchestration.status import Batch, added, read_up_to
from orchestration.tables import FEW


def few_lines(lake: Lake, batch: DataFrame) -> int | None:
    """A bound for the rows of a micro-batch of files, None for a large one; by the lengths of the files, as Spark's plan tells them."""
    return FEW if batch._jdf.queryExecution().optimizedPlan().stats().sizeInBytes() <= lake.conf.engine.small_batch_bytes else None


def few_read(lake: Lake, flow: str, source: str, batch_id: int) -> int | None:
    """A bound for the rows that come of a micro-batch of a table, None for a large one; by the log of the table."""
    path = lake.table_path(source)
    table_id = str(DeltaTable(path).metadata().id)
    first, last = (read_up_to(lake.checkpoint(flow), batch, table_id)[0] for batch in (_before(batch_id), Batch(batch_id)))
    files = [add for version in range(first, last + 1) for add in added(path, version)]
    return FEW if sum(add["size"] for add in files) <= lake.conf.engine.small_batch_bytes else None


def _before(batch_id: int) -> Batch:
    return Batch(batch_id - 1) if batch_id else Batch()
