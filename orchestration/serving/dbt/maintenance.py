"""What no build that can be asked needs any more of the marts is removed, by the process that writes them and holds their lease."""

from datetime import datetime
from pathlib import Path

from orchestration.serving.dbt.targets import folder, versions
from orchestration.storage import marts
from orchestration.storage.retention import RetentionNeeds, removable_files, removable_log, remove
from orchestration.storage.snapshots import all_snapshots


def clean(lake: Path, before: datetime, now: datetime) -> None:
    """Files and log entries of marts; what was superseded after `before` stays in any case. Builds of expired snapshots are forgotten."""
    asked = {each.snapshot_id for each in all_snapshots(lake)} | marts.needed_snapshots(lake)
    marts.forget_builds(lake, {each.snapshot_id for each in marts.builds(lake)} - asked)
    kept = marts.builds(lake)
    for name in versions(lake):
        place = folder(lake) / name.split(".", 1)[1]
        needs = RetentionNeeds(sorted({each.versions[name] for each in kept if name in each.versions}), None, before)
        for file in (*removable_files(place, needs, now), *removable_log(place, needs)):
            remove(file)
