"""`tidemark sinks` lists and resets, without asking a sink and without a secret."""

import csv
import io
import shutil
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.connectors.sinks.sink_states import requested_reset
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
    assert (requested_reset(lake, "w") is not None, requested_reset(lake, "e")) == (True, None)
    said = tidemark("--conf", folder, "sinks", "reset", "v")
    assert (said.code, "there is no sink v; pipeline.yml declares w, e" in said.err) == (2, True)
