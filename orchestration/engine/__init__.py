"""Spark, its session, its jars and its Java."""
