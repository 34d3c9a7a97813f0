"""How the payloads of each source are read, also of a source that conf no longer names: what bronze holds of it stays.

`sources.json` in the lake holds the shape of every source that a run has known, as it was declared last. Bronze goes on reading the files
that were claimed of a former one; only its landing folder is looked at no longer.
"""

from collections.abc import Mapping
from dataclasses import replace
from threading import Lock
from typing import Any

from pydantic import TypeAdapter

from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.lake_layout import CLAIMS, SPOOL
from orchestration.storage.state_file import StateFile
from silver.spec import PayloadFormat

FILE = "sources.json"
_FORMATS = TypeAdapter(dict[str, PayloadFormat])
_WRITING = Lock()
"""Sources are looked at in threads of their own."""


def payload_formats(conf: Conf) -> dict[str, PayloadFormat]:
    """Return the format of every source that the lake knows, as it was declared last, with the schemas from its registry."""
    former_formats = remembered(conf.lake / FILE)
    return former_formats | {name: _with_schemas(source.payload_format, former_formats.get(name)) for name, source in conf.sources.items()}


def former(conf: Conf) -> list[str]:
    """Names of the sources that conf no longer has."""
    return sorted(payload_formats(conf).keys() - conf.sources.keys())


def remember(conf: Conf) -> None:
    """Keep what conf declares for the time when it no longer does; TidemarkError where there are files of a source that nobody knows."""
    formats = payload_formats(conf)
    kept = [folder for below in (CLAIMS, SPOOL) for folder in sorted((conf.lake / below).local.glob("*/")) if folder.name not in formats]
    if kept:
        raise TidemarkError(
            f"{kept[0].parent} holds files of source {kept[0].name}, which neither sources.yml nor {conf.lake / FILE} declares.\n"
            f"  Declare {kept[0].name} in sources.yml for one run, then remove it."
        )
    if formats != remembered(conf.lake / FILE):
        _file(conf.lake / FILE).write(formats)


def remember_schemas(conf: Conf, source: str, schemas: Mapping[str, tuple[str, ...]]) -> None:
    """Keep the schemas that the registry of a source returned, by id; no text where it has none."""
    with _WRITING:
        formats = payload_formats(conf)
        _file(conf.lake / FILE).write(formats | {source: replace(formats[source], schemas={**formats[source].schemas, **schemas})})


def _with_schemas(declared: PayloadFormat, former: PayloadFormat | None) -> PayloadFormat:
    """Keep the schemas of a former format: an id means the same for ever, also when the registry has another address now."""
    has_schemas = declared.has_kept_schemas and former and former.has_kept_schemas and former.written_in == declared.written_in
    return replace(declared, schemas=former.schemas) if has_schemas and former else declared


def remembered(file: Location) -> dict[str, PayloadFormat]:
    return _FORMATS.validate_python(_file(file).read() or {})


def _file(file: Location) -> StateFile[dict[str, Any]]:
    way_out = "Restore it, or remove it and name every source that it knew in sources.yml for one run."
    return StateFile(file, dict[str, Any], way_out)
