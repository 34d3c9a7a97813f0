"""`verify`: recompute silver and gold from a prefix of bronze and compare them with the tables, row by row."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path

import duckdb

from gold.windows.spec import Group, Late
from orchestration.audit.verify.alerts import alert_outcomes
from orchestration.audit.verify.anomalies import anomaly_outcome, lost_models
from orchestration.audit.verify.compare import Comparison, Outcome, compared, timed
from orchestration.audit.verify.confs import ConfHistory, conf_history
from orchestration.audit.verify.flows import flow_outcome
from orchestration.audit.verify.gold_windows import EVER, vectors, windows_by_conf
from orchestration.audit.verify.lake_snapshot import GOLD_KINDS, LakeSnapshot
from orchestration.audit.verify.retries import judge_retried
from orchestration.audit.verify.scope import EVERYTHING, Scope, Span, needed_before, scope_after, scope_since, within
from orchestration.audit.verify.silver_account import prepare, silver_outcomes
from orchestration.audit.verify.silver_evaluator import CHUNK_ROWS, Registered, evaluate_into
from orchestration.audit.verify.store import (
    AGGREGATES,
    DEVICES,
    DUPLICATES,
    LATE,
    LATE_FOR_GROUP,
    NONE,
    NUMBERS,
    QUARANTINE,
    READINGS,
    REFERENCES,
    VECTORS,
    batches,
    chunks,
    column_names,
    evaluated_view,
    listed,
    opened,
    record,
    record_more,
)
from orchestration.conf.model import Conf
from orchestration.storage.delta import instant, literal
from orchestration.storage.ops_tables import Proof

SILVER = {"readings": READINGS, "late": LATE, "quarantine": QUARANTINE, "duplicates": DUPLICATES}
EVENTS = ("payload", "header", "key", "headers", "source", "position", "received_at", "ingested_at", "bronze_batch", "bronze_row")

COUNTING = "((from devices anti join corrections using (device_id, registered_at)) union all from corrections)"
"""Declarations, without those in whose place the generation has others, and these."""

Progress = Callable[[str, int, int], None]
"""Takes the name of a step, how far it is, and of how much."""


@dataclass(frozen=True)
class Report:
    """Outcomes in the order in which data passes the tables. `events`: how many were computed again."""

    outcomes: tuple[Outcome, ...]
    events: int = 0

    @property
    def is_clean(self) -> bool:
        return not any(outcome.differences for outcome in self.outcomes)


def verify(  # noqa: PLR0917
    snapshot: LakeSnapshot,
    conf: Conf,
    groups: Sequence[str] | None = None,
    since: date | None = None,
    progress: Progress = lambda *_: None,
    before: Proof | None = None,
) -> Report:
    """Compare every table of the snapshot with what bronze gives. `groups`: of gold only these, and no flows, anomalies or alerts.

    `since`: only what was ingested on that day or later, and windows that end later; these are not compared then either, as what they
    carry begins with the first event. `before`: only what is new or changed since that proof. The rest is taken as it is recorded.
    """
    history = conf_history(conf, snapshot.generation)
    conf = history.running
    chosen = [group for name, group in conf.groups.items() if groups is None or name in groups]
    scope = scope_since(snapshot, since) if since else scope_after(before, snapshot, conf) if before else EVERYTHING
    with tempfile.TemporaryDirectory(prefix="tidemark-verify-") as folder, opened(Path(folder)) as store:
        began = time.monotonic()
        events = _evaluate(store, Path(folder), snapshot, history, scope, progress)
        progress("silver", 0, 1)
        windows = {group.name: scope.windows(store, conf, group, _tables_of(snapshot, group)) for group in chosen}
        earlier = needed_before(store, scope, snapshot, conf, windows)
        for name in ("readings", "late"):
            record_more(store, snapshot, f"silver.{name}", name, SILVER[name], where=_of_prefix(snapshot, earlier))
        prepare(store, scope.in_batches)
        spent = time.monotonic() - began
        account, *of_silver = silver_outcomes(store, scope.in_batches)
        outcomes = [replace(account, seconds=account.seconds + spent), *of_silver]
        for at, group in enumerate(chosen):
            progress(f"gold.{group.name}", at, len(chosen))
            outcomes += _of_group(store, snapshot, history, group, windows[group.name])
        if groups is None:
            outcomes += _carried(store, snapshot, conf, scope, progress) if scope.has_carried else lost_models(conf)
    return Report(tuple(outcomes), events)


def _evaluate(  # noqa: PLR0917
    store: duckdb.DuckDBPyConnection, folder: Path, snapshot: LakeSnapshot, history: ConfHistory, scope: Scope, progress: Progress
) -> int:
    """Makes `accepted` and `rejected` beside what silver has recorded; returns the number of events that were computed again."""
    where = _of_prefix(snapshot, scope.in_batches)
    for name, columns in SILVER.items():
        record(store, snapshot, f"silver.{name}", name, columns, where=where)
    bronze = snapshot.tables["bronze.events"], snapshot.versions["bronze.events"]
    events = int(batches(*bronze, ["count(*) as events"], where).read_all()["events"][0].as_py())
    record(store, snapshot, "silver.devices", "devices", DEVICES)
    record(store, snapshot, "silver.device_corrections", "corrections", DEVICES)
    record(store, snapshot, "silver.references", "referred", REFERENCES)
    registry = Registered(*(store.sql(f"from {rows}").to_arrow_table() for rows in (COUNTING, "referred")))
    report = partial(_report, progress, events)
    evaluate_into(folder, chunks(batches(*bronze, EVENTS, where), CHUNK_ROWS), events, registry, history.eras, report)
    evaluated_view(store, "accepted_0", READINGS, folder / "accepted")
    evaluated_view(store, "rejected_0", QUARANTINE, folder / "rejected")
    judge_retried(store, folder, history, registry, lambda among: chunks(batches(*bronze, EVENTS, f"{where} and {among}"), CHUNK_ROWS))
    return events


def _of_prefix(snapshot: LakeSnapshot, condition: str) -> str:
    return condition if condition == NONE else f"bronze_batch <= {snapshot.bronze_batch} and {condition}"


def _carried(store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, conf: Conf, scope: Scope, progress: Progress) -> Iterator[Outcome]:
    """Compare flows, anomalies and alerts, from all that was kept: what is recorded of batches that were proved before is taken as
    accepted."""
    columns = listed(column_names(READINGS))
    earlier = " union all ".join(f"select {columns} from {name} where not {scope.in_batches}" for name in ("readings", "late"))
    store.execute("alter view accepted rename to accepted_again")
    store.execute(f"create view accepted as select {columns} from accepted_again union all {earlier}")
    for flow in conf.flows.values():
        progress(f"gold.{flow.name}", 0, 1)
        yield flow_outcome(store, snapshot, flow)
    for group in (group for group in conf.groups.values() if group.anomalies):
        progress(f"gold.{group.name}_anomalies", 0, 1)
        yield timed(lambda group=group: anomaly_outcome(store, snapshot, conf, group))  # type: ignore[misc]
    yield from alert_outcomes(store, snapshot, conf, lambda name: progress(name, 0, 1))


def _report(progress: Progress, events: int, done: int) -> None:
    progress("bronze.events", done, events)


def _of_group(
    store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, history: ConfHistory, group: Group, spans: Sequence[Span]
) -> list[Outcome]:
    """Aggregates, and vectors where the group declares any."""
    metrics, set_aside = history.running.metrics, None
    if group.late is Late.KEEP_ASIDE:
        set_aside = "set_aside"
        of_group = _of_group_alone(group, spans)
        record(store, snapshot, snapshot.generation.gold(group.stream, "late"), set_aside, LATE_FOR_GROUP, where=of_group)
    _record_gold(store, snapshot, group, "aggregates", AGGREGATES, spans)
    windows_by_conf(store, group, history, snapshot.closed_until.get(group.stream, EVER), set_aside)
    cells, sizes = ("window_end", *NUMBERS[:1], "count", *NUMBERS[1:]), dict.fromkeys(NUMBERS, "size") | {"value": "value_size"}
    of_windows = Comparison(f"gold.{group.name}_aggregates", ("device_id", "metric", "window_start"), cells, sizes)
    outcomes = [timed(lambda: _of_gold(store, "windows", of_windows, spans))]
    if group.vector is not None:
        _record_gold(store, snapshot, group, "vectors", VECTORS, spans)
        vectors(store, group, group.vector, metrics)
        of_vectors = Comparison(
            f"gold.{group.name}_vectors",
            ("entity", "window_start"),
            ("window_end", "vector", "missing", "filled"),
            {"vector": "list:sizes"},
        )
        outcomes.append(timed(lambda: _of_gold(store, "vectors", of_vectors, spans)))
    return outcomes


def _record_gold(  # noqa: PLR0917
    store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, group: Group, kind: str, columns: str, spans: Sequence[Span]
) -> None:
    """Makes `revisions`: the latest of each key."""
    where = _of_group_alone(group, spans)
    record(store, snapshot, snapshot.generation.gold(group.stream, kind), "all_revisions", columns, where=where)
    key = "device_id, metric, window_start" if kind == "aggregates" else "entity, window_start"
    latest = f"from all_revisions qualify revision = max(revision) over (partition by {key})"
    store.execute(f"create or replace temp table revisions as {latest}")


def _of_gold(store: duckdb.DuckDBPyConnection, expected: str, comparison: Comparison, spans: Sequence[Span]) -> Outcome:
    """Compare the latest revision of each key with what was computed."""
    return compared(store, "revisions", f"(from {expected} where {within('epoch_us(window_end)', spans)})", comparison)


def _tables_of(snapshot: LakeSnapshot, group: Group) -> list[str]:
    return [snapshot.generation.gold(group.stream, kind) for kind in GOLD_KINDS]


def _of_group_alone(group: Group, spans: Sequence[Span]) -> str:
    return f"device_group = {literal(group.name)} and {within('window_end', spans, instant)}" if spans else NONE
