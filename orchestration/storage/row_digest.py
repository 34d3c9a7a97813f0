"""The digest of rows, whatever their order and their files: by it a compaction shows that it kept every row.

It is the sum of 64-bit hashes of the rows, so that a row that is there twice counts twice, and their XOR. DuckDB reads the files itself,
which takes a fifth of the time that rows take by way of Arrow (measured).
"""

from collections.abc import Iterable, Mapping

import pyarrow as pa

from orchestration.location import Location
from orchestration.storage.duckdb_view import readable

INFO = "tidemark.rowDigest"
"""The key of a digest in the `commitInfo` of a compaction."""
SUMMED_UP = """
  with "row" as (select {names} from (from nothing union all by name from read_parquet($file)))
  select count(*), coalesce(sum(hash("row")), 0), coalesce(bit_xor(hash("row")), 0) from "row"
"""


def row_digest(files: Mapping[Location, int], columns: pa.Schema) -> str:
    """Return a count, a sum and an XOR of the rows of Parquet files of these sizes. A column that a file lacks is null."""
    import duckdb  # appends do without it, and it takes a while to load

    sql = SUMMED_UP.format(names=", ".join(f'"{name}"' for name in columns.names))
    rows = total = combined = 0
    with duckdb.connect(config={"threads": 1, "memory_limit": "512MB"}) as connection:
        connection.register("nothing", columns.empty_table())
        for file in readable(connection, files):
            counted, added, own = connection.execute(sql, {"file": file}).fetchall()[0]
            rows, total, combined = rows + counted, total + added, combined ^ own
    return f"{rows} rows {total % 2**64:016x}{combined:016x}"


def added_up(digests: Iterable[str]) -> str:
    """Return the digest of the rows of several digests."""
    rows = total = combined = 0
    for count, _, sums in map(str.split, digests):
        rows, total, combined = rows + int(count), total + int(sums[:16], 16), combined ^ int(sums[16:], 16)
    return f"{rows} rows {total % 2**64:016x}{combined:016x}"
