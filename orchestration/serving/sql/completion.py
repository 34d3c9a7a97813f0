"""Tables of a snapshot and their columns, read from the Delta logs without an engine; and completion of a query at the cursor."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

import duckdb

from orchestration.serving.sql.sql_words import words
from orchestration.storage.delta import OpenTable, in_log, open_table
from orchestration.storage.duckdb_view import duckdb_type
from orchestration.storage.live_views import TYPES, LiveView, duckdb_views
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.views import Plant, View, views

WORD = re.compile(r'[\\\w."?]+$')
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
BEFORE_TABLE = re.compile(r'(?:\b(?:from|join|table|describe|summarize)|,)\s+[\w."]*$|^\s*\\d\s+\S*$', re.IGNORECASE)
KEYWORDS = dict.fromkeys(
    """
select distinct from where group by having order by all limit offset with recursive as join left join right join full join cross join asof
join positional join anti join semi join lateral on using union all union by name intersect except exclude replace columns( pivot unpivot
case when then else end and or not in between like ilike is null is not null asc desc nulls first nulls last over partition by qualify
window filter sample describe summarize explain show all tables count(*) sum( avg( min( max( median( quantile_cont( round( date_trunc(
time_bucket( coalesce( cast( try_cast( unnest( list_transform( lambda interval timestamptz date
""".split()  # noqa: SIM905  a list of ninety lines says no more
)


@dataclass
class SnapshotTables:
    """Tables of a snapshot, None in a lake without one; each is opened once. `marts_snapshot`: that of the marts, if there are any."""

    plant: Plant
    snapshot: Snapshot | None
    marts_snapshot: Snapshot | None = None
    _opened: dict[str, OpenTable] = field(default_factory=dict, init=False)

    @cached_property
    def views(self) -> Mapping[str, View]:
        marts = {} if self.marts_snapshot is None else views(self.plant, self.marts_snapshot)
        return duckdb_views(self.plant, self.snapshot) | {name: view for name, view in marts.items() if name.startswith("marts.")}

    def table(self, name: str) -> str | None:
        """The SQL name of a table, given in any case, with or without quotes; None if there is none."""
        return {table.lower(): table for table in self.views}.get(name.replace('"', "").lower())

    def columns(self, name: str) -> list[tuple[str, str]]:
        """Names and types, as DuckDB writes them, of a table by its SQL name."""
        if isinstance(view := self.views[name], LiveView):
            return [(column, TYPES[column]) for column in view.columns]
        fields = {field["name"]: field["type"] for field in json.loads(self._open(name).schema().to_json())["fields"]}
        return [(column, duckdb_type(fields.get(column, "timestamp"))) for column in view.columns or fields]

    def version_and_rows(self, name: str) -> tuple[int, int | None]:
        """The version that queries read, and the rows in its files; None for a group, several tables, and where the log does not say."""
        table, view = self._open(name), self.views[name]
        if name.startswith("gold.") and view.parts[0].where:
            return table.version(), None
        counts = in_log(table, "num_records")["num_records"].to_pylist()
        return table.version(), None if None in counts else sum(counts)

    def _open(self, name: str) -> OpenTable:
        if name not in self._opened:
            part = self.views[name].parts[0]
            self._opened[name] = open_table(part.location, part.version)
        return self._opened[name]


def word_before(before: str) -> str:
    """The word that ends at the cursor; it may be empty."""
    match = WORD.search(before)
    return match[0] if match else ""


def starting_with(word: str, texts: Iterable[str]) -> Iterator[str]:
    """Each once, in its order."""
    for text in dict.fromkeys(texts):
        if text.lower().startswith((word.lower(), word.lower().replace('"', ""))):
            yield text


def candidates(tables: SnapshotTables, text: str, before: str) -> Iterable[str]:
    """The likeliest first. `before`: the text up to the cursor."""
    names = [".".join(map(quote_name, name.split(".", 1))) for name in sorted(tables.views)]
    if BEFORE_TABLE.search(before):
        return names
    return [*columns(tables, text, word_before(before)), *names, *KEYWORDS]


def columns(tables: SnapshotTables, text: str, word: str) -> Iterator[str]:
    """Columns of the tables in the text; with their alias or table name in front if the word has one."""
    qualifier = word.rpartition(".")[0]
    for alias, table in tables_in(tables, text):
        if qualifier and qualifier.lower() not in {alias.lower(), table.lower(), table.split(".", 1)[1].lower()}:
            continue
        for column, _ in tables.columns(table):
            yield f"{qualifier}.{quote_name(column)}" if qualifier else quote_name(column)


def tables_in(tables: SnapshotTables, text: str) -> Iterator[tuple[str, str]]:
    """Alias, or an empty text, and SQL name of each table in the text."""
    listed = [word for word in words(text) if word.kind != "comment"]
    for index, word in enumerate(listed[:-2]):
        table = tables.table(f"{word.name}.{listed[index + 2].name}") if word.name and listed[index + 1].text == "." else None
        if table is not None:
            following = [word.name for word in listed[index + 3 : index + 5] if word.text.lower() != "as"]
            yield (following[0] if following else ""), table


def quote_name(name: str) -> str:
    """The name as SQL needs it, in quotes if it is no plain word, or a word of SQL such as `at`."""
    return name if PLAIN.fullmatch(name) and name.lower() not in _reserved() else '"' + name.replace('"', '""') + '"'


@cache
def _reserved() -> frozenset[str]:
    kinds = "('reserved', 'type_function')"
    with duckdb.connect() as connection:
        return frozenset(word for word, _ in connection.execute(f"from duckdb_keywords() where keyword_category in {kinds}").fetchall())
