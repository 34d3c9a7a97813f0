"""`verify`: recompute silver and gold from a prefix of bronze and compare them with the tables, row by row."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import duckdb

from gold.windows.spec import Group, Late
from orchestration.audit.verify.alerts import alert_outcomes
from orchestration.audit.verify.compare import Comparison, Outcome, compared, timed
from orchestration.audit.verify.confs import ConfHistory, conf_history
from orchestration.audit.verify.flows import flow_outcome
from orchestration.audit.verify.gold_windows import EVER, vectors, windows_by_conf
from orchestration.audit.verify.lake_snapshot import LakeSnapshot
from orchestration.audit.verify.retries import judge_retried
from orchestration.audit.verify.silver_account import prepare, silver_outcomes
from orchestration.audit.verify.silver_evaluator import CHUNK_ROWS, Registered, evaluate_into
from orchestration.audit.verify.store import (
    AGGREGATES,
    DEVICES,
    DUPLICATES,
    LATE,
    LATE_FOR_GROUP,
    NUMBERS,
    QUARANTINE,
    READINGS,
    REFERENCES,
    VECTORS,
    batches,
    chunks,
    evaluated_view,
    opened,
    record,
)
from orchestration.conf.model import Conf

EVENTS = ("payload", "header", "key", "headers", "source", "position", "received_at", "ingested_at", "bronze_batch", "bronze_row")

COUNTING = "((from devices anti join corrections using (device_id, registered_at)) union all from corrections)"
"""Declarations, without those in whose place the generation has others, and these."""

Progress = Callable[[str, int, int], None]
"""Takes the name of a step, how far it is, and of how much."""


@dataclass(frozen=True)
class Report:
    """Outcomes in the order in which data passes the tables."""

    outcomes: tuple[Outcome, ...]

    @property
    def is_clean(self) -> bool:
        return not any(outcome.differences for outcome in self.outcomes)


def verify(
    snapshot: LakeSnapshot, conf: Conf, groups: Sequence[str] | None = None, since: date | None = None, progress: Progress = lambda *_: None
) -> Report:
    """Compare every table of the snapshot with what bronze gives. `groups`: of gold only these, and no flows or alerts.

    `since`: only what was ingested on that day or later, and windows that begin then or later; what is recorded of before is taken
    as it is. Flows and alerts are not compared then: what they carry begins with the first event.
    """
    history = conf_history(conf, snapshot.generation)
    conf = history.running
    chosen = [group for name, group in conf.groups.items() if groups is None or name in groups]
    start = EVER if since is None else datetime(since.year, since.month, since.day, tzinfo=UTC)
    with tempfile.TemporaryDirectory(prefix="tidemark-verify-") as folder, opened(Path(folder)) as store:
        began = time.monotonic()
        for name, columns in (("readings", READINGS), ("late", LATE), ("quarantine", QUARANTINE), ("duplicates", DUPLICATES)):
            record(store, snapshot, f"silver.{name}", name, columns, where=f"bronze_batch <= {snapshot.bronze_batch}")
        first_batch = _evaluate(store, Path(folder), snapshot, history, since, progress)
        progress("silver", 0, 1)
        prepare(store, first_batch)
        spent = time.monotonic() - began
        account, *of_silver = silver_outcomes(store, first_batch)
        outcomes = [replace(account, seconds=account.seconds + spent), *of_silver]
        for at, group in enumerate(chosen):
            progress(f"gold.{group.name}", at, len(chosen))
            outcomes += _of_group(store, snapshot, history, group, start)
        if groups is None and since is None:
            for flow in conf.flows.values():
                progress(f"gold.{flow.name}", 0, 1)
                outcomes.append(flow_outcome(store, snapshot, flow))
            outcomes += alert_outcomes(store, snapshot, conf, lambda name: progress(name, 0, 1))
    return Report(tuple(outcomes))


def _evaluate(  # noqa: PLR0917
    store: duckdb.DuckDBPyConnection, folder: Path, snapshot: LakeSnapshot, history: ConfHistory, since: date | None, progress: Progress
) -> int:
    """Makes `accepted` and `rejected`; the first bronze batch of these."""
    where = f"bronze_batch <= {snapshot.bronze_batch}" + ("" if since is None else f" and ingested_on >= date '{since.isoformat()}'")
    bronze = snapshot.tables["bronze.events"], snapshot.versions["bronze.events"]
    counted = batches(*bronze, ["count(*) as events", "min(bronze_batch) as first_batch"], where).read_all().to_pylist()[0]
    record(store, snapshot, "silver.devices", "devices", DEVICES)
    record(store, snapshot, "silver.device_corrections", "corrections", DEVICES)
    record(store, snapshot, "silver.references", "referred", REFERENCES)
    registry = Registered(*(store.sql(f"from {rows}").to_arrow_table() for rows in (COUNTING, "referred")))
    events = chunks(batches(*bronze, EVENTS, where), CHUNK_ROWS)
    report = partial(_report, progress, counted["events"])
    evaluate_into(folder, events, counted["events"], registry, history.eras, report)
    evaluated_view(store, "accepted_0", READINGS, folder / "accepted")
    evaluated_view(store, "rejected_0", QUARANTINE, folder / "rejected")
    judge_retried(store, folder, history, registry, lambda among: chunks(batches(*bronze, EVENTS, f"{where} and {among}"), CHUNK_ROWS))
    # Without events to evaluate, all that is recorded is of earlier batches.
    return snapshot.bronze_batch + 1 if counted["first_batch"] is None else int(counted["first_batch"])


def _report(progress: Progress, events: int, done: int) -> None:
    progress("bronze.events", done, events)


def _of_group(
    store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, history: ConfHistory, group: Group, since: datetime
) -> list[Outcome]:
    """Aggregates, and vectors where the group declares any."""
    metrics, set_aside = history.running.metrics, None
    if group.late is Late.KEEP_ASIDE:
        set_aside = "set_aside"
        record(store, snapshot, snapshot.generation.gold(group.stream, "late"), set_aside, LATE_FOR_GROUP, where=_of_group_alone(group))
    longest = max(metrics[name].longest_seconds for name in group.metrics)
    reach = timedelta(seconds=longest + (group.vector.max_fill_seconds if group.vector else 0))
    readings_since = since if since == EVER else since - reach
    _record_gold(store, snapshot, group, "aggregates", AGGREGATES)
    windows_by_conf(store, group, history, snapshot.closed_until.get(group.stream, EVER), readings_since, set_aside)
    cells, sizes = ("window_end", *NUMBERS[:1], "count", *NUMBERS[1:]), dict.fromkeys(NUMBERS, "size") | {"value": "value_size"}
    of_windows = Comparison(f"gold.{group.name}_aggregates", ("device_id", "metric", "window_start"), cells, sizes)
    outcomes = [timed(lambda: _of_gold(store, "windows", of_windows, since))]
    if group.vector is not None:
        _record_gold(store, snapshot, group, "vectors", VECTORS)
        vectors(store, group, group.vector, metrics)
        of_vectors = Comparison(
            f"gold.{group.name}_vectors",
            ("entity", "window_start"),
            ("window_end", "vector", "missing", "filled"),
            {"vector": "list:sizes"},
        )
        outcomes.append(timed(lambda: _of_gold(store, "vectors", of_vectors, since)))
    return outcomes


def _record_gold(store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, group: Group, kind: str, columns: str) -> None:
    """Makes `revisions`: the latest of each key."""
    record(store, snapshot, snapshot.generation.gold(group.stream, kind), "all_revisions", columns, where=_of_group_alone(group))
    key = "device_id, metric, window_start" if kind == "aggregates" else "entity, window_start"
    latest = f"from all_revisions qualify revision = max(revision) over (partition by {key})"
    store.execute(f"create or replace temp table revisions as {latest}")


def _of_gold(store: duckdb.DuckDBPyConnection, expected: str, comparison: Comparison, since: datetime) -> Outcome:
    """Compare the latest revision of each key with what was computed."""
    begin = f"window_start >= timestamp '{since:%Y-%m-%d}'" if since != EVER else "true"
    return compared(store, f"(from revisions where {begin})", f"(from {expected} where {begin})", comparison)


def _of_group_alone(group: Group) -> str:
    return f"device_group = '{group.name}'"
