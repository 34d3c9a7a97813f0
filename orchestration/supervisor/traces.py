"""Traces for OpenTelemetry: each batch that a run tells of is a span, and each of its steps a span below it; sent by OTLP over HTTP.

A thread of its own sends them. Of a queue that is full the oldest spans are dropped, and so is what the collector does not take: no stream
waits or fails for it. Variables of OpenTelemetry hold, such as OTEL_EXPORTER_OTLP_HEADERS. Imported only where conf has `traces`.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Tracer, set_span_in_context

from orchestration.utc import from_iso, to_micros

Note: TypeAlias = Callable[[Mapping[str, Any]], None]
WAITING, AT_ONCE = 2048, 512
"""Spans in the queue, and in a request."""
EVERY_SECONDS, TIMEOUT_SECONDS, LEAVE_SECONDS = 2.0, 5.0, 2.0
"""How often spans are sent, how long a request with its repetitions may take, and how long the end of a run waits for the last ones."""
STEPS = ("latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets")
"""In the order in which Spark does them: it tells how long each took, not when."""
WHOLE = "triggerExecution"
LABELS = ("batch", "rows", "state_rows", "state_bytes", "snapshot")

log = logging.getLogger(__name__)


@contextmanager
def traced(address: str, pipeline: str, note: Note) -> Iterator[Note]:
    """`note`, which also sends a span for what it is told of a batch, job or sink."""
    # The exporter logs each failure, with the address, whose path may be a secret.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    try:
        provider = _provider(address, pipeline)
    except Exception as error:  # such as that of a variable of OpenTelemetry
        log.warning("traces: none are sent: %s", error)
        yield note
        return
    tracer, is_told = provider.get_tracer("tidemark"), False

    def noted(facts: Mapping[str, Any]) -> None:
        nonlocal is_told
        note(facts)
        try:
            trace(tracer, facts)
        except Exception:  # whatever it is, the run goes on
            if not is_told:
                log.warning("traces: a batch has no span", exc_info=True)
            is_told = True

    try:
        yield noted
    finally:
        ending = threading.Thread(target=provider.shutdown, name="traces", daemon=True)
        ending.start()
        ending.join(LEAVE_SECONDS)


def _provider(address: str, pipeline: str) -> TracerProvider:
    resource = Resource.create({"service.name": "tidemark", "tidemark.pipeline": pipeline})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_Exporter(address), WAITING, 1000 * EVERY_SECONDS, AT_ONCE))
    return provider


def trace(tracer: Tracer, facts: Mapping[str, Any]) -> None:
    """End the spans of one batch; nothing for other facts. `steps`: milliseconds by name, of Spark, which says when the batch began."""
    name = facts.get("flow") or facts.get("job") or facts.get("sink")
    if name is None or "seconds" not in facts:
        return
    took = int(facts["seconds"] * 10**9)
    steps = {step: 10**6 * milliseconds for step, milliseconds in facts.get("steps", {}).items() if step != WHOLE}
    begin = now = 1000 * to_micros(from_iso(facts["at"])) if steps else time.time_ns() - took
    labels = {f"tidemark.{label}": facts[label] for label in LABELS if facts.get(label) is not None}
    batch = tracer.start_span(name, start_time=begin, attributes={"tidemark.flow": name, **labels})
    for step in sorted(steps, key=lambda step: STEPS.index(step) if step in STEPS else len(STEPS)):
        child = tracer.start_span(step, set_span_in_context(batch), start_time=now)
        child.end(now := now + steps[step])
    batch.end(begin + took)


class _Exporter(OTLPSpanExporter):
    """Says once that spans are lost, and again after some have arrived."""

    def __init__(self, address: str) -> None:
        self._host, self._status, self._is_lost = urlsplit(address).hostname, 0, False
        session = requests.Session()
        session.hooks["response"].append(self._answered)
        super().__init__(address, timeout=TIMEOUT_SECONDS, session=session)

    def _answered(self, response: Any, **_: Any) -> None:
        self._status = response.status_code

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """In the thread of the processor."""
        self._status = 0
        result = super().export(spans)
        is_lost = result is not SpanExportResult.SUCCESS or self._status >= 300  # OpenTelemetry takes a redirect, unfollowed, for a success
        if is_lost and not self._is_lost:
            why = f"answered {self._status}" if self._status else "was not reached"
            log.warning("traces: %s %s; spans are lost until it takes them, and the run goes on", self._host, why)
        self._is_lost = is_lost
        return result
