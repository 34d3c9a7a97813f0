"""Retry: events in quarantine are judged again by today's conf; measurements that are good now leave it, once.

They go to silver.late (or silver.duplicates, where their key is taken): streams have passed them, and gold folds late rows in. What the
judgement came to is written down before any table changes, rows and all, so that a retry that was killed is finished by the next
writer of the lake without judging anew, whatever has become of conf; Delta refuses what is there already.
"""

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.jobs.ledger import count_rows, counted
from orchestration.jobs.ranges import Counts, Knowledge
from orchestration.storage.atomic_json import read_atomic, write_atomic
from orchestration.storage.ops_tables import LEDGER, LEDGER_SCHEMA, MEASUREMENTS
from orchestration.storage.positions import accounted_for, retried
from orchestration.storage.tables import FEW, append, append_rows
from silver import ledger as layer
from silver.readings import KEYS
from silver.retry import COMPARED, PLACED, judged_otherwise, moved

NAME = "silver.retry"
ELSEWHERE = ("silver.readings", "silver.late", "silver.duplicates")
CHANGED = (LEDGER, "silver.quarantine", "silver.late", "silver.duplicates")
COLUMNS = ("source", "events", "readmitted", "duplicates", "quarantined", "moved")
REPLACED = """
  merge into delta.`{path}` as recorded using {{changes}} as changes
  on {same}
  when matched and changes.broken_rules is null then delete
  when matched then update set *
  when not matched then insert *
"""


@dataclass(frozen=True)
class Chosen:
    """Events to judge again: of those with a row in quarantine that breaks this rule and is of this source; None: any."""

    rule: str | None = None
    source: str | None = None


@dataclass(frozen=True)
class Verdict:
    """`outcome`: measurements that leave quarantine (with the kept one of their key) or stay in it otherwise than before.

    `counts`: by kind, bronze batch and source; `quarantined` is what quarantine gets or, below 0, loses.
    `told`: one row a source, COLUMNS; there, `quarantined` is what breaks a rule still.
    """

    outcome: DataFrame
    counts: Counts
    told: list[dict[str, Any]]

    @property
    def is_change(self) -> bool:
        """Whether any row would move."""
        return any(kind == "replaced" for kind, _, _ in self.counts)


@dataclass(frozen=True)
class Begun:
    """A retry that was written down. `corrections`: rows for ops.ledger; `versions`: of the tables it changes, as they were before."""

    number: int
    corrections: list[dict[str, Any]]
    versions: dict[str, int]


def begun(lake: Lake) -> Begun | None:
    """The retry that was written down and is not done: killed, or still at work."""
    file = _folder(lake) / "retry.json"
    if not file.exists():
        return None
    found = Begun(**read_atomic(file, "Restore it from a backup: it says how far a retry of the quarantine had come."))
    return found if found.number > _done(lake) else None


def versions_before_retry(lake: Lake) -> dict[str, int]:
    """Of the tables that a retry under way changes one after the other; of none where none is under way."""
    found = begun(lake)
    return found.versions if found else {}


def finish(lake: Lake) -> None:
    """Do what a retry that was killed left to do."""
    if (found := begun(lake)) is not None:
        _carry_out(in_session(lake), found)


def in_session(lake: Lake) -> Lake:
    """In which to retry: what quarantine holds is seldom worth compiling plans."""
    return lake.interpreted() if DeltaTable(lake.table_path("silver.quarantine")).count() <= FEW else lake


@contextmanager
def judged_again(lake: Lake, knowledge: Knowledge, chosen: Chosen) -> Iterator[Verdict]:
    """What a retry would do now; nothing is written."""
    with ExitStack() as stack:

        def held(rows: DataFrame) -> DataFrame:
            stack.callback(rows.unpersist)
            return rows.persist()

        quarantined = held(_quarantined(lake, chosen))
        batches = quarantined.agg(F.min("bronze_batch"), F.max("bronze_batch")).collect()[0]
        events, *elsewhere = (_of_events(lake.read(name), quarantined, batches) for name in ("bronze.events", *ELSEWHERE))
        measurements = held(layer.judged(events, *knowledge))
        placed = held(reduce(DataFrame.unionByName, (rows.select(*PLACED) for rows in elsewhere)))
        outcome = held(_with_kept(lake, held(judged_otherwise(measurements, placed, quarantined))))
        yield _verdict(quarantined, moved(measurements, placed), outcome)


def carry_out(lake: Lake, verdict: Verdict) -> None:
    """Write it down, then do it."""
    number = max(retried(lake), _done(lake)) + 1
    verdict.outcome.write.mode("overwrite").parquet(str(_outcome(lake)))
    versions = {name: DeltaTable(lake.table_path(name)).version() for name in CHANGED}
    corrections = count_rows(Counter({key: count for key, count in verdict.counts.items() if key[0] in MEASUREMENTS}))
    found = Begun(number, corrections.to_pylist(), versions)
    write_atomic(_folder(lake) / "retry.json", vars(found))
    crash.point(crash.Point.RETRY_NOTED)
    _carry_out(lake, found)


