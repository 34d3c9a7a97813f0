"""The discrepancies of the account: each identity with what is wrong with it, beside the payload of its event."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from expectations.wording import counted
from orchestration.audit.reconciliation.account import EVENTS, KINDS, MEASUREMENTS, WRONG, Account, OpenTables, Rows
from orchestration.engine.lake import Lake
from orchestration.location import Location
from orchestration.rendering import short
from orchestration.storage.delta import ask, in_log, literal, open_table
from orchestration.storage.lanes import lanes_of
from orchestration.storage.ops_tables import COUNTED
from orchestration.storage.sealing import sealed_tables
from orchestration.storage.seals import Damage
from orchestration.utc import to_iso
from silver.spec import PayloadFormat

MOST = 10
OF_FILE = ("path", "size_bytes", "num_records", "min.bronze_batch", "max.bronze_batch")
COLUMNS = ("bronze_batch", "bronze_row", "part", "wrong", "payload")
TABLES = [f"silver.{table}" for table in KINDS.values()]

SUSPECTS = f"""
  with {EVENTS} select bronze_batch, bronze_row, source, copies, parts, parts_seen from compared
  where {" or ".join(f"{wrong} > 0" for wrong in WRONG)} order by bronze_batch, bronze_row limit {MOST}
"""
MEASUREMENTS_OF_ONE = (
    f"select part, kind, source, count(*) as n from ({MEASUREMENTS}) group by part, kind, source order by part, kind, source"
)
PAYLOAD = "select payload from events where {of} limit 1"

TWICE = f"""
  with laned as (select *, {{lane}} as lane from readings)
  select device_id, metric, event_time, count(*) as times, min(source) as first_source, max(source) as last_source,
    max(bronze_batch) as bronze_batch, max(bronze_row) as bronze_row, max(part) as part
  from laned where device_id in (select device_id from laned group by device_id having min(lane) < max(lane))
  group by device_id, metric, event_time having count(*) > 1 order by event_time, device_id, metric limit {MOST}
"""

Parts = Mapping[int | None, Rows]
"""The measurements of one event that silver holds, by part."""


def discrepancies(tables: OpenTables, account: Account, shapes: Mapping[str, PayloadFormat]) -> Rows:
    """The first identities that are not accounted for once, and the first counts that are not those that were written; ten of each."""
    first: Rows = []
    for suspects in account.suspects:
        for event in tables.ask(SUSPECTS, of=suspects):
            if len(first) < MOST:
                first += _of_event(tables, event, shapes.get(event["source"]))
    return first[:MOST] + list(_count_mismatches(account.batches))[:MOST]


def twice(lake: Lake) -> Rows:
    """The first readings of one device, metric and time that came by two lanes: deduplication of one knows nothing of the other."""
    lanes = lanes_of(lake)
    if not lanes.every:
        return []
    readings = {"readings": open_table(lake.table_path("silver.readings"))}
    rows = ask(TWICE.format(lane=lanes.of_row()), readings).read_all().to_pylist()
    return [_row(row["bronze_batch"], row["bronze_row"], row["part"], _twice(row)) for row in rows]


def _twice(row: Mapping[str, Any]) -> str:
    measured = f"{row['metric']} of {row['device_id']} at {to_iso(row['event_time'])}"
    return (
        f"{measured} is {row['times']} times in silver.readings: sources {row['first_source']} and {row['last_source']} are of two lanes."
        " Let one of them send the device, or give both the same lateness_seconds and ahead_seconds; then run `tidemark replay`"
    )


def damaged(tables: OpenTables) -> Rows:
    """Files that are gone, or are not as long as their table's log says; while there are any, nobody can take an account."""
    lengths = {file: length for word in tables.by_name for file, length, _ in tables.paths[word].entries()}
    return [
        _row(file.get("min.bronze_batch"), None, None, _of_file(path, lengths.get(path), file))
        for word, table in tables.by_name.items()
        for file in in_log(table, *OF_FILE).to_pylist()
        if lengths.get(path := tables.paths[word] / file["path"]) != file["size_bytes"]
    ][:MOST]


