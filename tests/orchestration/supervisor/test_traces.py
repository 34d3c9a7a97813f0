"""Traces: what a collector gets of batches, by a real HTTP server that reads OTLP; and that no run waits for one, or fails by one."""

import json
import logging
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from orchestration.conf.load import load
from orchestration.supervisor import traces
from orchestration.supervisor.traces import traced
from tests.collectors import write_conf
from tests.http_server import Asked, http_server
from tests.server_process import free_ports
from tests.waiting import until

OF_SPARK = {
    "flow": "silver.readings",
    "batch": 7,
    "at": "2026-01-05T12:00:00.000Z",
    "rows": 100,
    "seconds": 2.0,
    "watermark_at": None,
    "steps": {"addBatch": 1500, "walCommit": 200, "triggerExecution": 2000, "odd": 100},
    "state_rows": 5,
}
OF_JOB = {"job": "silver.ledger", "at": "2026-01-05T12:00:00.000Z", "rows": 10, "seconds": 0.5}
NO_BATCH = {"warning": "gap", "reason": "lost"}


@contextmanager
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """Its address, and what it has got."""
    got: list[ExportTraceServiceRequest] = []

    def take(asked: Asked) -> tuple[int, bytes]:
        headers = {name.lower(): value for name, value in asked.headers.items()}
        if (asked.path, headers["content-type"]) != ("/v1/traces", "application/x-protobuf"):
            return 400, b""
        got.append(ExportTraceServiceRequest.FromString(asked.body))
        return 200, b""

    with http_server(take) as address:
        yield f"{address}/v1/traces", got


def spans(got: list[ExportTraceServiceRequest]) -> list[Span]:
    return [span for request in got for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]


def labels(attributes: Any) -> dict[str, object]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


def test_a_batch_is_a_span_with_a_span_for_each_step_in_the_order_of_spark() -> None:
    noted: list[Any] = []
    with collector() as (address, got), traced(address, "plant", noted.append) as note:
        for facts in (OF_SPARK, NO_BATCH):
            note(facts)
        until(lambda: bool(spans(got)))
    assert noted == [OF_SPARK, NO_BATCH]
    (batch,) = [span for span in spans(got) if not span.parent_span_id]
    steps = sorted((span for span in spans(got) if span.parent_span_id), key=lambda span: span.start_time_unix_nano)
    begin, second = 1_767_614_400 * 10**9, 10**9
    assert (batch.name, batch.start_time_unix_nano, batch.end_time_unix_nano) == ("silver.readings", begin, begin + 2 * second)
    expected = {"flow": "silver.readings", "batch": 7, "rows": 100, "state_rows": 5}
    assert labels(batch.attributes) == {f"tidemark.{name}": value for name, value in expected.items()}
    assert [(span.name, (span.end_time_unix_nano - span.start_time_unix_nano) / second) for span in steps] == [
        *(("walCommit", 0.2), ("addBatch", 1.5), ("odd", 0.1))
    ]
    assert [span.start_time_unix_nano for span in steps[1:]] == [span.end_time_unix_nano for span in steps[:-1]]
    assert {(span.parent_span_id, span.trace_id) for span in steps} == {(batch.span_id, batch.trace_id)}
    resource = labels(got[0].resource_spans[0].resource.attributes)
    assert (resource["service.name"], resource["tidemark.pipeline"]) == ("tidemark", "plant")


def test_a_batch_that_is_told_of_without_steps_ended_just_now_and_the_end_of_a_run_sends_what_waits() -> None:
    with collector() as (address, got):
        with traced(address, "plant", lambda _: None) as note:
            note(OF_JOB)
        (job,) = spans(got)
    assert job.end_time_unix_nano - job.start_time_unix_nano == 10**9 // 2
    assert abs(job.end_time_unix_nano / 10**9 - time.time()) < 60


@pytest.mark.parametrize("status", [404, 307, 503, 0])
def test_a_collector_that_takes_nothing_is_told_once_without_the_secret_of_its_address(
    status: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """0: nobody listens. A redirect is not followed, so its spans are lost, too."""
    monkeypatch.setattr(traces, "EVERY_SECONDS", 0.01)
    monkeypatch.setattr(traces, "TIMEOUT_SECONDS", 0.5)
    (port,) = free_ports(1)
    with http_server(lambda _: (status, b"")) as answering:
        address = answering if status else f"http://127.0.0.1:{port}"
        with traced(f"{address}/secret", "plant", lambda _: None) as note:
            for _ in range(3):
                note(OF_JOB)
                time.sleep(0.3)
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    why = f"answered {status}" if status else "was not reached"
    assert said == [f"traces: 127.0.0.1 {why}; spans are lost until it takes them, and the run goes on"]
    assert not any("secret" in record.getMessage() for record in caplog.records)


def test_a_collector_that_never_answers_holds_up_no_batch_and_the_end_only_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "LEAVE_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begin = time.monotonic()
        with traced(f"http://127.0.0.1:{silent.getsockname()[1]}/v1/traces", "plant", lambda _: None) as note:
            for _ in range(3000):  # more than the queue holds
                note(OF_SPARK)
        assert time.monotonic() - begin < traces.TIMEOUT_SECONDS


def test_a_fact_that_is_not_as_expected_and_a_wrong_variable_end_no_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    noted: list[Any] = []
    odd = OF_SPARK | {"at": "never"}
    for _ in ("as it is", "with the variable"):
        with traced("http://127.0.0.1:1/v1/traces", "plant", noted.append) as note:
            note(odd)
            note(odd)
        monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "odd")
    assert noted == [odd] * 4
    assert [record.getMessage()[:27] for record in caplog.records] == ["traces: a batch has no span", "traces: none are sent: OTEL"]


def test_a_run_sends_traces_where_conf_names_an_address_and_else_knows_nothing_of_opentelemetry(tmp_path: Path) -> None:
    conf = write_conf(tmp_path, plant="path: ./landing")
    assert load(conf).traces is None
    program = "import sys; from orchestration.cli import run; from orchestration.conf.load import load; from pathlib import Path\n"
    program += f"with run._noting(load(Path({str(conf)!r}))) as note: note({OF_JOB!r})\n"
    program += "print(any(name.startswith('opentelemetry') for name in sys.modules))"
    with collector() as (address, got):
        for setting, is_loaded in (("", "False"), (f"traces: {address}\n", "True")):
            with (conf / "pipeline.yml").open("a") as file:
                file.write(setting)
            said = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True).stdout
            assert (said.strip(), [span.name for span in spans(got)]) == (is_loaded, ["silver.ledger"] * bool(setting))
    (history,) = (tmp_path / "lake" / "history").iterdir()
    assert [json.loads(line)["job"] for line in history.read_text().splitlines()] == ["silver.ledger"] * 2