def _carry_out(lake: Lake, this: Begun) -> None:
    outcome = lake.spark.read.parquet(str(_outcome(lake)))
    good = outcome.where(F.size("broken_rules") == 0)
    for name, rows in (("late", layer.late(good, this.number)), ("duplicates", layer.duplicates(good, this.number))):
        if count := sum(row[name] for row in this.corrections):
            table = lake.tables[f"silver.{name}"]
            append(rows.coalesce(1), table, lake.app_id(NAME, table.name), this.number, count)
    crash.point(crash.Point.RETRY_READMITTED)
    _replace(lake, this, outcome)
    crash.point(crash.Point.RETRY_REPLACED)
    # Last, as it says that the retry is done.
    append_rows(lake.table_path(LEDGER), pa.Table.from_pylist(this.corrections, LEDGER_SCHEMA), lake.app_id(NAME, LEDGER), this.number)
    shutil.rmtree(_folder(lake))


def _replace(lake: Lake, this: Begun, outcome: DataFrame) -> None:
    """In one commit, what quarantine holds of the events of the outcome by what breaks a rule now."""
    table = lake.tables["silver.quarantine"]
    app = lake.app_id(NAME, table.name)
    if DeltaTable(table.path).transaction_version(app) == this.number:
        return
    numbers = [row["bronze_batch"] for row in this.corrections]
    events, recorded = (_of_events(lake.read(name), outcome, (min(numbers), max(numbers))) for name in ("bronze.events", table.name))
    broken, recorded = layer.quarantine(outcome, events), recorded.select(*layer.IDENTITY)
    gone = recorded.join(broken, on=layer.IDENTITY, how="left_anti")
    same = " and ".join(f"recorded.{name} = changes.{name}" for name in layer.IDENTITY)
    with _transaction(lake, app, this.number):
        replace = REPLACED.format(path=str(table.path).replace("`", "``"), same=same)
        lake.spark.sql(replace, changes=broken.unionByName(gone, allowMissingColumns=True))


@contextmanager
def _transaction(lake: Lake, app: str, number: int) -> Iterator[None]:
    """Delta refuses a second MERGE under the same one."""
    settings = {"spark.databricks.delta.write.txnAppId": app, "spark.databricks.delta.write.txnVersion": str(number)}
    for key, value in settings.items():
        lake.spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            lake.spark.conf.unset(key)


def _quarantined(lake: Lake, chosen: Chosen) -> DataFrame:
    """All that quarantine holds of the events chosen, but for their payloads."""
    rows = lake.read("silver.quarantine").select(*COMPARED, "source")
    # Not what an account that did not end wrote, nor what the conf has no shape for.
    rows = rows.where((F.col("bronze_batch") <= accounted_for(lake)) & F.col("source").isin(*lake.conf.sources))
    if chosen.source is not None:
        rows = rows.where(F.col("source") == chosen.source)
    if chosen.rule is None:
        return rows
    return rows.join(rows.where(F.array_contains("broken_rules", chosen.rule)), on=layer.OF_EVENT, how="left_semi").select(*rows.columns)


def _of_events(rows: DataFrame, events: DataFrame, batches: Sequence[int]) -> DataFrame:
    """Rows of the same events; files of other batches than from the first to the last are not opened."""
    in_reach = rows.where(F.col("bronze_batch").between(*batches))
    return in_reach.join(events, on=layer.OF_EVENT, how="left_semi").select(*rows.columns)


def _with_kept(lake: Lake, rows: DataFrame) -> DataFrame:
    """Good ones with the identity of the measurement that is kept of their key."""
    good = rows.where(F.size("broken_rules") == 0)
    first, last = good.agg(F.unix_micros(F.min("event_time")), F.unix_micros(F.max("event_time"))).collect()[0]
    of_these_times = F.col("event_time").between(F.timestamp_micros(F.lit(first or 0)), F.timestamp_micros(F.lit(last or 0)))
    known = [lake.read(f"silver.{name}").select(*KEYS, *layer.IDENTITY).where(of_these_times) for name in ("readings", "late")]
    kept = layer.with_kept(good, reduce(DataFrame.unionByName, known))
    return rows.where(F.size("broken_rules") > 0).unionByName(kept, allowMissingColumns=True)


def _verdict(quarantined: DataFrame, moved_events: DataFrame, outcome: DataFrame) -> Verdict:
    good, events = outcome.where(F.size("broken_rules") == 0), quarantined.select("source", *layer.OF_EVENT).distinct()
    replaced = quarantined.join(outcome, on=layer.OF_EVENT, how="left_semi")
    found = counted(
        {
            "events": events,
            "moved": events.join(moved_events, on=layer.OF_EVENT, how="left_semi"),
            "before": quarantined,
            "replaced": replaced,
            "quarantined": layer.broken(outcome),
            "late": layer.late(good),
            "duplicates": layer.duplicates(good),
        }
    )
    for (kind, batch, source), count in list(found.items()):
        if kind == "replaced":
            found["quarantined", batch, source] -= count
    return Verdict(outcome, found, _told(found))


def _told(counts: Counts) -> list[dict[str, Any]]:
    of_source: dict[str, Counter[str]] = defaultdict(Counter)
    for (kind, _, source), count in counts.items():
        of_source[source][kind] += count
    return [
        {
            "source": source,
            "events": of["events"],
            "readmitted": of["late"],
            "duplicates": of["duplicates"],
            "quarantined": of["before"] + of["quarantined"],
            "moved": of["moved"],
        }
        for source, of in sorted(of_source.items())
    ]


def _done(lake: Lake) -> int:
    number = DeltaTable(lake.table_path(LEDGER)).transaction_version(lake.app_id(NAME, LEDGER))
    return -1 if number is None else number


def _folder(lake: Lake) -> Path:
    return lake.checkpoint(NAME)


def _outcome(lake: Lake) -> Path:
    """Of the retry under way."""
    return _folder(lake) / "outcome"
