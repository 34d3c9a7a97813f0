"""Which host claims the files of a landing folder, for a lake in an object store: `landing/<source>.json` in the lake.

Claims are hard links on the host that has the folder. Another host does not have them, and would read all files again.
"""

import socket
from dataclasses import dataclass
from uuid import uuid4

from orchestration.conf.model import Conf
from orchestration.conf.transport_settings import LandingFolder
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.lake_layout import claims_folder
from orchestration.storage.state_file import StateFile

IN_LAKE, BESIDE_CLAIMS = "landing", "host.json"


@dataclass(frozen=True)
class LandingHost:
    """`identity`: of its claims, as a name may be that of another host later, and claims may be lost."""

    host: str
    identity: str


def refuse_other_host(conf: Conf) -> None:
    """Remember this host for landing folders that nobody has claimed files of; TidemarkError where another one claims them."""
    if not conf.lake.store.is_disk:
        for source in conf.sources.values():
            if isinstance(source.transport, LandingFolder) and not source.is_paused:
                _refuse_other_host(conf.lake, source.name)


def _refuse_other_host(lake: Location, source: str) -> None:
    file, this = lake / IN_LAKE / f"{source}.json", socket.gethostname()
    in_lake = StateFile(file, LandingHost, "Remove it, and run only where the claims are: on the host that has the landing folder.")
    own = StateFile(claims_folder(lake, source) / BESIDE_CLAIMS, LandingHost, f"Remove it and {file}: files are then read again.")
    if (claiming := in_lake.read()) is None:
        own.write(claiming := LandingHost(this, uuid4().hex))
        in_lake.write(claiming)
    elif own.read() != claiming:
        raise TidemarkError(
            f"files of source {source} are claimed by host {claiming.host}, and this host, {this}, does not have its claims.\n"
            f"  Run Tidemark on {claiming.host}. Where that is gone for good, and its landing folder is here, remove {file}:"
            " files in the folder are then read again, and silver drops what it has."
        )
