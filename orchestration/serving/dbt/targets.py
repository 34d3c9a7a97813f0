"""The marts on the disk, and the guard against data loss: dbt silently replaces a table that exists but is not registered.

So every mart is registered before dbt begins, and no build begins while a known mart cannot be registered.
"""

import re
from collections.abc import Collection
from datetime import datetime

from pyspark.sql import SparkSession

from gold.windows.aggregates import quoted
from orchestration.errors import ConfError, TidemarkError
from orchestration.location import Location
from orchestration.storage.damaged_logs import DamagedLogError
from orchestration.storage.delta import LOG, files_of, open_table, version_of
from orchestration.storage.marts import MARTS, forget, needed_snapshots
from orchestration.storage.retention import RetentionNeeds, removable_files, removable_log, remove
from orchestration.storage.snapshots import all_snapshots

SCHEMA = "marts"
TEMPORARY_SCHEMAS = "dbt/schemas"
COMMIT = re.compile(r"\d{20}\.(json|checkpoint\.)")


def folder(lake: Location) -> Location:
    """The folder of the marts; each mart has a folder of its name in it."""
    return lake / SCHEMA


def register(spark: SparkSession, lake: Location, schemas: Collection[str]) -> None:
    """Create the schema of marts in the lake and register its tables. Tables in other schemas are temporary."""
    spark.sql(f"create database if not exists {SCHEMA} location {quoted(str(folder(lake)))}")
    for name in versions(lake):
        path = folder(lake) / name.removeprefix(f"{SCHEMA}.")
        spark.sql(f"create table if not exists {SCHEMA}.`{path.name}` using delta location {quoted(str(path))}")
    (lake / TEMPORARY_SCHEMAS).delete_all()
    for schema in {*schemas} - {SCHEMA}:
        spark.sql(f"create database if not exists `{schema}` location {quoted(str(lake / TEMPORARY_SCHEMAS / schema))}")


def versions(lake: Location) -> dict[str, int]:
    """The newest version of every readable mart on the disk, by SQL name."""
    return {f"{SCHEMA}.{path.name}": version_of(path) for path in _folders(lake) if _damage(path) is None}


def remove_leftovers(lake: Location, existing: Collection[str]) -> None:
    """Remove the files of tables that a killed build was creating, which no commit names. `existing`: marts that it did not create."""
    for path in _folders(lake):
        if f"{SCHEMA}.{path.name}" not in existing and not _has_commits(path):
            path.delete_all()


def refuse_lost(lake: Location) -> None:
    """TidemarkError if a mart that a build recorded, or that has files, cannot be registered."""
    problems = {path: f"{SCHEMA}.{path.name} {damage}" for path in _folders(lake) if (damage := _damage(path)) is not None}
    recorded = MARTS.rows(lake)
    for name in recorded[-1].versions if recorded else ():
        path = folder(lake) / name.removeprefix(f"{SCHEMA}.")
        if not _holds_files(path):
            problems[path] = f"{name} was built before, and is gone from the disk"
    if problems:
        hint = "Restore {path} from a backup, or give it up with `tidemark dbt --drop {path.name} build`."
        raise TidemarkError("\n".join(f"{problem}.\n  {hint.format(path=path)}" for path, problem in problems.items()))


def drop(lake: Location, name: str) -> None:
    """Delete a mart: its files, and its versions in all builds. ConfError if there is none of that name."""
    path, sql_name = folder(lake) / name, f"{SCHEMA}.{name}"
    marts = {*(mart for build in MARTS.rows(lake) for mart in build.versions), *(f"{SCHEMA}.{mart.name}" for mart in _folders(lake))}
    if sql_name not in marts:
        names = ", ".join(sorted(mart.removeprefix(f"{SCHEMA}.") for mart in marts)) or "none"
        raise ConfError(f"--drop {name}: there is no such mart; there are {names}.")
    forget(lake, [sql_name])
    path.delete_all()


def clean(lake: Location, before: datetime, now: datetime) -> None:
    """Remove files and log entries of marts that no build needs; called by the process that holds the lease of the marts.

    Forgets builds of expired snapshots first. What was superseded after `before` stays in any case.
    """
    needed = {snapshot.snapshot_id for snapshot in all_snapshots(lake)} | needed_snapshots(lake)
    if gone := {build.snapshot_id for build in MARTS.rows(lake)} - needed:
        MARTS.delete(lake, "snapshot_id", gone)
    kept = MARTS.rows(lake)
    for name in versions(lake):
        path = folder(lake) / name.removeprefix(f"{SCHEMA}.")
        needs = RetentionNeeds(sorted({build.versions[name] for build in kept if name in build.versions}), None, before)
        for file in (*removable_files(path, needs, now), *removable_log(path, needs)):
            remove(file)


def _folders(lake: Location) -> list[Location]:
    return sorted(path for path in folder(lake).glob("*") if path.is_dir() and not path.name.startswith((".", "_")) and _holds_files(path))


def _damage(path: Location) -> str | None:
    """Why it cannot be registered, as the end of a sentence; None if it can."""
    if not _has_commits(path):
        return f"has files in {path}, but no Delta log that says which of them are rows"
    try:
        needed = files_of(open_table(path))
    except (DamagedLogError, OSError, ValueError) as error:
        return f"cannot be read: {str(error).splitlines()[0]}"
    present = {file.below(path) for file, _, _ in path.entries()}
    missing = [name for name in needed if name not in present]
    return f"lacks {len(missing)} of its {len(needed)} files, such as {missing[0]}" if missing else None


def _has_commits(path: Location) -> bool:
    return any(COMMIT.match(file.name) for file in (path / LOG).glob("*"))


def _holds_files(path: Location) -> bool:
    return any(True for _ in path.entries())
