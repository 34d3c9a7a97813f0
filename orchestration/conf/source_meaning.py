"""Check sources.yml: each payload can be read the way it is declared, by the way it comes; and no two sources are in each other's way."""

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

from expectations.settings import Step
from expectations.wording import hint, quoted
from orchestration.conf.decoders import check_decoders
from orchestration.conf.names import Declared
from orchestration.conf.payload_schemas import check_payload_schema
from orchestration.conf.source_settings import SourceSettings
from orchestration.conf.structure import Finding, where
from silver.short_forms import ELEMENT
from silver.time_patterns import time_expression

CSV_ONLY = ("header", "columns", "separator", "quote", "skip_lines", "comment", "ragged")
ONLY_OF_FILES = ("files", "settle_seconds", "header", "skip_lines")
NAMED_FORMATS = ("iso", "epoch_s", "epoch_ms", "epoch_us", "epoch_ns", "filetime", "excel")
ODD_MARK = re.compile(r"(^|\.)\$(\.|$)|\[\*?\](\.|$)|\*\*")
PROBABLY_WRONG = {
    "^(?!.*([Hhs]m|m[Hhs])).*m": "has minutes (m) that stand beside no hour; MM is the month, mm are minutes",
    "[Hh]s": "has seconds (s) beside the hour; mm are minutes, as in HH:mm:ss",
    "^(?!.*a).*h": "has hours up to 12 (h) and no AM or PM (a); write HH for hours up to 23",
    "^(?!.*s).*S": "has a fraction of a second (S) and no second; write ss for seconds",
}
"""Mistakes in the letters of a time pattern, in which each run of one letter counts as one."""
Path = tuple[Step, ...]
Base = tuple[str, str]


def check_sources(sources: Mapping[str, SourceSettings], declared: Declared) -> Iterator[Finding]:
    yield from _check_addresses(sources)
    for name, source in sources.items():
        base = ("sources", name)
        written = declared.written(name)
        yield from _check_origins(base, source, source.chosen[0])
        if not source.path:
            yield from _check_not_landed(base, source, written, source.chosen[0])
        yield from _check_measured(base, source)
        yield from _check_format(base, source, written)
        if source.time.format not in NAMED_FORMATS:
            yield from _check_pattern((*base, "time", "format"), source.time.format)
        constant = source.metric and source.metric.constant
        if constant and declared.lacks("metrics", constant):
            yield Finding.of((*base, "metric"), f"names {declared.unknown('metrics', constant)}", "constant")
        fields = _fields(base, source)
        yield from check_decoders(base, source) if source.decode else ()
        yield from check_payload_schema(base, source, fields)
        if source.format == "csv":
            yield from _check_columns(base, source.columns, fields)
        else:
            yield from _check_json_paths(base, source, fields)


def _check_addresses(sources: Mapping[str, SourceSettings]) -> Iterator[Finding]:
    """No two listen on one port, or are one client of a broker."""
    taken: dict[tuple[str, str | int], str] = {}
    for name, source in sources.items():
        for key, endpoint in (("http", source.http), ("tcp", source.tcp)):
            if endpoint and endpoint.port:
                if other := taken.get((endpoint.host, endpoint.port)):
                    problem = f"is {endpoint.port}, on which {other} listens too; choose another"
                    yield Finding.of(("sources", name, key, "port"), problem)
                taken[endpoint.host, endpoint.port] = name
        if source.mqtt and (client := source.mqtt.client_id):
            if other := taken.get((source.mqtt.broker, client)):
                problem = f"is {quoted(client)}, which {other} has at this broker too; choose another"
                yield Finding.of(("sources", name, "mqtt", "client_id"), problem)
            taken[source.mqtt.broker, client] = name


