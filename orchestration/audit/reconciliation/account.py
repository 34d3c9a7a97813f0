"""The account of every bronze row, taken from the tables themselves by identity: what became of every measurement, and what is wrong.

Reads identity columns only, without Spark, in bounded memory, and beside a running pipeline: first it asks up to which bronze batch the
ledger has accounted, then it opens the tables of silver, and bronze last. So whatever silver holds has its event in bronze, and events
after that batch are waiting, not lost. While a retry of quarantine is under way, the account is that of before it. Of an event for which
`parts` is null, one measurement lost of several shows in ops.ledger only.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.jobs.account.retry import versions_before_retry
from orchestration.location import Location
from orchestration.storage.delta import OpenTable, ask, in_log, is_table, open_table
from orchestration.storage.ops_tables import COUNTED, LEDGER
from orchestration.storage.positions import accounted_for
from orchestration.storage.views import CONDITIONS

KINDS = {
    "readings": "readings",
    "quarantined": "quarantine",
    "without_measurements": "quarantine",
    "late": "late",
    "duplicates": "duplicates",
}
"""The outcomes of a measurement, and the table of silver that then holds it."""
WRONG = ("missing", "duplicated", "orphaned")
ALARMS = (*WRONG, "count_mismatch")
COLUMNS = ("source", "ingested_on", *COUNTED, *ALARMS, "waiting")
SUMMED = {*COUNTED, *ALARMS, "waiting"}
ROWS_AT_ONCE = 1_000_000
"""Rows of bronze and silver together: about 500 MB of memory."""

SETTINGS = {
    # Else DataFusion refuses to count over a union of columns that differ in nothing but their comments.
    "datafusion.execution.skip_physical_aggregate_schema_check": "true",
    # By default files of 1 MiB are shared out, and each thread asks a store for the end of the file.
    "datafusion.optimizer.repartition_file_min_size": str(16 << 20),
}

Rows = list[dict[str, Any]]

WHERE = {"quarantined": CONDITIONS["silver.quarantine"], "without_measurements": CONDITIONS["silver.without_measurements"]}
# One row a measurement in silver; `kind` is its place in KINDS.
MEASUREMENTS = " union all ".join(
    f"select bronze_batch, bronze_row, part, parts, source, {number} as kind,"
    f" {'is_conflict' if kind == 'duplicates' else 'false'} as is_conflict from {table} where {{of}} and {WHERE.get(kind, 'true')}"
    for number, (kind, table) in enumerate(KINDS.items())
)
# One row an event that bronze or silver knows. `parts` is how many measurements it should have, `parts_seen` how many there are.
EVENTS = f"""
  identities as (
    select bronze_batch, bronze_row, part, count(*) as n, max(parts) as parts, min(source) as first_source, max(source) as last_source,
      {", ".join(f"sum(case when kind = {number} then 1 else 0 end) as {kind}" for number, kind in enumerate(KINDS))},
      sum(case when is_conflict then 1 else 0 end) as conflicts
    from ({MEASUREMENTS}) group by bronze_batch, bronze_row, part
  ),
  seen as (
    select bronze_batch, bronze_row, count(*) as parts_seen, sum(n) as n, max(parts) as parts,
      sum(case when n > 1 then 1 else 0 end) as duplicated,
      min(first_source) as first_source, max(last_source) as last_source, {", ".join(f"sum({kind}) as {kind}" for kind in COUNTED[1:])}
    from identities group by bronze_batch, bronze_row
  ),
  sent as (
    select bronze_batch, bronze_row, count(*) as copies, min(source) as source,
      min(ingested_on) as ingested_on, min(ingested_at) as ingested_at
    from events where {{of}} group by bronze_batch, bronze_row
  ),
  matched as (
    select coalesce(sent.bronze_batch, seen.bronze_batch) as bronze_batch, coalesce(sent.bronze_row, seen.bronze_row) as bronze_row,
      coalesce(copies, 0) as copies, coalesce(sent.source, first_source) as source, first_source, last_source, ingested_on, ingested_at,
      coalesce(sent.bronze_batch, seen.bronze_batch) <= {{accounted}} as is_accounted,
      coalesce(parts_seen, 0) as parts_seen, greatest(coalesce(parts, parts_seen, 1), 1) as parts, coalesce(n, 0) as n,
      coalesce(duplicated, 0) as parts_duplicated, {", ".join(f"coalesce({kind}, 0) as {kind}" for kind in COUNTED[1:])}
    from sent full join seen on sent.bronze_batch = seen.bronze_batch and sent.bronze_row = seen.bronze_row
  ),
  compared as (
    select *,
      case when copies > 0 and is_accounted then greatest(parts - parts_seen, 0) else 0 end as missing,
      parts_duplicated + greatest(copies - 1, 0) as duplicated,
      case when copies = 0 then n
        when first_source <> source or last_source <> source then 1
        else greatest(parts_seen - parts, 0) end as orphaned
    from matched
  )
