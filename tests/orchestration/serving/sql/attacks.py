"""Queries for DuckDB that try more than to ask: each has to end in a sentence that tells no secret and no path, and to change nothing.

`{file}` is a text that must not be read, `{hidden}` a Parquet file below the lake that no snapshot shows, `{table}` a file of a table,
`{stem}` the same without its suffix, `{lake}` the folder of the lake, `{out}` a path that must not come to be.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from orchestration.conf.model import Conf
from tests.orchestration.serving.sql.plant import plant

SECRET = "the-secret-of-the-host"
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


def listed(file: Path) -> list[str]:
    """Attacks of a file, one a line; a line that begins with spaces goes on with the one before."""
    lines = file.read_text(encoding="utf-8").strip().split("\n")
    return re.split(r"\n(?! )", "\n".join(line for line in lines if not line.startswith("## ")))


ATTACKS = (*listed(Path(__file__).with_suffix(".sql")), *GIANT)


def attacked(folder: Path) -> Conf:
    """A lake, with a secret beside it, and one in a file of a table that no snapshot shows."""
    made = plant(folder)
    (folder / "secret.txt").write_text(SECRET + "\n")
    pq.write_table(pa.table({"secret": [SECRET]}), folder / "lake" / "silver" / "readings" / "hidden.parquet")
    return made


def aimed(query: str, folder: Path) -> str:
    """An attack, at files of this test."""
    readings = folder / "lake" / "silver" / "readings"
    table = next(readings.glob("part-*.parquet"))
    places = {"file": folder / "secret.txt", "hidden": readings / "hidden.parquet", "table": table, "stem": table.with_suffix("")}
    for name, path in (places | {"lake": folder / "lake", "out": folder / "out"}).items():
        query = query.replace(f"{{{name}}}", str(path))
    return query


def files(folder: Path) -> Mapping[str, str]:
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.rglob("*")) if file.is_file()}


def tells(answer: str, query: str, folder: Path) -> bool:
    """Whether it tells the secret, or a path that the query has not."""
    paths = (str(Path.home()), str(folder), "part-0000")
    return SECRET in answer or any(path in answer for path in paths if path not in query)
