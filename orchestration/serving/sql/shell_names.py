"""What can be asked in one snapshot: tables, and their columns from the logs of Delta, without an engine."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from orchestration.conf.model import Conf
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.views import View, views


@dataclass
class Names:
    """Of one snapshot, None for a lake without one; `of_marts`: that of marts, where there are some. What was looked up once is kept."""

    conf: Conf
    snapshot: Snapshot | None
    of_marts: Snapshot | None = None
    _opened: dict[str, DeltaTable] = field(default_factory=dict, init=False)

    @cached_property
    def views(self) -> Mapping[str, View]:
        """By SQL name."""
        marts = {} if self.of_marts is None else views(self.conf, self.of_marts)
        return views(self.conf, self.snapshot) | {name: view for name, view in marts.items() if name.startswith("marts.")}

    def table(self, name: str) -> str | None:
        """The SQL name of a table, whatever case it is written in and whether in backticks; None where there is none."""
        return {each.lower(): each for each in self.views}.get(name.replace("`", "").lower())

    def columns(self, name: str) -> list[tuple[str, str]]:
        """Names and types of a table, as Spark writes them, by its SQL name."""
        fields = json.loads(self._open(name).schema().to_json())["fields"]
        return [(each["name"], spoken(each["type"])) for each in fields]

    def version_and_rows(self, name: str) -> tuple[int, int | None]:
        """The version that is read, and how many rows its files hold, before any are left out; None where the log does not say."""
        table = self._open(name)
        counts = pa.table(table.get_add_actions())["num_records"].to_pylist()
        return table.version(), None if None in counts else sum(counts)

    def _open(self, name: str) -> DeltaTable:
        if name not in self._opened:
            view = self.views[name]
            self._opened[name] = DeltaTable(Path(view.path), version=view.version)
        return self._opened[name]


def spoken(kind: Any) -> str:
    """A type of Delta as in SQL."""
    if not isinstance(kind, dict):
        return {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}.get(kind, str(kind))
    match kind["type"]:
        case "array":
            return f"array<{spoken(kind['elementType'])}>"
        case "map":
            return f"map<{spoken(kind['keyType'])},{spoken(kind['valueType'])}>"
        case _:
            fields = (f"{each['name']}:{spoken(each['type'])}" for each in kind["fields"])
            return f"struct<{','.join(fields)}>"
