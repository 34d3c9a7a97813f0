"""Streaming queries of flows: started, waited for, ended between two batches.

py4j opens a connection for each thread of the JVM that calls Python, and so one for each query, and never closes it: it keeps a socket on
either side and a thread in Python. A run starts queries of gold all the time, and had no descriptors left within hours (measured by the
soak: 4 to 5 more a minute). So those of ended queries are closed here.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark import SparkContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.flow import Flow
from orchestration.location import Location
from orchestration.storage.bindings import shuffle_partitions
from orchestration.storage.checkpoints import clear_drafts, newest_batch
from orchestration.storage.held_leases import lease_above
from orchestration.storage.meeting import StoppedError

POLL_SECONDS, STORE_POLL_SECONDS = 0.2, 1.0
"""How often something is looked at that nobody tells of; in a store each look is a request."""
AVAILABLE_NOW = {"availableNow": True}
CONTINUOUS = ("bronze.events", "silver.readings")
"""Tables that grow all the time while `run` goes on."""
SNAPSHOTS = {"maintenanceInterval": "2s", "minDeltasForSnapshot": "2"}
"""Settings for the state of a query that ends. A start reads the newest snapshot of the state and all changes since. By default Spark
looks once a minute whether there were ten batches, so that short runs never leave one (measured: 30 s to read it, at each start
behind a backlog of 30,000,000 events)."""
Queries = Mapping[Flow, StreamingQuery]


class WriteBarrier:
    """A barrier that a micro-batch passes before it writes. `stop`: no batch begins any more."""

    def __init__(self, stop: threading.Event) -> None:
        """Open. `errors`: by flow, what ended its write. `callers`: by flow, the port from which its query called last."""
        self.stop = stop
        self.errors: dict[str, Exception] = {}
        self.stopped: set[str] = set()
        """Flows of which a write was given up."""
        self.callers: dict[str, int] = {}
        self._begun: dict[str, tuple[Location, int]] = {}
        self._writing = {table: threading.Lock() for table in CONTINUOUS}

    def hold(self, table: str) -> AbstractContextManager[object]:
        """While it is held, a table of CONTINUOUS does not grow; to other tables it makes no difference."""
        return self._writing.get(table, nullcontext())

    def guarded(self, flow: Flow, offsets: Location) -> Callable[[DataFrame, int], None]:
        """The flow's write, for a query that has yet to start. A batch that has begun is finished. `offsets`: where Spark notes batches."""
        self._begun[flow.name] = offsets, newest_batch(offsets)
        if flow.meeting is not None:
            flow.meeting.stop = self.stop

        def write(batch: DataFrame, batch_id: int) -> None:
            self.callers[flow.name] = _gateway_client().get_thread_connection().socket.getpeername()[1]
            try:
                if self.stop.is_set():
                    raise StoppedError
                if lease := lease_above(offsets):
                    lease.confirm()  # before there are files of a batch that cannot be committed
                with self.hold(flow.name):  # the table of several lanes grows only while the default lane is in here
                    flow.write(batch, batch_id)
            except StoppedError:
                self.stopped.add(flow.name)
                raise
            except Exception as error:
                self.errors[flow.name] = error
                raise

        return write

    def await_begin(self, queries: Queries, poll: float) -> None:
        """Until each of the queries knows up to where it reads: it has noted a batch, or has nothing to read.

        A batch that it repeats does not count. Delta looks for the end of a table when it is first asked for one, which is after that.
        """
        while any(query.isActive and not self._has_noted_one(flow) for flow, query in queries.items()):
            time.sleep(poll / 10)

    def _has_noted_one(self, flow: Flow) -> bool:
        offsets, number = self._begun[flow.name]
        return newest_batch(offsets) > number


def poll_seconds(lake: Location) -> float:
    """Return how long to wait between two looks at something of a lake."""
    return POLL_SECONDS if lake.store.is_disk else STORE_POLL_SECONDS


def every(seconds: float) -> dict[str, str]:
    """The trigger that asks so often whether something has come."""
    return {"processingTime": f"{seconds} seconds"}


