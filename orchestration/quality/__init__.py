"""Are the tables as they should be: suites of package expectations, run by Great Expectations, kept in a table, told on a page."""
