"""Flows of flows.yml: a job behind gold that brings the rows of each up to the prefix of bronze at which gold is.

Flow by flow, slice by slice (gold/slices.py): a slice ends a lateness behind the newest reading of the prefix, where silver accepts nothing
older any more. A round writes its rows first, then what the next slice needs, then its end; a run after a crash repeats exactly that slice,
and Delta refuses rows that are there already. No query of Spark: measured beside its own operators in tests/bench/RESULTS.md.
"""

from collections.abc import Iterator
from dataclasses import asdict, replace

import duckdb
import pyarrow as pa

from bronze.schema import INSTANT
from expectations.translation import to_duckdb, without_failures
from gold.flow_spec import FlowSpec
from gold.flows import nothing_carried, readings_of, step
from gold.slices import READING, SECOND, THE_BEGINNING, Slice
from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.jobs.prefix import consistent_prefix, gold_positions
from orchestration.jobs.ranges import pieces
from orchestration.location import Location
from orchestration.storage import flow_positions
from orchestration.storage.atomic_json import write_atomic
from orchestration.storage.bindings import REPAIR
from orchestration.storage.commit import append_rows
from orchestration.storage.delta import ask, in_log, instant, literal, open_table, written_by
from orchestration.storage.flow_positions import Reach, Round
from orchestration.storage.row_files import read_rows, write_rows
from silver.evaluated import PLAIN_INSTANT, retyped

NAME = flow_positions.FLOW
READINGS = "silver.readings"
SLICE_ROWS = 1_000_000
"""Readings of one slice: bounds the memory."""


def follow_all(lake: Lake) -> Iterator[int]:
    """Every flow up to where all of gold is; yields the rows of each slice once it is done."""
    prefix = consistent_prefix(lake, gold_positions(lake)) if lake.conf.flows else None
    if prefix is not None:
        for flow in lake.conf.flows.values():
            yield from _follow(lake, flow, prefix)


def reaches(lake: Lake) -> dict[str, Reach]:
    """How far each flow has come."""
    return {f"{NAME}/{name}": _read(lake, flow).after for name, flow in lake.conf.flows.items()}


def refuse_changed(lake: Lake) -> None:
    """A flow whose state is of another question cannot go on, nor one whose rows are ahead of its state."""
    for name, flow in lake.conf.flows.items():
        this, table = _read(lake, flow), f"gold.{flow.table}"
        if this.number and this.plan != _plan(flow):
            raise TidemarkError(
                f"flow {name} in conf/flows.yml was {this.plan}, and is {_plan(flow)} now.\n"
                "  Give it another name, under which it is computed from the first reading on; or put it back; or build silver and gold"
                " anew with `tidemark replay`."
            )
        if (written := written_by(lake.table_path(table), _app_id(lake, flow))) > this.number:
            raise TidemarkError(
                f"the state of flow {name} at {_folder(lake, flow)} is older than {table}, which holds slice {written} of it: the state"
                f" knows {this.number}.\n  {REPAIR}"
            )


def _follow(lake: Lake, flow: FlowSpec, prefix: int) -> Iterator[int]:
    while (this := _begun(lake, flow, prefix)) is not None:
        assert this.up_to
        crash.point(crash.Point.FLOW_BEGUN)
        readings = _readings(lake, flow, this.after.until, this.up_to.until)
        stepped = step(flow, Slice(_carried(lake, flow, this), readings, this.after.until, this.up_to.until))
        if len(stepped.rows):
            append_rows(lake.table_path(f"gold.{flow.table}"), stepped.rows, _app_id(lake, flow), this.number)
        crash.point(crash.Point.FLOW_WRITTEN)
        digest = write_rows(_folder(lake, flow) / f"{this.number}.arrow", stepped.carried)
        _write(lake, flow, Round(this.number, this.up_to, None, this.plan, digest))
        (_folder(lake, flow) / f"{this.number - 1}.arrow").local.unlink(missing_ok=True)
        yield len(stepped.rows)


def _begun(lake: Lake, flow: FlowSpec, prefix: int) -> Round | None:
    """A slice that a killed run began, or the next one; None where nothing has come."""
    this = _read(lake, flow)
    if this.up_to is None:
        if prefix <= this.after.bronze_batch:
            return None
        whole = _reach(lake, this.after, prefix)
        if whole.until == this.after.until:  # what came is too new to be final
            _write(lake, flow, replace(this, after=whole, plan=_plan(flow)))
            return None
        this = replace(this, number=this.number + 1, up_to=_cut(lake, flow, this.after, whole), plan=_plan(flow))
        _write(lake, flow, this)
    return this


