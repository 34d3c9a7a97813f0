"""The fence around SQL of strangers: a query is run only if everything in its parsed plan is known to do no more than read named tables.

Spark has no read-only mode: a query may read any file, call Java, write, load jars. So the plan is walked before anything is resolved,
through every argument of every node, as subqueries, CTEs and time travel hide outside of `children`; what is not on a list is refused.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError

from orchestration.serving.sql.answer import Limits
from orchestration.serving.sql.refusal import RefusedError, pointed
from orchestration.serving.sql.sql_allowlist import FUNCTIONS, GENERATORS, HINTS, NODES, TABLE_FUNCTIONS, VALUES

CATALYST = "org.apache.spark.sql.catalyst."
DEEPEST = 300
COLLECTIONS = ("scala.collection.", "scala.Some", "scala.None", "scala.Tuple")
Scope = Mapping[str, int]
"""CTEs in reach: name to nodes, with those that it uses counted wherever it does."""


@dataclass
class Fence:
    """Of one query. `tables`: SQL names that it may read, in lower case."""

    query: str
    tables: frozenset[str]
    limits: Limits
    nodes: int = field(default=0, init=False)
    named: set[str] = field(default_factory=set, init=False)
    """Tables that were named, once `check` has passed."""

    def check(self, plan: JavaObject) -> None:
        """Refuse, or return."""
        self._visit(plan, {}, 0)

    def _visit(self, item: Any, scope: Scope, depth: int) -> None:
        if not isinstance(item, JavaObject):
            return None  # a text, a number, a flag
        name = item.getClass().getName()
        if name.startswith(COLLECTIONS):
            return self._each(_elements(item, name), scope, depth)
        kind = name.removeprefix(CATALYST)
        if kind in VALUES or name.startswith("org.apache.spark.sql.types."):
            return None
        if kind not in NODES:
            raise self._refusal(f"{_spoken(kind)} cannot be used here", item)
        self._count(1, item, depth)
        special = SPECIAL.get(kind)
        if special is not None:
            special(self, item, scope, depth)
        else:
            self._each(_elements(item, "product"), scope, depth)
        return None

    def _each(self, items: Iterator[Any], scope: Scope, depth: int) -> None:
        for item in items:
            self._visit(item, scope, depth + 1)

    def _count(self, nodes: int, item: JavaObject, depth: int) -> None:
        self.nodes += nodes
        if self.nodes > self.limits.plan_nodes or depth > DEEPEST:
            raise self._refusal("the query is too large: ask it in parts", item)

    def _relation(self, item: JavaObject, scope: Scope, depth: int) -> None:
        parts = list(_elements(item.multipartIdentifier(), "scala.collection.Seq"))
        name = ".".join(parts)
        if len(parts) == 1 and name.lower() in scope:
            return self._count(scope[name.lower()], item, depth)
        if item.isStreaming() or not item.options().isEmpty():
            raise self._refusal("a table is named without options", item)
        if name.lower().split(".") != [part.lower() for part in parts] or name.lower() not in self.tables:
            near = difflib.get_close_matches(name.lower(), self.tables, 1) or difflib.get_close_matches(
                name.lower(), [known.split(".", 1)[1] for known in self.tables], 1
            )
            raise self._refusal(f"there is no table {name}" + (f"; did you mean {near[0]}?" if near else ""), item)
        self.named.add(name.lower())
        return None

    def _with(self, item: JavaObject, scope: Scope, depth: int) -> None:
        inner = dict(scope)
        for definition in _elements(item.cteRelations(), "scala.collection.Seq"):
            name, query = definition._1().lower(), definition._2()
            before = self.nodes
            # A recursive one means itself, another one that name from outside of it.
            self._visit(query, {**inner, name: 0} if item.allowRecursion() else inner, depth + 1)
            inner[name] = self.nodes - before
        self._visit(item.child(), inner, depth + 1)

    def _function(self, item: JavaObject, scope: Scope, depth: int) -> None:
        self._known(".".join(_elements(item.nameParts(), "scala.collection.Seq")), FUNCTIONS, item)
        self._each(_elements(item, "product"), scope, depth)

    def _generator(self, item: JavaObject, scope: Scope, depth: int) -> None:
        self._known(item.name().unquotedString(), GENERATORS, item)
        self._each(_elements(item.children(), "scala.collection.Seq"), scope, depth)

    def _table_function(self, item: JavaObject, scope: Scope, depth: int) -> None:
        name = ".".join(_elements(item.name(), "scala.collection.Seq"))
        self._known(name, TABLE_FUNCTIONS, item)
        if name.lower() == "range" and item.functionArgs().size() > 3:
            raise self._refusal("range takes start, end and step here", item)
        self._each(_elements(item.functionArgs(), "scala.collection.Seq"), scope, depth)

    def _hint(self, item: JavaObject, scope: Scope, depth: int) -> None:
        if item.name().lower() not in HINTS:
            raise self._refusal(f"the hint {item.name()} cannot be used here", item)
        self._each(_elements(item, "product"), scope, depth)

    def _attribute(self, item: JavaObject, scope: Scope, depth: int) -> None:
        if any(part.lower() == "_metadata" for part in _elements(item.nameParts(), "scala.collection.Seq")):
            raise self._refusal("_metadata cannot be asked: it would tell of files", item)

    def _literal(self, item: JavaObject, scope: Scope, depth: int) -> None:
        pass

    def _known(self, name: str, known: frozenset[str], item: JavaObject) -> None:
        if name.lower() not in known:
            near = difflib.get_close_matches(name.lower(), known, 1)
            raise self._refusal(f"the function {name} cannot be used here" + (f"; did you mean {near[0]}?" if near else ""), item)

    def _refusal(self, what: str, item: JavaObject) -> RefusedError:
        start = _position(item)
        sentence = what if what.endswith("?") else f"{what}."
        return RefusedError(sentence if start is None else f"{sentence}\n{pointed(self.query, start)}")


SPECIAL: Mapping[str, Callable[[Fence, JavaObject, Scope, int], None]] = {
    "analysis.UnresolvedRelation": Fence._relation,
    "plans.logical.UnresolvedWith": Fence._with,
    "analysis.UnresolvedFunction": Fence._function,
    "analysis.UnresolvedGenerator": Fence._generator,
    "analysis.UnresolvedTableValuedFunction": Fence._table_function,
    "plans.logical.UnresolvedHint": Fence._hint,
    "analysis.UnresolvedAttribute": Fence._attribute,
    "expressions.Literal": Fence._literal,
}


def _elements(item: JavaObject, name: str) -> Iterator[Any]:
    """Of a Scala collection, an Option or a product."""
    iterator = item.iterator() if name.startswith(("scala.collection", "scala.Some", "scala.None")) else item.productIterator()
    while iterator.hasNext():
        yield iterator.next()


def _position(item: JavaObject) -> int | None:
    try:
        start = item.origin().startIndex()
    except Py4JError:
        return None  # what has no place in the text
    return int(start.get()) if start.isDefined() else None


def _spoken(kind: str) -> str:
    """A class as words: `plans.logical.InsertIntoStatement` is INSERT INTO STATEMENT."""
    name = kind.rsplit(".", 1)[-1].removeprefix("Unresolved").rstrip("$")
    return "".join(f" {letter}" if letter.isupper() and at else letter for at, letter in enumerate(name)).upper()
