"""Spark's own servers for BI tools and notebooks, each behind a fence of the operating system: only its inside.py runs in there."""
