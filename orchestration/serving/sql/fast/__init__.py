"""The fast engine: Spark's SQL answered by DuckDB, without a JVM."""
