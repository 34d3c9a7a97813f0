"""Quarantine judged again: what today's rules and parser make of events that have measurements in silver.quarantine. Pure.

An event is looked at as a whole, because one that could not be read has one row in quarantine and, once it can be, several measurements.
Those of its measurements that silver holds elsewhere stay where they are.
"""

from pyspark.sql import DataFrame

from silver.ledger import IDENTITY, OF_EVENT
from silver.readings import KEYS

PLACED = [*KEYS, *IDENTITY, "parts"]
COMPARED = ["broken_rules", *KEYS, "value", *IDENTITY, "parts"]


def moved(measurements: DataFrame, placed: DataFrame) -> DataFrame:
    """Events (OF_EVENT) whose measurements in other tables of silver (`placed`, PLACED) are not found again under the same identity.

    The shape of their source has changed since: `part` would no longer say which measurement it is.
    """
    return placed.select(*PLACED).subtract(measurements.select(*PLACED)).select(*OF_EVENT).distinct()


def judged_otherwise(measurements: DataFrame, placed: DataFrame, quarantined: DataFrame) -> DataFrame:
    """Judged ones that are not `placed`, of events that quarantine would hold in other rows, or not at all; none of those that moved.

    `measurements`: every one of the events judged again; `quarantined`: all rows of silver.quarantine of these events.
    """
    to_place = measurements.join(placed, on=IDENTITY, how="left_anti").select(*measurements.columns)
    now, before = to_place.select(*COMPARED), quarantined.select(*COMPARED)
    changed = now.exceptAll(before).unionByName(before.exceptAll(now)).select(*OF_EVENT).distinct()
    stay = changed.join(moved(measurements, placed), on=OF_EVENT, how="left_anti")
    return to_place.join(stay, on=OF_EVENT, how="left_semi").select(*measurements.columns)


def without_keys_of(late: DataFrame, readings: DataFrame) -> DataFrame:
    """Readings without those whose key a row of silver.late has: that one is kept, so they are its duplicates."""
    return readings.join(late.select(*KEYS), on=KEYS, how="left_anti").select(*readings.columns)
