"""Which views a session sees: those of the newest cut at its first look, for as long as it lives.

A query over two tables looks each of them up by itself, so views that are replaced one by one, or even all at once, could give it half
of one cut and half of the next. Here no view is ever replaced. Each cut is a catalog of its own, of which new clients get a copy, and a
session keeps the one that it finds: what a client drops or makes in there is its own affair.
"""

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from orchestration.serving.sql.plan_cache import PLANS, Planner, new_session, plan_of

SHARED_STATE = "org.apache.spark.sql.internal.SharedState"


class Catalogs:
    """The catalog that new sessions of a process find."""

    def __init__(self, spark: SparkSession) -> None:
        """`spark`: what the sessions of clients are made from."""
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._context = spark.sparkContext._jsc.sc()
        self._state = spark._jsparkSession.sharedState()
        self._state.externalCatalog()  # both are made when first asked for, and it is here that they are replaced
        self._plans = self._state.globalTempViewManager()
        self._databases: list[Any] = []
        self._views: dict[str, Any] = {}

    def build(self, views: Mapping[str, str]) -> dict[str, str]:
        """Sessions to come shall see these views, queries by SQL name. Of those that cannot be made: why."""
        session = new_session(self._jvm, self._context)
        state, planner = session.sharedState(), Planner(self._jvm, session)
        self._plans, self._views, left_out = state.globalTempViewManager(), {}, {}
        for name, query in views.items():
            try:
                self._views[name] = planner.entry(name, query)
            except (Py4JJavaError, PySparkException) as error:
                left_out[name] = str(getattr(error, "java_exception", error))
        databases = dict.fromkeys(name.split(".", 1)[0] for name in views)
        for database in databases:
            session.sql(f"create database `{database}`")
        self._databases = [state.externalCatalog().getDatabase(database) for database in ("default", *databases)]
        return left_out

    def renew(self) -> None:
        """Sessions to come see a copy that nobody else has changed; all that are open go on seeing what they saw."""
        spark = self._jvm.org.apache.spark.sql.catalyst.catalog
        catalog = spark.ExternalCatalogWithListener(spark.InMemoryCatalog(self._context.conf(), self._context.hadoopConfiguration()))
        plans = spark.GlobalTempViewManager(PLANS)
        for database in self._databases:
            catalog.createDatabase(database, True)
        for name, view in self._views.items():
            plans.create(plan_of(name), self._plans.get(plan_of(name)).get(), True)
            catalog.createTable(view, False)
        self._set("globalTempViewManager", plans)
        self._set("externalCatalog", catalog)

    def _set(self, field: str, value: Any) -> None:
        found = self._jvm.java.lang.Class.forName(SHARED_STATE).getDeclaredField(field)
        found.setAccessible(True)
        found.set(self._state, value)
