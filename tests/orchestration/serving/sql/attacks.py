"""Queries for DuckDB that try more than to ask: each has to end in a sentence that tells no secret and no path, and to change nothing.

`{file}` is a text that must not be read, `{hidden}` a Parquet file below the lake that no snapshot shows, `{table}` a file of a table,
`{stem}` the same without its suffix, `{lake}` the folder of the lake, `{out}` a path that must not come to be.
"""

import re
from pathlib import Path

GIANT = (
    "",
    "   ",
    "select " + "+".join(["1"] * 20_000),
    "select " + "(" * 5_000 + "1" + ")" * 5_000,
    "select " + "[" * 20_000 + "]" * 20_000,
    "select " + ", ".join(["'" + "x" * 100 + "'"] * 10_000),
    "select " + "case when true then " * 2_000 + "1" + " end" * 2_000,
    "select " + "abs(" * 3_000 + "1" + ")" * 3_000,
    "select " + "not " * 16_000 + "true",
    "select * from " + "(select * from " * 1_000 + "silver.readings" + ")" * 1_000,
    "select '" + "x" * 70_000 + "'",
    "select 1 \x00; drop view silver.readings",
    "select \ud800 from silver.readings",
)
LINES = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8").strip().split("\n")
ATTACKS = (*re.split(r"\n(?! )", "\n".join(line for line in LINES if not line.startswith("## "))), *GIANT)