def _check_origins(base: Base, source: SourceSettings, way: str) -> Iterator[Finding]:
    most = 1 if way == "kafka" else source.mqtt.most_levels if source.mqtt else None
    wrong_way = f"but events come by {way}; take a field or a constant"
    for at, locator in source.locators:
        if locator.file_name and way not in ("path", "s3"):
            yield Finding.of((*base, *at, "file_name"), f"is for files, {wrong_way}")
        for name in ("key", "header"):
            if getattr(locator, name) and way != "kafka":
                yield Finding.of((*base, *at, name), f"is for Kafka, {wrong_way}")
        if locator.topic and way not in ("kafka", "mqtt"):
            yield Finding.of((*base, *at, "topic"), f"is for MQTT and Kafka, {wrong_way}")
        elif locator.topic and most is not None and locator.topic > most:
            whose = "a topic of Kafka has one level" if way == "kafka" else f"no topic of {base[1]}.mqtt.topics has more than {most}"
            yield Finding.of(
                (*base, *at, "topic"), f"is {locator.topic}, but {whose}; write {' to '.join(dict.fromkeys(('1', str(most))))}"
            )


def _check_not_landed(base: Base, source: SourceSettings, written: Collection[str], way: str) -> Iterator[Finding]:
    for key in ONLY_OF_FILES:
        if key in written and (key != "header" or (source.has_header and way != "s3")):
            remedy = f"name the columns in {base[1]}.columns" if key == "header" else "remove it"
            yield Finding.of((*base, key), f"is for files, but events come by {way}; {remedy}")
    if source.format == "parquet" and way != "s3":
        yield Finding.of((*base, "format"), f"is parquet, which is for files and objects, but events come by {way}; choose another")
    if way == "delta" and source.format == "csv":
        yield Finding.of((*base, "format"), "is csv, but rows of a table are read as JSON; write json")


def _check_measured(base: Base, source: SourceSettings) -> Iterator[Finding]:
    long = [key for key in ("metric", "value") if getattr(source, key)]
    if long and source.metrics:
        yield Finding.of(base, f"sets {' and '.join(long)} (long rows) and metrics (wide rows); keep one of the two", "metrics")
    elif not long and not source.metrics:
        yield Finding.of(base, "does not say what it measures; set metric and value (long rows), or metrics (wide rows)")
    elif len(long) == 1:
        missing = "value" if long == ["metric"] else "metric"
        yield Finding.of((*base, long[0]), f"is set without {base[1]}.{missing}; long rows need both")


def _check_format(base: Base, source: SourceSettings, written: Collection[str]) -> Iterator[Finding]:
    wanted, keys = ("json", ("each",)) if source.format == "csv" else ("csv", CSV_ONLY)
    for key in keys:
        if key in written:
            yield Finding.of((*base, key), f"is for {wanted}, but {base[1]}.format is {source.format}; remove it")
    if source.format == "csv" and not source.has_header and not source.columns:
        yield Finding.of(base, "has neither header nor columns; set `header: true`, or name the columns in order")
    if source.format == "csv" and source.separator == source.quote:
        yield Finding.of((*base, "quote"), "is also its separator; choose another")
    if source.id and any(path.startswith(ELEMENT) or "*" in path.split(".") for path in source.id.parts):
        yield Finding.of((*base, "id"), "is of an element, but a message has one; name a field of the message")
    if source.thousands == source.decimal:
        yield Finding.of((*base, "thousands"), "is also its decimal mark; remove it, or set `decimal` too")
    if source.time.repeated_hour == "in_order" and (source.chosen[0] not in ("path", "s3") or source.each or source.format == "parquet"):
        problem = "is in_order, which is for rows of text files, one measurement or row of them a line; write first or second"
        yield Finding.of((*base, "time", "repeated_hour"), problem)
    elif source.time.repeated_hour and not _has_changes(source.time.time_zone):
        zone = f"{source.time.time_zone}, {base[1]}.time.time_zone, has no hour that comes twice"
        yield Finding.of((*base, "time", "repeated_hour"), f"does nothing, as {zone}; name the zone of the clock", is_warning=True)
    if "encoding" in written and (source.delta or source.decode or source.format not in ("json", "csv")):
        other = "rows of a table are read as JSON in utf-8" if source.delta else f"{base[1]}.format is {source.format}"
        other = "decoders read UTF-8" if source.decode else other
        yield Finding.of((*base, "encoding"), f"is for texts of json and csv, but {other}; remove it")
    if "/" in source.files:
        yield Finding.of((*base, "files"), f"is a glob on names, but holds a '/'; put folders into {base[1]}.path")


