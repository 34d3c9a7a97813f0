"""Which host claims the files of a landing folder, or has the spool of a pushed source, for a lake in an object store.

Claims and spools are of the host that made them. Another one would read all files again, or number segments of a spool anew, so that events
that are acknowledged are taken for events that bronze has. `landing/<source>.json` and `spools/<source>.json` in the lake name the host.
"""

import socket
from dataclasses import dataclass
from uuid import uuid4

from orchestration.conf.model import Conf
from orchestration.conf.transport_settings import Collected, LandingFolder
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.lake_layout import CLAIMS, SPOOL, claims_folder, spool_folder
from orchestration.storage.state_file import StateFile

FILES, FILE = {CLAIMS: "landing", SPOOL: "spools"}, "host.json"
"""Folders of the lake with the hosts that have claims, and spools; and the name of the file beside each of these."""
WAY_OUT = {
    CLAIMS: "Where that is gone for good, and its landing folder is here, remove {}: files in the folder are then read again, and silver"
    " drops what it has.",
    SPOOL: "Where that is gone for good, remove {}: what was acknowledged there and is not in bronze is lost then.",
}


@dataclass(frozen=True)
class LandingHost:
    """`identity`: of its claims or its spool, as a name may be that of another host later, and claims may be lost."""

    host: str
    identity: str


def refuse_other_host(conf: Conf) -> None:
    """For a run: TidemarkError where another host has the claims or the spool of a source. This one is remembered for unclaimed folders."""
    for source in conf.sources.values():
        if isinstance(source.transport, LandingFolder) and not source.is_paused:
            _refuse_other_host(conf.lake, source.name, CLAIMS)
        elif isinstance(source.transport, Collected) and not source.is_paused:
            _refuse_other_host(conf.lake, source.name, SPOOL, may_begin=False)


def refuse_other_collector(lake: Location, source: str) -> None:
    """For a collector: the same for its source, whose spool is of this host from now on where nobody has one."""
    _refuse_other_host(lake, source, SPOOL)


def remember_host(copied: Location) -> None:
    """For a lake that was copied to here: this host has its claims and its spools."""
    for kind in FILES:
        folder = (copied / kind).local
        for source in sorted(folder.iterdir()) if folder.is_dir() else ():
            _refuse_other_host(copied, source.name, kind)


def _refuse_other_host(lake: Location, source: str, kind: str, *, may_begin: bool = True) -> None:
    if lake.store.is_disk:
        return
    file, this = lake / FILES[kind] / f"{source}.json", socket.gethostname()
    folder = claims_folder(lake, source) if kind == CLAIMS else spool_folder(lake, source)
    in_lake = StateFile(file, LandingHost, "Remove it, and run only on the host that has the landing folder, or the spool.")
    own = StateFile(folder / FILE, LandingHost, f"Remove it and {file}, as if another host had been given up.")
    if (host := in_lake.read()) is None:
        if may_begin:
            own.write(host := LandingHost(this, uuid4().hex))
            in_lake.write(host)
    elif own.read() != host:
        has = "files of source {} are claimed by host {}" if kind == CLAIMS else "the spool of source {} is on host {}"
        raise TidemarkError(
            f"{has.format(source, host.host)}, and this host, {this}, does not have its {'claims' if kind == CLAIMS else 'events'}.\n"
            f"  Run Tidemark on {host.host}. {WAY_OUT[kind].format(file)}"
        )
