"""Folders of a lake that several rooms use: claims (`intake`), spools, state of fast alerts, copies for workers.

A folder that one room uses is named in that room; tables: tables.py.
"""

from orchestration.location import Location

CLAIMS, SPOOL, FAST_ALERTS, MAPPED = "intake", "spool", "fast_alerts", "mapped"
"""MAPPED: copies of small tables, which workers of Spark map into memory; each process that runs flows makes them anew."""
CORRECTIONS = "silver.device_corrections"
"""The table of registry.py that each generation has of its own."""
DEAD_ROWS = "ops.dead_rows"
"""Rows that sinks lack. It is sealed: no other table says which."""


def claims_folder(lake: Location, source: str) -> Location:
    """Return the folder of links to files of a source (connectors/sources/files.py)."""
    return lake / CLAIMS / source


def spool_folder(lake: Location, source: str) -> Location:
    """Return the folder in which `tidemark collect` keeps what it acknowledged of a source until bronze has it."""
    return lake / SPOOL / source


def fast_alerts_folder(lake: Location) -> Location:
    """Return the folder in which `tidemark alerts watch` keeps its state."""
    return lake / FAST_ALERTS
