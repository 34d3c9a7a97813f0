"""Seals tables and checkpoints after a run, and checks before the next one that they are whole and of one time.

Sealed is of each checkpoint what its finished batches left, of each table its log and the data files that the log adds. A damaged
checkpoint or log is refused before a flow goes on, by a sentence that names the fix; `tidemark ledger` and `tidemark verify` look at the
data files as well.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage import generations, references, registry, snapshots
from orchestration.storage.checkpoints import REPAIR, REPLAY, newest_batch
from orchestration.storage.delta import LOG, added, is_draft, version_of
from orchestration.storage.lake_layout import CORRECTIONS, DEAD_ROWS
from orchestration.storage.models import MODELS
from orchestration.storage.ops_tables import CLOCK, GAPS, LEDGER, LEDGER_SCHEMA, OBJECTS, TICKS
from orchestration.storage.seals import Seal, damaged_checkpoint, damaged_log, damages, listed, number
from orchestration.storage.tables import LakeStore

OF_A_CHECKPOINT = ("offsets", "commits", "state")
WITHOUT_SPARK = {LEDGER: LEDGER_SCHEMA} | {
    log.table: log.schema for log in (TICKS, CLOCK, GAPS, snapshots.SNAPSHOTS, generations.GENERATIONS)
}
"""Tables that deltalake writes."""


class Sealing:
    """The seals of a lake, for the one process that writes it."""

    def __init__(self, lake: LakeStore, flows: Sequence[str]) -> None:
        # A store has checksums and versions of its own.
        is_disk = lake.conf.lake.store.is_disk
        self._checkpoints = [Seal(lake.checkpoint(flow)) for flow in flows] if is_disk else []
        self._tables = [Seal(path) for path in sealed_tables(lake).values()] if is_disk else []

    def seal_finished_batches(self) -> None:
        """Seal what has been finished since; may run beside the flows."""
        for seal in self._checkpoints:
            _seal_checkpoint(seal)
        for seal in self._tables:
            _seal_table(seal)


def sealed_tables(lake: LakeStore) -> dict[str, Location]:
    """Every table whose files must not change, by its SQL name."""
    of_some = (registry.TABLE, CORRECTIONS, references.TABLE, DEAD_ROWS, OBJECTS.table, MODELS.table)
    return {name: lake.table_path(name) for name in (*lake.tables, *WITHOUT_SPARK, *of_some)}


def refuse_damage(lake: LakeStore, flows: Iterable[str]) -> None:
    """TidemarkError names the damaged files of the logs of all tables, or of the checkpoint of one of the flows."""
    for name, path in sealed_tables(lake).items():
        if damaged := damaged_log(path):
            raise TidemarkError(f"the log of {name} is damaged: {listed(damaged)}.\n  {_hint(lake, name)}")
    for flow in flows:
        if lake.checkpoint(flow).is_dir() and (damaged := damaged_checkpoint(lake.checkpoint(flow))):
            raise TidemarkError(f"the checkpoint of {flow} is damaged: {listed(damaged)}.\n  {REPAIR}")


def refuse_damaged_records(lake: LakeStore, *, is_everything: bool) -> None:
    """TidemarkError names damaged files of tables that a replay reads: all but those that it builds, unless it copies a part of these."""
    for name, path in sealed_tables(lake).items():
        if not (is_everything and _is_replayed(name)) and (damaged := damages(path)):
            raise TidemarkError(f"files of {name} are damaged: {listed(damaged)}.\n  {_hint(lake, name)}")


def refuse_older_tables(lake: LakeStore) -> None:
    """A table that was restored without its checkpoint lacks rows that nothing would write again."""
    newest = snapshots.find_snapshot(lake.conf.lake)
    if newest is None or newest.generation != lake.generation.generation:
        return
    for name, pinned in newest.versions.items():
        if name in lake.tables and (version := version_of(lake.table_path(name))) < pinned:
            raise TidemarkError(
                f"{name} at {lake.table_path(name)} is at version {version}, but snapshot {newest.snapshot_id} pins its version {pinned}:"
                f" it is older than the rest of the lake.\n  {_hint(lake, name)}"
            )


def _hint(lake: LakeStore, name: str) -> str:
    if _is_replayed(name):
        return f"Restore it, or {REPLAY}"
    if name == DEAD_ROWS:
        again = "`tidemark sinks reset` of each sink then notes again what its target refuses"
        return f"Restore it, or move {lake.table_path(name)} and its .seal away: {again}."
    if name == snapshots.SNAPSHOTS.table:
        return f"Restore it, or move {lake.table_path(name)} and its .seal away: then snapshots are counted anew."
    return "Restore it from a backup: what it holds is in no other table."


def _is_replayed(name: str) -> bool:
    """Whether a replay of everything makes the table from the others."""
    of_silver = ("silver.readings", "silver.quarantine", LEDGER)
    return name in of_silver or (name.startswith("gold.") and not name.startswith(("gold.late", MODELS.table)))


def _seal_checkpoint(seal: Seal) -> None:
    """Seal a checkpoint, without a batch that is not finished: another attempt may write its state anew."""
    commits = seal.folder / "commits"
    newest = newest_batch(seal.location / "commits")
    if newest < 0:
        return
    finished_at = (commits / str(newest)).stat().st_mtime_ns
    files = {file.relative_to(seal.folder).as_posix(): (_batch_of(file), at) for file, at in _of_a_checkpoint(seal.folder)}
    gone = seal.marks.keys() - files.keys()
    if len(gone) > len(files):
        seal.forget(gone)
    seal.extend(name for name, (batch, at) in sorted(files.items()) if (at < finished_at if batch is None else batch <= newest))


def _of_a_checkpoint(checkpoint: Path) -> Iterator[tuple[Path, int]]:
    """Files that never change once their batch is finished, and when they were written; Spark may take one away meanwhile."""
    files = (file for folder in OF_A_CHECKPOINT for file in (checkpoint / folder).rglob("*"))
    for file in (checkpoint / "metadata", *files):
        if not file.name.startswith(".") and file.is_file():
            with suppress(FileNotFoundError):
                yield file, file.stat().st_mtime_ns


def _batch_of(file: Path) -> int | None:
    """Return the batch of a file whose name says it, state at version N + 1 is that after batch N; None where only its time does."""
    if file.suffix in {".delta", ".changelog", ".snapshot", ".zip"}:
        return number(file.name) - 1
    return int(file.name) if file.name.isdecimal() else None


def _seal_table(seal: Seal) -> None:
    """Log entries, and data files when a sealed entry adds them."""
    entries = [file for file in (seal.folder / LOG).glob("[0-9]*") if f"{LOG}/{file.name}" not in seal.marks and not is_draft(file.name)]
    versions = {number(file.name) for file in entries if file.suffix == ".json"}
    files = (add["path"] for version in sorted(versions) for add in added(seal.location, version))
    seal.extend([*files, *(f"{LOG}/{file.name}" for file in entries)])
