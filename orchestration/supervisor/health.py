"""Health: the one list of what is wrong, found from what the lake remembers. No Spark, and no source, sink or channel is asked.

Each detector yields problems; the worst come first. The page, `status`, `doctor`, metrics and channels show this list and no other.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import psutil

from expectations.suite import Severity as Importance
from expectations.wording import counted
from orchestration.alerts.firing import firing
from orchestration.alerts.notifications import DEAD_LETTERS, NOTIFICATIONS, dead_messages
from orchestration.conf.model import Conf
from orchestration.conf.transport_settings import LandingFolder
from orchestration.connectors.outages import answers_since, current_outage, noted_odd
from orchestration.connectors.sinks.dead_rows import dead_rows
from orchestration.errors import TidemarkError, sentence_of
from orchestration.jobs.watched_devices import WatchedDevices, watched_devices
from orchestration.jobs.watched_fields import Watched, watched_fields
from orchestration.location import Location
from orchestration.quality.history import RESULTS, last_runs
from orchestration.rendering import lasting
from orchestration.storage.confs import unreplayed_changes
from orchestration.storage.delta import path_of, version_of
from orchestration.storage.disk import Room, room
from orchestration.storage.gate_state import failing_gates
from orchestration.storage.lease import holder_of, is_held
from orchestration.storage.ops_tables import LEDGER_FLOW, RUNS, RunOfJob
from orchestration.storage.registry import TABLE as REGISTRY
from orchestration.storage.registry import current
from orchestration.storage.snapshots import find_snapshot
from orchestration.storage.source_offsets import source_offsets
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.device_health import Context, problems_of_devices
from orchestration.supervisor.model_health import problems_of_models
from orchestration.supervisor.problem import ABOUT, Problem, Severity
from orchestration.supervisor.service_state import STOPPED, PartState, folder_of, last_beat, read_service, refused_conf
from orchestration.supervisor.status import EVENTS, Status, read_status
from orchestration.utc import from_iso, from_micros, to_micros
from silver.policy import Unknown

__all__ = ["ABOUT", "LAG_VIEW", "Problem", "Severity", "known_until", "problems"]
LITTLE_MEMORY = 256 * 1024**2
LONGEST_LAG_SECONDS, LAG_VIEW = 180.0, "/batches"
MOST = 5
"""Problems of one kind that are listed one by one."""
COMMAND = re.compile(r"`(tidemark (?!check|doctor|logs|status)[^`]+)`")
"""A command in a reason, but for those that only show more."""
Versions = tuple[int, ...]
TIDEMARK = re.compile(r"(^|(?<=&& ))tidemark(?= )")


def problems(conf: Conf, now: datetime, status: Status | None = None) -> list[Problem]:
    """List what is wrong, the worst first. `status`: of this conf, where the caller has read it."""
    status = status or read_status(conf, now)
    is_written = is_held(conf.lake)
    detectors = (
        *(_of_service(conf.lake, is_written), _of_conf(conf), _of_fields(conf), _of_machine(conf), _of_sources(conf, status)),
        *(_of_targets(conf, status), _of_gates(conf), _of_expectations(conf), _of_jobs(conf), _of_devices(conf, status)),
        *(_of_alerts(conf, now), problems_of_models(conf)),
    )
    listed = [problem for detected in detectors for problem in _unless_damaged(detected)]
    if is_written and not any(problem.about in ("gate", "part") for problem in listed):
        listed += _of_lag(status)  # else that is why
    of_conf = (replace(problem, command=TIDEMARK.sub(conf.command, problem.command)) for problem in listed)
    return sorted(of_conf, key=lambda problem: problem.rank)


def _unless_damaged(detected: Iterator[Problem]) -> Iterator[Problem]:
    """Yield what a detector finds; where a file that it reads is damaged, that too: the others go on."""
    try:
        yield from detected
    except Exception as error:
        yield Problem(Severity.WARNING, "lake files", sentence_of(error))


def known_until(conf: Conf) -> datetime | None:
    """Return the instant up to which the list is complete: when a run last looked at what comes; None where none ever did."""
    watched, beat = None, last_beat(conf.lake)
    with suppress(TidemarkError):  # a damaged file is in the list
        watched = _watched(conf.lake)
    if beat is not None and is_held(conf.lake) and not (watched and watched.bronze_batch < _newest_batch(conf)):
        return datetime.fromtimestamp(beat, UTC)
    if watched is not None and watched.at_us:
        return from_micros(watched.at_us)
    snapshot = find_snapshot(conf.lake)
    return snapshot.at if snapshot else None


def _of_service(lake: Location, is_written: bool) -> Iterator[Problem]:
    service = read_service(lake)
    if is_held(folder_of(lake)) and service is not None:
        is_written |= any(part.name == "streams" for part in service.parts)  # it is about to, or is listed itself
        # One without a reason is about to start.
        yield from (_of_part(part) for part in service.parts if part.state != "running" and part.reason is not None)
    elif service is not None and not is_written:
        how = "is gone without a word" if any(part.pid is not None for part in service.parts) else "was ended"
        text, beat = f"Nothing runs: `tidemark up` {how}, and no event is taken in.", last_beat(lake)
        since = datetime.fromtimestamp(beat, UTC) if beat else None
        yield Problem(Severity.CRITICAL, "lake", text, since, "/runs", "tidemark up")
        return
    if not is_written:
        yield Problem(Severity.WARNING, "lake", "Nothing writes the lake now: what is shown does not move.", None, "/runs", "tidemark up")


def _of_part(part: PartState) -> Problem:
    """A part that waits or hangs is started again by itself. One that is stopped is not, and its reason may name what it needs first."""
    severity = Severity.WARNING if part.state == "waiting" else Severity.CRITICAL
    named = COMMAND.search((part.reason or "").removesuffix(STOPPED))
    again = "tidemark down && tidemark up --detach" if part.state == "stopped" else ""
    text = f"{part.name} {'hangs' if part.state == 'hangs' else f'is {part.state}'}: {part.reason}"
    return Problem(severity, f"part {part.name}", text, from_iso(part.since), "/runs", named[1] if named else again)


def _of_conf(conf: Conf) -> Iterator[Problem]:
    if (refused := refused_conf(conf.lake).read()) is not None:
        where = f"{refused.file}:{refused.line}: " if refused.line else ""
        text = f"conf has changed and is not taken up; all goes on as before: {where}{refused.sentence}"
        yield Problem(Severity.WARNING, "conf", text, from_iso(refused.since), "/runs", refused.command)
    for path, sentence in unreplayed_changes(LakeStore(conf)).items():
        yield Problem(Severity.NOTICE, f"conf {'.'.join(path[1:])}", sentence, None, "/runs", "tidemark replay")


def _of_fields(conf: Conf) -> Iterator[Problem]:
    for name, source in (watched_fields(conf.lake).read() or Watched()).sources.items():
        for metric in source.metrics.values():
            if metric.told:
                text, since = f"{metric.told}. Look at what it sends, or name the field in sources.yml.", metric.last_at
                yield Problem(Severity.WARNING, f"source {name}", text, from_iso(since) if since else None, "/quarantine")


def _of_machine(conf: Conf) -> Iterator[Problem]:
    (left, free), memory = room(conf.lake.local, conf.maintenance.least_free_bytes), psutil.virtual_memory().available
    if left is not Room.ENOUGH:
        severity = Severity.CRITICAL if left is Room.FULL else Severity.WARNING
        text = f"The disk of the lake has {free / 1024**3:.1f} GiB left. Make room, or remove what no snapshot needs."
        yield Problem(severity, "lake disk", text, None, "/runs", "tidemark maintain")
    if memory < LITTLE_MEMORY:
        text = f"This machine has {memory / 1024**2:.0f} MiB of memory left. Set engine.driver_memory, or end what else runs here."
        yield Problem(Severity.WARNING, "lake memory", text)


def _of_sources(conf: Conf, status: Status) -> Iterator[Problem]:
    for row in status.sources:
        name, transport = row["source"], conf.sources[row["source"]].transport
        if odd := noted_odd(conf.lake, name):
            file, reason = next(iter(odd.reasons.items()))
            text = f"Source {name} has {counted(odd.count, 'path')} to look at. Of {file} a run says: {reason}."
            yield Problem(Severity.WARNING, f"source {name}", text)
        if row["down_since"] and row["state"] == "down":
            yield _down("source", name, row["down_since"], row["reason"])
        elif row["state"] == "new" and isinstance(transport, LandingFolder) and not transport.path.is_dir():
            text = f"The folder of source {name} is not there yet: {transport.path}."
            yield Problem(Severity.WARNING, f"source {name}", text, None, "/", f"mkdir -p {transport.path}")


def _of_targets(conf: Conf, status: Status) -> Iterator[Problem]:
    for name, row in ((row["sink"], row) for row in status.sinks):
        if row["down_since"]:
            yield _down("sink", name, row["down_since"], row["reason"])
        if row["dead_rows"]:
            newest = max(dead_rows(conf.lake, name).values(), key=lambda dead: dead.at)
            text = f"Sink {name} has {counted(row['dead_rows'], 'row')} in ops.dead_rows, which its target refused: {newest.reason}"
            yield Problem(Severity.WARNING, f"sink {name}", text, newest.at, "/runs", f"tidemark sinks resend {name}")
    for name in conf.channels:
        if outage := current_outage(conf.lake, "channel", name) or current_outage(conf.lake, "problems", name):
            yield _down("channel", name, outage.since, outage.reason, "/alerts")
        if letters := _count_dead(conf.lake, name, _versions(conf.lake, DEAD_LETTERS.table, NOTIFICATIONS.table)):
            text = f"Channel {name} has {counted(letters, 'message')} in ops.dead_letters, which nobody got."
            yield Problem(Severity.WARNING, f"channel {name}", text, None, "/alerts", f"tidemark alerts resend {name}")


@lru_cache
def _count_dead(lake: Location, channel: str, _: Versions) -> int:
    return len(dead_messages(lake, channel))


def _down(kind: str, name: str, since: str, reason: str, view: str = "/runs") -> Problem:
    named = COMMAND.search(reason)
    return Problem(
        Severity.CRITICAL, f"{kind} {name}", f"{kind} {name} is down: {reason}", from_iso(since), view, named[1] if named else ""
    )


def _of_gates(conf: Conf) -> Iterator[Problem]:
    for name in conf.quality.gates:
        if unchecked := current_outage(conf.lake, "gate", name):
            yield Problem(Severity.CRITICAL, f"gate {name}", unchecked.reason, from_iso(unchecked.since), "/quality", "tidemark quality")
    for state, text in failing_gates(conf, LakeStore(conf).table_path):
        failure, first = state.failure, text.splitlines()[0]
        if failure is None:
            continue
        release = f'tidemark quality release --table {state.table} --version {failure.version} --reason ".."' if state.is_closed else ""
        severity = Severity.CRITICAL if state.is_closed else Severity.WARNING
        yield Problem(severity, f"gate {state.table}", first, from_iso(failure.at), "/quality", release)


def _of_expectations(conf: Conf) -> Iterator[Problem]:
    """List critical expectations that failed when they were checked last. Warnings of suites are on the page of quality."""
    for sentence, since in _failed(conf.lake, _versions(conf.lake, RESULTS))[:MOST]:
        yield Problem(Severity.CRITICAL, "quality", sentence, since, "/quality", "tidemark quality")


@lru_cache
def _failed(lake: Location, _: Versions) -> list[tuple[str, datetime]]:
    return [
        (f"{table}: {result.expectation.description} ({suite}) Found: {result.outcome.observed}", run.run_at)
        for (table, suite), run in last_runs(lake).items()
        for result in run.results
        if result.outcome.is_success is False and result.expectation.severity is Importance.CRITICAL
    ]


def _of_jobs(conf: Conf) -> Iterator[Problem]:
    """List jobs by the clock whose last run broke, or whose answer was no."""
    if not conf.schedules:
        return
    last = _last_of_jobs(conf.lake, _versions(conf.lake, RUNS.table))
    for name in conf.schedules:
        if (run := last.get(name)) is not None and run.outcome in ("broke", "no"):
            reason = run.reason or "its answer was no"
            command = f"tidemark {line}" if (line := conf.schedules[name].line) else ""
            yield Problem(Severity.WARNING, f"job {name}", f"Job {name} did not end well: {reason}", run.started_at, "/runs", command)


@lru_cache
def _last_of_jobs(lake: Location, _: Versions) -> dict[str, RunOfJob]:
    return RUNS.last_of_each(lake, "job")


def _of_devices(conf: Conf, status: Status) -> Iterator[Problem]:
    if (watched := _watched(conf.lake)) is None:
        return
    registered = _registered(conf.lake, _versions(conf.lake, REGISTRY))
    until = known_until(conf)
    context = Context(
        known_us=to_micros(until) if until else 0,
        heard_since_us=_heard_since(conf.lake, status),
        registered=registered if conf.policy.unknown_device is Unknown.QUARANTINE else {*registered, *watched.devices},
        bounds=conf.bounds,
    )
    yield from problems_of_devices(watched, context)


def _heard_since(lake: Location, status: Status) -> dict[str, int]:
    """Return since when this run hears of each source that answers."""
    holder = holder_of(lake) if is_held(lake) else None
    up = [row["source"] for row in status.sources if row["state"] not in ("down", "paused")]
    heard = {name: to_micros(at) if (at := answers_since(lake, "source", name)) else 0 for name in up}
    return {name: since for name, since in heard.items() if holder is None or since >= to_micros(from_iso(holder.since))}


@lru_cache
def _registered(lake: Location, _: Versions) -> set[str]:
    return {row["device_id"] for row in current(lake) if row["is_known"]}


def _of_alerts(conf: Conf, now: datetime) -> Iterator[Problem]:
    """One for all: the alerts themselves are told as such."""
    rows = firing(conf, now) if conf.alerts else []
    unseen = [row["changed_at"] for row in rows if row["state"] == "firing" and row["seen"] is None]
    if unseen:
        text = f"{counted(len(unseen), 'alert')} {'fires' if len(unseen) == 1 else 'fire'}, and nobody has said that it is seen."
        yield Problem(Severity.NOTICE, "alerts", text, min(unseen), "/alerts")


def _of_lag(status: Status) -> Iterator[Problem]:
    """Only the one that others wait for: the one whose own lag is the greatest. Nothing reads from the ledger."""
    lags = [(row["lag_seconds"] or 0.0, f"source {row['source']}") for row in status.sources]
    lags += [(row["lag_seconds"] or 0.0, f"query {row['flow']}") for row in status.flows if row["flow"] != LEDGER_FLOW]
    lag, subject = max(lags, default=(0.0, ""))
    if lag > LONGEST_LAG_SECONDS:
        text = f"Rows wait for {lasting(lag)} in {subject}: it does not keep up with what comes, or stands still."
        yield Problem(Severity.WARNING, subject, text, status.at - timedelta(seconds=lag), LAG_VIEW)


def _newest_batch(conf: Conf) -> int:
    offsets = source_offsets(LakeStore(conf).table_path(EVENTS))
    return max((offset.bronze_batch for offset in offsets.values()), default=-1)


def _watched(lake: Location) -> WatchedDevices | None:
    file = watched_devices(lake).location
    return _read_watched(lake, file.tag())


@lru_cache(2)
def _read_watched(lake: Location, _: str | None) -> WatchedDevices | None:
    return watched_devices(lake).read()


def _versions(lake: Location, *tables: str) -> Versions:
    """Return what an answer is kept for: these tables as they are now."""
    return tuple(version_of(path_of(lake, table)) for table in tables)
