"""Rows as a suite judges them."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.suite import Suite


def judged(tables: Sequence[DataFrame], suite: Suite) -> DataFrame:
    """The rows of all the tables as one, with the columns that the suite computes; `tables` are its own and those it is together with."""
    together = reduce(lambda rows, more: rows.unionByName(more, allowMissingColumns=True), tables)
    # One after the other, so that a column may build on an earlier one.
    return reduce(lambda rows, column: rows.withColumn(column[0], F.expr(column[1])), suite.columns.items(), together)
