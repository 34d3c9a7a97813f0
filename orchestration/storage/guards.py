"""What is looked at before a run goes on: seals, and whether tables and checkpoints are of one time. Each refusal names what mends it."""

from collections.abc import Iterable

from orchestration.errors import TidemarkError
from orchestration.storage.bindings import repair_hint
from orchestration.storage.damage import damaged_checkpoint, damaged_files, damaged_log
from orchestration.storage.delta import version_of
from orchestration.storage.lake_store import LakeStore
from orchestration.storage.sealing import sealed_tables
from orchestration.storage.seals import listed
from orchestration.storage.snapshots import TABLE, find_snapshot

REBUILT = ("silver.readings", "silver.quarantine", "ops.ledger")


def refuse_damage(lake: LakeStore, flows: Iterable[str]) -> None:
    """TidemarkError names the damaged files of the logs of all tables, or of the checkpoint of one of the flows."""
    for name, path in sealed_tables(lake).items():
        if damages := damaged_log(path):
            raise TidemarkError(f"the log of {name} is not as it was written: {listed(damages)}.\n  {_way_out_of_table(lake, name)}")
    for flow in flows:
        if lake.checkpoint(flow).exists() and (damages := damaged_checkpoint(lake.checkpoint(flow))):
            raise TidemarkError(f"the checkpoint of {flow} is not as it was written: {listed(damages)}.\n  {repair_hint(lake, flow)}")


def refuse_damaged_records(lake: LakeStore, *, is_everything: bool) -> None:
    """TidemarkError names damaged files of tables that a replay reads: all but those that it builds, unless it copies a part of these."""
    for name, path in sealed_tables(lake).items():
        if is_everything and _is_rebuilt(name):
            continue
        if damages := damaged_log(path) or damaged_files(path):
            raise TidemarkError(f"files of {name} are not as they were written: {listed(damages)}.\n  {_way_out_of_table(lake, name)}")


def refuse_older_tables(lake: LakeStore) -> None:
    """A table that was restored without its checkpoint lacks rows that nothing would write again."""
    newest = find_snapshot(lake.conf.lake)
    if newest is None or newest.generation != lake.generation.generation:
        return
    for name, version in newest.versions.items():
        if name in lake.tables and (found := version_of(lake.table_path(name))) < version:
            raise TidemarkError(
                f"{name} at {lake.table_path(name)} is at version {found}, but snapshot {newest.snapshot_id} pins its version {version}:"
                f" it is older than the rest of the lake.\n  {_way_out_of_table(lake, name)}"
            )


def _way_out_of_table(lake: LakeStore, name: str) -> str:
    if _is_rebuilt(name):
        return "Restore it, or run `tidemark replay` to build silver and gold anew from bronze, beside the old ones."
    if name == TABLE:
        return f"Restore it, or move {lake.table_path(name)} and its .seal away: then snapshots are counted anew."
    return "Restore it from a backup: what it holds is in no other table."


def _is_rebuilt(name: str) -> bool:
    """By a replay of everything, from the other tables."""
    return name in REBUILT or (name.startswith("gold.") and not name.endswith("_late"))
