"""A lake opened: its conf, its folders, its session and its tables by name."""

from functools import cached_property
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.jars import fetched
from orchestration.java import require_java
from orchestration.session import spark_session


class Lake:
    """From Python: `Lake.open("conf").sql("select ...")`. Opening starts nothing; the session starts when first used."""

    def __init__(self, conf: Conf, spark: SparkSession | None = None) -> None:
        """`spark`: use this session instead of an own one."""
        self.conf = conf
        self._spark = spark

    @classmethod
    def open(cls, folder: str | Path = "conf") -> "Lake":
        """The lake that the conf in `folder` describes; ConfError names every mistake in it."""
        return cls(load(Path(folder)))

    @cached_property
    def spark(self) -> SparkSession:
        """The session; raises TidemarkError where Java or the jars are missing."""
        if self._spark is not None:
            return self._spark
        require_java()
        return spark_session(self.conf.engine, fetched(), self.conf.lake / "spark.log")

    def table_path(self, name: str) -> Path:
        """Where a table is, whether it exists or not."""
        database, table = name.split(".", 1)
        return self.conf.lake / database / table

    def checkpoint(self, flow: str) -> Path:
        """Where a flow keeps what it has read."""
        return self.conf.lake / "checkpoints" / flow

    def tables(self) -> dict[str, Path]:
        """Every table that exists, by its SQL name."""
        logs = sorted(self.conf.lake.glob("*/*/_delta_log"))
        return {f"{log.parent.parent.name}.{log.parent.name}": log.parent for log in logs}

    def read(self, name: str) -> DataFrame:
        """The latest version of a table."""
        return self.spark.read.format("delta").load(str(self.table_path(name)))

    def sql(self, query: str) -> DataFrame:
        """Rows of a query over the tables that exist, under their names."""
        databases = self.tables()
        for database in {name.split(".", 1)[0] for name in databases}:
            self.spark.sql(f"create database if not exists `{database}`")
        for name, path in databases.items():
            database, table = name.split(".", 1)
            self.spark.sql(f"create table if not exists `{database}`.`{table}` using delta location '{_quoted(path)}'")
        return self.spark.sql(query)


def _quoted(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace("'", "\\'")
