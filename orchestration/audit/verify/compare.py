"""Two relations as multisets: what the table holds and what bronze gives. Differences are data."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb

FIRST = 10
"""Differences that are shown side by side; the others are counted."""
NEAR = """
  create or replace macro near(a, b, size) as
    a is not distinct from b or coalesce(abs(a - b) <= 1e-9 * greatest(abs(a), abs(b), coalesce(size, 0)), false);
  create or replace macro all_near(a, b, sizes) as
    len(a) = len(b) and coalesce(list_bool_and([near(a[n], b[n], sizes[n]) for n in range(1, len(a) + 1)]), true);
"""
"""Numbers that are sums in another order: to 1e-9 of themselves or of the largest reading in them."""


@dataclass(frozen=True)
class Difference:
    """One row. `in_table` None: the table lacks it; `from_bronze` None: bronze gives none such. Else the cells that differ."""

    table: str
    row: str
    what: str
    in_table: str | None
    from_bronze: str | None


@dataclass(frozen=True)
class Outcome:
    """The result for one table: `rows` compared, how many differ, and the first of these."""

    table: str
    rows: int
    differences: int
    first: tuple[Difference, ...]
    seconds: float = 0.0


@dataclass(frozen=True)
class Comparison:
    """`key` tells rows apart; of `columns`, those of `near` (by column: SQL for the size of what was added up) may differ a little."""

    table: str
    key: Sequence[str]
    columns: Sequence[str]
    near: dict[str, str]


def compared(store: duckdb.DuckDBPyConnection, recorded: str, expected: str, comparison: Comparison) -> Outcome:
    """`recorded` and `expected` are relations with the columns of the comparison. Rows of one key are compared in the order of their
    cells."""
    store.execute(NEAR)
    cells = [*comparison.key, *comparison.columns]
    for side, relation in (("recorded", recorded), ("expected", expected)):
        order = f"partition by {', '.join(comparison.key)} order by {', '.join(comparison.columns)}"
        store.execute(f"create or replace temp table {side}_rows as select *, row_number() over ({order}) as nth from {relation}")
    on = " and ".join(f"f.{name} is not distinct from e.{name}" for name in (*comparison.key, "nth"))
    same = {name: _same(name, comparison.near.get(name)) for name in comparison.columns}
    flags = ", ".join(f"{sql} as same_{name}" for name, sql in same.items())
    texts = ", ".join(f"{_text(f'{side}.{name}', name)} as {side}_{name}" for side in "fe" for name in cells)
    store.execute(
        "create or replace temp table differing as select f.nth is not null as is_recorded, e.nth is not null as is_expected,"
        f" {flags}, {texts}"
        f" from recorded_rows f full join expected_rows e on {on}"
        f" where not coalesce(f.nth is not null and e.nth is not null and {' and '.join(same.values())}, false)"
    )
    rows = max(count(store, "recorded_rows"), count(store, "expected_rows"))
    first = store.execute(f"from differing order by all limit {FIRST}").fetchall()
    names = [column[0] for column in store.description or ()]
    shown = tuple(_difference(dict(zip(names, row, strict=True)), comparison) for row in first)
    return Outcome(comparison.table, rows, count(store, "differing"), shown)


def timed(comparison: Callable[[], Outcome]) -> Outcome:
    """An outcome with the time that it took."""
    began = time.monotonic()
    outcome = comparison()
    return replace(outcome, seconds=outcome.seconds + time.monotonic() - began)


def together(table: str, outcomes: Sequence[Outcome]) -> Outcome:
    """Several comparisons of one table as one."""
    first = tuple(difference for outcome in outcomes for difference in outcome.first)[:FIRST]
    return Outcome(table, max(outcome.rows for outcome in outcomes), sum(outcome.differences for outcome in outcomes), first)


def discrepancies(store: duckdb.DuckDBPyConnection, table: str, rows: int, sql: str) -> Outcome:
    """`sql` selects row, what, in_table and from_bronze of each difference."""
    store.execute(f"create or replace temp table wrong as {sql}")
    first = store.execute(f"select row, what, in_table, from_bronze from wrong order by all limit {FIRST}").fetchall()
    return Outcome(table, rows, count(store, "wrong"), tuple(Difference(table, *cells) for cells in first))


def described(names: Sequence[str], prefix: str = "") -> str:
    """SQL for a text that names columns and their values."""
    return "concat_ws(', ', " + ", ".join(f"'{name} ' || {prefix}{name}::varchar" for name in names) + ")"


def _text(cell: str, name: str) -> str:
    """SQL for what people see of it; DuckDB writes a quote in bytes as \\x22."""
    return f"coalesce(try(decode({cell})), {cell}::varchar)" if name == "payload" else f"{cell}::varchar"


def _same(name: str, size: str | None) -> str:
    if size is None:
        return f"f.{name} is not distinct from e.{name}"
    return f"{'all_near' if size.startswith('list:') else 'near'}(f.{name}, e.{name}, e.{size.removeprefix('list:')})"


def _difference(row: dict[str, Any], comparison: Comparison) -> Difference:
    is_recorded, is_expected = row["is_recorded"], row["is_expected"]
    side = "f" if is_recorded else "e"
    key = _cells({name: row[f"{side}_{name}"] for name in comparison.key})
    if not is_recorded:
        return Difference(comparison.table, key, "missing", None, _cells({name: row[f"e_{name}"] for name in comparison.columns}))
    if not is_expected:
        return Difference(comparison.table, key, "surplus", _cells({name: row[f"f_{name}"] for name in comparison.columns}), None)
    differ = [name for name in comparison.columns if not row[f"same_{name}"]]
    return Difference(comparison.table, key, "differs", *(_cells({name: row[f"{side}_{name}"] for name in differ}, True) for side in "fe"))


def _cells(cells: dict[str, str | None], nulls: bool = False) -> str:
    return ", ".join(f"{name} {'null' if cell is None else cell}" for name, cell in cells.items() if nulls or cell is not None)


def count(store: duckdb.DuckDBPyConnection, relation: str) -> int:
    return int(store.execute(f"select count(*) from {relation}").fetchall()[0][0])
