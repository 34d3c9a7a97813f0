"""The device registry and references, in their newest versions, for this process and for workers of Spark."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from orchestration.location import Location
from orchestration.storage.delta import is_table, path_of, table_of, version_of
from orchestration.storage.lake_layout import mapped_folder
from orchestration.storage.mapped_tables import mapped_reference_data, write_mapped
from orchestration.storage.references import TABLE as REFERENCES
from orchestration.storage.registry import TABLE as DEVICES
from silver.enrich import ReferenceData

_published: dict[Path, int] = {}
"""The version that this process has copied to a file."""


def reference_data(lake: Location) -> ReferenceData:
    """All versions of devices, and of references where the lake has any."""
    references = table_of(path).combine_chunks() if is_table(path := path_of(lake, REFERENCES)) else None
    return ReferenceData(table_of(path_of(lake, DEVICES)).combine_chunks(), references)


def publish(lake: Location) -> Callable[[], ReferenceData]:
    """Bring the copies that workers read up to date, and say how they are read: the lake's folder is the one that all machines see.

    Called before workers get a batch: a version that is appended later counts for none of its events (registry.NOTICE).
    """
    folder = mapped_folder(lake).local
    for name in (DEVICES, REFERENCES):
        path, file = path_of(lake, name), _file(folder, name)
        if not is_table(path):
            file.unlink(missing_ok=True)
        elif _published.get(file) != (newest := version_of(path)) or not file.exists():
            write_mapped(file, table_of(path))
            _published[file] = newest
    return partial(mapped_reference_data, _file(folder, DEVICES), _file(folder, REFERENCES))


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.arrow"
