"""Parts of a condition as DuckDB's SQL with their kinds, and what is said where they do not fit."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlglot import exp

from expectations.instead import FUNCTIONS, NODES, OWN, SEE
from expectations.rule import Kind
from expectations.wording import hint

TYPES = {Kind.NUMBER: "double", Kind.TEXT: "text", Kind.BOOLEAN: "boolean", Kind.TIMESTAMP: "timestamp"}
"""Kinds that can be compared, and the types of SQL that stand for them."""
LIKENESS = 0.75
"""Names are short, and what else may stand there is said where none is as like as this."""
LONGEST = 200_000
"""Letters of SQL. What is checked for infinity stands there twice, so each level of such arithmetic doubles it."""


class ConditionError(ValueError):
    """A mistake of a condition, its position, and what to write instead; a sentence that follows the name of a setting."""


class Term(NamedTuple):
    """A part of a condition. `is_arithmetic`: it may be infinite or NaN, and is to be null then."""

    node: Any
    kind: Kind
    sql: str
    is_arithmetic: bool = False

    def __str__(self) -> str:
        return f"{self.kind} ({text_of(self.node)})"


@dataclass(frozen=True)
class Terms:
    """Renders parts of one condition. `renderers`: by the node of sqlglot. `names`, `attributes`: what it has asked for."""

    text: str
    columns: Mapping[str, Kind]
    renderers: "Mapping[str, Callable[[Terms, Any], Term]]"
    names: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)

    def term(self, node: exp.Expr, *kinds: Kind) -> Term:
        """A part, of one of `kinds` if any are given."""
        render = self.renderers.get(type(node).__name__)
        if render is None:
            raise self.refusal(node)
        term = render(self, node)
        if kinds and term.kind not in kinds:
            raise self.error(node, f"has a {term} where a {' or '.join(kinds)} belongs", instead_of(term, kinds[0]))
        return term

    def sql(self, node: exp.Expr, *kinds: Kind) -> str:
        return self.finite(self.term(node, *kinds)).sql

    def finite(self, term: Term) -> Term:
        """The part, null where it is arithmetic whose result is no finite number."""
        if len(term.sql) > LONGEST:
            raise ConditionError("is too long, or nested too deeply; write several conditions")
        sql = f"(case when isfinite({term.sql}) then {term.sql} end)" if term.is_arithmetic else term.sql
        return term._replace(sql=sql, is_arithmetic=False)

    def alike(self, node: exp.Expr, nodes: Iterable[exp.Expr], verb: str) -> tuple[Kind, list[str]]:
        """The kind that all of them have, and their SQL. A null has any kind, but nothing is compared with it."""
        terms = [self.finite(self.term(part)) for part in nodes]
        first = next((term for term in terms if term.kind is not Kind.NULL), terms[0])
        for term in terms:
            if term.kind is Kind.NULL and verb == "compares":
                raise self.error(node, "compares with null, which is never true", f"write {text_of(first.node)} is null")
            if term.kind not in {first.kind, Kind.NULL}:
                text, other = (term, first) if term.kind is Kind.TEXT else (first, term)
                raise self.error(node, f"{verb} {first} with {term}", instead_of(text, other.kind))
            if term.kind not in {*TYPES, Kind.NULL}:
                raise self.error(node, f"{verb} a {term}", "write one of its texts: attributes['quality'], or 'kitchen' in groups")
        return first.kind, [term.sql for term in terms]

    def literal(self, node: Any, noun: str) -> str:
        """The text of a literal, which has to be written out."""
        if not isinstance(node, exp.Literal):
            raise self.error(node, f"computes {noun}", f"write {noun} out")
        return str(node.this)

    def called(self, node: exp.Expr) -> str:
        """The name of a function as it is written; nothing for an operator."""
        return self.text[node.meta["start"] : node.meta["end"] + 1].lower() if "start" in node.meta else ""

    def error(self, node: exp.Expr, problem: str, remedy: str) -> ConditionError:
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
        return ConditionError(f"{problem}{position(self.text, min(starts)) if starts else ''}; {remedy}")

    def refusal(self, node: exp.Expr) -> ConditionError:
        """The error about something that conditions do not have, with what to write instead."""
        name = self.called(node)
        if name in FUNCTIONS:
            return self.error(node, f"calls '{name}', which conditions do not have", FUNCTIONS[name])
        for kinds, (noun, remedy) in NODES.items():
            if isinstance(node, kinds):
                return self.error(node, f"uses {noun}, which conditions do not have", remedy)
        return self.error(node, f"calls '{name or text_of(node)}', which conditions do not have", hint(name, OWN, SEE, LIKENESS))


def position(text: str, start: int) -> str:
    """The position of an offset of the text, as a person counts."""
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    return f" (line {line}, column {column})" if "\n" in text.strip() else f" (column {column})"


def text_of(node: exp.Expr) -> str:
    text = node.sql(dialect="duckdb")
    return text if len(text) <= 50 else f"{text[:47]}..."


def instead_of(term: Term, kind: Kind) -> str:
    """How to write a value as one of another kind."""
    if kind is Kind.BOOLEAN:
        return "compare it, for example value >= 0"
    if term.kind is Kind.TEXT and isinstance(term.node, exp.Literal):
        return f"write timestamp '{term.node.this}'" if kind is Kind.TIMESTAMP else f"write {term.node.this} without quotes"
    if term.kind is Kind.TIMESTAMP and kind is Kind.NUMBER:
        return f"write date_part('epoch', {text_of(term.node)}), which is in seconds since 1970"
    return f"write try_cast({text_of(term.node)} as {TYPES[kind]})" if kind in TYPES else SEE
