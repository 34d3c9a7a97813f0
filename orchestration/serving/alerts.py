"""An alert judged over the history of a lake, to see what it would have done: one slice, without Spark, nothing is written."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa

from gold.alerts.signals import OF_BATCHES, ROWS, samples
from gold.alerts.spec import Alert
from gold.alerts.states import FIRING, judge
from gold.flows.slices import THE_BEGINNING
from orchestration.conf.diagnostic import counted
from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.serving.sql.duckdb_engine import create_views
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import find_snapshot
from orchestration.storage.views import views
from orchestration.utc import EPOCH, to_iso

COLUMNS = ("changed_at", "entity", "state", "previous_state", "severity", "value", "since", "summary")
BATCHES = OF_BATCHES.format(events="bronze.events", since=THE_BEGINNING)
OF_ACCOUNT = f"(select * from ops.ledger join {BATCHES} using (bronze_batch) where events > 0)"
CONFIG: dict[str, str | bool | int | float | list[str]] = dict.fromkeys(
    ("autoinstall_known_extensions", "autoload_known_extensions"), False
)


@dataclass(frozen=True)
class Span:
    """A time in which an alert fired for an entity; an alert that fires still ends where the history does."""

    entity: str
    begin: datetime
    end: datetime


@dataclass(frozen=True)
class Trial:
    """`samples` and `changes` as gold.schema declares them, in order of time; the history ends at `until`."""

    alert: Alert
    samples: pa.Table
    changes: pa.Table
    until: datetime

    @property
    def firing(self) -> list[Span]:
        """In order of their end."""
        started, spans = dict[str, datetime](), list[Span]()
        for change in self.changes.select(["entity", "state", "changed_at"]).to_pylist():
            entity, at = change["entity"], change["changed_at"]
            if change["state"] == FIRING:
                started.setdefault(entity, at)
            elif entity in started:
                spans.append(Span(entity, started.pop(entity), at))
        return [*spans, *(Span(entity, at, self.until) for entity, at in started.items())]

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
    """The alert from `since` to where the newest snapshot is final. TidemarkError where there is nothing to judge."""
    snapshot, rows = find_snapshot(conf.lake), ROWS.get(alert.signal.kind, OF_ACCOUNT)
    if snapshot is None:
        raise TidemarkError(f"{conf.lake} has no snapshot yet: make one with `{conf.command} run --once`.")
    with duckdb.connect(config=CONFIG) as store:
        create_views(store, [*views(conf, snapshot, rows).values()])
        until = _final(store, conf, alert, snapshot)
        values, _ = samples(store, alert, rows, since=since, until=until)
    return Trial(alert, values, judge(alert, {}, values, until).changes, until)


def _final(store: duckdb.DuckDBPyConnection, conf: Conf, alert: Alert, snapshot: Snapshot) -> datetime:
    """All events before this instant are in the snapshot, but for late ones: event time, and of an account the time of ingestion."""
    if alert.signal.kind == "account":
        (until,) = store.sql(f"select max(ingested_at) + interval 1 microsecond from {BATCHES}").fetchall()[0]
        return snapshot.at if until is None else until.astimezone(UTC)
    if not snapshot.closed_until:
        return snapshot.at
    stream = conf.stream_of.get(alert.signal.group or "", "")
    return snapshot.closed_until.get(stream, max(snapshot.closed_until.values()))
