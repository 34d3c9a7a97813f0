"""Vectors: the features of one entity at one window, in declared order."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from gold.spec import Group, Vector
from silver.spec import Metric


def vectors(aggregates: DataFrame, group: Group, vector: Vector, metrics: Mapping[str, Metric]) -> DataFrame:
    """A vector at every `window_end` at which some feature of the entity has a window that ends there.

    A feature is the value of that window; else the newest earlier one, if that ended at most `max_fill_seconds` before
    (then it is named in `filled`); else null (then it is named in `missing`). A null value counts as none.
    So windows of different steps meet at their ends. `aggregates` must reach back `max_fill_seconds` before the first
    vector that matters, with one revision per window.
    """
    features = features_of(group, vector)
    cells = aggregates.select(
        (F.col("device_id") if vector.entity == "device" else F.lit(group.name)).alias("entity"),
        (F.col("metric") if vector.entity == "device" else F.concat_ws(".", "device_id", "metric")).alias("feature"),
        *("window_end", "value"),
    ).where(F.col("feature").isin(*features))
    fresh = [_fresh(name).alias(f"fresh_{n}") for n, name in enumerate(features)]
    so_far = Window.partitionBy("entity").orderBy("window_end").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    newest = [F.last(f"fresh_{n}", ignorenulls=True).over(so_far).alias(f"newest_{n}") for n in range(len(features))]
    rows = cells.groupBy("entity", "window_end").agg(*fresh).select("entity", "window_end", *newest)
    states = [_state(n, vector.max_fill_seconds) for n in range(len(features))]
    names = list(features)
    return rows.select(
        "entity",
        F.timestamp_seconds(F.unix_seconds("window_end") - base_seconds(features, metrics)).alias("window_start"),
        "window_end",
        F.array(*(F.when(state != "missing", F.col(f"newest_{n}.value")) for n, state in enumerate(states))).alias("vector"),
        _named(names, states, "missing"),
        _named(names, states, "filled"),
    )


def features_of(group: Group, vector: Vector) -> dict[str, str]:
    """Feature to its metric. A device's name may hold a dot, so the metric is what ends the feature."""
    if vector.entity == "device":
        return {feature: feature for feature in vector.features}
    of_group = sorted(group.metrics, key=len, reverse=True)
    return {feature: next(name for name in of_group if feature.endswith(f".{name}")) for feature in vector.features}


def base_seconds(features: Mapping[str, str], metrics: Mapping[str, Metric]) -> int:
    """From one vector to the next, where none is left out: the least step of the features' metrics."""
    return min(metrics[name].slide_seconds or metrics[name].step_seconds for name in features.values())


def _fresh(feature: str) -> Column:
    value_and_end = F.struct(F.col("value"), F.col("window_end").alias("ended_at"))
    return F.max(F.when((F.col("feature") == feature) & F.col("value").isNotNull(), value_and_end))


def _state(n: int, max_fill_seconds: int) -> Column:
    age = F.unix_seconds("window_end") - F.unix_seconds(f"newest_{n}.ended_at")
    return F.when(age == 0, "fresh").when(age <= max_fill_seconds, "filled").otherwise("missing")


def _named(features: list[str], states: list[Column], state: str) -> Column:
    marked = (F.when(of_feature == state, F.lit(name)) for name, of_feature in zip(features, states, strict=True))
    return F.array_compact(F.array(*marked)).alias(state)
