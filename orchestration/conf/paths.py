"""Paths in conf: where the lake and the landing folders are, and that none lies inside another."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any

from orchestration.conf.document import Step
from orchestration.conf.structure import Finding, where


def absolute(folder: Path, path: str) -> Path:
    """Relative paths start at the parent of the conf folder; `~` and `${VARIABLE}` expand.

    Raises ValueError with the second half of a sentence for a path that cannot be resolved.
    """
    try:
        expanded = os.path.expanduser(Template(path).substitute(os.environ))
        return (folder.resolve().parent / expanded).resolve()
    except KeyError as error:
        raise ValueError(f"names the variable {error.args[0]}, which is not set; set it, or write the path out") from None
    except ValueError:
        raise ValueError("holds a $ that names no variable; write ${NAME}, or $$ for a dollar sign") from None
    except (OSError, RuntimeError):
        raise ValueError("cannot be resolved; look for links that lead in a circle") from None


def check_paths(folder: Path, lake: str | None, sources: Mapping[str, Any]) -> Iterator[tuple[str, Finding]]:
    """Findings with the file they belong to. Spark would read the lake's own files as events, or one file for two sources."""
    settings: list[tuple[str, tuple[Step, ...], str, str | None]] = [("pipeline", ("lake",), "the lake", lake)]
    settings += [("sources", ("sources", name, "path"), f"source {name}", source.get("path")) for name, source in sources.items()]
    seen: dict[str, Path] = {}
    for file, at, label, text in settings:
        if text is None:
            continue
        try:
            path = absolute(folder, text)
        except ValueError as error:
            yield file, Finding(at, f"{where(at)} {error}")
            continue
        for other, taken in seen.items():
            if path == taken or path in taken.parents or taken in path.parents:
                relation = "is" if path == taken else "lies inside" if taken in path.parents else "holds"
                yield file, Finding(at, f"{where(at)} {relation} the folder of {other}; give each a folder of its own")
        seen[label] = path
