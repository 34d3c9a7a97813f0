"""Commands on the pages do what the pages say: each block of shell is run as it is printed, on a small lake. Without Spark."""

import io
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake

from orchestration.alerts.notifications import DEAD_LETTERS, NOTIFICATIONS, Notification
from orchestration.alerts.records import SILENCES, NotedSilence
from orchestration.cli.app import exit_code
from orchestration.conf.load import load
from orchestration.connectors.sinks.dead_rows import DEAD_ROWS
from orchestration.quality.failed_rows import FAILED_ROW_SCHEMA, FAILED_ROWS
from orchestration.storage.gate_state import RELEASES, Release
from orchestration.storage.log import Log
from orchestration.storage.ops_tables import LEDGER, LEDGER_SCHEMA, RUNS, RunOfJob
from orchestration.storage.references import ReferenceTables
from orchestration.storage.registry import sync
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS
from orchestration.storage.tables import LakeStore
from tests.collectors import collecting
from tests.lakes import event, write
from tests.rows import at
from tests.test_blocks import take_yaml
from tests.test_readme import BLOCK, PAGES, ROOT, TEXT, blocks

BLOCKS = [
    pytest.param(page, content, id=f"{page}-{n}")
    for page in PAGES
    for n, (kind, _, content) in enumerate(BLOCK.findall(TEXT[page]))
    if kind in ("sh", "bash")
]
ELSEWHERE = {
    r"(\.venv/bin/)?python -m |make ": "by hand: the tests and benchmarks themselves",
    r"tidemark --conf room/conf ": "tests/orchestration/test_walk_through.py",
    r"tidemark up|tidemark (down|logs)": "tests/orchestration/service",
    r"tidemark run|tidemark (replay|generations|rollback)|tidemark simulate": "tests/orchestration/supervisor",
    r"tidemark (ledger|verify|quality)": "tests/orchestration/audit, tests/orchestration/quality",
    r"tidemark evaluate kitchen|tidemark plot kitchen --anomalies": "tests/orchestration/audit, tests/orchestration/serving",
    r"tidemark (train|models)": "tests/orchestration/jobs",
    r"tidemark quarantine retry|tidemark maintain": "tests/orchestration/jobs",
    r"tidemark lake copy": "tests/orchestration/storage/test_lake_copy.py",
    r"tidemark backfill": "tests/orchestration/jobs/test_backfill.py",
    r"tidemark dbt": "tests/orchestration/serving/dbt",
    r'tidemark sql "select device_id, longest_gap_hours': "tests/orchestration/serving/dbt: of marts",
    r"(\.venv/bin/)?tidemark (sql-server|serve|sql --server)|psql ": "tests/orchestration/serving, tests/orchestration/web",
    r"tidemark (collect|alerts (ack|watch|resend)|sinks)": "tests/orchestration/connectors, tests/orchestration/alerts",
    r"tidemark doctor|tidemark init": "tests/orchestration/cli, tests/orchestration/conf/test_init.py",
    r"tidemark preview --source hall": "tests/orchestration/cli/test_preview.py",
    r"curl |echo '\{": "the other test of this file",
    r"kafka-topics.sh|kubectl |spark-submit|jars=|echo 'from orchestration": "programs of others",
}
"""Beginnings of lines that are run elsewhere, and where."""
CONF = """
--- flows
flows:
  commands: {join: {left: door_open, right: power, until_seconds: 30, keep: left}}
  oven_state: {states: {metric: temperature, initial: cold, transitions: [{from: cold, to: heating, when: value > 50}]}}
--- alerts
alerts: {oven_too_hot: {reading: temperature, when: value > 280}}
channels: {shift: {webhook: {url: "http://127.0.0.1:1/"}}}
"""
REFERENCES = "references: {customers: {path: ./reference/customers.csv, device_id: serial, attributes: [customer, contract]}}\n"
NOON, LATER = at("2026-01-05T12:00:00"), at("2026-01-05T18:00:00")
EVENT = {"source": "plant", "ingested_at": NOON, "bronze_batch": 0, "bronze_row": 0, "part": 0, "parts": 1}
READING = EVENT | {"device_id": "oven-01", "metric": "temperature", "event_time": NOON, "value": 300.0, "groups": ["kitchen"]}
WINDOW = {"revision": 1, "gold_batch": 0, "window_start": NOON, "window_end": NOON + timedelta(minutes=10)}
ROWS: dict[str, list[dict[str, Any]]] = {
    "bronze.events": [EVENT | {"payload": b"{}", "position": "1.jsonl"}],
    "silver.readings": [READING, READING | {"event_time": LATER, "value": 200.0, "bronze_row": 1}],
    "silver.late": [READING | {"cause": "retried", "retry": 0}],
    "silver.duplicates": [READING | {"kept_batch": 0, "kept_row": 0, "kept_part": 0, "is_conflict": True, "value": 301.0}],
    "silver.quarantine": [READING | {"broken_rules": ["value_is_in_range"], "payload": b"{}", "position": "1.jsonl"}],
    "gold.kitchen_aggregates": [WINDOW | {"device_id": "oven-01", "metric": "temperature", "value": 300.0, "count": 1}],
    "gold.kitchen_vectors": [WINDOW | {"entity": "oven-01", "vector": [300.0, 40.0, 9.0, 0.0], "missing": [], "filled": []}],
    "gold.kitchen_anomalies": [WINDOW | {"entity": "oven-01", "score": 3.1, "is_anomaly": True, "reason": "temperature 300"}],
    "gold.pairs": [{"flow": "commands", "left_device": "oven-01", "left_time": NOON}],
    "gold.states": [{"flow": "oven_state", "device_id": "oven-01", "changed_at": NOON, "state": "heating", "previous": "cold"}],
    "gold.alerts": [{"alert": "oven_too_hot", "entity": "oven-01", "alert_id": "3f2a9c" + "0" * 26, "state": "firing", "changed_at": NOON}],
}
RECORDS: list[tuple[Log[Any], Any]] = [
    *((SNAPSHOTS, Snapshot(n, NOON, 1, 0, {name.replace("kitchen_", ""): 0 for name in ROWS}, {"kitchen": LATER})) for n in (0, 7)),
    (RUNS, RunOfJob("every_night", NOON, NOON, 1.0, "done")),
    (RELEASES, Release("silver.readings", "id", 12, -1, "why", "kim@host", NOON, ())),
    (NOTIFICATIONS, Notification("id", "shift", "dead", None, 9, NOON, "oven_too_hot", "firing", "critical", "hot", ("oven-01",), ())),
    (SILENCES, NotedSilence("9c1e44d0", "*", "*", NOON, at("2099-01-01"), author="kim", reason="", noted_at=NOON)),
]


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default conf with a flow, an alert, a channel and a reference; a row in each table that a page asks; files that pages name."""
    folder = tmp_path_factory.mktemp("printed")
    shutil.copytree(ROOT / "conf", folder / "conf", ignore=shutil.ignore_patterns("*.py", "*.md", "*.lock"))
    for name, text in re.findall(r"^--- (\w+)\n(.*?)(?=^---|\Z)", CONF, re.MULTILINE | re.DOTALL):
        (folder / f"conf/{name}.yml").write_text(text)
    with (folder / "conf/pipeline.yml").open("a") as file:
        file.write(REFERENCES)
    files = {
        "reference/customers.csv": "serial,customer,contract\noven-01,Ada,C-7\n",
        "landing/oven-01.csv": event("oven-01", "temperature", 181.2, NOON) + "\n",
        "plant.csv": "device_id,groups\noven-09,kitchen\n",
        "questions.sql": "select count(*) as n from bronze.events; select 1 as one",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    conf = load(folder / "conf")
    sync(conf.lake, conf.devices, NOON)
    ReferenceTables(conf).begin(NOON)
    store = LakeStore(conf)
    for name, rows in ROWS.items():
        write(store, name, *rows)
    for log, record in RECORDS:
        log.append(conf.lake, [record])
    for name, schema in (
        (FAILED_ROWS, FAILED_ROW_SCHEMA),
        (LEDGER, LEDGER_SCHEMA),
        *((log.table, log.schema) for log in (DEAD_LETTERS, DEAD_ROWS)),
    ):
        write_deltalake(store.table_path(name).local, schema.empty_table())
    return folder


def steps(block: str) -> Iterator[str]:
    """Lines of a block; what belongs together by a backslash or as a text behind `<<'END'` is one."""
    yield from (match[0].rstrip("\n") for match in re.finditer(r"(?:.*<<'END'\n(?:.*\n)*?END\n|(?:.*\\\n)*.*\n)", block))


@pytest.mark.parametrize(("page", "block"), BLOCKS)
def test_a_block_of_shell_is_run_as_it_is_printed(
    page: str, block: str, plant: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(plant)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    for step in steps(block):
        if any(re.match(beginning, step) for beginning in ELSEWHERE):
            continue
        if step.startswith("tidemark "):
            code = exit_code(shlex.split(step, comments=True)[1:])
            said = capsys.readouterr()
            assert code in ((0, 1) if step.startswith("tidemark status") else (0,)), said.err  # 1: an alert fires
        else:
            subprocess.run(["bash", "-ec", step], cwd=plant, check=True)


@pytest.mark.parametrize("beginning", ELSEWHERE)
def test_what_is_run_elsewhere_is_on_a_page(beginning: str) -> None:
    assert any(re.match(beginning, step) for block in BLOCKS for step in steps(str(block.values[1])))


@pytest.mark.processes
@pytest.mark.parametrize(
    ("page", "answers"),
    [("orchestration/connectors/collector/README.md", ['{"accepted":1}', "1"]), ("gold/alerts/README.md", ['{"accepted":1}'])],
)
def test_what_a_page_sends_to_a_collector_is_taken_where_nc_is_mocked_by_bash(page: str, answers: list[str], tmp_path: Path) -> None:
    """By ports that are free, to which curl and bash go for those of the page."""
    yaml = next(block for block in blocks(page, "yaml") if re.search("http: {port:", block))
    (tmp_path / "conf").mkdir()
    take_yaml(yaml, page, tmp_path / "conf")
    kinds = {source.transport.kind: name for name, source in load(tmp_path / "conf").sources.items()}
    sources = tmp_path / "conf/sources.yml"
    sources.write_text(re.sub(r"""(['"]port['"]: )\d+""", r"\g<1>0", sources.read_text()))
    with collecting(tmp_path / "conf", *kinds.values()) as collector:
        to = {kind: collector.ports[name] for kind, name in kinds.items()}
        (tmp_path / ".curlrc").write_text(f'silent\nconnect-to = "::127.0.0.1:{to["http"]}"\n')
        nc = f"nc() {{ exec 3<>/dev/tcp/127.0.0.1/{to.get('tcp', 0)}; cat >&3; head -n 1 <&3; }}\n"
        sent = [step for block in (*blocks(page, "sh"), *blocks(page, "bash")) for step in steps(block) if "curl" in step or "| nc" in step]
        said = [
            subprocess.run(
                ["bash", "-ec", nc + step], env={**os.environ, "CURL_HOME": str(tmp_path)}, capture_output=True, text=True, check=True
            )
            for step in sent
        ]
    assert [one.stdout.strip() for one in said] == answers
