"""Paths in conf: where the lake, landing folders, tables of others, exported files and the dbt project are; none but the last lies inside
another.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from orchestration.conf.diagnostic import quoted
from orchestration.conf.document import Step
from orchestration.conf.place import absolute
from orchestration.conf.sink_settings import SinkSettings
from orchestration.conf.source_settings import SourceSettings
from orchestration.conf.structure import Finding

UNREADABLE = re.compile(r"[\[\]^|\\\x00-\x1f]|%[0-9A-Fa-f]{2}")
"""What delta-rs finds no table below: it takes paths for URLs."""


def check_paths(
    folder: Path, lake: str | None, sources: Mapping[str, SourceSettings], sinks: Mapping[str, SinkSettings]
) -> Iterator[tuple[str, Finding]]:
    """Findings with the file they belong to. Spark would read the lake's own files as events, or one file for two sources."""
    settings: list[tuple[str, tuple[Step, ...], str, str | None]] = [("pipeline", ("lake",), "the lake", lake)]
    settings += [("sources", ("sources", name, "path"), f"source {name}", source.path) for name, source in sources.items()]
    tables = {name: source.delta.table for name, source in sources.items() if source.delta}
    settings += [("sources", ("sources", name, "delta", "table"), f"source {name}", path) for name, path in tables.items()]
    exports = {name: sink.files.path for name, sink in sinks.items() if sink and sink.files}
    settings += [("pipeline", ("sinks", name, "files", "path"), f"sink {name}", path) for name, path in exports.items()]
    seen: dict[str, Path] = {}
    for file, at, label, text in settings:
        if text is None:
            continue
        try:
            path = absolute(folder, text)
        except ValueError as error:
            yield file, Finding.of(at, str(error))
            continue
        if at[-1] in ("lake", "table") and (odd := UNREADABLE.search(str(path))):
            yield file, Finding.of(at, f"has {odd[0]!r} in its path, below which no table can be read; choose another folder")
        for other, taken in seen.items():
            if path == taken or path in taken.parents or taken in path.parents:
                relation = "is" if path == taken else "lies inside" if taken in path.parents else "holds"
                yield file, Finding.of(at, f"{relation} the folder of {other}; give each a folder of its own")
        seen[label] = path


def check_tls(folder: Path, sources: Mapping[str, SourceSettings]) -> Iterator[Finding]:
    """That the files can be named; whether they are there is seen when the server starts, perhaps on another machine."""
    for name, source in sources.items():
        for way, endpoint in (("http", source.http), ("tcp", source.tcp)):
            for key, path in vars(endpoint.tls).items() if endpoint and endpoint.tls else ():
                try:
                    absolute(folder, path or "")
                except ValueError as error:
                    yield Finding.of(("sources", name, way, "tls", key), str(error))


def check_dbt(folder: Path, project: str) -> Iterator[Finding]:
    """That dbt would take the folder for a project."""
    try:
        if not (absolute(folder, project) / "dbt_project.yml").is_file():
            problem = f"is {quoted(project)}, where no dbt_project.yml lies; name the folder of a dbt project, or leave it out"
            yield Finding.of(("dbt", "project"), problem)
    except ValueError as error:
        yield Finding.of(("dbt", "project"), str(error))
