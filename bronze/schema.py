"""Bronze tables, as Spark's DDL: what they are made of and checked against."""

EVENTS = """
  payload BINARY COMMENT 'the message as it came, byte for byte, without its line end',
  header STRING COMMENT 'first line of the file it came in, where the source has headers; else null',
  source STRING COMMENT 'name of the source in conf/sources.yml',
  position STRING COMMENT 'where in the source: path below the landing folder, topic/partition/offset, request or topic and number',
  received_at TIMESTAMP COMMENT 'when the source had it, UTC: time of the file, of the message at the broker, when a pushed event came',
  key BINARY COMMENT 'key of the message, null where it has none',
  headers ARRAY<STRUCT<key:STRING,value:BINARY>> COMMENT 'headers of the message as they came, null where the source has none',
  ingested_at TIMESTAMP COMMENT 'when its bronze batch began, UTC',
  ingested_on DATE COMMENT 'day of ingested_at',
  bronze_batch BIGINT COMMENT 'ever increasing, in the order of commits',
  bronze_row BIGINT COMMENT 'unique within bronze_batch; with it the identity of the event for ever'
"""
"""Grain: one message received. Key: bronze_batch, bronze_row. Append only."""

EVENTS_PARTITION = "ingested_on"
