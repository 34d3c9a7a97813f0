"""Paths in conf: where the lake, landing folders, tables of others, exported files and the dbt project are; none but the last lies inside
another.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestration.conf.diagnostic import quoted
from orchestration.conf.document import Step
from orchestration.conf.place import absolute
from orchestration.conf.source_settings import SourceSettings
from orchestration.conf.structure import Finding

UNREADABLE = re.compile(r"[\[\]^|\\\x00-\x1f]|%[0-9A-Fa-f]{2}")
"""What delta-rs finds no table below: it takes paths for URLs."""


def check_paths(folder: Path, sound: Mapping[str, Any]) -> Iterator[Finding]:
    """`sound`: what the files set at their top. The lake's own files would be read as events, or one file for two sources."""
    settings: list[tuple[tuple[Step, ...], str, Path]] = [(("lake",), "the lake", sound["lake"])] if "lake" in sound else []
    sources: Mapping[str, SourceSettings] = sound.get("sources", {})
    settings += [(("sources", name, "path"), f"source {name}", source.path) for name, source in sources.items() if source.path]
    settings += [(("sources", name, "delta", "table"), f"source {name}", of.delta.table) for name, of in sources.items() if of.delta]
    exports = {name: sink.files.path for name, sink in sound.get("sinks", {}).items() if sink.files}
    settings += [(("sinks", name, "files", "path"), f"sink {name}", absolute(folder, path)) for name, path in exports.items()]
    seen: dict[str, Path] = {}
    for at, label, path in settings:
        if at[-1] in ("lake", "table") and (odd := UNREADABLE.search(str(path))):
            yield Finding.of(at, f"has {odd[0]!r} in its path, below which no table can be read; choose another folder")
        for other, taken in seen.items():
            if path == taken or path in taken.parents or taken in path.parents:
                relation = "is" if path == taken else "lies inside" if taken in path.parents else "holds"
                yield Finding.of(at, f"{relation} the folder of {other}; give each a folder of its own")
        seen[label] = path
    if "dbt" in sound and (project := sound["dbt"].project) and not (project / "dbt_project.yml").is_file():
        problem = f"is {quoted(str(project))}, where no dbt_project.yml lies; name the folder of a dbt project, or leave it out"
        yield Finding.of(("dbt", "project"), problem)
