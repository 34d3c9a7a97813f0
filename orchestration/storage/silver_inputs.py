"""Inputs of silver's functions: settings, and the device registry and references in their newest versions, here and in workers of Spark."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from orchestration.conf.model import Conf
from orchestration.location import Location
from orchestration.storage.delta import is_table, path_of, table_of, version_of
from orchestration.storage.lake_layout import MAPPED
from orchestration.storage.mapped_tables import mapped_reference_data, write_mapped
from orchestration.storage.payload_formats import FILE, payload_formats, remembered
from orchestration.storage.references import TABLE as REFERENCES
from orchestration.storage.registry import TABLE as DEVICES
from silver.enrich import ReferenceData
from silver.policy import SilverConfig

_published: dict[Path, tuple[int, object]] = {}
"""The version that this process has copied to a file, and the state of the file then."""


def silver_config(conf: Conf) -> SilverConfig:
    """Return the settings; sources that are no longer in conf are read as they were declared last."""
    shapes = payload_formats(conf)
    # Workers look again in each batch: what a registry tells is kept before the events that need it are in bronze.
    reread = partial(remembered, conf.lake / FILE) if any(shape.registry for shape in shapes.values()) else None
    return SilverConfig(shapes, conf.policy, conf.metrics, conf.rules, reread)


def reference_data(lake: Location) -> ReferenceData:
    """Read all versions of devices, and of references where the lake has any."""
    references = table_of(path).combine_chunks() if is_table(path := path_of(lake, REFERENCES)) else None
    return ReferenceData(table_of(path_of(lake, DEVICES)).combine_chunks(), references)


def publish(lake: Location) -> Callable[[], ReferenceData]:
    """Bring the copies that workers read up to date, and say how they are read: the lake's folder is the one that all machines see.

    Called before workers get a batch: a version that is appended later counts for none of its events (registry.NOTICE). A copy that this
    process did not write, or that somebody has touched since, is made anew.
    """
    folder = (lake / MAPPED).local
    for name in (DEVICES, REFERENCES):
        path, file = path_of(lake, name), _file(folder, name)
        if not is_table(path):
            file.unlink(missing_ok=True)
        elif _published.get(file) != (version := version_of(path), _state(file)):
            write_mapped(file, table_of(path))
            _published[file] = version, _state(file)
    return partial(mapped_reference_data, _file(folder, DEVICES), _file(folder, REFERENCES))


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.arrow"


def _state(file: Path) -> object:
    """Tell a file from one that was written in its place."""
    if not file.exists():
        return None
    status = file.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
