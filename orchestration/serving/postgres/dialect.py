"""What clients of PostgreSQL write that DuckDB reads otherwise: rewritten by words, so that places in errors stay what they are."""

import re
from collections.abc import Sequence

from orchestration.serving.postgres.parameters import array_literals
from orchestration.serving.postgres.wire import PostgresError
from orchestration.serving.sql.sql_words import Word, words

OWN_SCHEMA = re.compile(r'"?\bpg_catalog\b"?\s*\.')
"""DuckDB owns that schema: ours is the first of the search path instead."""
REG = {
    "regclass": "to_regclass",
    "regproc": "to_regproc",
    "regprocedure": "to_regproc",
    "regtype": "to_regtype",
    "regnamespace": "to_regnamespace",
}
PROCEDURES = re.compile(r"typ(input|output|receive|send|modin|modout|analyze)|amhandler|agg(fnoid|transfn)", re.I)
"""Columns that hold names of functions, which a query of pg_proc takes for their numbers."""
TYPES = {
    "jsonb": "json",
    "name": "text",
    "char": "text",
    "xid": "text",
    "bpchar": "text",
    "regrole": "text",
    "money": "text",
    "inet": "text",
}
CLAUSES = {"select", "from", "where", "group", "order", "having", "limit", "union", "on"}
SETS = {"generate_series", "unnest", "string_to_array"}
"""In PostgreSQL the alias of a function in FROM names its column too."""
RENAMED = {
    "json_build_object": "json_object",
    "jsonb_build_object": "json_object",
    "json_agg": "json_group_array",
    "jsonb_agg": "json_group_array",
    "to_jsonb": "to_json",
}
OF_CATALOG = re.compile(
    r"pg_\w+|information_schema|current_setting|set_config|has_\w+_privilege|txid_current|obj_description|col_description|format_type", re.I
)


def significant(text: str) -> list[Word]:
    return [word for word in words(text) if word.kind != "comment"]


def is_of_catalog(listed: Sequence[Word]) -> bool:
    """Whether a query asks what there is, and not what it holds."""
    return any(word.kind in {"identifier", "keyword"} and OF_CATALOG.fullmatch(word.name) for word in listed)


