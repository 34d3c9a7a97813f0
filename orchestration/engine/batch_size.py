"""How much a micro-batch holds, known before it is computed: a small one is written without Spark.

Measured, 5,000 rows appended to a table: 0.07 s instead of 0.9 s, 0.1 s of CPU instead of 1.7. Spark's commit takes three jobs of its own
to read the log, whatever is written.
"""

from urllib.parse import unquote

import pyarrow.parquet as pq

from orchestration.engine.lake import Lake
from orchestration.storage.checkpoints import Batch, read_up_to
from orchestration.storage.delta import added, table_id
from orchestration.storage.retired_sources import payload_formats

MAX_SMALL_BYTES = 16 * 1024 * 1024
MAX_READINGS, ELEMENT_BYTES = 1_000_000, 6
"""Some 150 bytes each, and names: of a result larger than 1 GiB Spark makes an error. 16 MiB may hold 10,000,000 of wide rows (measured),
as payloads are compressed; and a list in a payload one for each `"t":1,`.
"""


def is_small(lake: Lake, flow: str, source: str, batch_id: int) -> bool:
    """Whether a micro-batch of a table is small, by the log of the table and the ends of its files."""
    path = lake.table_path(source)
    source_id = table_id(path)
    first, last = (read_up_to(lake.checkpoint(flow), batch, source_id)[0] for batch in (_before(batch_id), Batch(batch_id)))
    files = [add for version in range(first, last + 1) for add in added(path, version)]
    if sum(add["size"] for add in files) > MAX_SMALL_BYTES:
        return False
    ends = [pq.read_metadata((path / unquote(add["path"])).local) for add in files]
    length = sum(end.row_group(n).total_byte_size for end in ends for n in range(end.num_row_groups))
    return _most_readings(lake, sum(end.num_rows for end in ends), length) <= MAX_READINGS


def _most_readings(lake: Lake, events: int, length: int) -> int:
    """That events of this length in all may hold."""
    of_sources = payload_formats(lake.conf).values()
    of_lists = length // ELEMENT_BYTES if any(shape.each for shape in of_sources) else 0
    return of_lists + events * max([1, *(len(shape.metrics) for shape in of_sources)])


def _before(batch_id: int) -> Batch:
    return Batch(batch_id - 1) if batch_id else Batch()
