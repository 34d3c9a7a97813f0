"""Revisions: gold is append only; a window that late rows change comes again, under a higher revision. Pure."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def latest(history: DataFrame, key: Sequence[str]) -> DataFrame:
    """The highest revision of each key. Amended keys are few: they are looked up, the table is not sorted."""
    amended = history.where(F.col("revision") > 0).groupBy(*key).agg(F.max("revision").alias("newest"))
    is_older = [history[name] == amended[name] for name in key] + [history["revision"] < amended["newest"]]
    return history.join(F.broadcast(amended), on=is_older, how="left_anti")


def next_revision(rows: DataFrame, history: DataFrame, key: Sequence[str]) -> DataFrame:
    """Rows with `revision`: one more than the highest in `history`, 0 for a key that it does not have."""
    known = history.join(F.broadcast(rows.select(*key)), on=list(key), how="left_semi").groupBy(*key).agg(F.max("revision").alias("known"))
    revision = F.coalesce(F.col("known") + 1, F.lit(0)).cast("int").alias("revision")
    return rows.join(known, on=list(key), how="left").select(*rows.columns, revision)


def changed(rows: DataFrame, before: DataFrame, key: Sequence[str], content: Sequence[str]) -> DataFrame:
    """Rows that `before` does not have, or has with other content."""
    same = [rows[name].eqNullSafe(before[name]) for name in (*key, *content)]
    return rows.join(before, on=same, how="left_anti")
