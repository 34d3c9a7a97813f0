"""Gold tables, as DDL; each device group has one of each: gold.<group>_aggregates, gold.<group>_vectors and gold.<group>_late."""

AGGREGATES = """
  device_id STRING COMMENT 'as the source names it',
  metric STRING COMMENT 'name in conf/metrics.yml',
  window_start TIMESTAMP COMMENT 'first instant of the window, UTC',
  window_end TIMESTAMP COMMENT 'first instant after the window, UTC',
  value DOUBLE COMMENT 'by the aggregation type of the metric, in its unit (count: a number); null for stddev of one reading',
  count BIGINT COMMENT 'readings in the window',
  min DOUBLE COMMENT 'least value',
  max DOUBLE COMMENT 'greatest value',
  sum DOUBLE COMMENT 'sum of values',
  latest DOUBLE COMMENT 'value with the latest event time',
  revision INT COMMENT '0 as first emitted; higher where late rows were folded in',
  gold_batch BIGINT COMMENT 'micro-batch that emitted the row, or the newest one when it was amended'
"""
"""Grain: one closed window of one metric of one device, per revision. Key: device_id, metric, window_start, revision. Append only."""

VECTORS = """
  entity STRING COMMENT 'a device, or the group itself',
  window_start TIMESTAMP COMMENT 'first instant of the window, UTC',
  window_end TIMESTAMP COMMENT 'first instant after the window, UTC',
  vector ARRAY<DOUBLE> COMMENT 'values of the features in declared order; null where missing',
  missing ARRAY<STRING> COMMENT 'features without a value',
  filled ARRAY<STRING> COMMENT 'features carried forward from an earlier window',
  revision INT COMMENT '0 as first emitted; higher where late rows were folded in',
  gold_batch BIGINT COMMENT 'micro-batch that emitted the row, or the newest one when it was amended'
"""
"""Grain: one entity at one closed window, per revision. Key: entity, window_start, revision. Append only."""

LATE = """
  device_id STRING COMMENT 'as the source names it',
  metric STRING COMMENT 'name in conf/metrics.yml',
  event_time TIMESTAMP COMMENT 'when it was measured, UTC',
  value DOUBLE COMMENT 'in the unit of the metric',
  window_end TIMESTAMP COMMENT 'first instant after the window, UTC',
  bronze_batch BIGINT COMMENT 'lineage: identity of the event',
  bronze_row BIGINT COMMENT 'lineage: identity of the event',
  part INT COMMENT 'lineage: which measurement of the event, from 0',
  gold_batch BIGINT COMMENT 'micro-batch that found the window closed'
"""
"""Grain: one reading of silver.readings and one window of it that was closed for the group when it came. Append only."""

WINDOW_KEY = ("device_id", "metric", "window_end")
"""Of a row of gold.<group>_aggregates, beside its revision."""
VECTOR_KEY = ("entity", "window_end")
"""Of a row of gold.<group>_vectors, beside its revision."""
