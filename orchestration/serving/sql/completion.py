"""Completion of a query at the cursor: tables, columns of the tables in the text, words of SQL."""

import re
from collections.abc import Iterable, Iterator
from functools import cache

import duckdb

from orchestration.serving.sql.shell_names import SnapshotTables
from orchestration.serving.sql.sql_words import words

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
