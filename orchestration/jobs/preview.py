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
from expectations.wording import counted
from gold.windows.calendar import window_of
from orchestration.conf.model import Conf, Source
from orchestration.conf.transport_settings import LandingFolder
from orchestration.errors import ConfError
from orchestration.jobs.silver_in_process import silver_of
from orchestration.storage.delta import python_rows
from orchestration.storage.payload_formats import payload_formats
from orchestration.storage.references import present
from orchestration.storage.registry import versions, with_declared
from orchestration.utc import EPOCH
from silver.csv_rows import values_of
from silver.decoders.chain import decoder_of, objects_of
from silver.decoders.message import OF_MESSAGE, messages
from silver.enrich import ReferenceData
from silver.judging import judged
from silver.metric import Metric
from silver.policy import SilverConfig
from silver.reasons import Reasons
from silver.repeats import Repeats
from silver.spec import PayloadFormat

NOTHING = "without measurements"
MOST_FIELDS, MOST_RULES, MOST_BYTES = 20, 3, 1_048_576
COLUMNS = ("event", "becomes", "device_id", "metric", "event_time", "value", "unit", "zone", "groups", "attributes", "reasons", "payload")
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Preview:
    """`measurements`: COLUMNS. `becomes`: reading, duplicate, conflict, quarantine or without measurements; `reasons`: by broken rule.

    `windows`: by group and metric. `not_read`: fields that conf does not name, with the number of events that have them; none of binary
    formats.
    """

    events: int
    measurements: Rows
    windows: Rows
    not_read: Mapping[str, int]

    @property
    def broken(self) -> Rows:
        """One row a rule and metric with the first example, the most frequent first; one of several metrics where that is the same."""
        examples: dict[tuple[str, str | None], Rows] = defaultdict(list)
        for row in self.measurements:
            for rule, reason in row["reasons"].items():
                examples[rule, row["metric"]].append({"example": reason, "payload": row["payload"]})
        alike: dict[tuple[str, str, bytes], dict[str | None, int]] = defaultdict(dict)
        for (rule, metric), rows in examples.items():
            alike[rule, rows[0]["example"], rows[0]["payload"]][metric] = len(rows)
        broken = [
            {"rule": rule, "metric": ", ".join(filter(None, counts)) or None, "measurements": sum(counts.values())}
            | {"example": example, "payload": payload}
            for (rule, example, payload), counts in alike.items()
        ]
        return sorted(broken, key=lambda row: -row["measurements"])

    def sentences(self) -> Iterator[str]:
        """Yield which fields are not read, which metrics are in no window, and last how many measurements would be readings."""
        if self.not_read:
            fields = [f"{path} ({count:,})" for path, count in self.not_read.items()]
            more = f" and {len(fields) - MOST_FIELDS} more" if len(fields) > MOST_FIELDS else ""
            yield f"fields that conf does not name, and events that have them: {', '.join(fields[:MOST_FIELDS])}{more}"
        if loose := [row["metric"] for row in self.windows if row["group"] is None]:
            yield f"in no window, as no group of the device has the metric: {', '.join(loose)}; see groups.yml and devices.yml"
        becoming = Counter(row["becomes"] for row in self.measurements)
        nothing = becoming.pop(NOTHING, 0)
        parts = [
            f"{counted(self.events, 'event')}: {becoming['reading']:,} of {counted(becoming.total(), 'measurement')} would be readings"
        ]
        parts += [counted(becoming[name], name) for name in ("duplicate", "conflict") if becoming[name]]
        parts += [f"{nothing:,} {NOTHING}"] if nothing else []
        yield ", ".join(parts) if self.events else "no event is there to be read; name a file: tidemark preview FILE"

    def __str__(self) -> str:
        """How many measurements would be readings, and why the others would not."""
        counts = Counter(rule for row in self.measurements if row["becomes"] == "quarantine" for rule in row["reasons"])
        examples = {row["rule"]: row["example"] for row in reversed(self.broken)}
        broken = [f"{n:,} quarantined by {rule} (such as: {examples[rule]})" for rule, n in counts.most_common(MOST_RULES)]
        return "; ".join(([*self.sentences()][-1], *broken))


def sources_to_read(conf: Conf, name: str | None, file: Path | None) -> list[str]:
    """That name, or the source whose folder, else whose format, fits the file; ConfError where that is not one. All sources without
    both."""
    if name is not None and name not in conf.sources:
        raise ConfError(f"{name} is no source; sources.yml has {', '.join(conf.sources)}")
    if name is not None or file is None:
        return [*conf.sources] if name is None else [name]
    fits = {source_name: _fit(source, file.resolve()) for source_name, source in conf.sources.items()}
    best = [source_name for source_name, fit in fits.items() if fit == max(fits.values())]
    if len(best) > 1:
        raise ConfError(f"several sources fit: {', '.join(best)}; choose one with --source")
    return best


def _fit(source: Source, file: Path) -> int:
    way, suffix = source.transport, Path(file.name.lower().removesuffix(".gz")).suffix
    is_there = isinstance(way, LandingFolder) and file.is_relative_to(way.path.resolve()) and fnmatch(file.name, way.files)
    return 2 * is_there + (source.payload_format.format == {".csv": "csv", ".parquet": "parquet"}.get(suffix, "json"))


