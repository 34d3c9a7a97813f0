"""The SQL guard of Spark: a query runs only if every part of its parsed plan is on an allow-list of operations that just read tables.

Spark has no read-only mode: a query may read any file, call Java, write, load jars. So the guard walks the plan before anything is
resolved, through every argument of every node, because subqueries, CTEs and time travel hide outside of `children`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError

from expectations.wording import nearest
from orchestration.serving.sql.refusal import RefusedError, pointed
from orchestration.serving.sql.sql_allowlist import FUNCTIONS, GENERATORS, NODES, TABLE_FUNCTIONS, VALUE_CLASSES
from orchestration.storage.live_views import IS_LIVE

CATALYST = "org.apache.spark.sql.catalyst."
COLLECTIONS = ("scala.collection.", "scala.Some", "scala.None", "scala.Tuple")
Scope = frozenset[str]
"""Names of the CTEs in scope, in lower case."""


@dataclass
class SqlGuard:
    """Checks one query. `tables`: SQL names that it may read, in lower case."""

    query: str
    tables: frozenset[str]
    tables_read: set[str] = field(default_factory=set, init=False)
    """Tables that the query reads; complete once `check` has returned."""

    def check(self, plan: JavaObject) -> None:
        """RefusedError unless everything in the plan is allowed."""
        try:
            self._visit(plan, frozenset())
        except RecursionError:
            raise RefusedError("the query is too large: split it.") from None

    def _visit(self, item: Any, scope: Scope) -> None:
        if not isinstance(item, JavaObject):
            return  # a text, a number, a flag
        name = item.getClass().getName()
        kind = name.removeprefix(CATALYST)
        if kind in VALUE_CLASSES or name.startswith("org.apache.spark.sql.types."):
            return
        children: Iterable[Any]
        if name.startswith(COLLECTIONS):
            children = items(item.productIterator()) if name.startswith("scala.Tuple") else items(item.iterator())
        elif kind not in NODES:
            raise self._refusal(f"{_sql_words(kind)} cannot be used here", item)
        else:
            children = SPECIAL[kind](self, item, scope) if kind in SPECIAL else items(item.productIterator())
        for child in children:
            self._visit(child, scope)

    # What follows checks one node, and returns the arguments of it that remain to be visited.

    def _relation(self, item: JavaObject, scope: Scope) -> Iterable[Any]:
        parts = list(items(item.multipartIdentifier().iterator()))
        name = ".".join(parts)
        if len(parts) == 1 and name.lower() in scope:
            return ()
        if item.isStreaming() or not item.options().isEmpty():
            raise self._refusal("a table takes no options here", item)
        if name.lower().split(".") != [part.lower() for part in parts] or name.lower() not in self.tables:
            if IS_LIVE.fullmatch(name):
                raise self._refusal(f"{name} is computed by DuckDB: ask it with `--engine duckdb`", item)
            without_database = {table.split(".", 1)[1] for table in self.tables}
            raise self._refusal(f"there is no table {name}" + (_hint(name, self.tables) or _hint(name, without_database)), item)
        self.tables_read.add(name.lower())
        return ()

    def _with(self, item: JavaObject, scope: Scope) -> Iterable[Any]:
        for definition in items(item.cteRelations().iterator()):
            name = definition._1().lower()
            # In a recursive CTE the name means itself, in others it means an outer CTE of that name.
            self._visit(definition._2(), scope | {name} if item.allowRecursion() else scope)
            scope |= {name}
        self._visit(item.child(), scope)
        return ()

    def _function(self, item: JavaObject, scope: Scope) -> Iterable[Any]:
        self._check_function(".".join(items(item.nameParts().iterator())), FUNCTIONS, item)
        return items(item.productIterator())

    def _generator(self, item: JavaObject, scope: Scope) -> Iterable[Any]:
        self._check_function(item.name().unquotedString(), GENERATORS, item)
        return items(item.children().iterator())

    def _table_function(self, item: JavaObject, scope: Scope) -> Iterable[Any]:
        name = ".".join(items(item.name().iterator()))
        self._check_function(name, TABLE_FUNCTIONS, item)
        return items(item.functionArgs().iterator())

    def _attribute(self, item: JavaObject, scope: Scope) -> Iterable[Any]:
        if any(part.lower() == "_metadata" for part in items(item.nameParts().iterator())):
            raise self._refusal("_metadata cannot be read: it would show file names", item)
        return ()

    def _check_function(self, name: str, allowed: frozenset[str], item: JavaObject) -> None:
        if name.lower() not in allowed:
            raise self._refusal(f"the function {name} cannot be used here{_hint(name, allowed)}", item)

    def _refusal(self, message: str, item: JavaObject) -> RefusedError:
        start = _position(item)
        sentence = message if message.endswith("?") else f"{message}."
        return RefusedError(sentence if start is None else f"{sentence}\n{pointed(self.query, start)}")


SPECIAL: Mapping[str, Callable[[SqlGuard, JavaObject, Scope], Iterable[Any]]] = {
    "analysis.UnresolvedRelation": SqlGuard._relation,
    "plans.logical.UnresolvedWith": SqlGuard._with,
    "analysis.UnresolvedFunction": SqlGuard._function,
    "analysis.UnresolvedGenerator": SqlGuard._generator,
    "analysis.UnresolvedTableValuedFunction": SqlGuard._table_function,
    "analysis.UnresolvedAttribute": SqlGuard._attribute,
    "expressions.Literal": lambda *_: (),
}


def _hint(name: str, names: Collection[str]) -> str:
    meant = nearest(name.lower(), names)
    return f"; did you mean {meant}?" if meant else ""


def items(iterator: JavaObject) -> Iterator[Any]:
    """Items of an iterator of Scala."""
    while iterator.hasNext():
        yield iterator.next()


def _position(item: JavaObject) -> int | None:
    try:
        start = item.origin().startIndex()
    except Py4JError:
        return None  # a node without a position in the text
    return int(start.get()) if start.isDefined() else None


def _sql_words(kind: str) -> str:
    """A class name in words: `plans.logical.InsertIntoStatement` is INSERT INTO STATEMENT."""
    name = kind.rsplit(".", 1)[-1].removeprefix("Unresolved").rstrip("$")
    return "".join(f" {letter}" if letter.isupper() and index else letter for index, letter in enumerate(name)).upper()
