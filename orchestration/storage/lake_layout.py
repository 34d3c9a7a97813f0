"""Folders of a lake beside its tables: what came and bronze may not have yet."""

from orchestration.location import Location

CLAIMS, SPOOL = "intake", "spool"


def claims_folder(lake: Location, source: str) -> Location:
    """Where the links to files of a source are (connectors/sources/claims.py)."""
    return lake / CLAIMS / source


def spool_folder(lake: Location, source: str) -> Location:
    """Where `tidemark collect` keeps what it acknowledged of a source until bronze has it."""
    return lake / SPOOL / source
