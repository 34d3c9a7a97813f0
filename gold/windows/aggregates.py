"""Assign readings to windows, and aggregate each window: one row per device group, device, metric and window. Instants are UTC.

With step 600 a reading of 00:07 is in the window 00:00-00:10. Every metric has its own step, so the end of the window is a computed column
(`window_end`), and Spark's `window` function is not used. State keeps measures of the readings of a window (ALWAYS, ON_DEMAND); the
aggregation type of the metric makes its value of them.

Pure: stream, replay and batch job call the same functions. A stream emits a window once, when the watermark has passed its end; a reading
that comes later is not counted here (it is late for its group). A batch job returns every window, open ones too.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gold.windows.calendar import begin_sql, end_sql
from gold.windows.spec import IN_ORDER, Group, kept_in_state
from silver.aggregation import Aggregation
from silver.metric import Calendar, Metric

Metrics = Mapping[str, Metric]
WATERMARK_DELAY_KEY = "spark.watermarkDelayMs"
"""The metadata key that marks a column as event time, as `withWatermark` and `window` do. Spark then closes windows by this column."""
COUNTED = ("device_id", "metric", "event_time", "value", "groups")
"""The columns of a reading that windows need."""
ALWAYS: dict[str, Callable[[], Column]] = {
    "count": lambda: F.count("value"),
    "min": lambda: F.min("value"),
    "max": lambda: F.max("value"),
    "sum": lambda: F.sum("value"),
    "latest": lambda: F.max_by("value", "event_time"),
}
ON_DEMAND: dict[str, Callable[[Metrics], Column]] = {
    "first": lambda _: F.min_by("value", "event_time"),
    "stddev": lambda _: F.stddev_samp("value"),
    "median": lambda _: F.median("value"),
    "quantile": lambda metrics: F.percentile(F.when(_is_of(metrics, Aggregation.QUANTILE), F.col("value")), _probabilities(metrics)),
    "series": lambda metrics: F.array_sort(
        F.collect_list(F.when(_is_of(metrics, *IN_ORDER), F.struct(F.unix_micros("event_time").alias("at"), "value")))  # without nulls
    ),
    "east": lambda _: F.sum(F.sin(F.radians(F.col("value") % 360.0))),
    "north": lambda _: F.sum(F.cos(F.radians(F.col("value") % 360.0))),
}
"""Computed only where a metric asks: median, quantile and series keep every value of an open window in state."""
SHORTEST = 1e-9
"""Directions whose sum is shorter than this, per reading, cancel out: what is left of it is rounding."""


def of_groups(readings: DataFrame, groups: Sequence[Group]) -> DataFrame:
    """Return the readings that count for at least one of the groups, with all their columns."""
    if len(groups) == 1:  # compiled by Spark, which a function of an element is not
        return readings.where(F.array_contains("groups", groups[0].name) & F.col("metric").isin(*groups[0].metrics))
    return readings.where(F.expr(f"exists(groups, name -> {_counts_for(groups)})"))


def ticks(instants: DataFrame, groups: Sequence[Group]) -> DataFrame:
    """Turn instants into ticks: rows with the columns COUNTED but no device and value. They move the watermark and count nowhere.

    They carry a metric and groups, because Spark pushes what it knows of readings (such as "the metric is not null")
    below the watermark, and would keep ticks without them from ever reaching it.
    """
    return instants.select(
        F.lit(None).cast("string").alias("device_id"),
        F.lit(groups[0].metrics[0]).alias("metric"),
        F.col("event_time"),
        F.lit(None).cast("double").alias("value"),
        F.expr(f"array({_listed(group.name for group in groups)})").alias("groups"),
    )


def clock(ahead_seconds: int | None) -> Column:
    """The instant up to which a reading moves the watermark of its stream, as `clock`: no further than this beyond its arrival. None: its
    event time. What is known beforehand, such as prices of the next day, then makes no reading of today late for its group."""
    if ahead_seconds is None:
        return F.col("event_time").alias("clock")
    return F.least("event_time", F.timestamp_micros(F.unix_micros("ingested_at") + ahead_seconds * 1_000_000)).alias("clock")


def windowed(readings: DataFrame, groups: Sequence[Group], metrics: Metrics) -> DataFrame:
    """Return one row per reading, group and window, with all columns of readings.

    In a stream there is one watermark: the largest lateness of the groups.
    The watermark follows `clock`, or else the event time of readings, and a window closes once its *end* is behind it, whatever its step:
    `window_end` carries the mark that Spark's own `window` puts on its column. (With the window's start as watermark
    column, short windows would wait for the longest one.)
    """
    lateness = max(group.lateness_seconds for group in groups)
    used = {name: metrics[name] for group in groups for name in group.metrics}
    members = F.expr(f"filter(array_distinct(groups), name -> {_counts_for(groups)})")
    group = F.explode(members) if len(groups) > 1 else F.lit(groups[0].name)
    window_end = F.timestamp_seconds("end_seconds").alias("window_end", metadata={WATERMARK_DELAY_KEY: lateness * 1000})
    return (
        readings.withWatermark("clock" if "clock" in readings.columns else "event_time", f"{lateness} seconds")
        .select("*", _end_seconds(used).alias("end_seconds"))
        .select(*readings.columns, group.alias("device_group"), window_end)
    )


def aggregates(readings: DataFrame, groups: Sequence[Group], metrics: Metrics) -> DataFrame:
    """Aggregate the windows of all groups, which share one watermark; the column `device_group` tells them apart."""
    return by_window(windowed(readings, groups, metrics), groups, metrics)


def by_window(rows: DataFrame, groups: Sequence[Group], metrics: Metrics) -> DataFrame:
    """Aggregate rows that already have `device_group` and `window_end`. Types of IN_ORDER have their `series` in place of a value: see
    chains.chained."""
    used = {name: metrics[name] for group in groups for name in group.metrics}
    windows = rows.groupBy("device_group", "device_id", "metric", "window_end")
    before_end = F.unix_seconds("window_end") - by_metric({name: m.step_seconds for name, m in used.items() if m.step_seconds})
    window_start = _by_calendar(used, begin_sql, before_end)
    return windows.agg(*measures(used)).select(
        "device_group",
        "device_id",
        "metric",
        F.timestamp_seconds(window_start).alias("window_start"),
        "window_end",
        value(used).alias("value"),
        *ALWAYS,
        F.lit(None).cast("array<double>").alias("carry"),
        *({"series"} & {*kept_in_state(used)}),
    )


def _end_seconds(metrics: Metrics) -> Column:
    """Return the ends, in seconds since 1970, of the windows around `event_time`. A window holds its first instant and not its end."""
    slide = by_metric({name: m.every_seconds for name, m in metrics.items()})
    seconds = F.unix_seconds("event_time")
    first_end = _by_calendar(metrics, end_sql, seconds - F.pmod(seconds, slide) + slide)
    if all(m.slide_seconds is None for m in metrics.values()):
        return first_end
    step = by_metric({name: m.window_seconds for name, m in metrics.items()})
    return F.explode(F.sequence(first_end, first_end + step - slide, slide))


def _by_calendar(metrics: Metrics, sql: Callable[[Calendar], str], otherwise: Column) -> Column:
    """Seconds since 1970 of an instant of the metric's calendar window."""
    for calendar in {calendar for metric in metrics.values() if (calendar := metric.calendar)}:
        names = [name for name, metric in metrics.items() if metric.calendar == calendar]
        otherwise = F.when(F.col("metric").isin(names), F.expr(f"unix_seconds({sql(calendar)})")).otherwise(otherwise)
    return otherwise


