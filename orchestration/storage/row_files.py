"""Rows in a file of Arrow that appears whole or not at all, and of which its owner knows the digest."""

import hashlib

import pyarrow as pa

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.atomic_json import sync


def write_rows(location: Location, rows: pa.Table) -> str:
    """Returns the digest of the file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema) as stream:
        stream.write_table(rows)
    content, file = sink.getvalue().to_pybytes(), location.local
    draft = file.with_suffix(".draft")
    draft.write_bytes(content)
    sync(draft)
    draft.replace(file)
    return hashlib.sha256(content).hexdigest()


def read_rows(location: Location, digest: str, way_out: str) -> pa.Table:
    """TidemarkError, which ends in the way out, where the file is gone or is not as it was written."""
    content = location.local.read_bytes() if location.exists() else b""
    if hashlib.sha256(content).hexdigest() != digest:
        raise TidemarkError(f"{location} is not as it was written.\n  {way_out}")
    return pa.ipc.open_file(pa.py_buffer(content)).read_all()