def preview(conf: Conf, source: str, events: pa.Table) -> Preview:
    """`events`: ARRIVED of bronze/events.py, read as if they came now; SourceDownError where a registry of schemas gives no answer."""
    now, shape = datetime.now(UTC), payload_formats(conf)[source]
    if shape.registry:
        from orchestration.connectors.sources.schemas import Schemas  # its client takes a while

        shape = replace(shape, schemas=Schemas(conf, source, shape, shape.registry).known(events["payload"]))
    if shape.written_in == "sparkplug_b":
        from orchestration.connectors.sources.births import by_own_births

        events, shape = by_own_births(events, shape)
    config = SilverConfig({source: shape}, conf.policy, conf.metrics, conf.rules, ahead_seconds=conf.ahead_seconds)
    events = Repeats(conf.bounds[source].lateness_seconds).marked(events, shape) if shape.id else events
    events = identified(events, now, 0, 0)
    loaded = [version for version in versions(conf.lake) if version["device_id"] not in conf.devices]
    devices = with_declared(loaded, conf.devices.values())
    silver = silver_of(conf, events, judged(events, ReferenceData(devices, present(conf)), config))
    rows = [row | {"becomes": "reading", "reasons": {}} for row in python_rows(silver.readings)]
    for row in python_rows(silver.duplicates):
        rows.append(row | {"becomes": "conflict" if row["is_conflict"] else "duplicate", "reasons": {}})
    reasons, beside = Reasons(config, conf.devices), events.select(OF_MESSAGE).to_pylist()
    for becomes, table in (("quarantine", silver.quarantine), (NOTHING, silver.without_measurements)):
        of_kind = (row | beside[row["bronze_row"]] for row in python_rows(table))
        rows += [row | {"becomes": becomes, "reasons": reasons.of(row)} for row in of_kind]
    rows.sort(key=lambda row: (row["bronze_row"], row["part"]))
    measurements = [{name: row.get(name) for name in COLUMNS} | {"event": row["bronze_row"] + 1} for row in rows]
    return Preview(len(events), measurements, _windows(conf, measurements), unread_fields(events, shape))


def _windows(conf: Conf, measurements: Rows) -> Rows:
    """How many windows of a device readings fall into, and how many of these there are; without a group those that count for none."""
    seen = defaultdict[tuple[str | None, str], Rows](list)
    for row in measurements:
        if row["becomes"] == "reading":
            groups = [name for name in row["groups"] if name in conf.groups and row["metric"] in conf.groups[name].metrics]
            for group in groups or [None]:
                seen[group, row["metric"]].append(row)
    return [
        {"group": group, "metric": metric, "windows": len(_ends(rows, conf.metrics[metric])) if group else 0, "readings": len(rows)}
        | {"first": min(row["event_time"] for row in rows), "last": max(row["event_time"] for row in rows)}
        for (group, metric), rows in seen.items()
    ]


def _ends(rows: Rows, metric: Metric) -> set[tuple[str, int]]:
    """Return the windows around readings, in slides since 1970 or by the begin of a calendar window, each with its device."""
    if metric.calendar is not None:
        return {(row["device_id"], window_of(metric.calendar, (row["event_time"] - EPOCH) // timedelta(seconds=1))[0]) for row in rows}
    slide = metric.every_seconds
    first = [(row["device_id"], (row["event_time"] - EPOCH) // timedelta(seconds=slide)) for row in rows]
    return {(device, end + n) for device, end in first for n in range(metric.longest_seconds // slide)}


def unread_fields(events: pa.Table, shape: PayloadFormat) -> Mapping[str, int]:
    """Fields that conf does not name, with the number of events that have them; none of binary formats."""
    counts = Counter[str]()
    if shape.format == "csv":
        lines = zip(events["header"].to_pylist(), events["payload"].to_pylist(), strict=True)
        for header, count in Counter(header for header, line in lines if line.decode(shape.encoding, "replace") != header).items():
            counts.update({name: count for name in shape.columns or values_of(header or "", shape) or () if name})
    for content in () if counts or (shape.is_decoded and not shape.decode and not shape.paths.have_marks) else _objects(events, shape):
        counts.update({*_paths(content, "", shape.each)})
    named = {*shape.fields, *(way for field in shape.fields for way in _ways(shape.paths.names(field)[1]))}
    return {path: count for path, count in counts.most_common() if path not in named}


def _ways(names: list[str]) -> tuple[str, str]:
    """The path of a field in an object, and that of the list of which it names an element."""
    path = ".".join(names)
    return path, path.partition("[")[0]


def _objects(events: pa.Table, shape: PayloadFormat) -> Iterator[Any]:
    """Values that the payloads hold, of those that can be read."""
    decode = decoder_of(shape, frozenset()) if shape.is_decoded else lambda content, _: [json.loads(content)]
    for message in messages(events["payload"], events, shape, MOST_BYTES):
        with suppress(ValueError, RecursionError):
            yield from objects_of(decode, message) if message else ()


def _paths(value: Any, path: str, list_path: str | None) -> Iterator[str]:
    """Yield the paths of all values that are no object; for the list `list_path` those of its elements."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _paths(inner, f"{path}.{name}" if path else name, list_path)
    elif isinstance(value, list) and path == list_path:
        for element in value:
            yield from _paths(element, "each", None)
    elif path and value is not None:
        yield path
