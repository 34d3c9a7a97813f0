"""What is sealed: of each checkpoint what its finished batches left, of each table its log and the data files that the log adds.

A damaged checkpoint or log is refused before a flow goes on; `tidemark ledger` and `tidemark verify` look at the data files as well.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from orchestration.location import Location
from orchestration.storage import generations, snapshots
from orchestration.storage.damage import name_of, number, numbers
from orchestration.storage.delta_log import LOG, added, is_draft
from orchestration.storage.lake_store import LakeStore
from orchestration.storage.ops_tables import LEDGER, LEDGER_SCHEMA, TICKS, TICKS_SCHEMA
from orchestration.storage.registry import table_path as registry_path
from orchestration.storage.seals import Seal

OF_A_CHECKPOINT = ("offsets", "commits", "sources", "state")
WITHOUT_SPARK = {
    TICKS: TICKS_SCHEMA,
    LEDGER: LEDGER_SCHEMA,
    snapshots.TABLE: snapshots.SCHEMA,
    generations.TABLE: generations.SCHEMA,
}
"""Tables that deltalake writes."""


class Sealing:
    """The seals of a lake, for the one process that writes it."""

    def __init__(self, lake: LakeStore, flows: Sequence[str]) -> None:
        """Of the checkpoints of these flows, and of all tables."""
        self._checkpoints = [Seal(lake.checkpoint(flow)) for flow in flows]
        self._tables = [Seal(path) for path in sealed_tables(lake).values()]

    def go_on(self) -> None:
        """Seal what has been finished since; may run beside the flows."""
        for seal in self._checkpoints:
            _seal_checkpoint(seal)
        for seal in self._tables:
            _seal_table(seal)


def sealed_tables(lake: LakeStore) -> dict[str, Location]:
    """Every table whose files must not change, by its SQL name."""
    of_flows = {name: table.location for name, table in lake.tables.items()}
    return of_flows | {name: lake.table_path(name) for name in WITHOUT_SPARK} | {"silver.devices": registry_path(lake.conf.lake)}


def _seal_checkpoint(seal: Seal) -> None:
    """Nothing of a batch that is not finished: another attempt may write its state anew."""
    commits = seal.folder / "commits"
    newest = max(numbers(commits), default=None)
    if newest is None:
        return
    finished_at = (commits / str(newest)).stat().st_mtime_ns
    found = {name_of(seal, file): (file, written_at) for file, written_at in _of_a_checkpoint(seal.folder)}
    gone = seal.marks.keys() - found.keys()
    if len(gone) > len(found):
        seal.forget(gone)
    whole = (name for name, (file, at) in sorted(found.items()) if at < finished_at or _is_of_state(file, newest + 1))
    seal.extend([f"commits/{newest}", *whole])


def _of_a_checkpoint(checkpoint: Path) -> Iterator[tuple[Path, int]]:
    """Files that never change once their batch is finished, and when they were written; Spark may take one away meanwhile."""
    files = (file for folder in OF_A_CHECKPOINT for file in (checkpoint / folder).rglob("*"))
    for file in (checkpoint / "metadata", *files):
        if not file.name.startswith(".") and file.is_file():
            with suppress(FileNotFoundError):
                yield file, file.stat().st_mtime_ns


def _is_of_state(file: Path, version: int) -> bool:
    """Of a version or an earlier one. Spark writes snapshots of state when the batch has long ended."""
    return file.suffix in {".delta", ".changelog", ".snapshot", ".zip"} and number(file) <= version


def _seal_table(seal: Seal) -> None:
    """Log entries, and data files when a sealed entry adds them."""
    entries = [file for file in (seal.folder / LOG).glob("[0-9]*") if f"{LOG}/{file.name}" not in seal.marks and not is_draft(file)]
    versions = {number(file) for file in entries if file.suffix == ".json"}
    files = (unquote(add["path"]) for version in sorted(versions) for add in added(Location(seal.folder), version))
    seal.extend([*files, *(f"{LOG}/{file.name}" for file in entries)])
