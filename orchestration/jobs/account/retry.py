"""Retry: today's conf is asked again about events in quarantine; measurements that are good now leave it, once.

A device that is known now, and was not when its events came, is taken for one that was never unknown: that is corrected in the registry,
for this generation. Then all of its events leave quarantine that are there for no other reason.

Measurements go to silver.late (or silver.duplicates, where their key is taken): streams have passed them, and gold folds late rows in. The
outcome is written down before any table changes, rows and all, so that a retry that was killed is finished by the next writer of the lake
without asking any rule, whatever has become of conf; Delta refuses what is there already.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.jobs.account.ledger import as_rows
from orchestration.jobs.account.measurements import (
    Counts,
    append_once,
    count_by_kind,
    count_rows,
    find_kept,
    judged_events,
    of_events,
    rows_of,
    scratch_file,
)
from orchestration.jobs.ranges import Range, cut, pieces
from orchestration.location import Location
from orchestration.storage import registry
from orchestration.storage.commit import append_rows, replace_rows
from orchestration.storage.confs import note_retry
from orchestration.storage.delta import literal, version_of, written_by
from orchestration.storage.kept import delete_all
from orchestration.storage.lake_layout import CORRECTIONS
from orchestration.storage.ops_tables import COUNTED, LEDGER, LEDGER_SCHEMA
from orchestration.storage.positions import accounted_for, retried
from orchestration.storage.row_pieces import merged
from orchestration.storage.state_file import StateFile
from silver import account, retry
from silver.policy import Unknown

NAME = "silver.retry"
ELSEWHERE = ("silver.readings", "silver.late", "silver.duplicates")
CHANGED = (LEDGER, "silver.quarantine", "silver.late", "silver.duplicates")
DEVICE_IS_KNOWN = "device_is_known"
COLUMNS = ("source", "events", "readmitted", "duplicates", "quarantined", "moved")
GOOD, WITH_KEPT, BROKEN, GONE = "good.parquet", "with_kept.parquet", "broken.parquet", "gone.parquet"
"""Good measurements, first as they are, then with the kept one of their key; rows that quarantine gets, and identities that it loses."""
CORRECTED = "corrected.parquet"
"""Corrections of the registry."""
ROWS_AT_ONCE, EVENT_BYTES = 500_000, 32 * 1024 * 1024
"""Rows of quarantine at once, by whole bronze batches; bytes of events whose measurements are judged together."""
REPLACED_KIND = "replaced "
"""Before the kind of the ledger that a row in quarantine was of."""


@dataclass(frozen=True)
class Chosen:
    """Events to look at again: of those with a row in quarantine that breaks this rule and is of this source; None: any."""

    rule: str | None = None
    source: str | None = None


@dataclass(frozen=True)
class Verdict:
    """The changes that a retry makes. `outcome`: a folder with the files GOOD, WITH_KEPT, BROKEN, GONE and CORRECTED.

    `counts`: `quarantined` is what quarantine gets or, below 0, loses. `summary`: a row a source, COLUMNS; there it breaks a rule still.
    """

    outcome: Path
    counts: Counts
    summary: list[dict[str, Any]]

    @property
    def is_change(self) -> bool:
        return any(kind.startswith(REPLACED_KIND) for kind, _, _ in self.counts)


@dataclass(frozen=True)
class PendingRetry:
    """A retry that was written down. `corrections`: rows for ops.ledger; `versions`: of the tables it changes, as they were before."""

    number: int
    corrections: list[dict[str, Any]]
    versions: dict[str, int]


def _file(lake: Lake) -> StateFile[PendingRetry]:
    way_out = "Restore it from a backup: it says how far a retry of the quarantine had come."
    return StateFile(_folder(lake) / "retry.json", PendingRetry, way_out)


def pending(lake: Lake) -> PendingRetry | None:
    """The retry that was written down and is not done: killed, or still at work."""
    written = _file(lake).read()
    return written if written and written.number > _done(lake) else None


def versions_before_retry(lake: Lake) -> dict[str, int]:
    """Return the versions of the tables that a retry under way changes one after the other; none if none is under way."""
    return under_way.versions if (under_way := pending(lake)) else {}


def finish(lake: Lake) -> None:
    """Do what a retry that was killed left to do."""
    if (killed := pending(lake)) is not None:
        _carry_out(lake, killed)


@contextmanager
def foreseen(lake: Lake, chosen: Chosen) -> Iterator[Verdict]:
    """Work out what a retry would do now; nothing is written to the lake."""
    with TemporaryDirectory(prefix="tidemark-") as folder:
        outcome = Path(folder)
        counts = _look_again(lake, chosen, outcome)
        find_kept(lake, outcome / GOOD, outcome / WITH_KEPT, {"silver.readings": "true", "silver.late": "true"})
        for rows in rows_of(outcome / WITH_KEPT):
            counts += count_by_kind("silver.late", account.late(rows)) + count_by_kind("silver.duplicates", account.duplicates(rows))
        for (kind, batch, source), count in list(counts.items()):
            if kind.startswith(REPLACED_KIND):
                counts[kind.removeprefix(REPLACED_KIND), batch, source] -= count
        yield Verdict(outcome, counts, _summary(counts))


def carry_out(lake: Lake, verdict: Verdict) -> None:
    """Write it down, then do it."""
    number = max(retried(lake), _done(lake)) + 1
    delete_all(_outcome(lake))
    for file in verdict.outcome.iterdir():
        (_outcome(lake) / file.name).write(file.read_bytes())
    versions = {name: version_of(lake.table_path(name)) for name in CHANGED}
    corrections = as_rows(Counter({key: count for key, count in verdict.counts.items() if key[0] in COUNTED[1:]}))
    written = PendingRetry(number, corrections.to_pylist(), versions)
    note_retry(lake)
    _file(lake).write(written)
    crash.point(crash.Point.RETRY_NOTED)
    _carry_out(lake, written)


def _carry_out(lake: Lake, this: PendingRetry) -> None:
    outcome = _brought(_outcome(lake))
    if corrections := [*rows_of(outcome / CORRECTED)]:
        app_id = lake.app_id(NAME, CORRECTIONS)
        append_rows(lake.table_path(CORRECTIONS), pa.concat_tables(corrections), app_id, this.number)
    for name, readmitted in (("silver.late", account.late), ("silver.duplicates", account.duplicates)):
        rows = (readmitted(rows, this.number) for rows in rows_of(outcome / WITH_KEPT))
        append_once(lake, name, rows, lake.app_id(NAME, name), this.number)
    crash.point(crash.Point.RETRY_READMITTED)
    _replace(lake, this, outcome)
    crash.point(crash.Point.RETRY_REPLACED)
    # Last, as it says that the retry is done.
    append_rows(lake.table_path(LEDGER), pa.Table.from_pylist(this.corrections, LEDGER_SCHEMA), lake.app_id(NAME, LEDGER), this.number)
    delete_all(_folder(lake))


def _replace(lake: Lake, this: PendingRetry, outcome: Path) -> None:
    """In one commit, what quarantine holds of the events of the outcome by what breaks a rule now."""
    name = "silver.quarantine"
    broken, gone = outcome / BROKEN, outcome / GONE
    identities = pa.concat_tables([rows for file in (broken, gone) for rows in rows_of(file, columns=account.IDENTITY)])

    def kept(rows: pa.Table) -> pa.Table:
        return account.among(rows, account.IDENTITY, identities, "left anti")

    replace_rows(lake.table_path(name), kept, account.IDENTITY, rows_of(broken), lake.app_id(NAME, name), this.number)


def _look_again(lake: Lake, chosen: Chosen, outcome: Path) -> Counts:
    """Write the outcome but for the kept ones; counts of events, and of rows in quarantine before, replaced and now."""
    counts: Counts = Counter()
    mended = _mended(lake, chosen)
    counting = registry.corrected(registry.in_force(lake.conf.lake, lake.generation), mended)
    with ExitStack() as files:
        add_good, add_broken, add_gone, add_corrected = (
            files.enter_context(scratch_file(outcome / name)) for name in (GOOD, BROKEN, GONE, CORRECTED)
        )
        add_corrected(mended)
        for batches, quarantined in _quarantined(lake, chosen, mended["device_id"].unique().to_pylist()):
            events = quarantined.group_by([*account.OF_EVENT, "source"]).aggregate([])
            counts += count_rows("events", events) + count_rows("before", quarantined)
            of_range = partial(of_events, lake, where=batches.sql(), events=events)
            placed = pa.concat_tables(rows for name in ELSEWHERE for rows in of_range(name, retry.PLACED))
            for payloads in filter(len, merged(of_range("bronze.events", "*"), most_bytes=EVENT_BYTES)):
                now = pa.concat_tables(judged_events(lake, payloads, devices=counting))
                before, elsewhere = (account.among(rows, account.OF_EVENT, payloads) for rows in (quarantined, placed))
                changed = retry.changed(now, elsewhere, before)
                replaced = account.among(before, account.OF_EVENT, changed)
                broken, good = account.split(changed)
                add_good(good)
                for rows in account.quarantine(broken, payloads):
                    add_broken(rows)
                add_gone(account.among(replaced, account.IDENTITY, broken, "left anti").select(account.IDENTITY))
                moved = account.among(events, account.OF_EVENT, retry.moved(now, elsewhere))
                of_replaced = count_by_kind("silver.quarantine", replaced)
                counts += Counter({(REPLACED_KIND + kind, batch, source): n for (kind, batch, source), n in of_replaced.items()})
                counts += count_rows("moved", moved) + count_by_kind("silver.quarantine", broken)
    return counts


def _mended(lake: Lake, chosen: Chosen) -> pa.Table:
    """Corrections by which devices of the events chosen, that are in quarantine as unknown and known now, were never unknown."""
    names: list[str] = []
    if chosen.rule in {None, DEVICE_IS_KNOWN} and lake.conf.policy.unknown_device is Unknown.QUARANTINE:
        query = f"select distinct device_id from rows where {_of_chosen(lake, chosen)} and array_has(broken_rules, '{DEVICE_IS_KNOWN}')"
        names = [row["device_id"] for piece in pieces(lake, "silver.quarantine", query) for row in piece.to_pylist()]
    return registry.as_table(registry.mended(registry.in_force(lake.conf.lake, lake.generation), names) if names else ())


def _of_chosen(lake: Lake, chosen: Chosen) -> str:
    """The condition of rows of quarantine: not what an account that did not end wrote, nor what the conf has no shape for."""
    sources = set(lake.conf.sources) & ({chosen.source} if chosen.source is not None else set(lake.conf.sources))
    return f"bronze_batch <= {accounted_for(lake)} and " + (f"source in {literal(sorted(sources))}" if sources else "false")


def _quarantined(lake: Lake, chosen: Chosen, mended: Sequence[str]) -> Iterator[tuple[Range, pa.Table]]:
    """All that quarantine holds of the events chosen, but for their payloads, by ranges of bronze batches.

    `mended`: devices of which all events are looked at that came while they were not known, of whatever source.
    """
    of_these = _of_chosen(lake, chosen)
    if mended:
        of_mended = f"device_id in {literal([*mended])} and array_has(broken_rules, '{DEVICE_IS_KNOWN}')"
        of_these = f"({of_these} or bronze_batch <= {accounted_for(lake)} and {of_mended})"
    query = f"select bronze_batch, count(*) as n from rows where {of_these} group by bronze_batch order by bronze_batch"
    sizes = [(row["bronze_batch"], row["n"]) for piece in pieces(lake, "silver.quarantine", query) for row in piece.to_pylist()]
    columns = ", ".join((*retry.COMPARED, "source"))
    for batches in cut(sizes, sizes[0][0] - 1, sizes[-1][0], ROWS_AT_ONCE) if sizes else ():
        query = f"select {columns} from rows where {of_these} and {batches.sql()}"
        rows = pa.concat_tables(pieces(lake, "silver.quarantine", query))
        if chosen.rule is not None:
            rows = account.among(rows, account.OF_EVENT, retry.breaking(rows, chosen.rule))
        if len(rows):
            yield batches, rows


def _summary(counts: Counts) -> list[dict[str, Any]]:
    of_source: dict[str, Counter[str]] = defaultdict(Counter)
    for (kind, _, source), count in counts.items():
        of_source[source][kind] += count
    return [
        {"source": source, "events": counted["events"], "readmitted": counted["late"], "duplicates": counted["duplicates"]}
        | {"quarantined": counted["before"] + counted["quarantined"] + counted["without_measurements"], "moved": counted["moved"]}
        for source, counted in sorted(of_source.items())
    ]


def _done(lake: Lake) -> int:
    return written_by(lake.table_path(LEDGER), lake.app_id(NAME, LEDGER))


def _folder(lake: Lake) -> Location:
    return lake.checkpoint(NAME)


def _outcome(lake: Lake) -> Location:
    return _folder(lake) / "outcome"


def _brought(folder: Location) -> Path:
    """Bring files to this host, where they are not."""
    for file in () if folder.store.is_disk else folder.glob("*"):
        file.on_host.write(file.read())
    return folder.local
