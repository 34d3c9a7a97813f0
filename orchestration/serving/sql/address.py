"""The address of the sql-server of a lake, for commands of the user who started it."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from orchestration.location import Location


@dataclass(frozen=True)
class Address:
    """A port of 127.0.0.1. `process`: the process id of the supervisor."""

    port: int
    token: str
    process: int


def address_file(lake: Location) -> Path:
    """The file below XDG_STATE_HOME that holds the address; one for each lake."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "tidemark" / "servers" / f"{hashlib.sha256(str(lake.local.resolve()).encode()).hexdigest()[:16]}.json"


def address_of(lake: Location) -> Address | None:
    """None if no server of this user runs on the lake."""
    try:
        address = Address(**json.loads(address_file(lake).read_text(encoding="utf-8")))
        os.kill(address.process, 0)
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return None
    return address
