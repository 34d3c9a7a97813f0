"""What SQL names stand for: each table of the lake at one snapshot, and of gold tables the latest revision or the whole history."""

from collections.abc import Iterator
from pathlib import Path

from gold.revisions import VECTOR_KEY, WINDOW_KEY
from orchestration.conf.model import Conf
from orchestration.generations import FOLDER, numbered, serving
from orchestration.snapshots import Snapshot

KEYS = {"aggregates": WINDOW_KEY, "vectors": VECTOR_KEY}


def views(conf: Conf, snapshot: Snapshot | None, query: str) -> dict[str, str]:
    """SELECT by SQL name, of the tables that the query can mean: a view costs a look at the table's log."""
    found = {name: select for path in _tables(conf.lake, snapshot) for name, select in _views_of(conf, path, snapshot)}
    return {name: select for name, select in found.items() if name.split(".", 1)[1] in query}


def _tables(lake: Path, snapshot: Snapshot | None) -> list[Path]:
    """Those of the generation that the snapshot pins, and those that no generation has."""
    generation = serving(lake) if snapshot is None else numbered(lake, snapshot.generation)
    logs = [log for folders in ("*/*", f"{FOLDER}/*/*/*") for log in lake.glob(f"{folders}/_delta_log")]
    paths = {generation.table(lake, f"{log.parent.parent.name}.{log.parent.name}") for log in logs}
    return sorted(path for path in paths if (path / "_delta_log").exists())


def _views_of(conf: Conf, path: Path, snapshot: Snapshot | None) -> Iterator[tuple[str, str]]:
    name = f"{path.parent.name}.{path.name}"
    rows = f"select * from delta.`{str(path).replace('`', '``')}`"
    if snapshot is not None and name in snapshot.versions:
        rows += f" version as of {snapshot.versions[name]}"
        if name.startswith(("bronze.", "silver.")):
            rows += f" where bronze_batch <= {snapshot.bronze_batch}"
    group, _, kind = path.name.rpartition("_")
    if path.parent.name == "gold" and group in conf.groups and kind in KEYS:
        yield f"{name}_history", rows
        yield name, _latest(rows, KEYS[kind])
    else:
        yield name, rows


def _latest(history: str, key: tuple[str, ...]) -> str:
    """As gold.revisions.latest."""
    names = ", ".join(key)
    amended = f"select {names}, max(revision) as newest from ({history}) where revision > 0 group by {names}"
    same = " and ".join(f"rows.{name} = amended.{name}" for name in key)
    return f"select rows.* from ({history}) as rows left anti join ({amended}) as amended on {same} and rows.revision < amended.newest"