def _has_changes(zone: str) -> bool:
    """Whether clocks of a zone were ever set back or forward since 1970."""
    return len({datetime(year, month, 1, tzinfo=ZoneInfo(zone)).utcoffset() for year in range(1970, 2038) for month in (1, 7)}) > 1


def _check_pattern(path: Path, pattern: str) -> Iterator[Finding]:
    try:
        time_expression(pattern)
    except ValueError as error:
        formats = hint(pattern, NAMED_FORMATS, f"write one of {', '.join(NAMED_FORMATS)}, or a pattern such as yyyy-MM-dd HH:mm:ss")
        problem = error if "y" in pattern.lower() else f"is no format of times; {formats}"
        yield Finding.of(path, f"{quoted(pattern)} {problem}")
        return
    letters = re.sub(r"'[^']*'|[^A-Za-z]|(.)(?=\1)", "", pattern)
    for expression, problem in PROBABLY_WRONG.items():
        if re.search(expression, letters):
            yield Finding.of(path, f"{quoted(pattern)} {problem}", is_warning=True)


def _fields(base: Base, source: SourceSettings) -> list[tuple[Path, str]]:
    """Every field that the source reads, with where it is set."""
    of_locators = [
        ((*base, *at, "field" if locator.field else "fields"), part) for at, locator in source.locators for part in locator.parts
    ]
    return [*of_locators, *(((*base, "metrics", name), at) for name, at in source.metrics.items())]


def _check_columns(base: Base, columns: tuple[str, ...], fields: list[tuple[Path, str]]) -> Iterator[Finding]:
    for at, field in fields if columns else ():
        if field not in columns:
            remedy = hint(field, columns, "they are " + ", ".join(columns[:20]))
            yield Finding.of(at, f"is {quoted(field)}, which is not among {base[1]}.columns; {remedy}")


def _check_json_paths(base: Base, source: SourceSettings, fields: list[tuple[Path, str]]) -> Iterator[Finding]:
    list_path, list_at = source.each, (*base, "each")
    paths = [*fields, (list_at, list_path)] if list_path else fields
    for at, path in paths:
        if not all(path.split(".")):
            yield Finding.of(at, f"is {quoted(path)}, which has an empty part; write names with single dots between them")
        if {*path} & {*'"\\'}:
            yield Finding.of(
                at, f"is {quoted(path)}; names with a double quote or a backslash cannot be read: let a decoder of yours rename them"
            )
        if ODD_MARK.search(path):
            problem = "but a path is names separated by dots; write `*` for each element of a list, and `[0]` for one of them"
            yield Finding.of(at, f"is {quoted(path)}, {problem}")
        elif "*" in path.split(".") and not source.paths.may_have_marks:
            yield Finding.of(at, f"is {quoted(path)}, but lists in lists are read in UTF-8 only; let another program change the encoding")
        elif not source.paths.are_on_the_way(path):
            yield Finding.of(
                at, f"is {quoted(path)}, but rows are the elements at {quoted(source.paths.spread)}; begin there, or on the way to it"
            )
        if parent := _parent(path, [other for _, other in paths], list_path):
            yield Finding.of(at, f"is {quoted(path)}, but {quoted(parent)} is read as one value; read one of the two")
        if path == list_path and at != list_at:
            yield Finding.of(at, f"is the list of {where(list_at)} itself; begin at its elements with '{ELEMENT}'")
    if list_path and fields and not any(path.startswith(ELEMENT) for _, path in fields):
        yield Finding.of(list_at, f"is set, but no field begins at its elements; begin their paths with '{ELEMENT}'")


def _parent(path: str, others: list[str], list_path: str | None) -> str | None:
    """A field cannot be a text and hold others. What begins at an element is in no field of the event."""
    is_of_element = list_path is not None and path.startswith(ELEMENT)
    level = [other for other in others if (list_path is not None and other.startswith(ELEMENT)) == is_of_element]
    return next((other for other in level if path.startswith(other + ".")), None)
