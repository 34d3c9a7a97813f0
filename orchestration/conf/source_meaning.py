"""What sources.yml means: that each payload can be read the way it is declared."""

import re
import zoneinfo
from collections.abc import Iterator, Mapping

from orchestration.conf.diagnostic import hint, quoted
from orchestration.conf.document import Step
from orchestration.conf.names import Declared, differ_in_case
from orchestration.conf.source_settings import OriginSettings, SourceSettings, TimeSettings
from orchestration.conf.structure import Finding, where
from silver.spec import ELEMENT

CSV_ONLY = ("header", "columns", "separator", "quote")
NAMED_FORMATS = ("iso", "epoch_s", "epoch_ms", "epoch_us")
PATTERN_LETTERS = set("GyMLdDaHhkKmsSVzOXx")
"""Letters by which Spark parses times (it formats with more); any other fails at start."""
NUMBER = re.compile("[ML]{1,2}|([ydDhHkKmsS])\\1*")
FIXED = re.compile("yy|DDD|S|([MLdhHkKms])\\1")


def check_sources(sources: Mapping[str, SourceSettings], declared: Declared) -> Iterator[Finding]:
    for name, source in sources.items():
        base: tuple[Step, ...] = ("sources", name)
        written = declared.settings.get(name, frozenset())
        yield from _check_measured(base, written)
        yield from _check_format(base, source, written)
        if source.time:
            yield from _check_time(base, source.time)
        yield from _check_file_names(base, source)
        yield from _check_metrics(base, source, declared)
        yield from _check_case(base, source)
        if source.format == "csv":
            yield from _check_columns(base, source)
        else:
            yield from _check_json_paths(base, source)


def _check_measured(base: tuple[Step, ...], written: frozenset[str]) -> Iterator[Finding]:
    name, long = base[1], [key for key in ("metric", "value") if key in written]
    if long and "metrics" in written:
        yield Finding((*base, "metrics"), f"{name} sets {' and '.join(long)} (long rows) and metrics (wide rows); keep one of the two")
    elif not long and "metrics" not in written:
        text = f"{name} does not say what it measures; set metric and value (long rows), or metrics (wide rows)"
        yield Finding(base, text)
    elif len(long) == 1:
        missing = "value" if long == ["metric"] else "metric"
        yield Finding((*base, long[0]), f"{name}.{long[0]} is set without {name}.{missing}; long rows need both")


def _check_format(base: tuple[Step, ...], source: SourceSettings, written: frozenset[str]) -> Iterator[Finding]:
    name = base[1]
    if source.format == "json":
        for key in CSV_ONLY:
            if key in written:
                yield Finding((*base, key), f"{name}.{key} is for csv, but {name}.format is json; remove it")
    if source.format == "csv":
        if not source.header and "columns" not in written:
            yield Finding(base, f"{name} has neither header nor columns; set `header: true`, or name the columns in order")
        if "each" in written:
            yield Finding((*base, "each"), f"{name}.each is for json, but {name}.format is csv; remove it")
        if source.separator and source.separator == source.quote:
            yield Finding((*base, "quote"), f"{name}.quote is also its separator; choose another")
    if "/" in (source.files or ""):
        yield Finding((*base, "files"), f"{name}.files is a glob on names, but holds a '/'; put folders into {name}.path")


def _check_time(base: tuple[Step, ...], time: TimeSettings) -> Iterator[Finding]:
    at = (*base, "time")
    zone = time.time_zone or "UTC"
    try:
        zoneinfo.ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        remedy = hint(zone, zoneinfo.available_timezones(), "write an IANA name such as Europe/Brussels")
        yield Finding((*at, "time_zone"), f"{where((*at, 'time_zone'))} {quoted(zone)} is not a time zone; {remedy}")
    problem = None if time.format in (None, *NAMED_FORMATS) else _problem_of_pattern(time.format)
    if problem:
        yield Finding((*at, "format"), f"{where((*at, 'format'))} {quoted(time.format)} {problem}")


def _problem_of_pattern(pattern: str) -> str | None:
    bare = re.sub(r"'[^']*'", "", pattern)
    letters = {character for character in bare if character.isascii() and character.isalpha()}
    formats = f"write one of {', '.join(NAMED_FORMATS)}, or a pattern such as yyyy-MM-dd HH:mm:ss"
    if "'" in bare:
        return "opens a quote ' that nothing closes; close it"
    if letters - PATTERN_LETTERS or set("{}#%") & set(bare):
        odd = next(c for c in bare if c in (letters - PATTERN_LETTERS) | set("{}#%"))
        return f"is not a datetime pattern of Spark ({odd} has no meaning); {hint(pattern, NAMED_FORMATS, formats)}"
    if "y" not in letters or not letters & set("dD"):
        return f"has no year or no day; {hint(pattern, NAMED_FORMATS, formats)}"
    if bare.count("[") != bare.count("]"):
        return "has a bracket without its partner; close it"
    return _problem_of_digits(pattern)


