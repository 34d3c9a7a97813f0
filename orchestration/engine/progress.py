"""Progress of a run: a bar for each query on a terminal, one JSON line for each batch otherwise; all on the error stream."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from orchestration.connectors.sources.source import Notice

STATE = {"state_rows": "numRowsTotal", "state_bytes": "memoryUsedBytes"}
"""Measures of the state of a query, and Spark's names for them."""


class Progress:
    """One run's. Use as a context manager."""

    def __init__(
        self, flows: Sequence[str], console: Console | None = None, note: Callable[[Mapping[str, Any]], None] | None = None
    ) -> None:
        """`note` gets the facts of each batch, job and warning, beside people."""
        self._console, self._note = console or Console(stderr=True), note
        self._bars = Bars(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[rows]:>12,} rows  {task.fields[rate]:>9,.0f}/s  watermark {task.fields[watermark]}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}
        for flow in flows:
            self._task(flow)
        self._seen: dict[str, int] = {}
        self._rows: dict[str, int] = {}
        self._last_rows_at: dict[str, float] = {}

    def __enter__(self) -> "Progress":
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def update(self, flow: str, query: StreamingQuery) -> bool:
        """Report batches that ended since the last call; whether there were any."""
        before = self._seen.get(flow, -1)
        self._last_rows_at.setdefault(flow, time.monotonic())
        self._bars.start_task(self._task(flow))
        for progress in query.recentProgress:
            batch = json.loads(progress.json) if hasattr(progress, "json") else progress
            key = int(batch["batchId"])
            if key > self._seen.get(flow, -1) and (batch["numInputRows"] or "addBatch" in batch["durationMs"]):
                self._seen[flow] = key
                self._batch(flow, batch, int(batch["numInputRows"]))
        return self._seen.get(flow, -1) > before

    def follow(self, job: str, steps: Iterable[int], stop: threading.Event | None = None) -> None:
        """Report the rows of each step of a job, until it has nothing left to do, or after `stop` until it is between two steps."""
        begin = time.monotonic()
        for rows in steps:
            seconds = time.monotonic() - begin
            self._bars.start_task(self._task(job))
            self._add(job, rows, seconds)
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            self._line({"job": job, "at": at, "rows": rows, "seconds": round(seconds, 3)})
            if stop is not None and stop.is_set():
                return
            begin = time.monotonic()

    def maintained(self, done: Mapping[str, Any]) -> None:
        """Tell of a table for which there was something to do."""
        if any(value for name, value in done.items() if name not in ("table", "files")):
            self._line({"job": "maintenance", **done})

    def idle_seconds(self, flow: str) -> float:
        """How long no batch of the flow has had rows."""
        return time.monotonic() - self._last_rows_at.get(flow, time.monotonic())

    def ended(self, flow: str) -> None:
        self._bars.update(self._task(flow), total=1, completed=1)

    def handed_over(self, flow: str, rows: int, seconds: float, **facts: Any) -> None:
        """Report what a source has brought. `facts`: for the line."""
        self._bars.start_task(self._task(flow))
        self._add(flow, rows, seconds)
        self._line({"flow": flow, **facts, "rows": rows, "seconds": round(seconds, 3)})

    def sent(self, sink: str, snapshot_id: int, rows: int, seconds: float) -> None:
        self._line({"sink": sink, "snapshot": snapshot_id, "rows": rows, "seconds": round(seconds, 3)})

    def notice(self, notice: Notice) -> None:
        """Say what a source or a sink has come upon."""
        self._say(notice.what, notice.facts)

    def warned(self, reason: str) -> None:
        self._say("quality", {"reason": reason})

    def _task(self, flow: str) -> TaskID:
        """The bar of a flow; a replay may have other lanes than the generation that was active before."""
        if flow not in self._tasks:
            self._tasks[flow] = self._bars.add_task(flow, total=None, start=False, rows=0, rate=0.0, watermark="-")
        return self._tasks[flow]

    def _batch(self, flow: str, batch: dict[str, Any], rows: int) -> None:
        seconds = batch["durationMs"].get("triggerExecution", 0) / 1000
        watermark = batch.get("eventTime", {}).get("watermark")
        if rows:
            self._last_rows_at[flow] = time.monotonic()
        self._add(flow, rows, seconds, watermark=watermark or "-")
        facts = {"flow": flow, "batch": batch["batchId"], "at": batch["timestamp"], "rows": rows, "seconds": seconds}
        state = {name: sum(operator[key] for operator in batch.get("stateOperators", ())) for name, key in STATE.items()}
        self._line({**facts, "watermark_at": watermark}, {"steps": batch["durationMs"], **state})

    def _add(self, name: str, rows: int, seconds: float, **fields: Any) -> None:
        self._rows[name] = self._rows.get(name, 0) + rows
        self._bars.update(self._task(name), rows=self._rows[name], rate=rows / seconds if seconds else 0.0, **fields)

    def _line(self, facts: Mapping[str, Any], more: Mapping[str, Any] = MappingProxyType({})) -> None:
        """`more`: for the history alone."""
        if self._note is not None:
            self._note({**facts, **more})
        if not self._console.is_terminal:
            print(json.dumps(facts), file=sys.stderr, flush=True)

    def _say(self, what: str, facts: Mapping[str, str]) -> None:
        if self._console.is_terminal:
            self._bars.console.print(f"{what}: {', '.join(facts.values())}", markup=False, highlight=False)
        self._line({"warning": what, **facts})
