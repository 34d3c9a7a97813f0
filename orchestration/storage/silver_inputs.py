"""Inputs of silver's functions: settings, and the device registry and references in their newest versions, here and in workers of Spark."""

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from orchestration.conf.model import Conf
from orchestration.location import Location
from orchestration.storage.confs import former_confs
from orchestration.storage.delta import is_table, path_of, table_of, version_of
from orchestration.storage.lake_layout import CORRECTIONS, MAPPED
from orchestration.storage.mapped_tables import mapped_reference_data, write_mapped
from orchestration.storage.payload_formats import FILE, payload_formats, remembered
from orchestration.storage.references import TABLE as REFERENCES
from orchestration.storage.registry import TABLE as DEVICES
from orchestration.storage.registry import in_force
from orchestration.storage.tables import LakeStore
from silver.enrich import ReferenceData
from silver.policy import FormerConfig, SilverConfig

_published: dict[str, tuple[list[int], object]] = {}
"""The versions that this process has copied to a file, and the state of the file then."""


def silver_config(conf: Conf) -> SilverConfig:
    """Return the settings; sources that are no longer in conf are read as they were declared last."""
    shapes = payload_formats(conf)
    # Workers look again in each batch: what a registry tells is kept before the events that need it are in bronze.
    reread = partial(remembered, conf.lake / FILE) if any(shape.has_kept_schemas for shape in shapes.values()) else None
    return SilverConfig(shapes, conf.policy, conf.metrics, conf.rules, reread, conf.ahead_seconds)


def former_configs(lake: LakeStore, after: int) -> list[FormerConfig]:
    """Return the settings of bronze batches after one that came while another conf ran."""
    return [FormerConfig(end, silver_config(conf)) for end, conf in former_confs(lake, after)]


def reference_data(lake: LakeStore) -> ReferenceData:
    """Read all versions of devices as the generation counts them, and of references where the lake has any."""
    references = table_of(path).combine_chunks() if is_table(path := path_of(lake.conf.lake, REFERENCES)) else None
    return ReferenceData(in_force(lake.conf.lake, lake.generation).combine_chunks(), references)


def publish(lake: LakeStore) -> Callable[[], ReferenceData]:
    """Bring the copies that workers read up to date, and say how they are read: they are in the lake, which all machines see.

    Called before workers get a batch: a version that is appended later counts for none of its events (registry.NOTICE). A copy that this
    process did not write, or that somebody has touched since, is made anew.
    """
    folder, registry, references = lake.conf.lake / MAPPED, path_of(lake.conf.lake, DEVICES), path_of(lake.conf.lake, REFERENCES)
    holder = lake.generation.places.get(CORRECTIONS.replace(".", "/"), 1)
    devices_file = folder / (f"{DEVICES}.arrow" if holder == 1 else f"{DEVICES}@{holder}.arrow")
    _keep(devices_file, [registry, lake.table_path(CORRECTIONS)], lambda: in_force(lake.conf.lake, lake.generation))
    _keep(references_file := folder / f"{REFERENCES}.arrow", [references], lambda: table_of(references))
    return partial(mapped_reference_data, devices_file, references_file)


def _keep(file: Location, tables: list[Location], read: Callable[[], pa.Table]) -> None:
    """Bring a copy of what is read of tables up to date; there is none where the first of them is not there."""
    versions = [version_of(path) if is_table(path) else -1 for path in tables]
    if _published.get(str(file)) == (versions, _state(file)):
        return
    if versions[0] < 0:
        file.delete()
    else:
        write_mapped(file, read())
    _published[str(file)] = versions, _state(file)


def _state(file: Location) -> object:
    """Tell a file on a disk from one that was written in its place."""
    if not (file.store.is_disk and file.exists()):
        return None
    status = file.local.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
