"""What sessions of queries can name: a catalog for each snapshot, which holds views of its tables at their versions and nothing else.

Each is a catalog of its own in one Spark, so queries over several snapshots run side by side. Views are made when first asked for, as each
costs a look at the log of its table.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from gold.literal import quoted
from orchestration.serving.sql.direct_scan import few_files
from orchestration.serving.sql.plan_cache import Planner, new_session, plan_of
from orchestration.serving.sql.refusal import RefusedError
from orchestration.storage.views import View

TABLES = "tables_of_views"
"""The database of the tables below the views; no query may name it."""
OF_QUERIES = {
    # A name of a table is never a file. Views would be refused for theirs, so they are over tables of the catalog.
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
}
WITHOUT_FILES = {"OneRowRelation", "LocalRelation", "Range", "CTERelationRef", "UnionLoopRef"}


class Catalog:
    """Of one snapshot."""

    def __init__(self, spark: SparkSession, views: Mapping[str, View]) -> None:
        """`views`: see views.views."""
        self.views = views
        self._by_lower = {name.lower(): view for name, view in views.items()}
        context: Any = spark.sparkContext
        self._java = context._jvm
        self._session = SparkSession(context, new_session(self._java, context._jsc.sc()))
        self._roots = {self._java.org.apache.hadoop.fs.Path(f"file:{view.path}").toString() for view in views.values()}
        self._planner = Planner(self._java, self._session._jsparkSession)
        self._session.sql(f"create database {TABLES}")
        self._made: set[str] = set()
        self._making = threading.Lock()

    @property
    def names(self) -> frozenset[str]:
        """SQL names, in lower case."""
        return frozenset(self._by_lower)

    def parsed(self, query: str) -> JavaObject:
        """The plan of a query, with nothing resolved."""
        return self._session._jsparkSession.sessionState().sqlParser().parsePlan(query)

    def resolved(self, plan: JavaObject, names: Iterable[str]) -> DataFrame:
        """Of a plan that has passed the fence and means these tables; not of the text again, which could mean something else by then."""
        self.make(names)
        session = self._session.newSession()
        for key, value in OF_QUERIES.items():
            session.conf.set(key, value)
        rows = self._java.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
        self._refuse_foreign(rows.queryExecution().analyzed())
        return DataFrame(rows, session)

    def _refuse_foreign(self, plan: JavaObject) -> None:
        """The second look, at what names have become: nothing but files of the tables of these views."""
        for leaf in _leaves(plan):
            kind = leaf.getClass().getSimpleName()
            if kind not in WITHOUT_FILES and not (kind == "LogicalRelation" and all(_is_in(path, self._roots) for path in _paths(leaf))):
                raise RefusedError("the query reads something that is no table of the lake.")

    def make(self, names: Iterable[str]) -> None:
        """Views of these tables, where they are not there yet."""
        with self._making:
            for name in sorted(set(names) - self._made):
                self._make(self._by_lower[name])
                self._made.add(name)

    def _make(self, view: View) -> None:
        database, table = view.name.split(".", 1)
        self._session.sql(f"create database if not exists `{database}`")
        if view.version is not None:
            entry = self._planner.entry(view.name, view.select(self._pinned_rows(view)))
            self._session._jsparkSession.sharedState().externalCatalog().createTable(entry, False)
            return
        # The newest version is meant, at each query anew.
        below = f"{TABLES}.`{database}_{table}`"
        self._session.sql(f"create table {below} using delta location {quoted(str(view.path))}")
        self._session.sql(f"create view `{database}`.`{table}` as {view.select(below)}")

    def _pinned_rows(self, view: View) -> str:
        """How the session names the rows of a table at its version."""
        files = few_files(view)
        if files is None:
            return view.rows()
        name = plan_of(f"files.{view.name}")
        files.rows(self._java, self._session._jsparkSession).createOrReplaceTempView(f"`{name}`")
        return f"(select {', '.join(f'`{column}`' for column in files.columns)} from `{name}`)"


def _leaves(plan: JavaObject) -> Iterator[JavaObject]:
    """Of a plan and of every subquery in it."""
    plans = plan.subqueriesAll().iterator()
    every = [plan]
    while plans.hasNext():
        every.append(plans.next())
    for each in every:
        leaves = each.collectLeaves().iterator()
        while leaves.hasNext():
            yield leaves.next()


def _paths(relation: JavaObject) -> list[str]:
    """What a relation reads, folders or files; one that reads something else ends in a Py4JError."""
    paths: str = relation.relation().location().rootPaths().mkString("\n")
    return paths.split("\n")


def _is_in(path: str, roots: Iterable[str]) -> bool:
    """Whether it is one of them, or a file below one."""
    return any(path == root or path.startswith(f"{root}/") for root in roots)