def start_queries(lake: Lake, flows: Sequence[Flow], trigger: Mapping[str, Any], barrier: WriteBarrier) -> dict[Flow, StreamingQuery]:
    return {flow: prepare_query(lake, flow, trigger, barrier).start() for flow in flows}


def prepare_query(lake: Lake, flow: Flow, trigger: Mapping[str, Any], barrier: WriteBarrier) -> DataStreamWriter:
    """A query that is analyzed and only has to be started, before another one is prepared: settings are those of the session."""
    settings: dict[str, Any] = {f"stateStore.{key}": value for key, value in SNAPSHOTS.items()} if trigger == AVAILABLE_NOW else {}
    # A batch without data only moves the watermark: gold needs it to close windows, silver would only clear state earlier.
    settings["noDataMicroBatches.enabled"] = flow.layer == "gold"
    # With names for their sources, these may come and go. Spark refuses names in a query that reads one source in several branches,
    # as silver does for each payload shape.
    settings["queryEvolution.enableSourceEvolution"] = flow.layer != "silver"
    for key, value in settings.items():
        lake.spark.conf.set(f"spark.sql.streaming.{key}", value)
    lake.spark.conf.set("spark.sql.shuffle.partitions", shuffle_partitions(lake, flow.name))
    clear_drafts(lake.checkpoint(flow.name))
    writer = flow.rows().writeStream.queryName(flow.name).foreachBatch(barrier.guarded(flow, lake.checkpoint(flow.name) / "offsets"))
    return writer.option("checkpointLocation", str(lake.checkpoint(flow.name))).trigger(**trigger)


def run_to_end(queries: Queries, progress: Progress, barrier: WriteBarrier) -> None:
    while any(query.isActive for query in queries.values()):
        time.sleep(POLL_SECONDS)
        report_batches(queries, progress, barrier)
    stop_queries(queries, progress, barrier)


def report_batches(queries: Queries, progress: Progress, barrier: WriteBarrier) -> bool:
    """Tell of batches that have ended, True where there were any; raise what ended a query. A lane does not wait for one that has ended."""
    for flow, query in queries.items():
        if flow.meeting is not None and not query.isActive:
            flow.meeting.leave(flow.name)
    have_ended = False
    for flow, query in queries.items():
        have_ended |= progress.update(flow.name, query)
        _raise_if_broken(flow, query, barrier)
    return have_ended


def stop_queries(queries: Queries, progress: Progress, barrier: WriteBarrier) -> None:
    """Wait for the current batches, stop what is between two, and pass on what went wrong."""
    while any(query.isActive for query in queries.values()):
        for query in queries.values():
            if query.isActive and not query.status["isTriggerActive"]:
                query.stop()
        time.sleep(POLL_SECONDS)
    for flow in queries:
        progress.ended(flow.name)
    _close_connections({barrier.callers.pop(flow.name) for flow in queries if flow.name in barrier.callers})
    report_batches(queries, progress, barrier)


def _close_connections(ports: Collection[int]) -> None:
    """Close the JVM's connections of these ports that are open and not in use. Python's ends close with them, and their threads end."""
    if not ports:  # a run that has nothing to do has no JVM
        return
    caller = JavaObject("GATEWAY_SERVER", _gateway_client()).getCallbackClient()  # the name of py4j's own end in the JVM
    lock, unused = (_hidden(caller, name) for name in ("lock", "connections"))
    lock.lock()  # other threads of the JVM take theirs out for each call, and put it back
    try:
        for connection in unused.toArray():
            if connection.getSocket().getLocalPort() in ports:
                unused.remove(connection)
                connection.shutdown()
    finally:
        lock.unlock()


def _gateway_client() -> Any:
    return SparkContext._gateway._gateway_client  # type: ignore[union-attr]


def _hidden(caller: Any, name: str) -> Any:
    """Read a field of py4j's CallbackClient, from which the class of `caller` is made."""
    field = caller.getClass().getSuperclass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(caller)


def _raise_if_broken(flow: Flow, query: StreamingQuery, barrier: WriteBarrier) -> None:
    """Raise the error of Python code, if it was one: Spark reports only a trace of it."""
    broken: StreamingQueryException | None = query.exception()
    if broken is not None and flow.name not in barrier.stopped:
        raise barrier.errors.get(flow.name, broken) from broken
