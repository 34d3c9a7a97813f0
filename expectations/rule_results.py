"""Which rules hold for each row, and which rules each row breaks."""

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from expectations.rule import Rule


def passing(rows: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Rows for which every rule holds; a rule that is null for a row counts as broken."""
    return rows.where(reduce(and_, map(holds, rules)))


def with_broken_rules(rows: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """All rows, with the names of the rules that each breaks; empty where `passing` lets it through."""
    broken = F.array_compact(F.array(*(F.when(~holds(rule), F.lit(rule.name)) for rule in rules)))
    return rows.withColumn("broken_rules", broken)


def holds(rule: Rule) -> Column:
    """True or false for every row, never null."""
    return F.coalesce(F.expr(rule.holds), F.lit(False))