def _reach(lake: Lake, after: Reach, prefix: int) -> Reach:
    """Whole milliseconds, as Spark counts a watermark in them."""
    query = f"select max(event_time) as newest from rows where bronze_batch > {after.bronze_batch} and bronze_batch <= {prefix}"
    newest = ask(query, {"rows": open_table(lake.table_path(READINGS))}).read_all()["newest"].cast(pa.int64())[0].as_py()
    lateness = lake.conf.policy.lateness_seconds
    until = THE_BEGINNING if newest is None else newest // 1000 * 1000 - max(lateness, after.lateness_seconds) * SECOND
    return Reach(prefix, max(until, after.until), lateness)


def _cut(lake: Lake, flow: FlowSpec, after: Reach, whole: Reach) -> Reach:
    """The whole way, or so much of it as holds about SLICE_ROWS; its bronze batches count as read at the end of it."""
    if _most_rows(lake, after.until) <= SLICE_ROWS:
        return whole
    query = (
        f"select second, count(*) as count from (select cast(arrow_cast(event_time, 'Int64') / {SECOND} as bigint) as second from rows"
        f" where {_condition(flow, after.until, whole.until)}) group by second order by second"
    )
    total = 0
    for seconds in ask(query, {"rows": open_table(lake.table_path(READINGS))}):
        for second, count in zip(seconds["second"].to_pylist(), seconds["count"].to_pylist(), strict=True):
            if total and total + count > SLICE_ROWS and second * SECOND > after.until:
                return replace(after, until=second * SECOND)
            total += count
    return whole


def _most_rows(lake: Lake, after: int) -> int:
    """By the log: how many readings there are at most from an instant on."""
    log = in_log(open_table(lake.table_path(READINGS)), "num_records", "max.event_time")
    if "max.event_time" not in log.column_names:
        return 0
    newest = log["max.event_time"].cast(pa.int64()).to_pylist()
    return sum(count for count, most in zip(log["num_records"].to_pylist(), newest, strict=True) if most is None or most >= after)


def _readings(lake: Lake, flow: FlowSpec, after: int, until: int) -> pa.Table:
    """Those of a slice, with the predicates of the flow."""
    query = f"select {'*' if flow.predicates else ', '.join(READING.names)} from rows where {_condition(flow, after, until)}"
    found = [_with_predicates(flow, piece) for piece in pieces(lake, READINGS, query)]
    return pa.concat_tables(found).cast(readings_of(flow))


def _with_predicates(flow: FlowSpec, readings: pa.Table) -> pa.Table:
    if not flow.predicates:
        return readings.select(READING.names)
    met = ", ".join(f"({to_duckdb(without_failures(predicate))}) as fits_{at}" for at, predicate in enumerate(flow.predicates))
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("reading", retyped(readings, INSTANT, PLAIN_INSTANT))
        return retyped(connection.sql(f"select {', '.join(READING.names)}, {met} from reading").to_arrow_table(), PLAIN_INSTANT, INSTANT)


def _condition(flow: FlowSpec, after: int, until: int) -> str:
    """SQL of DataFusion."""
    known = [f"event_time < {instant(until)}"]
    if after != THE_BEGINNING:
        known.append(f"event_time >= {instant(after)}")
    if flow.metrics:
        known.append(f"metric in {literal(flow.metrics)}")
    if flow.group:
        known.append(f"array_has(groups, '{flow.group}')")
    return " and ".join(known)


def _carried(lake: Lake, flow: FlowSpec, this: Round) -> pa.Table:
    if not this.carried:
        return nothing_carried(flow)
    return read_rows(_folder(lake, flow) / f"{this.number - 1}.arrow", this.carried, REPAIR)


def _plan(flow: FlowSpec) -> str:
    """In words, without what a flow leaves out."""
    settings = asdict(flow.of) | {"group": flow.group}
    said = ", ".join(f"{key} {value}" for key, value in settings.items() if value is not None)
    return f"{type(flow.of).__name__} ({said})"


def _app_id(lake: Lake, flow: FlowSpec) -> str:
    """Slices are counted by flow."""
    return lake.app_id(NAME, f"gold.{flow.table}/{flow.name}")


def _folder(lake: Lake, flow: FlowSpec) -> Location:
    return lake.checkpoint(NAME) / flow.name


def _read(lake: Lake, flow: FlowSpec) -> Round:
    return flow_positions.read(lake, flow.name) or Round()


def _write(lake: Lake, flow: FlowSpec, this: Round) -> None:
    write_atomic(_folder(lake, flow) / flow_positions.FILE, this)
