"""The view of runs: the conf that runs, one time line of what happened, jobs by the clock, snapshots, generations, and what is down."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

from orchestration.conf.diagnostic import counted
from orchestration.conf.model import Conf
from orchestration.connectors.outages import Kind, current_outage
from orchestration.location import Location
from orchestration.quality import quality_tables
from orchestration.quality.history import RESULT_SCHEMA, RESULTS
from orchestration.storage import generations
from orchestration.storage.confs import CONFS, difference_to_before, running
from orchestration.storage.gate_state import RELEASES
from orchestration.storage.ops_tables import NOTES, RUNS, Note
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.service_state import RefusedConf, parts_of, refused_conf
from orchestration.utc import from_iso
from orchestration.web.queries import ViewRequest
from orchestration.web.security import FormError

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
class Event:
    """Something that happened to the pipeline. `kind`: conf, job, generation, release, check, start or note. `outcome`: for a badge."""

    at: datetime
    kind: str
    what: str
    outcome: str = ""
    more: str = ""


@dataclass(frozen=True)
class Runs:
    """Each the newest first, at most MOST; of `events` twice as many. `declared`: name, cron and command of each job.

    `refused`: a conf that `up` does not take up.
    """

    at: datetime
    confs: Sequence[ShownConf]
    refused: RefusedConf | None
    events: Sequence[Event]
    declared: Sequence[tuple[str, str, str]]
    snapshots: Sequence[Snapshot]
    generations: Sequence[generations.Generation]
    outages: Sequence[dict[str, Any]]


def shown_runs(request: ViewRequest) -> Runs:
    """From the tables of ops alone."""
    conf, now = request.conf, request.now
    declared = [
        (name, schedule.cron, schedule.command or f"a query to {schedule.sql and schedule.sql.to.name}")
        for name, schedule in conf.schedules.items()
    ]
    kinds: dict[Kind, list[str]] = {"source": [*conf.sources], "collected": [*conf.sources], "sink": [*conf.sinks]}
    down = [
        {"kind": kind, "name": name, "since": outage.since, "reason": outage.reason}
        for kind, of_kind in kinds.items()
        for name in of_kind
        if (outage := current_outage(conf.lake, kind, name))
    ]
    confs, refused = [*_confs(LakeStore(conf))], refused_conf(conf.lake).read()
    events = sorted([*_events(conf), *map(_of_conf, confs)], key=attrgetter("at"), reverse=True)[: 2 * MOST]
    return Runs(now, confs, refused, events, declared, SNAPSHOTS.newest(conf.lake, MOST), generations.switches(conf.lake)[::-1], down)


def _confs(lake: LakeStore) -> Iterator[ShownConf]:
    runs = running(lake)
    for kept in CONFS.newest(lake.conf.lake, MOST_CONFS):
        is_running = runs is not None and runs.version == kept.version
        yield ShownConf(kept.version, kept.at, kept.since_batch, is_running, difference_to_before(lake.conf.lake, kept.version))


def _of_conf(conf: ShownConf) -> Event:
    what = f"version {conf.version}, from bronze batch {conf.since_batch} on"
    return Event(conf.at, "conf", what, "runs" if conf.is_running else "", "; ".join(conf.differences))


def _events(conf: Conf) -> Iterator[Event]:
    """Yield what each log has, in no order."""
    lake = conf.lake
    for job in RUNS.newest(lake, MOST, [("outcome", "!=", "declared")]):
        snapshot = "" if job.snapshot_id is None else f", snapshot {job.snapshot_id}"
        took = f"due {job.due_at:%Y-%m-%d %H:%M:%S} UTC, took {job.seconds:.1f} s{snapshot}"
        yield Event(job.started_at, "job", job.job, job.outcome, ": ".join(part for part in (took, job.reason) if part))
    for switch in generations.switches(lake):
        if switch.at is not None:
            yield Event(switch.at, "generation", f"generation {switch.generation} became active", "", switch.cause)
    for release in RELEASES.newest(lake, MOST):
        yield Event(release.released_at, "release", f"{release.table_name} up to version {release.version}", "", release.reason)
    for part in parts_of(lake):
        restarts = f"{counted(part['restarts'], 'restart')} after a failure" if part["restarts"] else ""
        if part["since"]:
            yield Event(from_iso(part["since"]), "start", part["part"], part["state"], ": ".join(filter(None, (restarts, part["reason"]))))
    for run_at, cause, is_success in _checks(lake):
        outcome = "no rows to check" if is_success is None else "holds" if is_success else "fails"
        yield Event(run_at, "check", f"quality, {cause}", outcome)
    for note in NOTES.newest(lake, MOST):
        until = "" if note.ends_at == note.begins_at else f" until {note.ends_at:%Y-%m-%d %H:%M:%S} UTC"
        yield Event(note.begins_at, "note", note.text, "", f"by {note.author}{until}")


def _checks(lake: Location) -> list[tuple[datetime, str, bool | None]]:
    """List runs of quality: when, why, and whether all held; None where nothing could be checked."""
    results = quality_tables.read(lake, RESULTS, RESULT_SCHEMA, ["run_at", "cause", "is_success"])
    runs = results.group_by(["run_at", "cause"]).aggregate([("is_success", "min")]).sort_by([("run_at", "descending")])
    return [(row["run_at"], row["cause"], row["is_success_min"]) for row in runs.slice(0, MOST).to_pylist()]


def add_note(request: ViewRequest, form: dict[str, str]) -> None:
    """About the span from `begins` to `ends`, or about one instant; ConfError where they are none, or nothing is said."""
    text, author = (form.get(name, "").strip() for name in ("text", "author"))
    if not text or not author or len(text) + len(author) > LONGEST_NOTE:
        raise FormError("author" if text else "text", f"a note has a text and an author, of at most {LONGEST_NOTE:,} characters.")
    try:
        begins = from_iso(form.get("begins", "").strip()).astimezone(UTC)
        ends = from_iso(form.get("ends", "").strip() or begins.isoformat()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise FormError("begins", f"a note is about a time such as 2026-01-05T08:00, in UTC: {error}.") from error
    if ends < begins:
        raise FormError("ends", "the span of the note ends before it begins.")
    NOTES.append(request.conf.lake, [Note(begins, ends, text, author, request.now)])
