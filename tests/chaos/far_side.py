"""The target of a sink that refuses each third row, and what is wrong with what it has: each row is delivered once, or dead once."""

import json
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestration.conf.model import Conf
from orchestration.connectors.sinks.dead_rows import DEAD_ROWS, dead_rows, row_keys
from orchestration.jobs.sinks import newest_table

NAME, DELIVERED, MENDED = "far", "delivered", "mended"
TABLE = "silver.readings"
MODULE = """
import json
from pathlib import Path

import pyarrow as pa

from orchestration.connectors.sinks.dead_rows import row_keys

HERE = Path(__file__).parent

def receive(rows, batch):
    is_third = [row["bronze_row"] % 3 == 0 and not (HERE / "mended").exists() for row in rows.to_pylist()]
    batch.refused.add(rows.filter(pa.array(is_third, pa.bool_())), "it is a third one")
    taken = rows.filter(pa.array([not third for third in is_third], pa.bool_()))
    folder = HERE / "delivered"
    folder.mkdir(exist_ok=True)
    for file in folder.glob("*.json") if batch.is_complete else ():
        file.unlink()
    draft = folder / "draft"
    draft.write_text(json.dumps(row_keys(taken, batch.key)))
    draft.rename(folder / f"{batch.number}.json")
"""


def declare(folder: Path) -> Mapping[str, Any]:
    """Write the function beside the conf that is in this folder; returns the setting of its sink."""
    module = f"far_side_{zlib.crc32(str(folder).encode()):08x}"  # one of a process's many
    (folder / f"{module}.py").write_text(MODULE)
    return {NAME: {"table": TABLE, "python": f"{module}:receive"}}


def wrong(conf: Conf) -> list[str]:
    """Rows of the newest snapshot that are neither delivered nor dead, or are both; notes that came twice."""
    pinned = newest_table(conf, NAME)
    assert pinned is not None
    keys = {key for rows in pinned.rows(None) for key in row_keys(rows, pinned.key)}
    files = (conf.folder.parent / DELIVERED).glob("*.json")
    counts = Counter(key for file in files for key in json.loads(file.read_text())) + Counter([*dead_rows(conf.lake, NAME)])
    notes = Counter((row.row_key, row.batch, row.state) for row in DEAD_ROWS.rows(conf.lake))
    odd = [f"{key} is there {counts[key]} times" for key in sorted(keys | counts.keys()) if counts[key] != (key in keys)]
    return odd + [f"{note} is noted {count} times" for note, count in notes.items() if count > 1]
