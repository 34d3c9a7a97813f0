"""The view of runs: jobs by the clock, snapshots, generations, and what cannot be reached now."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from orchestration.errors import ConfError
from orchestration.storage import generations, runs
from orchestration.storage.delta import is_table, path_of, table_of
from orchestration.storage.notes import Note, append_note, notes_between
from orchestration.storage.outages import Kind, current_outage
from orchestration.storage.snapshots import all_snapshots
from orchestration.utc import from_iso
from orchestration.web.queries import ViewRequest

MOST, LONGEST_NOTE = 50, 2_000
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Runs:
    """Each the newest first, at most MOST. `declared`: name, cron and command of each job; `jobs`: rows of ops.runs."""

    at: datetime
    declared: Sequence[tuple[str, str, str]]
    jobs: Sequence[dict[str, Any]]
    snapshots: Sequence[dict[str, Any]]
    generations: Sequence[dict[str, Any]]
    outages: Sequence[dict[str, Any]]
    notes: Sequence[dict[str, Any]]


def shown_runs(request: ViewRequest) -> Runs:
    """From the tables of ops alone."""
    conf, now = request.conf, request.now
    path = path_of(conf.lake, runs.TABLE)
    rows = sorted(table_of(path).to_pylist(), key=lambda row: row["started_at"], reverse=True) if is_table(path) else []
    jobs = [row for row in rows if row["outcome"] != "declared"][:MOST]
    declared = [
        (name, schedule.cron, schedule.command or f"a query to {schedule.sql and schedule.sql.to.name}")
        for name, schedule in conf.schedules.items()
    ]
    names = ("snapshot_id", "at", "generation", "bronze_batch")
    pinned = [{name: getattr(snapshot, name) for name in names} for snapshot in all_snapshots(conf.lake)]
    made = [asdict(switch) for switch in generations.switches(conf.lake)]
    kinds: dict[Kind, list[str]] = {"source": [*conf.sources], "collected": [*conf.sources], "sink": [*conf.sinks]}
    down = [
        {"kind": kind, "name": name, "since": outage.since, "reason": outage.reason}
        for kind, of_kind in kinds.items()
        for name in of_kind
        if (outage := current_outage(conf.lake, kind, name))
    ]
    return Runs(now, declared, jobs, pinned[: -MOST - 1 : -1], made[::-1], down, notes_between(conf.lake, FIRST, LAST)[:MOST])


def add_note(request: ViewRequest, form: dict[str, str]) -> None:
    """About the span from `begins` to `ends`, or about one instant; ConfError where they are none, or nothing is said."""
    text, author = (form.get(name, "").strip() for name in ("text", "author"))
    if not text or not author or len(text) + len(author) > LONGEST_NOTE:
        raise ConfError(f"a note has a text and an author, of at most {LONGEST_NOTE:,} characters.")
    try:
        begins = from_iso(form.get("begins", "").strip()).astimezone(UTC)
        ends = from_iso(form.get("ends", "").strip() or begins.isoformat()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ConfError(f"a note is about a time such as 2026-01-05T08:00, in UTC: {error}.") from error
    if ends < begins:
        raise ConfError("the span of the note ends before it begins.")
    append_note(request.conf.lake, Note(begins, ends, text, author, request.now))
