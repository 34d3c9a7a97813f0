"""Damage in a Delta log: the file that keeps the log from being read, found where delta-rs says only that something in it is wrong."""

import json

from orchestration.errors import TidemarkError
from orchestration.location import Location

WAY_OUT = "Restore it from a backup, or make silver and gold anew from bronze with `tidemark replay`; `tidemark doctor` looks at all files."


class DamagedLogError(TidemarkError):
    """The log of a table cannot be read."""


class NoTableError(DamagedLogError):
    """There is no log."""


def damaged_log_error(log: Location, error: Exception) -> DamagedLogError:
    """Name the table by its last two folders, the file, and the way out."""
    name, damage = ".".join(log.path.parts[-3:-1]), first_damage(log)
    if damage is None:
        return DamagedLogError(f"{name} cannot be read ({str(error).splitlines()[0]}): {log.parent}.\n  {WAY_OUT}")
    return DamagedLogError(f"the log of {name} is damaged: {damage}.\n  {WAY_OUT}")


def first_damage(log: Location) -> str | None:
    """Name the first file of a log that is not as Delta writes it, or is missing between others; None where all are."""
    entries, checkpoints = {}, []
    for file in sorted(log.glob("[0-9]*")):
        if file.suffix == ".json" and ".checkpoint." not in file.name:
            entries[int(file.stem)] = file
        elif file.suffix == ".parquet":
            checkpoints.append(file)
    for file in (*entries.values(), *checkpoints):
        if damage := _damage(file):
            return f"{file} {damage}"
    first = max((int(file.name.partition(".")[0]) for file in checkpoints), default=0)
    lost = next((number for number in range(first, max(entries, default=first - 1)) if number not in entries), None)
    if lost is not None and (lost or not checkpoints):
        return f"{log / f'{lost:020d}.json'} is gone"
    return None


def footer_damage(file: Location, size: int | None = None) -> str | None:
    """Say why a Parquet file has no end, which says where its columns are, or that it is not of this size; None for a sound one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with file.open_input() as source:
            pq.read_metadata(source)
            if size is not None and (now := source.size()) != size:
                return f"has {now} bytes, and {size} by the log"
    except FileNotFoundError:
        return "is gone"
    except (OSError, pa.ArrowInvalid) as error:
        return f"cannot be read ({getattr(error, 'strerror', None) or 'it has no end of a Parquet file'})"
    return None


def _damage(file: Location) -> str | None:
    if file.suffix == ".parquet":
        return footer_damage(file)
    try:
        lines = file.read().splitlines()
        is_whole = bool(lines) and all(isinstance(json.loads(line), dict) for line in lines)
    except ValueError:
        is_whole = False
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return None if is_whole else "holds something else than a commit"
