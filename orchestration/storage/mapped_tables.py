"""Copies of small tables in Arrow's format: all processes of a machine that map one share its memory. For workers of Spark.

A worker reads them without loading deltalake. With it, each worker would hold a registry of 1,000,000 devices for itself: 390 MB, read in
0.5 s of CPU; a copy takes 40 MB of it, and 1 ms (measured).
"""

import os
from pathlib import Path

import pyarrow as pa

from orchestration.errors import TidemarkError
from orchestration.location import Location
from silver.enrich import ReferenceData

QUOTE = '"'
"""Around the tags of a store."""


def write_mapped(file: Location, rows: pa.Table) -> None:
    """Write a copy whole or not at all; whoever has mapped the file before keeps what it held."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    file.write(sink.getvalue().to_pybytes())


def mapped_reference_data(devices: Location, references: Location) -> ReferenceData:
    """Map the copies as they are now; there need be none of references. TidemarkError where one cannot be read."""
    rows = _mapped(devices)
    if rows is None:
        raise _unreadable(devices)
    return ReferenceData(rows, _mapped(references))


def _mapped(file: Location) -> pa.Table | None:
    """Return None where there is no copy."""
    try:
        return pa.ipc.open_file(pa.memory_map(str(file.local if file.store.is_disk else _brought(file)))).read_all()
    except FileNotFoundError:
        return None
    except (OSError, pa.ArrowInvalid):
        raise _unreadable(file) from None


def _brought(file: Location) -> Path:
    """Bring a copy from the store to this host, once for all workers; its name here has its tag there."""
    if (tag := file.tag()) is None:
        raise FileNotFoundError(file)
    here = _named(file, tag)
    if not here.exists():
        content, tag = file.read_tagged()
        here = _named(file, tag)
        here.parent.mkdir(parents=True, exist_ok=True)
        (draft := here.with_suffix(f".{os.getpid()}.draft")).write_bytes(content)
        draft.replace(here)
        for older in here.parent.glob(f"{file.stem}-*{file.suffix}"):
            if older != here:
                older.unlink(missing_ok=True)
    return here


def _named(file: Location, tag: str) -> Path:
    return file.local.with_name(f"{file.stem}-{tag.strip(QUOTE)}{file.suffix}")


def _unreadable(file: Location) -> TidemarkError:
    # In one line, as Spark hands on only that of a worker's error.
    return TidemarkError(f"{file} is gone or is not as it was written: run again, every run makes it anew.")
