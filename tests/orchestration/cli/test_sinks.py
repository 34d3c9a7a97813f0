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
from orchestration.conf.model import Conf
from orchestration.connectors.sinks.dead_rows import DEAD_ROWS, DeadRow
from orchestration.connectors.sinks.sink_states import Request, SinkState, requested, write_state
from orchestration.jobs.sinks import newest_table
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
    build(conf, 0, payload=b"a")
    said = tidemark("--conf", folder, "check")
    assert (said.code, "sink e: column payload of marts.daily is binary, which CSV cannot hold" in said.out) == (1, True)


def build(conf: Conf, version: int, **cells: object) -> None:
    """A mart of one row, as `tidemark dbt build` leaves it."""
    table = pa.table({name: [cell] for name, cell in cells.items()})
    write_deltalake(conf.lake.local / "marts" / "daily", table, mode="overwrite", schema_mode="overwrite")
    MARTS.append(conf.lake, [Build(version + 1, datetime.now(UTC), 0, 1, {"marts.daily": version})])
    if version == 0:
        SNAPSHOTS.append(conf.lake, [Snapshot(0, datetime.now(UTC), LakeStore(conf).generation.generation, 0, {}, {})])


def test_a_new_column_that_readers_of_avro_need_another_schema_for_is_said_by_check(folder: str, tidemark: Tidemark) -> None:
    pipeline = Path(folder) / "pipeline.yml"
    topic = "kafka: {servers: 'broker:9092', topic: daily, key: [day], format: avro}"
    pipeline.write_text(pipeline.read_text().replace("files: {path: ./x}", topic))
    conf = load(Path(folder))
    build(conf, 0, day=1)
    sent = newest_table(conf, "e")
    assert sent is not None
    write_state(conf.lake, "e", SinkState(conf.sinks["e"].target, sent.position))
    build(conf, 1, day=1, grade="a")
    said = tidemark("--conf", folder, "check")
    assert (said.code, "sink e: the new column grade makes another schema of Avro, which readers need\n" in said.out) == (0, True)
