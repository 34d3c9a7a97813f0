"""Data quality: runs the suites of package expectations with Great Expectations, keeps results in tables, writes a report."""
