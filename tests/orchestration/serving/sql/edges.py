"""`ops.edges`: a table with every type of column, and values at the edges of each."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from orchestration.conf.model import Conf
from tests.lakes import conf
from tests.rows import at

NAN, INFINITY = float("nan"), float("inf")
COLUMNS = (
    ("i", pa.int32()),
    ("l", pa.int64()),
    ("m", pa.int64()),
    ("d", pa.float64()),
    ("e", pa.float64()),
    ("s", pa.string()),
    ("r", pa.string()),
    ("a", pa.list_(pa.float64())),
    ("g", pa.list_(pa.string())),
    ("b", pa.binary()),
    ("v", pa.map_(pa.string(), pa.int64())),
    ("t", pa.timestamp("us", "UTC")),
    ("u", pa.timestamp("us", "UTC")),
    ("y", pa.date32()),
    ("f", pa.bool_()),
    ("id", pa.int32()),
)
# fmt: off
EDGES: list[tuple[Any, ...]] = [
    (7, 70, 3, 1.5, 2.0, "Oven", "v", [1.0, None, 2.0], ["a", "b"], b"abc", [("k", 1)], at("2026-01-31T23:59:59.5"),
     at("2026-02-01"), at("2026-01-31").date(), True, 1),
    (-7, -70, 3, -1.5, -0.0, "oven_1", "_", [], [], b"", [], at("1969-12-31T23:30:00.000001"), at("1970-01-01"),
     at("1969-12-31").date(), False, 2),
    (7, 7, -3, NAN, 1.0, "", "", [NAN], ["a"], b"\xff", [("k", None), ("j", 2)], at("2000-02-29"), at("1999-12-31T23:59:59.999999"),
     at("2000-02-29").date(), None, 3),
    (0, 0, 5, INFINITY, -INFINITY, "50%", "%", [None], ["b", None], None, [("j", 7)], at("2026-10-25T00:30:00"), at("2026-10-26"),
     at("2026-12-31").date(), True, 4),
    (*[None] * 15, 5),
    (2, 2, 1, 2.5, NAN, "ü ß\n", "ß", [3.0, 1.0], ["A"], "ü".encode(), [("k", 9)], at("1900-01-01T00:00:00.1"), at("1899-01-01"),
     at("1900-01-01").date(), False, 6),
    (-1, -1, 2, -2.5, 0.5, " x ", "x", [INFINITY, -0.0], ["b", "a"], b"x", [("k", -1)], at("2026-03-29T01:00:00"),
     at("2026-03-29T01:00:00.001"), at("2026-03-29").date(), False, 7),
    (9, 9, 4, 0.125, 3.0, "a\\b'c", "b'", [0.1, 0.1], ["a", "a"], b"\n", [("K", 3)], at("2026-12-31"), at("2025-12-29"),
     at("2025-12-29").date(), None, 8),
    (7, 7, 3, 0.0, 0.0, "Oven", "n", [1.0], ["a", "b"], b"abc", [("k", 1)], at("2026-01-05T12:34:56.789012"),
     at("2026-01-05T12:00:00"), at("2026-01-05").date(), True, 9),
    (3, 4_000_000_000, 2, -0.3, 2.675, "Ärger İSTANBUL", "r", [2.0, 3.0, None], [], b"abd", [], at("2026-01-04T23:00:00"),
     at("2026-01-05T01:00:00"), at("2026-01-04").date(), True, 10),
]
# fmt: on


def edges(folder: Path) -> Conf:
    """Only `ops.edges`, without a snapshot."""
    made = conf(folder)
    names = [name for name, _ in COLUMNS]
    rows = [dict(zip(names, row, strict=True)) for row in EDGES]
    write_deltalake(made.lake.local / "ops" / "edges", pa.Table.from_pylist(rows, pa.schema(COLUMNS)))
    return made
