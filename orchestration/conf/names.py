"""Names that conf declares, and references to them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestration.conf.diagnostic import hint, quoted

JSON_PATH = re.compile(r"(^|\.)[*$](\.|$)|\[\*?\](\.|$)|\[\d+\]\.")


@dataclass(frozen=True)
class Declared:
    """Names by noun (metrics, devices, groups); None where the file of the noun cannot be read: then nothing is unknown."""

    names: dict[str, frozenset[str] | None]
    settings: dict[str, frozenset[str]]
    """Settings of each source as written, right or wrong."""
    of_kafka: dict[str, frozenset[str]]
    """The same of its `kafka`."""
    sinks: dict[str, frozenset[str]]
    """The same of each sink."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Declared":
        """`data` is each readable file as it was written, by its name without its ending."""
        names = {
            noun: _names(noun, data[noun].get(noun)) if isinstance(data.get(noun), dict) else None
            for noun in ("metrics", "devices", "groups")
        }
        written = data["sources"].get("sources") if isinstance(data.get("sources"), dict) else None
        sources = written if isinstance(written, dict) else {}
        of_kafka = _settings({"kafka": {name: of.get("kafka") for name, of in sources.items() if isinstance(of, dict)}}, "kafka")
        return cls(names, _settings(data.get("sources"), "sources"), of_kafka, _settings(data.get("pipeline"), "sinks"))

    def lacks(self, noun: str, name: str) -> bool:
        known = self.names[noun]
        return known is not None and name not in known

    def unknown(self, noun: str, name: str) -> str:
        """Second half of a sentence about a name that is not declared."""
        return f"{quoted(name)}, which {noun}.yml does not declare; {hint(name, self.names[noun] or (), 'declare it there')}"


def differ_in_case(path: str, other: str) -> bool:
    """Whether two field paths part where they differ by upper and lower case only."""
    parted = next(((a, b) for a, b in zip(path.split("."), other.split("."), strict=False) if a != b), None)
    return parted is not None and parted[0].lower() == parted[1].lower()


def is_json_path(path: str) -> bool:
    """Whether it looks like `$.a`, `a.*.b`, `a[0].v` or `a[]`, of which conf reads none. `a[0]` may be the name of a field."""
    return bool(JSON_PATH.search(path))


def _settings(file: object, noun: str) -> dict[str, frozenset[str]]:
    entries = file.get(noun) if isinstance(file, dict) else None
    written = entries.items() if isinstance(entries, dict) else ()
    return {name: frozenset(entry) for name, entry in written if isinstance(entry, dict)}


def _names(noun: str, entries: object) -> frozenset[str] | None:
    """No metric at all is a mistake of its own, that would make one of every reference."""
    if noun == "metrics":
        return frozenset(entries) if isinstance(entries, dict) and entries else None
    return frozenset(entries or ()) if isinstance(entries, dict | None) else None
