"""`tidemark sinks` lists and resets, without asking a sink and without a secret."""

import csv
import io
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from orchestration.conf.load import load
from orchestration.connectors.sinks.dead_rows import DEAD_ROWS, DeadRow
from orchestration.connectors.sinks.sink_states import Request, requested
from orchestration.storage.marts import MARTS, Build
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS
from orchestration.storage.tables import LakeStore
from tests.commands import Tidemark

DEFAULT = Path(__file__).parents[3] / "conf"
SINKS = (
    "sinks: {w: {table: silver.readings, postgres: {dsn: '${env:ABSENT}', table: public.r}}, e: {table: marts.daily, files: {path: ./x}}}"
)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    shutil.copytree(DEFAULT, tmp_path / "conf", ignore=shutil.ignore_patterns("__pycache__"))
    pipeline = tmp_path / "conf" / "pipeline.yml"
    pipeline.write_text(pipeline.read_text().replace("sinks: {}", SINKS))
    return str(tmp_path / "conf")


def test_each_sink_is_a_line_before_anything_was_sent(folder: str, tidemark: Tidemark) -> None:
    said = tidemark("--conf", folder, "sinks", "--format", "csv")
    rows = csv.DictReader(io.StringIO(said.out))
    assert [(row["sink"], row["table"], row["target"], row["snapshot"], row["rows_behind"]) for row in rows] == [
        ("w", "silver.readings", "postgres public.r", "", ""),
        ("e", "marts.daily", "parquet files ./x", "", ""),
    ]


def test_a_reset_is_kept_until_somebody_sends(folder: str, tidemark: Tidemark) -> None:
    lake = load(Path(folder)).lake
    assert tidemark("--conf", folder, "sinks", "reset", "w").code == 0
    assert (requested(lake, "w", Request.RESET) is not None, requested(lake, "e", Request.RESET)) == (True, None)
    said = tidemark("--conf", folder, "sinks", "reset", "v")
    assert (said.code, "there is no sink v; pipeline.yml declares w, e" in said.err) == (2, True)


def test_dead_rows_are_sent_again_by_command_and_it_says_how_many(folder: str, tidemark: Tidemark) -> None:
    lake = load(Path(folder)).lake
    assert (said := tidemark("--conf", folder, "sinks", "resend", "w")).code == 0
    assert (said.err, requested(lake, "w", Request.RESEND)) == ("sink w has refused no row\n", None)
    DEAD_ROWS.append(lake, [DeadRow("w", "silver.readings", "1", "odd", "dead", 0, "1", datetime.now(UTC))])
    said = tidemark("--conf", folder, "sinks", "resend", "w")
    assert (said.code, said.err) == (0, "sink w gets 1 row again at the next step of `tidemark run`\n")
    assert requested(lake, "w", Request.RESEND) is not None


def test_a_mart_with_a_type_that_its_sink_cannot_hold_is_refused_by_check(folder: str, tidemark: Tidemark) -> None:
    pipeline = Path(folder) / "pipeline.yml"
    pipeline.write_text(pipeline.read_text().replace("files: {path: ./x}", "files: {path: ./x, format: csv}"))
    assert tidemark("--conf", folder, "check").code == 0
    conf = load(Path(folder))
    lake, generation = conf.lake, LakeStore(conf).generation.generation
    write_deltalake(lake.local / "marts" / "daily", pa.table({"payload": [b"a"]}))
    MARTS.append(lake, [Build(1, datetime.now(UTC), 0, 1, {"marts.daily": 0})])
    SNAPSHOTS.append(lake, [Snapshot(0, datetime.now(UTC), generation, 0, {}, {})])
    said = tidemark("--conf", folder, "check")
    assert (said.code, "sink e: column payload of marts.daily is binary, which CSV cannot hold" in said.out) == (1, True)
