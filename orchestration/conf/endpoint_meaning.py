"""What sources.yml means by how events come: exactly one way, with the settings that belong to it."""

from collections.abc import Iterator, Mapping

from orchestration.conf.names import Declared
from orchestration.conf.source_settings import SourceSettings
from orchestration.conf.structure import Finding

TRANSPORTS = ("path", "kafka", "s3", "delta", "http", "tcp")
ONLY_OF_FILES = ("files", "settle_seconds", "header")


def check_transports(sources: Mapping[str, SourceSettings], declared: Declared) -> Iterator[Finding]:
    """Of each source; and that no two listen on one port."""
    listening: dict[tuple[str, int], str] = {}
    for name, source in sources.items():
        base = ("sources", name)
        written = declared.settings.get(name, frozenset())
        ways = [key for key in TRANSPORTS if key in written]
        if not ways:
            yield Finding.of(base, "does not say how its events come; set path (a landing folder), kafka, s3, delta, http or tcp")
        elif len(ways) > 1:
            yield Finding.of(base, f"sets {' and '.join(ways)}; keep one of them", ways[1])
        elif ways != ["path"]:
            yield from _check_not_landed(base, source, written, ways[0])
        if source.s3 and (source.s3.access_key is None) != (source.s3.secret_key is None):
            yield Finding.of((*base, "s3"), "sets one of access_key and secret_key; set both, or none")
        for key, endpoint in (("http", source.http), ("tcp", source.tcp)):
            if endpoint and endpoint.port:
                if other := listening.get((endpoint.host, endpoint.port)):
                    yield Finding.of((*base, key, "port"), f"is {endpoint.port}, on which {other} listens too; choose another")
                listening[endpoint.host, endpoint.port] = name


def _check_not_landed(base: tuple[str, str], source: SourceSettings, written: frozenset[str], way: str) -> Iterator[Finding]:
    for key in ONLY_OF_FILES:
        if key in written and (key != "header" or (source.header and way != "s3")):
            remedy = f"name the columns in {base[1]}.columns" if key == "header" else "remove it"
            yield Finding.of((*base, key), f"is for files, but events come by {way}; {remedy}")
    if source.format == "parquet" and way != "s3":
        yield Finding.of((*base, "format"), f"is parquet, which is for files and objects, but events come by {way}; choose another")
    if way == "delta" and source.format == "csv":
        yield Finding.of((*base, "format"), "is csv, but rows of a table are read as JSON; write json")
    for key in ("device", "zone", "metric", "unit") if way != "s3" else ():
        if (origin := getattr(source, key)) and origin.file_name:
            yield Finding.of((*base, key, "file_name"), f"is for files, but events come by {way}; take a field or a constant")
