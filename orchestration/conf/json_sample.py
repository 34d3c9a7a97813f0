"""JSON lines as rows of fields: objects become dotted paths, one list of objects becomes `each`."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestration.conf.sample import Row, Sample
from orchestration.errors import ConfError
from silver.spec import ELEMENT


def json_sample(file: Path, lines: list[str]) -> Sample:
    """Raises ConfError where fewer than half of the lines are objects."""
    events = [event for line in lines if (event := _object(line)) is not None]
    if 2 * len(events) < len(lines):
        raise ConfError(f"{file} looks like JSON, but not one object a line; convert it first, for example with jq -c '.[]' or jq -c .")
    each = _list_of_measurements(events)
    rows = [row for event in events for row in _rows(event, each)]
    notes = [f"{len(lines) - len(events)} of {len(lines)} lines are no JSON object; such events go to silver.quarantine"]
    return Sample(file, "json", rows, each=each, notes=notes if len(events) < len(lines) else [])


def _object(line: str) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def _list_of_measurements(events: list[dict[str, Any]]) -> str | None:
    """The path that holds a list of objects in most events."""
    found = Counter(
        path for event in events for path, value in _leaves(event) if isinstance(value, list) and value and isinstance(value[0], dict)
    )
    return found.most_common(1)[0][0] if found else None


def _rows(event: dict[str, Any], list_path: str | None) -> Iterator[Row]:
    leaves = dict(_leaves(event))
    own = {path: value for path, value in _scalars(leaves).items() if not list_path or not _is_in_the_way(path, list_path)}
    elements = leaves.get(list_path) if list_path else None
    if not isinstance(elements, list):
        yield own
        return
    for element in elements:
        if isinstance(element, dict):
            yield own | {ELEMENT + path: value for path, value in _scalars(dict(_leaves(element))).items()}


def _is_in_the_way(path: str, list_path: str) -> bool:
    """A field that conf could not tell from the list, or from what is in it."""
    return path == list_path or path.startswith((f"{list_path}.", ELEMENT)) or list_path.startswith(f"{path}.")


def _scalars(leaves: Mapping[str, Any]) -> Row:
    return {path: value for path, value in leaves.items() if isinstance(value, str | int | float) and str(value).strip()}


def _leaves(value: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Fields whose names hold dots or backticks cannot be named by a path."""
    for name, inner in value.items():
        if not name.strip() or not name.isprintable() or "." in name or "`" in name:
            continue
        if isinstance(inner, dict) and depth < 10:
            yield from _leaves(inner, f"{prefix}{name}.", depth + 1)
        else:
            yield prefix + name, inner