"""
# One row a bronze batch and source.
BATCHES = f"""
  with {EVENTS}
  select bronze_batch, source, max(ingested_on) as ingested_on, min(ingested_at) as ingested_at, sum(copies) as events,
    sum(case when is_accounted then 0 else copies end) as waiting, {", ".join(f"sum({wrong}) as {wrong}" for wrong in WRONG)},
    {", ".join(f"sum(case when is_accounted then {kind} else 0 end) as {kind}" for kind in COUNTED[1:])}
  from compared group by bronze_batch, source order by bronze_batch, source
"""
WRITTEN = f"""
  select bronze_batch, source, {", ".join(f"sum({count}) as {count}" for count in COUNTED)} from written
  where {{of}} and bronze_batch <= {{accounted}} group by bronze_batch, source order by bronze_batch, source
"""


@dataclass(frozen=True)
class Slice:
    """Bronze batches `after` < batch <= `up_to` (None: without end), and of those the events of one of `shares`, a power of two."""

    after: int | None = None
    up_to: int | None = None
    share: int = 0
    shares: int = 1

    def __str__(self) -> str:
        """Render a condition in SQL. Rows without an identity, which should not exist, are in the first slice."""
        conditions = ["true"]
        if self.after is not None:
            conditions.append(f"bronze_batch > {self.after}")
        if self.up_to is not None:
            conditions.append(f"(bronze_batch <= {self.up_to}" + (")" if self.after is not None else " or bronze_batch is null)"))
        if self.shares > 1:
            conditions.append(f"coalesce(bronze_row, 0) & {self.shares - 1} = {self.share}")
        return " and ".join(conditions)


@dataclass(frozen=True)
class OpenTables:
    """The tables of one moment. `accounted`: the newest bronze batch that the ledger has passed, -1 before the first."""

    accounted: int
    by_name: Mapping[str, OpenTable]
    paths: Mapping[str, Location]

    def ask(self, sql: str, **words: object) -> Rows:
        """Rows of a query over events, written and the tables of KINDS."""
        rows: Rows = ask(sql.format(accounted=self.accounted, **words), self.by_name, SETTINGS).read_all().to_pylist()
        return rows


@dataclass(frozen=True)
class Account:
    """`batches`: grain one bronze batch of one source, in order; `suspects`: the slices in which measurements are not as they should be."""

    batches: Rows
    suspects: list[Slice]


def open_tables(lake: Lake) -> OpenTables:
    """The newest versions, in the order that makes them fit together; TidemarkError where there is nothing to account for."""
    places = {"written": LEDGER} | {table: f"silver.{table}" for table in KINDS.values()} | {"events": "bronze.events"}
    missing = [name for name in places.values() if not is_table(lake.table_path(name))]
    if missing:
        raise TidemarkError(f"there is no {missing[-1]} in the lake at {lake.conf.lake}: bring it up to date with `tidemark run --once`.")
    accounted, paths = accounted_for(lake), {word: lake.table_path(name) for word, name in places.items()}
    pinned = versions_before_retry(lake)
    tables = {word: open_table(paths[word], pinned.get(name)) for word, name in places.items()}
    if versions_before_retry(lake) != pinned:
        return open_tables(lake)  # a retry began or ended meanwhile
    return OpenTables(accounted, tables, paths)


def account(tables: OpenTables, since: date | None = None) -> Account:
    """Account for all batches, or for those ingested on that day (UTC) and later."""
    batches: dict[tuple[Any, ...], dict[str, Any]] = {}
    suspects, parts = [], slices(tables.by_name, since)
    for part in parts:
        rows = tables.ask(BATCHES, of=part)
        for row in rows:
            _add(batches.setdefault(_key(row), _nothing(row)), row)
        if any(row[wrong] for row in rows for wrong in WRONG):
            suspects.append(part)
    for row in tables.ask(WRITTEN, of=Slice(after=parts[0].after)) if parts else []:
        batches.setdefault(_key(row), _nothing(row))["written"] = {count: row[count] for count in COUNTED}
    for row in batches.values():
        is_passed = row["bronze_batch"] is not None and row["bronze_batch"] <= tables.accounted
        row["count_mismatch"] = int(is_passed and any(row[count] != row["written"].get(count, 0) for count in COUNTED))
    return Account([batches[key] for key in sorted(batches)], suspects)


def by_day(batches: Iterable[Mapping[str, Any]]) -> Rows:
    """Batches summed to one row a day and source. The day is null where bronze has nothing of the batch."""
    days: dict[tuple[Any, ...], dict[str, Any]] = {}
    for batch in batches:
        day = batch["ingested_on"]
        key = day is not None, day or date.min, batch["source"] or ""
        _add(days.setdefault(key, {"source": batch["source"], "ingested_on": day} | dict.fromkeys(COLUMNS[2:], 0)), batch)
    return [{name: days[key][name] for name in COLUMNS} for key in sorted(days)]


def slices(tables: Mapping[str, OpenTable], since: date | None) -> list[Slice]:
    """All batches of the account, cut so that each slice has at most ROWS_AT_ONCE; none where nothing was ingested since."""
    sizes: Counter[int] = Counter()
    for word, table in tables.items():
        log = in_log(table, "max.bronze_batch", "num_records").to_pydict()
        if word != "written" and log.get("max.bronze_batch"):
            for batch, rows in zip(log["max.bronze_batch"], log["num_records"], strict=True):
                sizes[0 if batch is None else batch] += rows
    log = in_log(tables["events"], "partition.ingested_on", "min.bronze_batch").to_pydict()
    if since is None:
        return list(_cut(None, sizes))
    days = zip(log.get("partition.ingested_on", []), log.get("min.bronze_batch", []), strict=True)
    first = min((batch for day, batch in days if day >= since), default=None)
    return [] if first is None else list(_cut(first - 1, {batch: rows for batch, rows in sizes.items() if batch >= first}))


def _cut(after: int | None, sizes: Mapping[int, int]) -> Iterator[Slice]:
    """Runs of batches; a batch that is too large for itself is shared out by row. The last slice has no end."""
    rows, up_to = 0, after
    for batch in sorted(sizes):
        if rows and rows + sizes[batch] > ROWS_AT_ONCE:
            yield from _shared(after, up_to, rows)
            after, rows = up_to, 0
        rows, up_to = rows + sizes[batch], batch
    yield from _shared(after, None, rows)


def _shared(after: int | None, up_to: int | None, rows: int) -> Iterator[Slice]:
    shares = 1
    while rows > shares * ROWS_AT_ONCE:
        shares *= 2
    return (Slice(after, up_to, share, shares) for share in range(shares))


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["bronze_batch"] is not None, row["bronze_batch"] or 0, row["source"] or ""


def _nothing(row: Mapping[str, Any]) -> dict[str, Any]:
    counts = dict.fromkeys((*COUNTED, *WRONG, "waiting"), 0)
    return {"bronze_batch": row["bronze_batch"], "source": row["source"], "ingested_on": None, "ingested_at": None, "written": {}} | counts


def _add(to: dict[str, Any], row: Mapping[str, Any]) -> None:
    """Counts are summed. Of a batch that was shared out every share knows the day, unless it has only orphaned."""
    for count in SUMMED & to.keys():
        to[count] += row[count]
    for instant in {"ingested_on", "ingested_at"} & to.keys():
        to[instant] = to[instant] or row[instant]