def for_catalog(text: str) -> str:
    """A query of the catalog in DuckDB's words."""
    for place in reversed([word.at for word in significant(text) if word.name.lower() == "pg_catalog"]):
        if found := OWN_SCHEMA.match(text, place):
            text = text[:place] + " " * len(found[0]) + text[found.end() :]
    listed = significant(text)
    clauses, of_from = ["select"], set[int]()
    for place, word in enumerate(listed):
        if word.text.lower() in CLAUSES:
            clauses[-1] = word.text.lower()
        elif word.text == "(":
            of_from |= {place} if clauses[-1] == "from" else set()
            clauses.append("select")
        elif word.text == ")" and len(clauses) > 1:
            clauses.pop()
    has_procedures = any(word.name.lower() == "pg_proc" for word in listed)
    edits: list[tuple[int, int, str]] = []
    for place, word in enumerate(listed):
        name, following = word.name.lower(), listed[place + 1 : place + 2]
        if name == "information_schema" and following and following[0].text == ".":
            edits.append((word.at, following[0].at, "_nformation_schema"))
        elif name in SETS and place + 1 in of_from:
            alias = next(n for n in range(place, len(listed)) if listed[n].text == ")" and _opening(listed, n) == place + 1) + 1
            alias += alias < len(listed) and listed[alias].name.lower() == "as"
            if alias < len(listed) and listed[alias].kind == "identifier" and (alias + 1 == len(listed) or listed[alias + 1].text != "("):
                end = listed[alias].at + len(listed[alias].text)
                edits.append((end, end, f"({listed[alias].text})"))
        elif word.text.startswith("'{") and (
            "".join(each.text for each in listed[place + 3 : place + 5]) == "[]"
            or (
                place > 1
                and listed[place - 1].text == "("
                and listed[place - 2].name.lower() in {"any", "all"}
                and following
                and following[0].text == ")"
            )
        ):
            edits.append((word.at, word.at + len(word.text), f"[{', '.join(array_literals(word.text[1:-1]))}]"))
        elif (
            name == "array"
            and place > 1
            and listed[place - 1].text == "("
            and listed[place - 2].name.lower() in {"any", "all"}
            and following
            and following[0].text == "("
        ):
            end = next(n for n in range(place, len(listed)) if listed[n].text == ")" and _opening(listed, n) == place + 1)
            edits.append((listed[end].at + 1, listed[end].at + 1, " || []"))  # else a subquery to DuckDB
        elif word.text.lower() == "at" and place and not (following and following[0].name.lower() == "time"):
            edits.append((word.at, word.at + len(word.text), f'"{word.text}"'))  # a keyword to DuckDB
        elif has_procedures and PROCEDURES.fullmatch(name) and listed[place - 1].name.lower() != "as":
            edits += [
                (listed[_operand(listed, place)].at, listed[_operand(listed, place)].at, "to_regproc("),
                (word.at + len(word.text), word.at + len(word.text), ")"),
            ]
        elif PROCEDURES.fullmatch(name) and listed[place + 2 : place + 3] and listed[place + 2].text == "0":
            edits.append((listed[place + 2].at, listed[place + 2].at + 1, "'-'"))
        elif name in RENAMED:
            edits.append((word.at, word.at + len(word.text), RENAMED[name]))
        elif word.text.lower() == "operator" and following and following[0].text == "(":
            closing = next(n for n in range(place, len(listed)) if listed[n].text == ")")
            edits.append((word.at, listed[closing].at + 1, f" {listed[closing - 1].text} "))
        elif word.text.lower() == "collate" and following and following[0].name and listed[place - 1].name.lower() != "as":
            edits.append((word.at, following[0].at + len(following[0].text), ""))
        elif name in REG and place and listed[place - 1].text in {"::", ":"} and following and following[0].text == "[":
            edits.append((word.at, word.at + len(word.text), "varchar"))
        elif name in REG and place and listed[place - 1].text in {"::", ":"}:
            colon = place - (1 if listed[place - 1].text == "::" else 2)
            start = _operand(listed, colon - 1)
            call = "regproc_name" if name == "regproc" and not has_procedures else REG[name]
            edits += [(listed[start].at, listed[start].at, f"{call}("), (listed[colon].at, word.at + len(word.text), ")")]
        elif name in REG | TYPES and place and listed[place - 1].name.lower() == "as" and following and following[0].text == ")":
            opening = _opening(listed, place + 1)
            if name in REG:
                edits += [(listed[opening - 1].at, listed[opening].at, REG[name]), (listed[place - 1].at, word.at + len(word.text), "")]
            elif listed[opening - 1].name.lower() == "cast":
                edits.append((word.at, word.at + len(word.text), TYPES[name]))
        elif name in TYPES and place and listed[place - 1].text in {"::", ":"}:
            edits.append((word.at, word.at + len(word.text), TYPES[name]))
    edits = [edit for n, edit in enumerate(edits) if not any(a < edit[1] and edit[0] < b for a, b, _ in edits[:n])]
    for start, end, new in sorted(edits, key=lambda edit: edit[:2], reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _opening(listed: Sequence[Word], closing: int) -> int:
    depth = 0
    for place in range(closing, -1, -1):
        depth += (listed[place].text == ")") - (listed[place].text == "(")
        if depth == 0:
            return place
    raise PostgresError("42601", "unbalanced parentheses")


def _operand(listed: Sequence[Word], last: int) -> int:
    """Where the operand of a cast begins: a literal, a name with dots, a call, something in parentheses."""
    place = _opening(listed, last) if listed[last].text == ")" else last
    if (
        place > 0
        and listed[last].text == ")"
        and listed[place - 1].kind in {"identifier", "keyword"}
        and listed[place - 1].name.lower() not in {"and", "or", "in", "on", "where", "select"}
    ):
        place -= 1
    while place > 1 and listed[place - 1].text == "." and listed[place].name:
        place -= 2
    return place
