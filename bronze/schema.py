"""Bronze tables, as Spark's DDL: what they are made of and checked against."""

EVENTS = """
  payload BINARY COMMENT 'the message as it came, byte for byte, without its line end',
  header STRING COMMENT 'first line of the file it came in, where the source has headers; else null',
  source STRING COMMENT 'name of the source in conf/sources.yml',
  position STRING COMMENT 'where in the source: the path of the file below the landing folder',
  received_at TIMESTAMP COMMENT 'when the source had it: modification time of the file, UTC',
  ingested_at TIMESTAMP COMMENT 'start of the micro-batch that read it, UTC',
  ingested_on DATE COMMENT 'day of ingested_at',
  bronze_batch BIGINT COMMENT 'ever increasing over the life of the table, also when a checkpoint is replaced',
  bronze_row BIGINT COMMENT 'unique within bronze_batch; with it the identity of the event for ever'
"""
"""Grain: one message received. Key: bronze_batch, bronze_row. Append only."""

EVENTS_PARTITION = "ingested_on"
