"""Spark's Thrift and Connect servers for BI tools and notebooks. Each runs in a sandbox of the operating system, in `inside.py`."""
