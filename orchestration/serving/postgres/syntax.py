"""The tree of a query, by DuckDB's own parser: names of columns as PostgreSQL gives them, and types of parameters that are cast."""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import duckdb

from orchestration.serving.postgres.databases import Databases
from orchestration.serving.postgres.datatypes import OF_DUCKDB, TYPES, DataType
from orchestration.serving.postgres.parameters import UNKNOWN, bound, literal
from orchestration.serving.postgres.wire import PostgresError
from orchestration.serving.sql.sql_words import Word

Node = dict[str, Any]
PLAIN = re.compile(r"(?!true$|false$|null$)[a-z_]\w*", re.IGNORECASE)
OPERATORS = {"OPERATOR_COALESCE": "coalesce", "ARRAY_CONSTRUCTOR": "array", "OPERATOR_NULLIF": "nullif"}
FUNCTIONS = {"count_star": "count", "list_value": "array", "trim": "btrim", "date_part": "extract"}
"""Names that DuckDB's parser gives to what PostgreSQL calls otherwise."""
UNNAMED = "?column?"


def tree(query: str) -> Node:
    """Return the tree of a SELECT; empty for other statements and for what cannot be parsed."""
    parsed = json.loads(_parser().execute("select json_serialize_sql(?)", [query]).fetchall()[0][0])
    return dict(parsed["statements"][0]["node"]) if parsed.get("statements") else {}


@cache
def _parser() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def column_names(query: str, columns: Sequence[str]) -> Sequence[str]:
    """Return PostgreSQL's names of a query's columns. `columns`: DuckDB's, of which those that a star or an alias gives stay."""
    if all(PLAIN.fullmatch(column) for column in columns):
        return columns
    listed = _select_list(tree(query))
    stars = [number for number, item in enumerate(listed) if item["class"] == "STAR"]
    if len(stars) > 1 or (not stars and len(listed) != len(columns)):
        return columns
    if stars:  # one star takes what the others leave
        before, after = stars[0], len(listed) - stars[0] - 1
        named = columns[before : len(columns) - after]
        return [*map(_name, listed[:before]), *named, *(_name(item) for item in listed[len(listed) - after :] if after)]
    return [_name(item) for item in listed]


def _select_list(node: Node) -> list[Node]:
    while children := node.get("children"):  # of a UNION
        node = children[0]
    return list(node.get("select_list", []))


def _name(item: Node) -> str:
    return str(item["alias"]) or _figured(item) or UNNAMED


def _figured(item: Node) -> str:
    """Name an expression as FigureColname of PostgreSQL does; empty where it has no name of its own."""
    kind = item["class"]
    name: str | None = None
    if kind == "COLUMN_REF":
        name = item["column_names"][-1]
    elif kind in {"FUNCTION", "WINDOW"} and not item.get("is_operator"):
        name = FUNCTIONS.get(item["function_name"], item["function_name"])
    elif kind == "CAST":
        name = _figured(item["child"]) or _type_name(item["type_expr"])
    elif kind == "CASE":
        name = (_figured(item["else_expr"]) if item["else_expr"]["class"] in {"COLUMN_REF", "FUNCTION"} else "") or "case"
    elif kind == "COLLATE" or item["type"] == "ARRAY_EXTRACT":
        name = _figured(item.get("child") or item["children"][0])
    elif kind == "SUBQUERY" and item["subquery_type"] == "SCALAR":
        name = next((_name(first) for first in _select_list(item["subquery"]["node"])), "")
    elif kind == "SUBQUERY" and item["subquery_type"] == "EXISTS":
        name = "exists"
    return str(name or OPERATORS.get(item["type"], ""))


def _type_name(type_expr: Node) -> str:
    name = str(type_expr["type_name"]).lower()
    if name == "list":
        name = str(type_expr["children"][0]["type_name"]).lower()
    data_type = _data_type(name)
    return data_type.name if data_type and name != "varchar" else name


def _data_type(name: str) -> DataType | None:
    return OF_DUCKDB.get(name.lower()) or TYPES.get(name.lower())


def parameter_types(query: str, listed: Sequence[Word], types: Sequence[int], databases: Databases) -> list[int]:
    """Find the types of parameters that are 0: those that the query casts them to, else DuckDB a text in their place."""
    casts = _casts(query)
    types = [oid or casts.get(number, 0) for number, oid in enumerate(types, 1)]
    for _ in range(types.count(0)):  # each turn but the last finds a parameter that DuckDB needs as a constant
        marked = [f"'?{number}?'" if oid in UNKNOWN else literal(oid, False, None) for number, oid in enumerate(types, 1)]
        try:
            plan = str(databases.query(f"explain (format json) {bound(query, listed, marked).text}", False).fetchall())
        except PostgresError as refused:
            if not (constant := re.search(r"string '\?(\d+)\?' to (\w+)", refused.message)):
                break
            types[int(constant[1]) - 1] = type_named(constant[2]) or 25
            continue
        plans = dict(re.findall(r"CAST\('\?(\d+)\?' AS ([A-Z ]+(?:\(.*?\))?(?:\[\])?)", plan.replace("\\'", "'")))
        return [oid or type_named(plans.get(str(number), "")) for number, oid in enumerate(types, 1)]
    return types


def _casts(query: str) -> dict[int, int]:
    """Return the types of parameters that a query casts, $1::int, by their number."""
    types = dict[int, int]()
    for item in _nodes(tree(query)):
        if item.get("class") == "CAST" and item["child"]["class"] == "PARAMETER":
            type_expr = item["type_expr"]
            is_list = type_expr["type_name"] == "list"
            data_type = _data_type((type_expr["children"][0] if is_list else type_expr)["type_name"])
            if data_type and item["child"]["identifier"].isdigit():
                types.setdefault(int(item["child"]["identifier"]), data_type.array if is_list else data_type.oid)
    return types


def _nodes(item: object) -> Iterator[Node]:
    if isinstance(item, dict):
        yield item
        for value in item.values():
            yield from _nodes(value)
    elif isinstance(item, list):
        for value in item:
            yield from _nodes(value)


def type_named(name: str) -> int:
    """Return the number of a type by DuckDB's name in a plan or an error, such as DECIMAL(18,3) or VARCHAR[]; 0 for an unknown one."""
    data_type = _data_type(re.sub(r"\(.*?\)|\[\]", "", name).strip())
    return 0 if data_type is None else data_type.array if name.endswith("[]") else data_type.oid
