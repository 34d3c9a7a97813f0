"""How the readings of one window become its value: what state keeps of them, and what the aggregation type of the metric makes of that."""

from collections.abc import Callable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from gold.literal import quoted
from silver.aggregation import Aggregation
from silver.spec import Metric

ALWAYS: dict[str, Callable[[], Column]] = {
    "count": lambda: F.count("value"),
    "min": lambda: F.min("value"),
    "max": lambda: F.max("value"),
    "sum": lambda: F.sum("value"),
    "latest": lambda: F.max_by("value", "event_time"),
}
IN_ORDER = (Aggregation.TIME_WEIGHTED_AVERAGE, Aggregation.COUNTER_INCREASE)
Metrics = Mapping[str, Metric]
ON_DEMAND: dict[str, Callable[[Metrics], Column]] = {
    "first": lambda _: F.min_by("value", "event_time"),
    "stddev": lambda _: F.stddev_samp("value"),
    "median": lambda _: F.median("value"),
    "quantile": lambda metrics: F.percentile(F.when(_is_of(metrics, Aggregation.QUANTILE), F.col("value")), _probabilities(metrics)),
    "readings": lambda metrics: F.array_sort(
        F.collect_list(F.when(_is_of(metrics, *IN_ORDER), F.struct("event_time", "value")))  # without nulls
    ),
    "east": lambda _: F.sum(F.sin(F.radians(F.col("value") % 360.0))),
    "north": lambda _: F.sum(F.cos(F.radians(F.col("value") % 360.0))),
}
"""Computed only where a metric asks: median, quantile and readings keep every value of an open window in state."""
NEEDS = {
    **{Aggregation(name): (name,) for name in ("first", "stddev", "median", "quantile")},
    **dict.fromkeys(IN_ORDER, ("readings",)),
    Aggregation.CIRCULAR_MEAN: ("east", "north"),
}
"""Measures of ON_DEMAND, by aggregation type."""
SHORTEST = 1e-9
"""Directions whose sum is shorter than this, per reading, cancel out: what is left of it is rounding."""
HELD = "unix_micros(coalesce(get(readings, i + 1).event_time, window_end)) - unix_micros(reading.event_time)"
"""Microseconds from the i-th reading to the next one, or to the end of the window."""
TIME_WEIGHTED = f"""
  aggregate(transform(readings, (reading, i) -> reading.value * ({HELD})), 0D, (total, part) -> total + part)
    / (unix_micros(window_end) - unix_micros(get(readings, 0).event_time))
"""
WITHOUT_GLITCHES = """
  filter(readings, (reading, i) -> not coalesce(reading.value = 0 and get(readings, i - 1).value <= get(readings, i + 1).value, false))
"""
INCREASE = """
  aggregate({readings}, named_struct('last', cast(null as double), 'total', 0D),
    (sofar, reading) -> named_struct('last', reading.value, 'total', sofar.total + case
      when sofar.last is null then 0D
      when reading.value >= sofar.last then reading.value - sofar.last
      when sofar.last between {width} / 2 and {width} and reading.value >= 0 and reading.value < {width} / 2
        then {width} - sofar.last + reading.value
      else greatest(reading.value, 0D) end),
    sofar -> sofar.total)
"""


def kept_in_state(metrics: Metrics) -> list[str]:
    """Names of ON_DEMAND that the metrics ask for."""
    return sorted({name for metric in metrics.values() for name in NEEDS.get(metric.aggregation, ())})


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
    """A number that depends on the metric."""
    return F.expr(_by_metric(values))


def _by_metric(values: Mapping[str, float]) -> str:
    """CASE, not a join: measured faster in Spark and elsewhere."""
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


def _increase(metrics: Metrics) -> Column:
    """Null for a width: the metric declares none, so that no fall is a wrap."""
    widths = {name: float(metric.wraps_at) for name, metric in metrics.items() if metric.wraps_at is not None}
    width = f"({_by_metric(widths)})" if widths else "cast(null as double)"
    return F.expr(INCREASE.format(readings=WITHOUT_GLITCHES, width=width))


def _circular_mean(_: Metrics) -> Column:
    """Rounded to 1e-9 degrees, so that a mean of north is 0 in whatever order readings are added up, and not now and then 359.99..."""
    degrees = F.round(F.pmod(F.degrees(F.atan2("east", "north")), F.lit(360.0)), 9)
    return F.when(F.hypot("east", "north") >= SHORTEST * F.col("count"), F.pmod(degrees, F.lit(360.0)))


VALUES: dict[Aggregation, Callable[[Metrics], Column]] = {
    Aggregation.AVERAGE: lambda _: F.col("sum") / F.col("count"),
    Aggregation.TIME_WEIGHTED_AVERAGE: lambda _: F.expr(TIME_WEIGHTED),
    Aggregation.COUNTER_INCREASE: _increase,
    Aggregation.QUANTILE: _quantile,
    Aggregation.CIRCULAR_MEAN: _circular_mean,
}
"""Functions for aggregation types whose value is no measure by itself."""