def seal_violations(lake: Lake, look: Callable[[Location], Sequence[Damage]]) -> Rows:
    """Files that are not as they were written; `look` says at which of a table."""
    damages = [damage for path in sealed_tables(lake).values() for damage in look(path)]
    return [_row(None, None, None, str(damage)) for damage in damages][:MOST]


def _row(batch: int | None, row: int | None, part: int | None, wrong: str, payload: bytes | None = None) -> dict[str, Any]:
    return dict(zip(COLUMNS, (batch, row, part, wrong, short(payload)), strict=True))


def _of_file(path: Location, length: int | None, file: Mapping[str, Any]) -> str:
    """The rows that it held are known from the log."""
    state = "is gone" if length is None else f"has {length} bytes, its table's log says {file['size_bytes']}"
    rows = f"{file['num_records']} rows of bronze batches {file.get('min.bronze_batch')} to {file.get('max.bronze_batch')} are missing"
    return f"{path} {state}: {rows} until it is restored"


def _of_event(tables: OpenTables, event: Mapping[str, Any], shape: PayloadFormat | None) -> Rows:
    identity = " and ".join(f"({name} is not distinct from {literal(event[name])})" for name in ("bronze_batch", "bronze_row"))
    parts: dict[int | None, Rows] = defaultdict(list)
    for row in tables.ask(MEASUREMENTS_OF_ONE, of=identity):
        parts[row["part"]].append(row)
    payload = next((row["payload"] for row in tables.ask(PAYLOAD, of=identity)), None)
    strays = ((part, f"in {_tables(rows)}, but there is no such event in bronze.events") for part, rows in parts.items())
    wrongs = _with_event(event, parts, shape) if event["copies"] else strays
    return [_row(event["bronze_batch"], event["bronze_row"], part, wrong, payload) for part, wrong in wrongs]


def _with_event(event: Mapping[str, Any], parts: Parts, shape: PayloadFormat | None) -> Iterator[tuple[int | None, str]]:
    if event["copies"] > 1:
        yield None, f"{event['copies']} times in bronze.events"
    for part, rows in parts.items():
        if sum(row["n"] for row in rows) > 1:
            yield part, f"more than once: in {_tables(rows)}"
        if strangers := {row["source"] for row in rows} - {event["source"]}:
            yield part, f"of source {', '.join(map(repr, strangers))} in {_tables(rows)}, of {event['source']!r} in bronze.events"
    if event["parts_seen"] > event["parts"]:
        yield None, f"{counted(event['parts_seen'], 'measurement')} in silver ({_named(parts)}), of an event that holds {event['parts']}"
    if event["parts_seen"] < event["parts"]:
        yield from _missing(event, parts, shape)


def _missing(event: Mapping[str, Any], parts: Parts, shape: PayloadFormat | None) -> Iterator[tuple[int | None, str]]:
    """Which ones are missing is known where every place in the event holds a measurement; a wide row may have blanks."""
    expected = event["parts"]
    has_no_blanks = shape is not None and len(shape.metrics) in (0, expected)
    missing = [part for part in range(expected) if part not in parts]
    if not parts:
        yield 0 if shape is not None and not shape.metrics and shape.each is None else None, "in no table of silver"
    elif has_no_blanks and len(missing) == expected - len(parts):
        yield from ((part, f"in no table of silver; {_named(parts)} of {expected} there") for part in missing)
    else:
        yield None, f"{expected - len(parts)} of {counted(expected, 'measurement')} in no table of silver; {_named(parts)} there"


def _count_mismatches(batches: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        if batch["count_mismatch"]:
            written = {count: batch["written"].get(count, 0) for count in COUNTED}
            wrong = (f"{count} {batch[count]}, was {was} when it was written" for count, was in written.items() if was != batch[count])
            yield _row(batch["bronze_batch"], None, None, f"{batch['source']}: {'; '.join(wrong)}")


def _tables(rows: Rows) -> str:
    times = Counter[str]()
    for row in rows:
        times[TABLES[row["kind"]]] += row["n"]
    return " and ".join(table if n == 1 else f"{table} ({n} times)" for table, n in times.items())


def _named(parts: Parts) -> str:
    return f"part{'s' if len(parts) > 1 else ''} {', '.join(str(part) for part in list(parts)[:MOST])}" + (
        ", ..." if len(parts) > MOST else ""
    )
