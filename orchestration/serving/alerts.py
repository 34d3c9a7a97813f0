"""An alert judged over the history of a lake, to see what it would have done: without Spark, nothing is written."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from expectations.wording import counted
from gold.alerts.spec import Alert
from gold.alerts.states import FIRING
from gold.schema import ALERTS, SAMPLES
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.jobs.gold.exact_alerts import ANY_TIME, ExactAlert
from orchestration.storage.positions import FlowPosition
from orchestration.storage.snapshots import find_snapshot
from orchestration.utc import EPOCH, from_micros, to_iso, to_micros

COLUMNS = ("changed_at", "entity", "state", "previous_state", "severity", "value", "since", "summary")


@dataclass(frozen=True)
class Span:
    """A time in which an alert fired for an entity; an alert that fires still ends where the history does."""

    entity: str
    begin: datetime
    end: datetime


@dataclass(frozen=True)
class Trial:
    """`samples` and `changes` as gold.schema declares them, as they were known; the newest sample is of `until`."""

    alert: Alert
    samples: pa.Table
    changes: pa.Table
    until: datetime

    @property
    def firing(self) -> list[Span]:
        """In order of their end."""
        started, spans = dict[tuple[str, bool], datetime](), list[Span]()
        for change in self.changes.select(["entity", "state", "changed_at", "is_past"]).to_pylist():
            key, at = (change["entity"], change["is_past"]), change["changed_at"]
            if change["state"] == FIRING:
                started.setdefault(key, at)
            elif key in started:
                spans.append(Span(key[0], started.pop(key), at))
        return [*spans, *(Span(entity, at, max(at, self.until)) for (entity, _), at in started.items())]

    def summary(self) -> str:
        """How often and how long it fired, and for which entity most."""
        seen, spans = len(self.samples["entity"].unique()), self.firing
        counts = f"{counted(self.samples.num_rows, 'sample')} of {seen:,} until {to_iso(self.until)}"
        if not spans:
            return f"{self.alert.name} never fired; {counts}"
        times, length = Counter(span.entity for span in spans), Counter[str]()
        for span in spans:
            length[span.entity] += int((span.end - span.begin).total_seconds())
        most, longest = length.most_common(1)[0]
        fired = f"fired {counted(len(spans), 'time')} for {len(times):,} of {seen:,}, {timedelta(seconds=length.total())} in all"
        of_most = f"most for {most}: {counted(times[most], 'time')}, {timedelta(seconds=longest)}"
        return f"{self.alert.name} {fired}; {of_most}; {counts}"


def tried(conf: Conf, alert: Alert, since: datetime = EPOCH) -> Trial:
    """Judge the alert over all batches of the newest snapshot, and show the time from `since` on. TidemarkError where there is none."""
    snapshot = find_snapshot(conf.lake)
    if snapshot is None:
        raise TidemarkError(f"{conf.lake} has no snapshot yet: make one with `{conf.command} run --once`.")
    closed = snapshot.closed_until.get(conf.stream_of.get(alert.signal.group or "", ""), EPOCH)
    end = FlowPosition(snapshot.bronze_batch, ANY_TIME, closed_until_ms=to_micros(closed) // 1000)
    samples, changes = [SAMPLES.empty_table()], [ALERTS.empty_table()]
    for judged in ExactAlert(alert).from_the_first(Lake(conf, None), end):
        samples.append(judged.samples)
        changes.append(judged.rows)
    seen, rows = (_since(pa.concat_tables(tables), since, name) for tables, name in ((samples, "at"), (changes, "changed_at")))
    newest = pc.max(seen["at"].cast(pa.int64())).as_py()
    return Trial(alert, seen, rows, snapshot.at if newest is None else from_micros(newest))


def _since(rows: pa.Table, since: datetime, time: str) -> pa.Table:
    return rows.filter(pc.greater_equal(rows[time].cast(pa.int64()), to_micros(since)))
