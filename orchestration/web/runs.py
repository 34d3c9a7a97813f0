"""The view of runs: the conf that runs, one time line of what happened, jobs by the clock, snapshots and generations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter

from expectations.wording import counted
from orchestration.conf.pipeline_settings import ScheduleSettings
from orchestration.location import Location
from orchestration.quality import quality_tables
from orchestration.quality.history import RESULT_SCHEMA, RESULTS
from orchestration.storage import generations
from orchestration.storage.confs import difference_to_before, running
from orchestration.storage.gate_state import RELEASES
from orchestration.storage.kept_confs import CONFS, KeptConf
from orchestration.storage.ops_tables import NOTES, RUNS, Note
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.service_state import RefusedConf, parts_of, refused_conf
from orchestration.utc import from_iso
from orchestration.web.queries import ViewRequest
from orchestration.web.security import FormError, text_of

MOST, MOST_CONFS, LONGEST_NOTE = 50, 10, 2_000


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
    """Each the newest first, at most MOST; of `events` twice as many. `schedules`: the jobs by the clock, by name.

    `running`: the conf that runs; None before the first run. `refused`: a conf that `up` does not take up.
    """

    at: datetime
    running: KeptConf | None
    refused: RefusedConf | None
    events: Sequence[Event]
    schedules: Mapping[str, ScheduleSettings]
    snapshots: Sequence[Snapshot]
    generations: Sequence[generations.Generation]


def shown_runs(request: ViewRequest) -> Runs:
    """From the tables of ops alone."""
    conf, lake = request.conf, request.conf.lake
    runs, refused = running(LakeStore(conf)), refused_conf(lake).read()
    events = sorted(_events(lake), key=attrgetter("at"), reverse=True)[: 2 * MOST]
    snapshots, switches = SNAPSHOTS.newest(lake, MOST), generations.switches(lake)[::-1]
    return Runs(request.now, runs, refused, events, conf.schedules, snapshots, switches)


def _events(lake: Location) -> Iterator[Event]:
    """Yield what each log has, in no order."""
    for kept in CONFS.newest(lake, MOST_CONFS):
        what = f"version {kept.version}, from bronze batch {kept.since_batch} on"
        yield Event(kept.at, "conf", what, "", "\n".join(difference_to_before(lake, kept.version)))
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
    text, author = (text_of(form, name, LONGEST_NOTE) for name in ("text", "author"))
    try:
        begins = from_iso(form.get("begins", "").strip()).astimezone(UTC)
        ends = from_iso(form.get("ends", "").strip() or begins.isoformat()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise FormError("begins", f"a note is about a time such as 2026-01-05T08:00, in UTC: {error}.") from error
    if ends < begins:
        raise FormError("ends", "the span of the note ends before it begins.")
    NOTES.append(request.conf.lake, [Note(begins, ends, text, author, request.now)])
