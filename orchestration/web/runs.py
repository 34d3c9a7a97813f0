"""The view of runs: the conf that runs, jobs by the clock, snapshots, generations, and what cannot be reached now."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orchestration.connectors.outages import Kind, current_outage
from orchestration.errors import ConfError
from orchestration.storage import generations
from orchestration.storage.confs import CONFS, difference_to_before, running
from orchestration.storage.ops_tables import NOTES, RUNS, Note, RunOfJob
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.service_state import RefusedConf, refused_conf
from orchestration.utc import from_iso
from orchestration.web.queries import ViewRequest

MOST, MOST_CONFS, LONGEST_NOTE = 50, 10, 2_000


@dataclass(frozen=True)
class ShownConf:
    """A conf that the lake was run with. `differences`: to the one before it, lines of `grouped`."""

    version: int
    at: datetime
    since_batch: int
    is_running: bool
    differences: Sequence[str]


@dataclass(frozen=True)
class Runs:
    """Each the newest first, at most MOST. `declared`: name, cron and command of each job. `refused`: a conf that `up` does not take up."""

    at: datetime
    confs: Sequence[ShownConf]
    refused: RefusedConf | None
    declared: Sequence[tuple[str, str, str]]
    jobs: Sequence[RunOfJob]
    snapshots: Sequence[Snapshot]
    generations: Sequence[generations.Generation]
    outages: Sequence[dict[str, Any]]
    notes: Sequence[Note]


def shown_runs(request: ViewRequest) -> Runs:
    """From the tables of ops alone."""
    conf, now = request.conf, request.now
    jobs = RUNS.newest(conf.lake, MOST, [("outcome", "!=", "declared")])
    declared = [
        (name, schedule.cron, schedule.command or f"a query to {schedule.sql and schedule.sql.to.name}")
        for name, schedule in conf.schedules.items()
    ]
    notes = sorted(NOTES.newest(conf.lake, MOST), key=lambda note: note.begins_at, reverse=True)
    kinds: dict[Kind, list[str]] = {"source": [*conf.sources], "collected": [*conf.sources], "sink": [*conf.sinks]}
    down = [
        {"kind": kind, "name": name, "since": outage.since, "reason": outage.reason}
        for kind, of_kind in kinds.items()
        for name in of_kind
        if (outage := current_outage(conf.lake, kind, name))
    ]
    confs, refused = [*_confs(LakeStore(conf))], refused_conf(conf.lake).read()
    return Runs(now, confs, refused, declared, jobs, SNAPSHOTS.newest(conf.lake, MOST), generations.switches(conf.lake)[::-1], down, notes)


def _confs(lake: LakeStore) -> Iterator[ShownConf]:
    runs = running(lake)
    for kept in CONFS.newest(lake.conf.lake, MOST_CONFS):
        is_running = runs is not None and runs.version == kept.version
        yield ShownConf(kept.version, kept.at, kept.since_batch, is_running, difference_to_before(lake.conf.lake, kept.version))


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
    NOTES.append(request.conf.lake, [Note(begins, ends, text, author, request.now)])
