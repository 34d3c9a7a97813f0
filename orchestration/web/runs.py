"""What the view of runs shows: jobs by the clock, snapshots, generations, and what cannot be reached now."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from orchestration.conf.model import Conf
from orchestration.storage import generations, runs
from orchestration.storage.delta import is_table, path_of, table_of
from orchestration.storage.outages import Kind, current_outage
from orchestration.storage.snapshots import all_snapshots

MOST = 50


@dataclass(frozen=True)
class Runs:
    """Each the newest first, at most MOST. `declared`: name, cron and command of each job; `jobs`: rows of ops.runs."""

    at: datetime
    declared: Sequence[tuple[str, str, str]]
    jobs: Sequence[dict[str, Any]]
    snapshots: Sequence[dict[str, Any]]
    generations: Sequence[dict[str, Any]]
    outages: Sequence[dict[str, Any]]


def shown_runs(conf: Conf, now: datetime) -> Runs:
    """From the tables of ops alone."""
    path = path_of(conf.lake, runs.TABLE)
    rows = sorted(table_of(path).to_pylist(), key=lambda row: row["started_at"], reverse=True) if is_table(path) else []
    jobs = [row for row in rows if row["outcome"] != "declared"][:MOST]
    declared = [(name, of.cron, of.command or f"a query to {of.sql and of.sql.to.name}") for name, of in conf.schedules.items()]
    names = ("snapshot_id", "at", "generation", "bronze_batch")
    pinned = [{name: getattr(of, name) for name in names} for of in all_snapshots(conf.lake)]
    made = [asdict(of) for of in generations.switches(conf.lake)]
    kinds: dict[Kind, list[str]] = {"source": [*conf.sources], "collected": [*conf.sources], "sink": [*conf.sinks]}
    down = [
        {"kind": kind, "name": name, "since": outage.since, "reason": outage.reason}
        for kind, of_kind in kinds.items()
        for name in of_kind
        if (outage := current_outage(conf.lake, kind, name))
    ]
    return Runs(now, declared, jobs, pinned[: -MOST - 1 : -1], made[::-1], down)
