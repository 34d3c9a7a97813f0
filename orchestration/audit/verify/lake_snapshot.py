"""The state of a lake that `verify` compares: the version of each table, the prefix of bronze, and up to when windows are closed.

Reads Delta logs, checkpoints and state files through `orchestration/storage`; reads no rows, and writes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.checkpoints import last_batch, offsets, read_up_to
from orchestration.storage.delta import is_table, max_in_log, table_id, version_of
from orchestration.storage.generations import Generation, active_generation, numbered
from orchestration.storage.lake_layout import CORRECTIONS
from orchestration.storage.lane_record import Lanes, record_of
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.state_file import StateFile
from orchestration.utc import from_micros

GOLD_KINDS = ("aggregates", "vectors", "late")
SILVER, FLOWS = "silver.readings", "gold.flows"
DAMAGED = "Restore the checkpoint of gold.flows, or run `tidemark replay`."


@dataclass(frozen=True)
class _Until:
    until: int


@dataclass(frozen=True)
class _Slice:
    """The fields of `slice.json` that are needed here: how far a flow or alert has come, and since when it is declared as it is now.
    Microseconds since 1970."""

    after: _Until
    began: int


@dataclass(frozen=True)
class LakeSnapshot:
    """`tables`: the folder of each table, by name. `versions`: the version of each that exists. `bronze_batch`: the last of the prefix.

    `closed_until`, by gold stream: windows that end at this instant or before are emitted; a stream that emitted nothing yet is left out.
    `closed_until`, by `gold.flows/<flow>` or `gold.flows/alerts/<alert>`: readings before this instant are counted; by
    `gold.flows/anomalies/<stream>`: vectors whose windows end then or before are judged.
    `began`, by flow or alert: since when it is declared as it is now. `lanes`: of silver, where it has had several; `lateness_seconds`: of
    the default one.
    """

    generation: Generation
    tables: Mapping[str, Location]
    versions: Mapping[str, int]
    bronze_batch: int
    closed_until: Mapping[str, datetime]
    began: Mapping[str, datetime]
    lanes: Lanes | None = None
    lateness_seconds: int = 0


def latest_snapshot(conf: Conf) -> LakeSnapshot:
    """Return the newest version of every table; they are consistent with each other only while no process writes the lake."""
    return _latest(conf, active_generation(conf.lake))


def pinned_snapshot(conf: Conf, snapshot: Snapshot) -> LakeSnapshot:
    """Return the tables at the versions that a snapshot pins. It does not pin the registry and references, which only grow: their newest
    version is taken. Corrections of the registry are pinned where there were any: they change what came before them."""
    latest = _latest(conf, numbered(conf.lake, snapshot.generation))
    versions = {name: version for name, version in latest.versions.items() if name != CORRECTIONS} | dict(snapshot.versions)
    return replace(latest, versions=versions, bronze_batch=snapshot.bronze_batch, closed_until=snapshot.closed_until)


def _latest(conf: Conf, generation: Generation) -> LakeSnapshot:
    tables = {name: generation.table(conf.lake, name) for name in _names(conf, generation)}
    versions = {name: version_of(path) for name, path in tables.items() if is_table(path)}
    if "bronze.events" not in versions:
        raise TidemarkError(f"{conf.lake} holds no bronze.events, so there is nothing to verify; run `tidemark run --once` first")
    closed = {stream: _watermark(generation.checkpoint(conf.lake, f"gold.{stream}")) for stream in conf.streams}
    slices = {f"{FLOWS}/{name}": _folder(conf, generation, name) / "slice.json" for name in conf.incrementals}
    started = {name: this for name, file in slices.items() if (this := StateFile(file, _Slice, DAMAGED).read())}
    closed |= {name: from_micros(max(this.after.until, 0)) for name, this in started.items()}
    began = {name: from_micros(max(this.began, 0)) for name, this in started.items()}
    passed = _passed(generation.checkpoint(conf.lake, SILVER), tables)
    closed_until = {stream: at for stream, at in closed.items() if at is not None}
    lanes = record_of(generation.checkpoint(conf.lake, SILVER)).read()
    return LakeSnapshot(generation, tables, versions, passed, closed_until, began, lanes, conf.policy.lateness_seconds)


def _folder(conf: Conf, generation: Generation, name: str) -> Location:
    """Return the folder of a flow or alert; what judges a stream of gold has it below the checkpoint of that."""
    kind, _, stream = name.partition("/")
    of_gold = kind == "anomalies" and stream
    return generation.checkpoint(conf.lake, f"gold.{stream}") / kind if of_gold else generation.checkpoint(conf.lake, FLOWS) / name


def _names(conf: Conf, generation: Generation) -> list[str]:
    silver = [CORRECTIONS, *(f"silver.{name}" for name in ("devices", "references", "readings", "quarantine", "late", "duplicates"))]
    gold = [generation.gold(stream, kind) for stream in conf.streams for kind in conf.kinds_of(stream)]
    return ["bronze.events", "ops.ledger", *silver, *gold, *conf.tables_of_incrementals]


def _passed(checkpoint: Location, tables: Mapping[str, Location]) -> int:
    """Return the newest bronze batch that silver has read; -1 for none."""
    batch = last_batch(checkpoint)
    if batch.last_batch is None:
        return -1
    version, index = read_up_to(checkpoint, batch.last_batch, table_id(tables["bronze.events"]))
    # With a negative index silver has read nothing of that version yet.
    newest = max_in_log(tables["bronze.events"], "bronze_batch", version - (index < 0))
    return -1 if newest is None else int(newest)


def _watermark(checkpoint: Location) -> datetime | None:
    batch = last_batch(checkpoint).last_batch
    return None if batch is None else datetime.fromtimestamp(offsets(checkpoint, batch).watermark_ms / 1000, UTC)
