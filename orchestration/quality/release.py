"""A person lets through what a gate holds back; that is kept for ever."""

import getpass
import socket
from datetime import datetime

from deltalake import DeltaTable

from orchestration.engine.lake import Lake
from orchestration.errors import ConfError
from orchestration.storage.gate_state import is_holding, passage, record_release
from orchestration.storage.lease import sole_writer


def let_through(lake: Lake, table: str, version: int, reason: str, at: datetime) -> str:
    """Versions of a table up to this one; what was released, in words. ConfError where that is not held back, or for no reason."""
    if not reason.strip():
        raise ConfError("--reason is empty; say why what failed may be in gold: it is kept for ever.")
    with sole_writer(lake.conf.lake / "quality"):
        path = lake.table_path(table)
        found = passage(lake.conf.lake, table, path) if is_holding(lake.conf) and DeltaTable.is_deltatable(str(path)) else None
        if found is None or found.failure is None or not found.is_closed:
            raise ConfError(f"no version of {table} is held back; `tidemark status` tells which are.")
        first, last = found.version + 1, found.failure.version
        if not first <= version <= last:
            which = f"version {last}" if first == last else f"versions {first} to {last}"
            raise ConfError(f"version {version} of {table} is not held back; {which} can be released.")
        record_release(lake.conf.lake, found, version, reason.strip(), f"{getpass.getuser()}@{socket.gethostname()}", at)
    return f"{table} up to version {version}; failed: {'; '.join(found.failure.found)}"
