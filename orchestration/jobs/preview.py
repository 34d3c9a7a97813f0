"""How a sample of events would be read: readings, quarantine with the reasons, duplicates, windows. Without Spark; nothing is written."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pyarrow as pa

from bronze.events import identified
from orchestration.conf.diagnostic import counted
from orchestration.conf.model import Conf, Source
from orchestration.conf.transports import LandingFolder
from orchestration.errors import ConfError
from orchestration.storage.registry import after_sync
from orchestration.storage.retired_sources import payload_formats
from silver import account
from silver.config import SilverConfig
from silver.csv_rows import values_of
from silver.enrich import catalogue
from silver.evaluated import evaluated, evaluation, retyped
from silver.instants import INSTANT
from silver.reasons import Reasons
from silver.spec import ELEMENT, PayloadFormat

MOST_FIELDS, MOST_RULES = 20, 3
SINCE_1970 = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = ("event", "becomes", "device_id", "metric", "event_time", "value", "unit", "zone", "groups", "reasons", "payload")
READINGS = ("event", "device_id", "metric", "event_time", "value", "unit", "zone", "groups")
BY_RULE = ("rule", "metric", "measurements", "example", "payload")
WINDOWS = ("group", "metric", "windows", "readings", "first", "last")
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Preview:
    """`measurements`: COLUMNS. `becomes`: reading, duplicate or quarantine; `event` counts from 1; `reasons`: by broken rule, else empty.

    `not_read`: fields that conf does not name, with the number of events that have them; of binary formats unknown. `not_asked`: names of
    rules that only Spark can evaluate.
    """

    events: int
    measurements: Rows
    windows: Rows
    not_read: Mapping[str, int]
    not_asked: tuple[str, ...]

    @property
    def by_rule(self) -> Rows:
        """BY_RULE: each broken rule and metric with the first example, the most frequent first."""
        found: dict[tuple[str, str | None], Rows] = defaultdict(list)
        for row in self.measurements:
            for rule in row["reasons"]:
                found[rule, row["metric"]].append(row)
        return [
            dict(zip(BY_RULE, (rule, metric, len(rows), rows[0]["reasons"][rule], rows[0]["payload"]), strict=True))
            for (rule, metric), rows in sorted(found.items(), key=lambda of: -len(of[1]))
        ]

    @property
    def notes(self) -> list[str]:
        """What is not read, what counts for no window, and which rules were not asked; a sentence each."""
        fields = [f"{path} ({count:,})" for path, count in self.not_read.items()]
        more = f" and {len(fields) - MOST_FIELDS} more" if len(fields) > MOST_FIELDS else ""
        ungrouped = sorted({row["metric"] for row in self.windows if row["group"] is None})
        return [
            *([f"fields that conf does not name, and events that have them: {', '.join(fields[:MOST_FIELDS])}{more}"] if fields else []),
            *(
                [f"in no window, as no group of the device has the metric: {', '.join(ungrouped)}; see groups.yml and devices.yml"]
                if ungrouped
                else []
            ),
            *([f"not asked, as only Spark can: {', '.join(self.not_asked)}"] if self.not_asked else []),
        ]

    @property
    def share(self) -> str:
        """How many events would be readings; not one of which a measurement is quarantined."""
        of = {
            kind: [row["event"] for row in self.measurements if row["becomes"] == kind] for kind in ("reading", "duplicate", "quarantine")
        }
        repeated = f"; {counted(len(of['duplicate']), 'measurement')} would be duplicates" if of["duplicate"] else ""
        good = len({*of["reading"]} - {*of["quarantine"]})
        return f"{good:,} of {counted(self.events, 'event')} would be readings{repeated}"

    def __str__(self) -> str:
        """The same, and why the others would not."""
        first, counts = {row["rule"]: row for row in reversed(self.by_rule)}, Counter[str]()
        for row in self.by_rule:
            counts[row["rule"]] += row["measurements"]
        broken = [f"{n:,} quarantined by {rule} (such as: {first[rule]['example']})" for rule, n in counts.most_common(MOST_RULES)]
        return "; ".join((self.share, *broken))


def source_to_read(conf: Conf, name: str | None, file: Path | None) -> str:
    """That name, or the only source whose folder and format fit the file; ConfError where that is not one."""
    names = [*conf.sources]
    if name is not None and name not in names:
        raise ConfError(f"{name} is no source; sources.yml has {', '.join(names)}")
    for fits in (_may_land, _has_format):
        names = [fit for fit in names if file is not None and fits(file, conf.sources[fit])] or names
    if name is None and len(names) > 1:
        raise ConfError(f"it may be {' or '.join(names)}; name the source with --source")
    return name or names[0]


def preview(conf: Conf, source: str, events: pa.Table) -> Preview:
    """`events`: ARRIVED of bronze/events.py, read as if they came now; TidemarkError where a registry of schemas gives no answer."""
    now = datetime.now(UTC)
    shape = payload_formats(conf)[source]
    if shape.registry:
        from orchestration.connectors.sources.schemas import Schemas  # its client takes a while

        shape = replace(shape, schemas=Schemas(conf, source, shape, shape.registry).known(events["payload"]))
    known = SilverConfig({source: shape}, conf.policy, conf.rules)
    not_asked = tuple(rule.name for rule in conf.rules if evaluation(replace(known, rules=(rule,))) is None)
    config = replace(known, rules=tuple(rule for rule in conf.rules if rule.name not in not_asked))
    events = identified(events, now, 0, 0)
    pieces = evaluated(events, after_sync(conf.lake, conf.devices, now), catalogue(conf.metrics), config, evaluation(config) or "")
    if not (measured := [*pieces]):
        return Preview(len(events), [], [], {}, not_asked)
    broken, good = account.split(pa.concat_tables(measured))
    duplicates = account.duplicates(account.with_kept(good, account.kept_of_keys([good], [good.slice(0, 0)])))
    readings = _rows(account.among(good, account.IDENTITY, duplicates, "left anti"))
    quarantined = [row for piece in account.quarantine(broken, events) for row in _rows(piece)]
    reasons = Reasons(config, conf.metrics, conf.devices)
    rows = [row | {"becomes": "reading", "reasons": {}} for row in readings]
    rows += [row | {"becomes": "duplicate", "reasons": {}} for row in _rows(duplicates)]
    rows += [row | {"becomes": "quarantine", "reasons": reasons.of(row)} for row in quarantined]
    rows.sort(key=lambda row: (row["bronze_row"], row["part"]))
    measurements = [{name: row.get(name) for name in COLUMNS} | {"event": row["bronze_row"] + 1} for row in rows]
    return Preview(len(events), measurements, _windows(conf, readings), _not_read(events, shape), not_asked)


def _rows(table: pa.Table) -> Rows:
    """Instants by way of numbers: pyarrow loads pandas for them, which takes longer than all else."""
    instants = [field.name for field in table.schema if field.type == INSTANT]
    rows: Rows = retyped(table, INSTANT, pa.int64()).to_pylist()
    for row in rows:
        row |= {name: None if row[name] is None else SINCE_1970 + timedelta(microseconds=row[name]) for name in instants}
    return rows


def _windows(conf: Conf, readings: Rows) -> Rows:
    """WINDOWS, of a device each; without a group what counts for none."""
    seen: dict[tuple[str | None, str], tuple[set[Any], Rows]] = defaultdict(lambda: (set(), []))
    for reading in readings:
        of_metric = [name for name in reading["groups"] if name in conf.groups and reading["metric"] in conf.groups[name].metrics]
        for group in of_metric or [None]:
            windows, rows = seen[group, reading["metric"]]
            rows.append(reading)
            if group:
                metric = conf.metrics[reading["metric"]]
                slide = metric.slide_seconds or metric.step_seconds
                end = (reading["event_time"] - SINCE_1970) // timedelta(seconds=slide) * slide + slide
                windows |= {(reading["device_id"], end + n) for n in range(0, metric.step_seconds, slide)}
    return [
        {"group": group, "metric": metric, "windows": len(windows), "readings": len(rows)}
        | {name: choose(row["event_time"] for row in rows) for name, choose in (("first", min), ("last", max))}
        for (group, metric), (windows, rows) in seen.items()
    ]


def _not_read(events: pa.Table, shape: PayloadFormat) -> Mapping[str, int]:
    named = {*shape.fields}
    if shape.format == "csv":
        columns = [shape.columns or values_of(header or "", shape) or () for header in events["header"].to_pylist()]
        return Counter(name for names in columns for name in names if name and name not in named)
    if shape.is_binary:
        return {}
    found = Counter[str]()
    for payload in events["payload"].to_pylist():
        with suppress(ValueError, RecursionError):
            found.update({*_paths(json.loads(payload), "", shape.each)})
    return Counter({path: count for path, count in found.most_common() if path not in named})


def _paths(value: Any, path: str, each: str | None) -> Iterator[str]:
    """Of all that is no object; of the list `each` those of its elements."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _paths(inner, f"{path}.{name}" if path else name, each)
    elif isinstance(value, list) and path == each:
        for element in value:
            yield from _paths(element, ELEMENT.rstrip("."), None)
    elif path and value is not None:
        yield path


def _may_land(file: Path, source: Source) -> bool:
    landing = source.transport
    return (
        isinstance(landing, LandingFolder) and file.resolve().is_relative_to(landing.path.resolve()) and fnmatch(file.name, landing.files)
    )


def _has_format(file: Path, source: Source) -> bool:
    kind = Path(file.name.lower().removesuffix(".gz")).suffix
    return source.payload_format.format in {".csv": "csv", ".parquet": "parquet"}.get(kind, "json")
