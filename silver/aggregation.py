"""Aggregation types, apart from the settings of metrics: queries load them without pydantic, which takes a while."""

from enum import StrEnum


class Aggregation(StrEnum):
    """How the readings of one window become one value."""

    AVERAGE = "average"
    LATEST = "latest"
    MIN = "min"
    MAX = "max"
    SUM = "sum"
    COUNT = "count"
    FIRST = "first"
    STDDEV = "stddev"
    MEDIAN = "median"
    QUANTILE = "quantile"
    TIME_WEIGHTED_AVERAGE = "time_weighted_average"
    COUNTER_INCREASE = "counter_increase"
    CIRCULAR_MEAN = "circular_mean"
