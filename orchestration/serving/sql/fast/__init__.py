"""The fast engine: Spark's SQL answered by DataFusion, without a JVM."""
