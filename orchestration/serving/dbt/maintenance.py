"""Removes files and log entries of marts that no build needs any more; run by the process that holds the lease of the marts."""

from datetime import datetime

from orchestration.location import Location
from orchestration.serving.dbt.targets import folder, versions
from orchestration.storage import marts
from orchestration.storage.retention import RetentionNeeds, removable_files, removable_log, remove
from orchestration.storage.snapshots import all_snapshots


def clean(lake: Location, before: datetime, now: datetime) -> None:
    """Forget builds of expired snapshots, then remove what only they needed. What was superseded after `before` stays in any case."""
    needed = {snapshot.snapshot_id for snapshot in all_snapshots(lake)} | marts.needed_snapshots(lake)
    marts.forget_builds(lake, {build.snapshot_id for build in marts.builds(lake)} - needed)
    kept = marts.builds(lake)
    for name in versions(lake):
        path = folder(lake) / name.split(".", 1)[1]
        needs = RetentionNeeds(sorted({build.versions[name] for build in kept if name in build.versions}), None, before)
        for file in (*removable_files(path, needs, now), *removable_log(path, needs)):
            remove(file)
