"""Names that conf declares, and references to them."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from expectations.wording import hint, quoted

JSON_PATH = re.compile(r"(^|\.)[*$](\.|$)|\[\*?\](\.|$)|\[\d+\]\.")

FILE_OF = {"channels": "alerts"}
"""Files that have another name than what they declare."""


@dataclass(frozen=True)
class Declared:
    """Entries of each noun by name, right or wrong; None where they cannot be read: then nothing is unknown."""

    entries: Mapping[str, Mapping[str, Any] | None]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Declared":
        """`data` is each readable file as it was written, by its name without its ending."""
        entries = {noun: _entries(noun, data.get(noun)) for noun in ("sources", "metrics", "devices", "groups", "flows", "alerts")}
        file = data.get("alerts")
        return cls(entries | {"channels": _entries("channels", {"channels": {}} | file if isinstance(file, dict) else None)})

    def lacks(self, noun: str, name: str) -> bool:
        names = self.entries[noun]
        return names is not None and name not in names

    @property
    def of_gold(self) -> list[str]:
        """Tables of all groups."""
        return [f"gold.{group}_{kind}" for group in sorted(self.entries["groups"] or ()) for kind in ("aggregates", "vectors", "late")]

    @property
    def of_flows(self) -> list[str]:
        """Tables of flows whose rows have a key, and that of alerts: either side of a pair may be absent."""
        flows = (name for name, flow in (self.entries["flows"] or {}).items() if not (isinstance(flow, dict) and "join" in flow))
        return [*(f"gold.{name}" for name in flows), *(["gold.alerts"] if self.entries["alerts"] else [])]

    def written(self, source: str) -> Collection[str]:
        """The settings of a source that are there, also those with the value of their default."""
        return tuple((self.entries["sources"] or {})[source])

    def unknown(self, noun: str, name: str) -> str:
        """Second half of a sentence about a name that is not declared."""
        remedy = hint(name, self.entries[noun] or (), "declare it there")
        return f"{quoted(name)}, which {FILE_OF.get(noun, noun)}.yml does not declare; {remedy}"


def is_json_path(path: str) -> bool:
    """Whether it looks like `$.a`, `a.*.b`, `a[0].v` or `a[]`, of which conf reads none. `a[0]` may be the name of a field."""
    return bool(JSON_PATH.search(path))


def _entries(noun: str, file: object) -> Mapping[str, Any] | None:
    """No metric at all is a mistake of its own, that would make one of every reference."""
    written = file.get(noun, ()) if isinstance(file, dict) else ()
    if written is None or written == {}:
        return None if noun == "metrics" else {}
    return written if isinstance(written, dict) else None
