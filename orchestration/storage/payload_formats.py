"""How the payloads of each source are read, also of a source that conf no longer names: what bronze holds of it stays.

`sources.json` in the lake holds the shape of every source that a run has known, as it was declared last. Bronze goes on reading the files
that were claimed of a former one; only its landing folder is looked at no longer.
"""

from collections.abc import Mapping
from dataclasses import replace
from threading import Lock

from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.lake_layout import CLAIMS, SPOOL
from orchestration.storage.state_file import StateFile
from silver.spec import PayloadFormat

FILE = "sources.json"
_WRITING = Lock()
"""Sources are looked at in threads of their own."""


def payload_formats(conf: Conf) -> dict[str, PayloadFormat]:
    """Of every source that the lake knows: as conf declares it, or as it was declared last; with what its registry has told."""
    known = remembered(conf.lake / FILE)
    return known | {name: _with_told(source.payload_format, known.get(name)) for name, source in conf.sources.items()}


def former(conf: Conf) -> list[str]:
    """Names of the sources that conf no longer has."""
    return sorted(payload_formats(conf).keys() - conf.sources.keys())


def remember(conf: Conf) -> None:
    """Keep what conf declares for the time when it no longer does; TidemarkError where there are files of a source that nobody knows."""
    known = payload_formats(conf)
    kept = [folder for below in (CLAIMS, SPOOL) for folder in sorted((conf.lake / below).glob("*/")) if folder.name not in known]
    if kept:
        raise TidemarkError(
            f"{kept[0].parent} holds files of the source {kept[0].name}, of which neither sources.yml nor {conf.lake / FILE} says how"
            " they are read.\n  Name it in sources.yml again for one run; after that it may go."
        )
    if known != remembered(conf.lake / FILE):
        _file(conf.lake / FILE).write(known)


def remember_schemas(conf: Conf, source: str, told: Mapping[str, tuple[str, ...]]) -> None:
    """Keep what the registry of a source told of schemas by id; no text where it knows none."""
    with _WRITING:
        known = payload_formats(conf)
        _file(conf.lake / FILE).write(known | {source: replace(known[source], schemas={**known[source].schemas, **told})})


def _with_told(declared: PayloadFormat, known: PayloadFormat | None) -> PayloadFormat:
    """An id means the same for ever, so what was told of it is kept, also when the registry has another address now."""
    is_told = declared.registry and known and known.registry and known.format == declared.format
    return replace(declared, schemas=known.schemas) if is_told and known else declared


def remembered(file: Location) -> dict[str, PayloadFormat]:
    return _file(file).read() or {}


def _file(file: Location) -> StateFile[dict[str, PayloadFormat]]:
    way_out = "Restore it, or remove it and name every source that it knew in sources.yml for one run."
    return StateFile(file, dict[str, PayloadFormat], way_out)
