"""Silver tables, as Spark's DDL: what they are made of and checked against."""

KEYS = ["device_id", "metric", "event_time"]
READING_COLUMNS = [
    *("device_id", "metric", "event_time", "value", "unit", "aggregation", "step_seconds", "zone", "groups", "attributes"),
    *("source", "ingested_at", "bronze_batch", "bronze_row", "part", "parts"),
]
"""In the order of READINGS."""

READINGS = """
  device_id STRING COMMENT 'as the source names it',
  metric STRING COMMENT 'name in conf/metrics.yml',
  event_time TIMESTAMP COMMENT 'when it was measured, UTC',
  value DOUBLE COMMENT 'finite, in the unit of the metric',
  unit STRING COMMENT 'unit that the metric declares; null where it declares none',
  aggregation STRING COMMENT 'aggregation type of the metric; null where the metric is unknown',
  step_seconds INT COMMENT 'coarse grain step of the metric; null where the metric is unknown',
  zone STRING COMMENT 'from the event, else from the device registry; null where neither knows',
  groups ARRAY<STRING> COMMENT 'device groups of the device when the event was ingested; may be empty',
  attributes MAP<STRING,STRING> COMMENT 'texts of the event that the source declares, by name; null where it declares none',
  source STRING COMMENT 'name of the source in conf/sources.yml',
  ingested_at TIMESTAMP COMMENT 'from the event, UTC',
  bronze_batch BIGINT COMMENT 'lineage: identity of the event',
  bronze_row BIGINT COMMENT 'lineage: identity of the event',
  part INT COMMENT 'lineage: which measurement of the event, from 0',
  parts INT COMMENT 'measurements that the event holds, good or bad; null where that is not counted'
"""
"""Grain: one accepted measurement. Key: bronze_batch, bronze_row, part; within the lateness also device_id, metric, event_time."""

QUARANTINE = """
  broken_rules ARRAY<STRING> COMMENT 'names of every rule that the row breaks, never empty',
  payload BINARY COMMENT 'the whole message as it came, byte for byte',
  header STRING COMMENT 'from the event',
  device_id STRING COMMENT 'as far as it could be read',
  metric STRING COMMENT 'as far as it could be read',
  event_time TIMESTAMP COMMENT 'as far as it could be read, UTC',
  value DOUBLE COMMENT 'as far as it could be read, in the unit of the metric',
  source STRING COMMENT 'from the event',
  position STRING COMMENT 'from the event',
  received_at TIMESTAMP COMMENT 'from the event, UTC',
  ingested_at TIMESTAMP COMMENT 'from the event, UTC',
  bronze_batch BIGINT COMMENT 'lineage: identity of the event',
  bronze_row BIGINT COMMENT 'lineage: identity of the event',
  part INT COMMENT 'lineage: which measurement of the event; 0 where the event could not be read',
  parts INT COMMENT 'measurements that the event holds, good or bad; null where that is not counted'
"""
"""Grain: one measurement (or one unreadable event) that breaks a rule. Key: bronze_batch, bronze_row, part."""

LATE = f"""{READINGS},
  cause STRING COMMENT 'late: behind the watermark when it came; retried: in quarantine until a retry found it good',
  retry BIGINT COMMENT 'number of the retry that re-admitted it from quarantine; null where none did'
"""
"""Grain: one accepted measurement that no reading has the key of: it came behind the watermark, or was in quarantine.

Key: as of READINGS.
"""

DUPLICATES = """
  device_id STRING COMMENT 'as the source names it',
  metric STRING COMMENT 'name in conf/metrics.yml',
  event_time TIMESTAMP COMMENT 'when it was measured, UTC',
  value DOUBLE COMMENT 'in the unit of the metric; may differ from the kept one',
  source STRING COMMENT 'name of the source in conf/sources.yml',
  ingested_at TIMESTAMP COMMENT 'from the event, UTC',
  bronze_batch BIGINT COMMENT 'lineage: identity of the event',
  bronze_row BIGINT COMMENT 'lineage: identity of the event',
  part INT COMMENT 'lineage: which measurement of the event, from 0',
  parts INT COMMENT 'measurements that the event holds, good or bad; null where that is not counted',
  kept_batch BIGINT COMMENT 'identity of the measurement that was kept, in silver.readings or silver.late',
  kept_row BIGINT COMMENT 'identity of the measurement that was kept',
  kept_part INT COMMENT 'identity of the measurement that was kept',
  is_conflict BOOLEAN COMMENT 'whether its value differs from the kept one',
  retry BIGINT COMMENT 'number of the retry that re-admitted it from quarantine; null where none did'
"""
"""Grain: one accepted measurement whose device, metric and event time another one had before. Key: bronze_batch, bronze_row, part."""

DEVICES = """
  device_id STRING COMMENT 'as the source names it',
  zone STRING COMMENT 'where it is; may be null',
  groups ARRAY<STRING> COMMENT 'device groups it belongs to; may be empty',
  label STRING COMMENT 'for people; may be null',
  is_known BOOLEAN COMMENT 'false: from registered_at on the device is unknown again',
  origin STRING COMMENT 'conf, or the file that was loaded',
  registered_at TIMESTAMP COMMENT 'counts for events ingested from this instant on, UTC'
"""
"""The device registry. Grain: one version of one device. Key: device_id, registered_at. Append only."""
