"""Commits of delta-rs to tables that Spark reads too: what Spark looks at beside the log is brought up to date with it.

Both files are only there for speed. Spark reads the log where it finds neither, and so it does after a kill between commit and file.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from deltalake import DeltaTable

from orchestration.location import Location
from orchestration.storage.delta_log import LOG, log_of

NAMED_FEATURES = 7
"""The writer version from which a protocol lists features: of these tables nothing is summed up."""


@contextmanager
def committing(path: Location) -> Iterator[DeltaTable]:
    """The table, for one commit, or a few that belong together."""
    table = DeltaTable(str(path))
    # Hadoop keeps a checksum of the file that names the newest checkpoint, where Spark wrote it. delta-rs writes that file anew, and then
    # Spark finds it damaged, three times with a second between, and reads the whole log: 3 s for each table and start (measured).
    (path.local / LOG / "._last_checkpoint.crc").unlink(missing_ok=True)
    yield table
    sum_up(path, table)


def sum_up(path: Location, table: DeltaTable) -> None:
    """The version checksum of Delta's protocol (PROTOCOL.md, "Version Checksum File"), which Spark writes and delta-rs does not.

    It holds the columns: without it, Spark takes them from the log by a job (measured: 0.2 s for each version, 0.02 s with it).
    """
    file, metadata, protocol = log_of(path, table.version()).local.with_suffix(".crc"), table.metadata(), table.protocol()
    if file.exists() or protocol.min_writer_version >= NAMED_FEATURES:
        return
    sizes = pa.table(table.get_add_actions())["size_bytes"].to_pylist()
    known = {
        "tableSizeBytes": sum(sizes),
        "numFiles": len(sizes),
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": {
            "id": metadata.id,
            "name": metadata.name,
            "description": metadata.description,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": table.schema().to_json(),
            "partitionColumns": metadata.partition_columns,
            "configuration": metadata.configuration,
            "createdTime": metadata.created_time,
        },
        "protocol": {"minReaderVersion": protocol.min_reader_version, "minWriterVersion": protocol.min_writer_version},
    }
    draft = path.local / LOG / ".version.draft"
    draft.write_text(json.dumps(known))
    draft.replace(file)
