"""A query of Spark's SQL as one of DataFusion's that gives the same, or the reason why there is none that is known to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from orchestration.query.fast.meaning import LARGEST
from orchestration.query.fast.queries import parsed
from orchestration.query.fast.relations import Making
from orchestration.query.fast.select import Maker
from orchestration.query.fast.telling import AmissError, refusal
from orchestration.serving.sql.answer import Limits

Tables = Callable[[tuple[str, ...], int], tuple[str, Sequence[tuple[str, str]]]]
"""SQL that reads a table by its name, and its columns with their types; AmissError where there is no such table."""


@dataclass(frozen=True)
class Translation:
    """`sql` for DataFusion; `columns` by name and type as Spark gives them, in the order of those of `sql`."""

    sql: str
    columns: tuple[tuple[str, str], ...]


def translated(query: str, tables: Tables, limits: Limits) -> Translation:
    """RefusedError, with the place and the way out, where there is no translation. It gives one row more than the limit at most."""
    if len(query.encode("utf-8", "replace")) > limits.query_bytes:
        raise refusal(f"the query is longer than {limits.query_bytes} bytes; ask it in parts", query, None)
    try:
        tree = parsed(query)
        most = limits.rows + 1 if tree.limit is None else min(tree.limit, limits.rows + 1)
        relation = Maker(Making(tables, limits.plan_nodes)).query(replace(tree, limit=most))
    except AmissError as error:
        raise refusal(str(error), query, error.at) from None
    except RecursionError:
        raise refusal("the query is nested too deeply; ask it in parts", query, None) from None
    if len(relation.sql) > LARGEST:
        raise refusal("the query is too large; ask it in parts", query, None)
    return Translation(relation.sql, tuple((column.name, column.type) for column in relation.columns))
