"""The summary at the end of `tidemark run --once`: what became of the rows of this run, from logs and its rows alone, without Spark."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import isinf

import pyarrow as pa
import pyarrow.parquet as pq

from expectations.wording import counted
from gold.windows.spec import Group
from orchestration.audit import quarantine
from orchestration.audit.reconciliation.account import Rows
from orchestration.audit.reconciliation.gold_account import open_windows
from orchestration.engine.lake import Lake
from orchestration.jobs.gold.idle_groups import patience_seconds
from orchestration.jobs.ranges import Range
from orchestration.rendering import plain, short
from orchestration.storage.delta import added, max_in_log, table_of
from orchestration.storage.ops_tables import COUNTED, LEDGER, MEASUREMENTS
from orchestration.storage.positions import accounted_for
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import find_snapshot
from orchestration.supervisor.status import arrears_after
from orchestration.utc import from_micros
from silver.schema import SOMETHING_IS_MEASURED


@dataclass(frozen=True)
class Summary:
    """`sources`: counts of the ledger; `quarantined`: a row a rule and source, with an example; `windows`: a row a group.

    `waiting`: events of bronze that the ledger has not come to. `tidemark`: the begin of each command. `left_out`: files and objects that
    were not read, or gave no event, with the reason.
    """

    sources: Rows
    quarantined: Rows
    windows: Rows
    waiting: int = 0
    tidemark: str = "tidemark"
    left_out: Rows = field(default_factory=list)

    @property
    def is_in_vain(self) -> bool:
        """Whether events came, or files that cannot be read, and nothing of this run is or was a reading."""
        is_used = any(row[name] for row in self.sources for name in ("readings", "late", "duplicates"))
        return not is_used and (bool(self.left_out) or any(row["events"] for row in self.sources))

    def sentences(self) -> Iterator[tuple[str, str | None]]:
        """Yield the sentences beside the rows, each with a colour; the last one is the next command to type."""
        counts = {name: sum(row[name] for row in self.sources) for name in COUNTED}
        became = {name: counts[name] for name in MEASUREMENTS if counts[name]}
        if not (events := counts["events"]):
            yield "Nothing has come to silver since the last run.", None
        elif "readings" not in became:
            others = {name: f"{count:,} {name.replace('_', ' ')}" for name, count in became.items()}
            others |= {"duplicates": counted(became["duplicates"], "duplicate")} if "duplicates" in became else {}
            colour = "red" if "quarantined" in became else "yellow"
            yield f"None of {counted(events, 'event')} became a reading: {', '.join(others.values())}.", colour
            if "late" in became:
                late = "Late is what is `lateness_seconds` behind the newest reading of all sources with the same bounds"
                yield f"{late}; it is folded into gold window by window.", None
        elif "quarantined" in became:
            yield f"In quarantine: {counts['quarantined']:,} of {counted(sum(became.values()), 'measurement')}.", "yellow"
        if self.waiting:
            yield f"Not in silver yet: {counted(self.waiting, 'event')} of bronze; the next run goes on from there.", "yellow"
        tables = [f"gold.{row['group']}_aggregates" for row in self.windows if row["closed"]] + ["silver.readings"] * bool(events)
        command = f'sql "select * from {tables[0]} limit 10"' if tables else "status"
        if self.quarantined:
            command = f"quarantine show --rule {self.quarantined[0]['rule']}"
        yield f"next: {self.tidemark} {command}", None


def mark(lake: Lake) -> tuple[int, Snapshot | None]:
    """How far a lake is: the newest bronze batch that the ledger has passed, and the newest snapshot."""
    return accounted_for(lake), find_snapshot(lake.conf.lake)


def summary(lake: Lake, begin: tuple[int, Snapshot | None], now: datetime, left_out: Rows) -> Summary:
    """Summarize the rows that the ledger, and the windows that snapshots, have passed since."""
    (after, before), (passed, snapshot) = begin, mark(lake)
    ledger = table_of(lake.table_path(LEDGER), None, [("bronze_batch", ">", after), ("bronze_batch", "<=", passed)])
    sources = by_source(ledger)
    quarantined = [
        {name: row[name] for name in ("rule", "source", "rows")} | {"reason": one["reason"], "example": short(one["payload"])}
        for row, one in quarantine.examples(lake, Range(after, passed).sql())
        if row["rule"] != SOMETHING_IS_MEASURED or not any(source["readings"] for source in sources)
    ]
    windows = _windows(lake, min(after, passed - 1), before.versions if before else {}, snapshot) if snapshot else []
    waiting = arrears_after(passed, lake.table_path("bronze.events"), now).behind or 0
    return Summary(sources, quarantined, windows, waiting, lake.conf.command, left_out)


def by_source(ledger: pa.Table) -> Rows:
    """One row a source: sums of the rows of ops.ledger."""
    sums = ledger.group_by("source").aggregate([(name, "sum") for name in COUNTED]).sort_by("source").to_pylist()
    return [{"source": row["source"]} | {name: row[f"{name}_sum"] for name in COUNTED} for row in sums]


def bounds(of_stream: Sequence[Group]) -> tuple[int, float]:
    """Return when windows of a stream close: the largest lateness of its groups, and the least patience, which may be infinite."""
    return max(group.lateness_seconds for group in of_stream), patience_seconds(of_stream)


def closed_by(lateness_seconds: int, patience: float, last_end: int, last_came: datetime) -> str:
    """Say when the windows up to `last_end` (microseconds since 1970) will close. `last_came`: the newest reading of any group."""
    needed = from_micros(last_end) + timedelta(seconds=lateness_seconds)
    idle = "" if isinf(patience) else f", or a run after {plain((last_came + timedelta(seconds=patience)).replace(microsecond=0))}"
    return f"a reading of {plain(needed)} or later{idle}"


def _windows(lake: Lake, after: int, before: dict[str, int], snapshot: Snapshot) -> Rows:
    """A row a group of which windows were emitted since the versions `before`, or are open with readings of bronze batches after one."""
    last_came = max_in_log(lake.table_path("silver.readings"), "ingested_at")
    still_open, rows, counts = {row["group_name"]: row for row in open_windows(lake, snapshot, after)}, [], _emitted(lake, before, snapshot)
    # Of a stream once: of 10,000 groups in one, each would look at all (measured: 20 s).
    bounds_of = {stream: bounds(groups) for stream, groups in lake.conf.streams.items()}
    for group, stream in lake.conf.stream_of.items():
        row = {"group": group, "closed": counts[group, False], "amended": counts[group, True], "open": 0, "closed_by": None}
        if waiting := still_open.get(group):
            row |= {"open": waiting["windows"], "closed_by": closed_by(*bounds_of[stream], waiting["last_end"], last_came)}
        rows.append(row)
    return [row for row in rows if row["closed"] or row["amended"] or row["open"]]


def _emitted(lake: Lake, before: dict[str, int], snapshot: Snapshot) -> Counter[tuple[str, bool]]:
    """Windows since the versions `before`, by their group and whether they are amended."""
    counts = Counter[tuple[str, bool]]()
    for name in dict.fromkeys(lake.generation.gold(stream, "aggregates") for stream in lake.conf.streams):
        versions = range(before.get(name, -1) + 1, snapshot.versions.get(name, -1) + 1)
        files = (add["path"] for version in versions for add in added(lake.table_path(name), version) if add["dataChange"])
        for file in files:
            with (lake.table_path(name) / file).open_input() as source:
                rows = pq.read_table(source, columns=["device_group", "revision"])
            counted = rows.group_by(["device_group", "revision"]).aggregate([([], "count_all")])
            for group, revision, count in zip(*(column.to_pylist() for column in counted.columns), strict=True):
                counts[group, revision > 0] += count
    return counts
