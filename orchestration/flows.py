"""All flows on one screen: read this first.

    sources -> bronze.events -> silver.readings -> gold.aggregates and gold.vectors
                             -> gold.flows: gold.sessions, gold.pairs, gold.states, gold.measures, gold.alerts
                             -> silver.ledger: silver.quarantine, silver.late, silver.duplicates

The intake brings what sources have to bronze, each read from an offset of its own. A flow is one streaming query that feeds one layer:
`rows` is what the query computes, with functions of the layers; `write` is what becomes of each micro-batch, safe to repeat. A job follows
flows: each time, it does what they left to do since it ran last. Nothing else in the product wires tables to functions.
"""

from contextlib import AbstractContextManager
from functools import cache, partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gold.windows.aggregates import COUNTED, aggregates, clock, of_groups, ticks
from orchestration.connectors.sources.all import sources
from orchestration.engine import windows, writing
from orchestration.engine.chains import NewestCarries
from orchestration.engine.lake import Lake
from orchestration.flow import Flow, Intake, Job
from orchestration.jobs.account import ledger, retry
from orchestration.jobs.bronze import EVENTS
from orchestration.jobs.gold import amendments
from orchestration.jobs.gold.flows import follow_all
from orchestration.storage.bindings import THE_BEGINNING, start_of
from orchestration.storage.lane_record import FLOW
from orchestration.storage.lanes import lanes_of
from orchestration.storage.meeting import Meeting
from orchestration.storage.ops_tables import LEDGER_FLOW, TICKS
from orchestration.storage.positions import FLOWS, passed_by_silver
from orchestration.storage.silver_inputs import former_configs, publish, silver_config
from orchestration.storage.tables import following
from silver.readings import readings


def flows(lake: Lake) -> list[Intake | Flow | Job]:
    """The intake, and every flow and job that the conf asks for, in the order in which data passes them."""
    return [
        bronze_events(lake),
        *silver_readings(lake),
        silver_ledger(lake),
        *(gold(lake, stream) for stream in lake.conf.streams),
        gold_amendments(lake),
        *([gold_flows(lake)] if lake.conf.incrementals else []),
    ]


def bronze_events(lake: Lake) -> Intake:
    return Intake(EVENTS, (lake.tables[EVENTS],), sources=lambda: sources(lake.conf))


def silver_readings(lake: Lake) -> list[Flow]:
    """A query for each lane of sources; they meet at each bronze batch, to write it together."""
    table, lanes = lake.tables[FLOW], lanes_of(lake)
    starts = cache(lambda: {name: start_of(lake, name).bronze_batch for name in lanes.flows})
    meeting = Meeting(starts, partial(writing.commit_readings, table))

    def accepted(name: str, of_lane: str | None, lateness_seconds: int) -> DataFrame:
        # One bronze batch is one silver batch, whenever silver gets to it: what is late depends on bronze alone.
        events = lake.stream(name, EVENTS, start_of(lake, name).version, 1)
        events = events if of_lane is None else events.where(of_lane)
        former = former_configs(lake, -1 if (passed := passed_by_silver(lake, name)) is None else passed)
        return readings(events, publish(lake), silver_config(lake.conf), lateness_seconds, former)

    def flow(name: str, of_lane: str | None, lateness_seconds: int) -> Flow:
        rows = partial(accepted, name, of_lane, lateness_seconds)
        return Flow(name, (table,), (EVENTS,), rows, partial(writing.readings, lake, name, meeting), meeting)

    default = flow(FLOW, lanes.of_default(), lake.conf.policy.lateness_seconds)
    return [default, *(flow(lane.flow, lane.sql(), lane.bounds.lateness_seconds) for lane in lanes.present)]


def silver_ledger(lake: Lake) -> Job:
    written = tuple(lake.tables[f"silver.{name}"] for name in ("quarantine", "late", "duplicates"))
    return Job(LEDGER_FLOW, written, run=lambda: ledger.account_for_all(lake))


def gold(lake: Lake, stream: str) -> Flow:
    groups, metrics = lake.conf.streams[stream], lake.conf.metrics
    has_ticks = any(group.idle_close_seconds is not None for group in groups)

    def closed_windows() -> DataFrame:
        start = start_of(lake, f"gold.{stream}")
        all_readings = lake.stream(f"gold.{stream}", "silver.readings", start.version, name="readings")
        ahead = lake.conf.ahead_of(stream)
        capped = [] if ahead is None else [clock(ahead)]
        of_stream = of_groups(all_readings, groups).select(*COUNTED, *capped)
        if has_ticks:
            of_ticks = lake.stream(f"gold.{stream}", TICKS.table, name="ticks").where(F.col("stream") == stream)
            instants = ticks(of_ticks, groups)
            of_stream = of_stream.unionByName(instants.select("*", clock(None)) if capped else instants)
        closed = aggregates(of_stream, groups, metrics)
        return closed if start == THE_BEGINNING else closed.where(F.unix_millis("window_end") > start.closed_until_ms)

    return Flow(
        f"gold.{stream}",
        lake.gold(stream)[:2],
        ("silver.readings", *([TICKS.table] if has_ticks else [])),
        rows=closed_windows,
        write=partial(windows.windows, lake, stream, groups, NewestCarries(lake, stream, groups)),
    )


def gold_amendments(lake: Lake) -> Job:
    written = {table.name: table for stream in lake.conf.streams for table in lake.gold(stream)[2:]}
    return Job(amendments.NAME, tuple(written.values()), run=lambda: amendments.amend_all(lake, lake.conf.streams))


def gold_flows(lake: Lake) -> Job:
    written = tuple(lake.tables[name] for name in following(lake.conf, lake.generation))
    return Job(FLOWS, written, run=lambda: follow_all(lake))


def quarantine_retry(lake: Lake, chosen: retry.Chosen) -> AbstractContextManager[retry.Verdict]:
    """No part of a run: a person asks for it."""
    return retry.foreseen(lake, chosen)
