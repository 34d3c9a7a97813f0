"""Declared fields that no longer come, and fields that nobody declared: told once, by a look at the newest events of each source.

A field that comes in some events only is missing when it was away ten times as long as ever before; sooner where another one has come
instead, as after a rename.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from expectations.wording import counted
from orchestration.engine.lake import Lake
from orchestration.jobs.preview import unread_fields
from orchestration.jobs.ranges import pieces
from orchestration.jobs.watched_fields import Watched, WatchedMetric, WatchedSource, watched_fields
from orchestration.rendering import plain, visible
from orchestration.storage.delta import literal
from orchestration.storage.ops_tables import LEDGER
from orchestration.storage.payload_formats import payload_formats
from orchestration.storage.positions import accounted_for
from silver.measurements import measurements
from silver.spec import PayloadFormat

SAMPLE = 1_000
MANY, TIMES, MOST_FIELDS = 100, 10, 10
FIELD, UNIT, ZONE, ATTRIBUTE = "field ", "the unit", "the zone", "attribute "
"""Watched as metrics of wide rows are, which have no blank in their names: the fields of the metric and the value of long rows, without
which nothing is measured; the unit, without which a number counts as one in the unit of its metric."""
COUNTS = "select source, sum(events) as events, max(bronze_batch) as newest from rows where bronze_batch > {after} group by source"
NEWEST = f"select * from rows where bronze_batch = {{batch}} and source = {{source}} order by bronze_row desc limit {SAMPLE}"


def new_findings(lake: Lake) -> Iterator[str]:
    """A sentence for each source of which there is something new to say, since the last look up to where the ledger has come."""
    file, up_to = watched_fields(lake.conf.lake), accounted_for(lake)
    watched = file.read() or Watched()
    if up_to <= watched.bronze_batch:
        return
    counts, shapes = pa.concat_tables(pieces(lake, LEDGER, COUNTS.format(after=watched.bronze_batch))), payload_formats(lake.conf)
    for row in counts.to_pylist():
        shape = shapes.get(row["source"])
        if shape is not None and row["events"]:
            newest = NEWEST.format(batch=row["newest"], source=literal(row["source"]))
            events = pa.concat_tables(pieces(lake, "bronze.events", newest)).sort_by("bronze_row")
            source = watched.sources.setdefault(row["source"], WatchedSource())
            seen = seen_of(events, shape, lake.conf.policy.max_payload_bytes)
            yield from sentences(row["source"], source, seen, row["events"])
    watched.bronze_batch = up_to
    file.write(watched)


@dataclass(frozen=True)
class Seen:
    """A look at events in order: by metric, or by UNIT and the like, the indexes of those that have a value; when they came, ISO 8601; and
    the unread fields of each, with escapes for what no file or terminal takes."""

    places: Mapping[str, list[int]]
    at: list[str]
    fields: list[frozenset[str]]


def seen_of(events: pa.Table, shape: PayloadFormat, max_payload_bytes: int) -> Seen:
    """`events`: of one source, rows of bronze.events in their order."""
    rows = pa.concat_tables(measurements(events, shape, max_payload_bytes))
    is_there = {metric: pc.equal(rows["metric"], metric) for metric in shape.metrics}
    fields_of = {"number": shape.value and shape.value.field, "metric": shape.metric and shape.metric.field}
    is_there |= {FIELD + path: pc.is_valid(rows[column]) for column, path in fields_of.items() if path}
    columns = {UNIT: (shape.unit, "unit_text"), ZONE: (shape.zone, "zone_text")}
    is_there |= {name: pc.is_valid(rows[column]) for name, (origin, column) in columns.items() if origin and origin.field}
    texts = rows["attributes"].combine_chunks()
    is_there |= {ATTRIBUTE + name: pc.is_valid(pc.map_lookup(texts, name, "first")) for name in shape.attributes}
    places = {name: rows["event_at"].filter(there).unique().sort().to_pylist() for name, there in is_there.items()}
    fields = [frozenset(map(visible, unread_fields(events.slice(n, 1), shape))) for n in range(len(events))]
    return Seen(places, [str(plain(at)) for at in events["received_at"].to_pylist()], fields)


def sentences(name: str, source: WatchedSource, seen: Seen, events: int) -> Iterator[str]:
    """Yield what is new, and update the source. `events`: the count of events that came, of which the last are `seen`."""
    is_first, fields_before, is_reported = not source.metrics, {*source.fields}, False
    every = Counter(path for fields in seen.fields for path in fields)
    source.metrics = {metric: source.metrics.get(metric, WatchedMetric()) for metric in seen.places}
    for metric, watched in source.metrics.items():
        last = _count(watched, seen, seen.places[metric], events)
        before = fields_before.union(*seen.fields[: last + 1])
        new = sorted({path for fields in seen.fields[last + 1 :] for path in fields} - before)
        # A zone and an attribute may be of a few events only.
        is_rare, is_replaced = metric == ZONE or metric.startswith(ATTRIBUTE), bool(new)
        least, times = (1, 1) if is_replaced and not is_rare else (MANY, TIMES)
        is_gone = watched.without >= least and watched.without > times * watched.longest and (watched.last_at or not is_rare)
        if is_gone and not watched.told:
            had = f"had values until {watched.last_at} and has none since" if watched.last_at else "never had a value"
            watched.told = (
                f"{metric if ' ' in metric else f'metric {metric}'} of source {name} {had}, though {counted(watched.without, 'event')} came"
                + _new(new)
            )
            is_reported = True
            yield watched.told
    if not is_reported and not is_first and (new := sorted(every.keys() - fields_before)):
        yield f"source {name} has fields that conf does not name{_new(new)}"
    source.fields = sorted(fields_before | every.keys())


def _count(watched: WatchedMetric, seen: Seen, places: list[int], events: int) -> int:
    """The place of the last event with a value, -1 for none; `watched` as it is then."""
    if not places:
        watched.without += events
        return -1
    gaps = np.diff([-1 - watched.without, *places]) - 1 if watched.last_at else np.diff(places) - 1
    watched.longest = max(watched.longest, int(gaps.max(initial=0)))
    watched.without, watched.last_at, watched.told = len(seen.at) - 1 - places[-1], seen.at[places[-1]], None
    return places[-1]


def _new(fields: list[str]) -> str:
    more = f" and {len(fields) - MOST_FIELDS} more" if len(fields) > MOST_FIELDS else ""
    return f"; new fields: {', '.join(fields[:MOST_FIELDS])}{more}" if fields else ""
