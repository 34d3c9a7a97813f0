"""`tidemark preview`: what a sample of events would become, from every kind of source, and that nothing is written anywhere."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient
from deltalake import write_deltalake

from orchestration.connectors.sources.spool_records import encoded
from orchestration.jobs.preview import Preview
from tests.broker import Broker
from tests.collectors import ROOT, write_conf
from tests.commands import Rows, Tidemark
from tests.mosquitto import mosquitto
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store

LANDING = "path: ./landing"
CSV = "path: ./rows, format: csv, header: true"


def line(value: Any, minute: int = 0, **more: Any) -> bytes:
    return json.dumps({"device": "oven", "metric": "temperature", "value": value, "ts": f"2026-03-02T08:{minute:02}:00Z"} | more).encode()


def land(folder: Path, name: str, *lines: bytes) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes((gzip.compress if name.endswith(".gz") else bytes)(b"\n".join(lines) + b"\n"))
    return file


def asked(tidemark: Tidemark, conf: Path, *words: str) -> tuple[int, Rows, str]:
    """Exit code, rows, and what stands on stderr."""
    said = tidemark("--conf", conf, "preview", *words, "--format", "json")
    return said.code, said.rows, said.err


def readings(tidemark: Tidemark, conf: Path, *words: str) -> list[float]:
    code, rows, told = asked(tidemark, conf, *words)
    assert code == 0, told
    return [row["value"] for row in rows if row["becomes"] == "reading"]


def test_each_measurement_is_a_reading_a_duplicate_or_in_quarantine_with_its_reason(tmp_path: Path, tidemark: Tidemark) -> None:
    conf = write_conf(tmp_path, plant=LANDING)
    lines = line(21.5, door=1), line(21.5), line("---", 1), b"[1]", line(22.5, 12, device="Oven", door=None), line(22.5), b'{"door": 0}'
    file = land(tmp_path, "a.jsonl", *lines)
    code, rows, told = asked(tidemark, conf, str(file))
    assert [(code, row["event"], row["becomes"], row["reasons"]) for row in rows] == [
        (0, 1, "reading", {}),
        (0, 2, "duplicate", {}),
        (0, 3, "quarantine", {"value_is_a_number": "value is '---'"}),
        (0, 4, "quarantine", {"payload_is_readable": "Expected object, got array"}),
        (0, 5, "quarantine", {"device_is_known": "'Oven' is not in devices.yml; did you mean 'oven'?"}),
        (0, 6, "conflict", {}),
        (0, 7, "without measurements", {"something_is_measured": "value is absent or null"}),
    ]
    assert "fields that conf does not name, and events that have them: door (2)" in told
    assert told.endswith("7 events: 1 of 6 measurements would be readings, 1 duplicate, 1 conflict, 1 without measurements\n")


def test_a_reason_that_several_metrics_of_an_event_have_stands_once() -> None:
    def row(metric: str, **reasons: str) -> dict[str, Any]:
        return {"becomes": "quarantine", "metric": metric, "payload": b"{}", "reasons": reasons}

    late, words = {"event_time_is_valid": "ts is absent or null"}, {"value_is_a_number": "x is 'off'"}
    seen = Preview(2, [row("x", **late, **words), row("y", **late), row("y", **late)], [], {})
    assert [(one["rule"], one["metric"], one["measurements"]) for one in seen.broken] == [
        ("event_time_is_valid", "x, y", 3),
        ("value_is_a_number", "x", 1),
    ]


def test_windows_are_counted_by_group_and_metric_and_what_is_in_none_is_told(tmp_path: Path, tidemark: Tidemark) -> None:
    conf = write_conf(tmp_path, plant=LANDING)
    with (conf / "metrics.yml").open("a") as metrics:
        metrics.write("  power: {aggregation: sum, step_seconds: 60}\n")
    land(tmp_path / "landing", "a.jsonl", line(1, 0), line(2, 9), line(3, 10), line(4, metric="power"))
    out = tidemark("--conf", conf, "preview").out
    (row,) = [shown.split() for shown in out.splitlines() if shown.startswith(" kitchen")]
    assert row == ["kitchen", "temperature", "2", "3", "2026-03-02T08:00:00Z", "2026-03-02T08:10:00Z"]
    assert "in no window, as no group of the device has the metric: power; see groups.yml and devices.yml" in out


def test_all_sources_are_shown_where_none_is_named_with_what_rules_refuse_and_one_that_is_down_is_told(
    tmp_path: Path, tidemark: Tidemark
) -> None:
    conf = write_conf(tmp_path, plant=LANDING, more="path: ./more", fleet="mqtt: {broker: '127.0.0.1:1', topics: ['plant/+']}")
    (conf / "rules.yml").write_text("rules:\n  is_warm: {holds: value > 20}\n")
    land(tmp_path / "landing", "a.jsonl", line(21.5), line(3, 1))
    land(tmp_path / "more", "b.jsonl", line(22.5))
    code, rows, told = asked(tidemark, conf)
    assert [(row["source"], row["becomes"], row["reasons"]) for row in rows] == [
        ("plant", "reading", {}),
        ("plant", "quarantine", {"is_warm": "value is 3.0"}),
        ("more", "reading", {}),
    ]
    assert (code, "source fleet " in told, "2 events: 1 of 2 measurements would be readings" in told) == (0, True, True)


def test_a_sample_is_the_first_thousand_events_the_oldest_file_first(tmp_path: Path, tidemark: Tidemark) -> None:
    conf = write_conf(tmp_path, plant=LANDING)
    land(tmp_path / "landing", "z.jsonl.gz", *(line(n, second=n) for n in range(900)))
    (tmp_path / "landing/torn.jsonl.gz").write_bytes(gzip.compress(line(0))[:-9])
    land(tmp_path / "landing", "a.jsonl", *(line(n, second=n) for n in range(900)))
    code, rows, told = asked(tidemark, conf)
    assert (code, len(rows), rows[-1]["event"]) == (0, 1000, 1000)
    assert f"a run would skip {tmp_path / 'landing/torn.jsonl.gz'}: it is not a whole gzip file" in told


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["rows/a.csv"], [21.5]),  # it lies there
        (["a.csv"], [21.5]),  # it has the format
        (["a.txt", "--source", "sheets"], [21.5]),
        (["a.txt"], None),
        ([], [21.5]),  # all sources
    ],
)
def test_a_file_is_read_as_by_the_source_that_it_fits_or_that_is_named(
    words: list[str], expected: list[float] | None, tmp_path: Path, tidemark: Tidemark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    conf = write_conf(tmp_path, plant=LANDING, sheets=CSV, more="path: ./more")
    for name in ("rows/a.csv", "a.csv", "a.txt"):
        land(tmp_path, name, b"ts,device,metric,value", b"2026-03-02 08:00:00,oven,temperature,21.5")
    if expected is None:
        said = tidemark("--conf", conf, "preview", *words)
        assert (said.code, "; choose one with --source\n" in said.err) == (2, True)
    else:
        assert readings(tidemark, conf, *words) == expected


def test_no_reading_at_all_is_exit_code_1_and_a_missing_file_or_source_2(tmp_path: Path, tidemark: Tidemark) -> None:
    conf = write_conf(tmp_path, plant=LANDING)
    assert asked(tidemark, conf) == (1, [], "no event is there to be read; name a file: tidemark preview FILE\n")
    assert asked(tidemark, conf, str(land(tmp_path, "a.jsonl", b"no json")))[0] == 1
    code, _, told = asked(tidemark, conf, str(tmp_path / "gone.jsonl"))
    assert (code, "gone.jsonl cannot be read (No such file or directory); check the path" in told) == (2, True)
    code, _, told = asked(tidemark, conf, "--source", "plan")
    assert (code, "plan is no source; sources.yml has plant" in told) == (2, True)


def test_delta_tables_and_the_spool_are_read_from_their_oldest_event_and_nothing_is_written(tmp_path: Path, tidemark: Tidemark) -> None:
    heard = "mqtt: {broker: 'localhost:1', topics: ['plant/+']}"
    table = "delta: {table: ./table, starting: latest}"
    conf = write_conf(tmp_path, pushed="http: {port: 0}", heard=heard, table=table, plant=LANDING)
    land(tmp_path / "landing", "a.jsonl", line(3.0))
    row = json.loads(line(1.0))
    write_deltalake(str(tmp_path / "table"), pa.table({name: [value] for name, value in row.items()}))
    mark = b"\x01mark\xff\n\x00"
    for name in ("pushed", "heard"):
        spool = tmp_path / "lake/spool" / name
        spool.mkdir(parents=True)
        for number, content in enumerate((mark, mark + encoded(mark, 0, "request/a", 1, [line(2.0)]), mark)):
            (spool / f"{number:012d}.spool").write_bytes(content)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    assert [readings(tidemark, conf, "--source", name) for name in ("table", "pushed", "heard", "plant")] == [[1.0], [2.0], [2.0], [3.0]]
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")} == before


def test_a_topic_of_kafka_is_read_without_a_group(running: Broker, topic: str, tmp_path: Path, tidemark: Tidemark) -> None:
    running.send(topic, [line(1.0), line(2.0, 1)])
    conf = write_conf(tmp_path, plant=f"kafka: {{servers: '{running.servers}', subscribe: [{topic}], starting: latest}}")
    assert readings(tidemark, conf) == [1.0, 2.0]
    groups = AdminClient({"bootstrap.servers": running.servers}).list_consumer_groups().result().valid
    assert ([group.group_id for group in groups if group.group_id == "tidemark"], (tmp_path / "lake").exists()) == ([], False)


def test_objects_of_a_store_are_read_without_a_claim(
    store: Store, tmp_path: Path, tidemark: Tidemark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", ACCESS_KEY)
    monkeypatch.setenv("SECRET", SECRET_KEY)
    store.put(bucket := store.bucket(), {"in/a.jsonl.gz": gzip.compress(line(1.0)), "other/b.jsonl": line(2.0)})
    keys = "access_key: '${env:KEY}', secret_key: '${env:SECRET}'"
    conf = write_conf(tmp_path, plant=f"s3: {{bucket: {bucket}, prefix: in/, endpoint: '{store.endpoint}', {keys}}}")
    assert (readings(tidemark, conf), (tmp_path / "lake").exists()) == ([1.0], False)


@pytest.mark.mosquitto
@pytest.mark.parametrize("version", ["v5", "v3.1.1"])
def test_mqtt_is_listened_to_for_some_seconds(version: str, tmp_path: Path, tidemark: Tidemark) -> None:
    with mosquitto(tmp_path / "broker") as broker:
        conf = write_conf(
            tmp_path, hall=f"mqtt: {{broker: '{broker.address}', topics: ['plant/+'], version: {version}}}, device: {{topic: 2}}"
        )
        broker.publish([("plant/oven", line(1.0))], retain=True)
        code, rows, told = asked(tidemark, conf, "--seconds", "1")
        assert (code, [row["value"] for row in rows], (tmp_path / "lake").exists()) == (0, [1.0], False)
        assert f"listening to {broker.address} for 1 seconds" in told
    code, _, told = asked(tidemark, conf)
    assert (code, "source hall cannot be read from" in told) == (4, True)


def test_neither_spark_nor_its_python_is_loaded(tmp_path: Path) -> None:
    conf = write_conf(tmp_path, plant=LANDING)
    land(tmp_path / "landing", "a.jsonl", *(line(n, second=n) for n in range(1000)))
    asked_for = ["--conf", str(conf), "preview"]
    program = f"from orchestration.cli.app import exit_code; import sys; exit_code({asked_for}); print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["1,000 events: 1 of 1,000 measurements would be readings, 999 conflicts", "False"]
