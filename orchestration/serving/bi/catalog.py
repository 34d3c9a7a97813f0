"""The catalog that a session gets: the views of the newest snapshot at its first query, for as long as the session lives.

A query over two tables resolves each by itself. Views that are replaced, even all at once, could give it half of one snapshot and half of
the next. So no view is ever replaced: each snapshot has a catalog of its own, new clients get a copy of it, and a session keeps its copy.
What a client drops or creates there changes nothing for others.
"""

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from orchestration.serving.bi.plan_cache import PLAN_DATABASE, PlanCache, new_session, plan_name

SHARED_STATE = "org.apache.spark.sql.internal.SharedState"


class SessionCatalogs:
    """Replaces the catalog that new sessions of a process get."""

    def __init__(self, spark: SparkSession) -> None:
        """`spark`: the session that the sessions of clients are made from."""
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._context = spark.sparkContext._jsc.sc()
        self._state = spark._jsparkSession.sharedState()
        self._state.externalCatalog()  # Spark creates both at their first use; only then can they be replaced
        self._plans = self._state.globalTempViewManager()
        self._databases: list[Any] = []
        self._views: dict[str, Any] = {}

    def build(self, views: Mapping[str, str]) -> dict[str, str]:
        """Prepare these views, queries by SQL name, for `renew`. Returns the reason for each view that cannot be created."""
        session = new_session(self._jvm, self._context)
        state, plan_cache = session.sharedState(), PlanCache(self._jvm, session)
        self._plans, self._views, left_out = state.globalTempViewManager(), {}, {}
        for name, query in views.items():
            try:
                self._views[name] = plan_cache.entry(name, query)
            except (Py4JJavaError, PySparkException) as error:
                left_out[name] = str(getattr(error, "java_exception", error))
        databases = dict.fromkeys(name.split(".", 1)[0] for name in views)
        for database in databases:
            session.sql(f"create database `{database}`")
        self._databases = [state.externalCatalog().getDatabase(database) for database in ("default", *databases)]
        return left_out

    def renew(self) -> None:
        """Give new sessions a copy that nobody has changed; open sessions keep theirs."""
        spark = self._jvm.org.apache.spark.sql.catalyst.catalog
        catalog = spark.ExternalCatalogWithListener(spark.InMemoryCatalog(self._context.conf(), self._context.hadoopConfiguration()))
        plans = spark.GlobalTempViewManager(PLAN_DATABASE)
        for database in self._databases:
            catalog.createDatabase(database, True)
        for name, view in self._views.items():
            plans.create(plan_name(name), self._plans.get(plan_name(name)).get(), True)
            catalog.createTable(view, False)
        self._set("globalTempViewManager", plans)
        self._set("externalCatalog", catalog)

    def _set(self, field_name: str, value: Any) -> None:
        field = self._jvm.java.lang.Class.forName(SHARED_STATE).getDeclaredField(field_name)
        field.setAccessible(True)
        field.set(self._state, value)
