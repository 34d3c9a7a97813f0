"""The tables that queries for Spark can name: one Spark catalog for each snapshot, with views of its tables.

A view is created at its first use, because that reads the log of its table.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from gold.literal import quoted
from orchestration.storage.views import View

TABLE_DATABASE = "tables_of_views"
"""Holds the tables below the views; no query may name it."""
QUERY_SETTINGS = {
    # A table name is never a file name. Spark would refuse views on files too, so views are over tables of the catalog.
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
}


class Catalog:
    """The catalog of one snapshot."""

    def __init__(self, spark: SparkSession, views: Mapping[str, View]) -> None:
        """`views`: by SQL name, see views.views."""
        self._by_lower = {name.lower(): view for name, view in views.items()}
        context: Any = spark.sparkContext
        self._java = context._jvm
        java_session = self._java.org.apache.spark.sql.classic.SparkSession(context._jsc.sc(), self._java.java.util.HashMap())
        self._session = SparkSession(context, java_session)
        self._session.sql(f"create database {TABLE_DATABASE}")
        self._created: set[str] = set()

    @property
    def names(self) -> frozenset[str]:
        """SQL names, in lower case."""
        return frozenset(self._by_lower)

    def parse(self, query: str) -> JavaObject:
        """The unresolved plan of a query."""
        return self._session._jsparkSession.sessionState().sqlParser().parsePlan(query)

    def resolve(self, plan: JavaObject, names: Iterable[str]) -> DataFrame:
        """The rows of a plan that the SQL guard has accepted and that reads these tables.

        It takes the plan and not the text, because parsing the text again could give another plan than the one that was checked.
        """
        for name in sorted(set(names) - self._created):
            self._create_view(self._by_lower[name])
            self._created.add(name)
        session = self._session.newSession()
        for key, value in QUERY_SETTINGS.items():
            session.conf.set(key, value)
        return DataFrame(self._java.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan), session)

    def _create_view(self, view: View) -> None:
        database, table = view.name.split(".", 1)
        self._session.sql(f"create database if not exists `{database}`")
        rows = []
        for number, part in enumerate(view.parts):
            below = f"{TABLE_DATABASE}.`{database}_{table}_{number}`"
            version = "" if part.version is None else f" version as of {part.version}"
            self._session.sql(f"create table {below} using delta location {quoted(str(part.location))}")
            rows.append(f"(select * from {below}{version})")
        self._session.sql(f"create view `{database}`.`{table}` as {view.select(rows)}")
