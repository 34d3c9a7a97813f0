"""What is on the disk of the marts, and the guard: dbt replaces in silence a table that exists and is not registered, history and all.

So every table is registered before dbt begins, and nothing begins while one that is known cannot be.
"""

import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from gold.literal import quoted
from orchestration.errors import ConfError, TidemarkError
from orchestration.storage.delta_log import LOG
from orchestration.storage.marts import builds, forget

SCHEMA = "marts"
FOR_ONCE = "dbt/schemas"
COMMIT = re.compile(r"\d{20}\.(json|checkpoint\.)")


def folder(lake: Path) -> Path:
    """Where marts lie, each in a folder of its name."""
    return lake / SCHEMA


def register(spark: SparkSession, lake: Path, schemas: Collection[str]) -> None:
    """Make the schema of marts, whose new tables lie in the lake, and its tables that are there; what other schemas hold is for once."""
    spark.sql(f"create database if not exists {SCHEMA} location {quoted(str(folder(lake)))}")
    for name in versions(lake):
        place = folder(lake) / name.removeprefix(f"{SCHEMA}.")
        spark.sql(f"create table if not exists {SCHEMA}.`{place.name}` using delta location {quoted(str(place))}")
    shutil.rmtree(lake / FOR_ONCE, ignore_errors=True)
    for schema in {*schemas} - {SCHEMA}:
        spark.sql(f"create database if not exists `{schema}` location {quoted(str(lake / FOR_ONCE / schema))}")


def versions(lake: Path) -> dict[str, int]:
    """The newest version of every mart on the disk that can be read, by SQL name."""
    return {f"{SCHEMA}.{place.name}": DeltaTable(place).version() for place in _places(lake) if _damage(place) is None}


def sweep(lake: Path, found: Collection[str]) -> None:
    """Remove what a build that was killed left of tables that it was creating: files that no commit names. `found`: marts that it found."""
    for place in _places(lake):
        if f"{SCHEMA}.{place.name}" not in found and not _has_commits(place):
            shutil.rmtree(place)


def refuse_lost(lake: Path) -> None:
    """TidemarkError where a mart that a build recorded, or that has files, cannot be registered."""
    lost = [f"{what}.\n  Restore {place} from a backup, or give it up with `{_give_up(place)}`." for place, what in _lost(lake)]
    if lost:
        raise TidemarkError("\n".join(lost))


def drop(lake: Path, name: str) -> None:
    """Give up a mart: its files, and its versions in all builds. ConfError where there is none of that name."""
    place, sql_name = folder(lake) / name, f"{SCHEMA}.{name}"
    known = {*(known for build in builds(lake) for known in build.versions), *(f"{SCHEMA}.{each.name}" for each in _places(lake))}
    if sql_name not in known:
        names = ", ".join(sorted(each.removeprefix(f"{SCHEMA}.") for each in known)) or "none"
        raise ConfError(f"--drop {name}: there is no such mart; there are {names}.")
    forget(lake, [sql_name])
    shutil.rmtree(place, ignore_errors=not place.exists())


def _lost(lake: Path) -> Iterator[tuple[Path, str]]:
    for place in _places(lake):
        if (damage := _damage(place)) is not None:
            yield place, f"{SCHEMA}.{place.name} {damage}"
    known = builds(lake)
    for name in known[-1].versions if known else ():
        place = folder(lake) / name.removeprefix(f"{SCHEMA}.")
        if not _holds_files(place):
            yield place, f"{name} was built before, and is gone from the disk"


def _places(lake: Path) -> list[Path]:
    found = folder(lake).iterdir() if folder(lake).is_dir() else ()
    return sorted(place for place in found if place.is_dir() and not place.name.startswith((".", "_")) and _holds_files(place))


def _damage(place: Path) -> str | None:
    """Why it cannot be registered, as the end of a sentence; None where it can."""
    if not _has_commits(place):
        return f"has files in {place}, but no Delta log that says which of them are rows"
    try:
        needed = [unquote(name) for name in pa.table(DeltaTable(place).get_add_actions(flatten=True)).column("path").to_pylist()]
    except (DeltaError, OSError, ValueError) as error:
        return f"cannot be read: {str(error).splitlines()[0]}"
    gone = [name for name in needed if not (place / name).exists()]
    return f"lacks {len(gone)} of its {len(needed)} files, such as {gone[0]}" if gone else None


def _has_commits(place: Path) -> bool:
    log = place / LOG
    return log.is_dir() and any(COMMIT.match(file.name) for file in log.iterdir())


def _holds_files(place: Path) -> bool:
    return place.is_dir() and any(file.is_file() for file in place.rglob("*"))


def _give_up(place: Path) -> str:
    return f"tidemark dbt --drop {place.name} build"