def _counts_for(groups: Sequence[Group]) -> str:
    """Return SQL that says whether the group `name` is one of the groups and has the metric. As text, because a Column of 10,000 names
    takes 5 s to build."""
    return " or ".join(f"name in ({_listed(names)}) and metric in ({_listed(metrics)})" for metrics, names in by_metrics(groups).items())


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names))


def by_metrics(groups: Sequence[Group]) -> dict[tuple[str, ...], list[str]]:
    """Collect the names of groups that have the same metrics. Thousands of groups share few lists of metrics, and a test of 300 lists takes
    seven times as long as one of 3."""
    names: dict[tuple[str, ...], list[str]] = {}
    for group in groups:
        names.setdefault(group.metrics, []).append(group.name)
    return names


def measures(metrics: Metrics) -> list[Column]:
    """Return the measures of the readings of a window, under the names of ALWAYS and ON_DEMAND."""
    on_demand = [ON_DEMAND[name](metrics).alias(name) for name in kept_in_state(metrics)]
    return [*(make().alias(name) for name, make in ALWAYS.items()), *on_demand]


def value(metrics: Metrics) -> Column:
    """The one value that the metric's aggregation type makes of the measures."""
    made = F.lit(None).cast("double")
    for aggregation in {m.aggregation for m in metrics.values()}:
        make = VALUES.get(aggregation)
        of_type = F.col(aggregation.value) if make is None else make(metrics)
        made = F.when(_is_of(metrics, aggregation), of_type.cast("double")).otherwise(made)
    return made


def by_metric(values: Mapping[str, float]) -> Column:
    """A number that depends on the metric; null for others."""
    return F.expr(_by_metric(values))


def _by_metric(values: Mapping[str, float]) -> str:
    """CASE, not a join: measured faster in Spark and elsewhere."""
    if not values:
        return "cast(null as bigint)"
    cases = (f"when {quoted(name)} then {number}{'L' if isinstance(number, int) else 'D'}" for name, number in values.items())
    return f"case metric {' '.join(cases)} end"


def _is_of(metrics: Metrics, *aggregations: Aggregation) -> Column:
    return F.col("metric").isin([name for name, metric in metrics.items() if metric.aggregation in aggregations])


def _probabilities(metrics: Metrics) -> list[float]:
    """Each once: Spark keeps the values once, however many quantiles it takes of them."""
    return sorted({metric.quantile for metric in metrics.values() if metric.quantile is not None})


def _quantile(metrics: Metrics) -> Column:
    places = {name: _probabilities(metrics).index(m.quantile) for name, m in metrics.items() if m.quantile is not None}
    return F.expr(f"get(quantile, {_by_metric(places)})")


def _circular_mean(_: Metrics) -> Column:
    """Rounded to 1e-9 degrees, so that a mean of north is 0 in whatever order readings are added up, and not now and then 359.99..."""
    degrees = F.round(F.pmod(F.degrees(F.atan2("east", "north")), F.lit(360.0)), 9)
    return F.when(F.hypot("east", "north") >= SHORTEST * F.col("count"), F.pmod(degrees, F.lit(360.0)))


def quoted(text: str) -> str:
    """Write a text as a string literal of Spark's SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


VALUES: dict[Aggregation, Callable[[Metrics], Column]] = {
    Aggregation.AVERAGE: lambda _: F.col("sum") / F.col("count"),
    **dict.fromkeys(IN_ORDER, lambda _: F.lit(None)),
    Aggregation.QUANTILE: _quantile,
    Aggregation.CIRCULAR_MEAN: _circular_mean,
}
"""Functions for aggregation types whose value is no measure by itself."""