def _problem_of_digits(pattern: str) -> str | None:
    """A number of any length takes all digits that follow, but for those of numbers of a fixed length right behind it.

    Measured with the parser of Spark and Java 17. Spark gives a fraction of several digits no fixed length, and a bracket ends the row.
    """
    greedy, is_in_row = None, True
    for piece in re.finditer(r"'[^']*'|([A-Za-z])\1*|.", pattern):
        if piece[0] in "[]":
            is_in_row = False
        elif not NUMBER.fullmatch(piece[0]):
            greedy = None
        elif greedy and not (is_in_row and FIXED.fullmatch(piece[0])):
            fixed = "'20'yy" if greedy[0] == "y" else greedy[0] * (3 if greedy[0] == "D" else 2)
            return f"is never read by Spark, as {greedy} takes the digits of {piece[0]} too; write {fixed} for {greedy}, or divide the two"
        elif not FIXED.fullmatch(piece[0]) and piece[0][0] != "S":
            greedy, is_in_row = piece[0], True
    return None


def _check_file_names(base: tuple[Step, ...], source: SourceSettings) -> Iterator[Finding]:
    for key, origin in _origins(source):
        problem = origin.file_name and _problem_of_expression(origin.file_name)
        if problem:
            at = (*base, key, "file_name")
            yield Finding(at, f"{where(at)} {quoted(origin.file_name)} {problem}")


def _problem_of_expression(pattern: str) -> str | None:
    """Spark reads it by Java's rules, which differ from Python's in named groups and a few rare places."""
    try:
        groups = re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError) as error:
        return f"is not a regular expression ({error}); correct it, for example '^(.+)\\.txt$'"
    if "(?P" in pattern:
        return "names a group, which is not needed here; write plain ( )"
    return None if groups else "has no group; put ( ) around the part to take, for example '^(.+)\\.txt$'"


def _check_metrics(base: tuple[Step, ...], source: SourceSettings, declared: Declared) -> Iterator[Finding]:
    constant = source.metric and source.metric.constant
    used = [((*base, "metrics", metric), metric) for metric in source.metrics or ()]
    used += [((*base, "metric", "constant"), constant)] if constant else []
    for at, metric in used:
        if declared.lacks("metrics", metric):
            yield Finding(at, f"{where(at[:3])} names {declared.unknown('metrics', metric)}")


def _origins(source: SourceSettings) -> list[tuple[str, OriginSettings]]:
    """The texts of a source that come from somewhere, by setting."""
    origins = {"device": source.device, "zone": source.zone, "metric": source.metric, "unit": source.unit}
    return [(key, origin) for key, origin in origins.items() if origin]


def _fields(base: tuple[Step, ...], source: SourceSettings) -> list[tuple[tuple[Step, ...], str]]:
    """Every field that the source reads, with where it is set."""
    paths = [(key, origin.field) for key, origin in _origins(source)]
    paths += [(key, holder.field if holder else None) for key, holder in (("time", source.time), ("value", source.value))]
    single = [((*base, key, "field"), path) for key, path in paths if path]
    return [*single, *(((*base, "metrics", metric), field) for metric, field in (source.metrics or {}).items())]


def _check_case(base: tuple[Step, ...], source: SourceSettings) -> Iterator[Finding]:
    """Two fields `t` and `T` would end the run at its start: Spark takes one for the other."""
    fields = _fields(base, source)
    for n, (at, field) in enumerate(fields):
        twin = next((other for _, other in fields[:n] if differ_in_case(field, other)), None)
        if twin:
            remedy = "read one of the two, or rename one at the source"
            yield Finding(at, f"{where(at)} is {quoted(field)}, which Spark does not tell from {quoted(twin)}; {remedy}")


def _check_columns(base: tuple[Step, ...], source: SourceSettings) -> Iterator[Finding]:
    columns = source.columns or ()
    for at, field in _fields(base, source) if columns else ():
        if field not in columns:
            remedy = hint(field, columns, "they are " + ", ".join(columns[:20]))
            yield Finding(at, f"{where(at)} is {quoted(field)}, which is not among {base[1]}.columns; {remedy}")


def _check_json_paths(base: tuple[Step, ...], source: SourceSettings) -> Iterator[Finding]:
    each = source.each
    fields = _fields(base, source)
    paths = [*fields, *([((*base, "each"), each)] if each else [])]
    for at, path in paths:
        if not all(path.split(".")):
            yield Finding(at, f"{where(at)} is {quoted(path)}, which has an empty part; write names with single dots between them")
        parent = _parent(path, [other for _, other in paths], each)
        if parent:
            yield Finding(at, f"{where(at)} is {quoted(path)}, but {quoted(parent)} is read as one value; read one of the two")
        if path == each and at != (*base, "each"):
            yield Finding(at, f"{where(at)} is the list of {where((*base, 'each'))} itself; begin at its elements with '{ELEMENT}'")
    if each and fields and not any(path.startswith(ELEMENT) for _, path in fields):
        text = f"{base[1]}.each is set, but no field begins at its elements; begin their paths with '{ELEMENT}'"
        yield Finding((*base, "each"), text)


def _parent(path: str, others: list[str], list_path: str | None) -> str | None:
    """A field cannot be a text and hold others. What begins at an element is in no field of the event."""
    is_of_element = list_path is not None and path.startswith(ELEMENT)
    level = [other for other in others if (list_path is not None and other.startswith(ELEMENT)) == is_of_element]
    return next((other for other in level if path.startswith(other + ".")), None)
