"""Flows of flows.yml once more, from all readings that came in time, by SQL of DuckDB and, where a state goes on, row by row in Python."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby
from math import asin, cos, radians, sin, sqrt
from operator import itemgetter
from typing import Any

import duckdb

from gold.flows.spec import Counter, Distance, DutyCycle, FlowSpec, Join, Pairs, Sessions, Silence, StateMachine
from orchestration.audit.verify.compare import Comparison, Outcome, compared, timed
from orchestration.audit.verify.conditions import evaluated
from orchestration.audit.verify.counters import Meter
from orchestration.audit.verify.gold_windows import EVER, WHOLE_MULTIPLE
from orchestration.audit.verify.lake_snapshot import LakeSnapshot
from orchestration.audit.verify.lanes import passed
from orchestration.audit.verify.store import IDENTITY, PART_OF_EVENT, READINGS, column_names, fill, listed, record
from orchestration.storage.delta import literal
from orchestration.utc import to_micros

Row = tuple[Any, ...]
SIDE = "{0}_device VARCHAR, {0}_time TIMESTAMP, {0}_value DOUBLE, {0}_bronze_batch BIGINT, {0}_bronze_row BIGINT, {0}_part INTEGER"
STATES = f"""
  device_id VARCHAR, changed_at TIMESTAMP, state VARCHAR, previous VARCHAR, seconds DOUBLE, value DOUBLE, {PART_OF_EVENT}
"""
TABLES: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "sessions": (
        f"""device_id VARCHAR, session_start TIMESTAMP, session_end TIMESTAMP, count BIGINT, min DOUBLE, max DOUBLE, sum DOUBLE,
        first DOUBLE, latest DOUBLE, {PART_OF_EVENT}""",
        ("device_id", "session_start"),
        {"sum": "size"},
    ),
    "pairs": (
        f"key VARCHAR, {SIDE.format('left')}, {SIDE.format('right')}",
        tuple(f"{side}_{name}" for side in ("left", "right") for name in IDENTITY),
        {},
    ),
    "states": (STATES, ("device_id", "changed_at", "state"), {}),
    "measures": (
        """device_id VARCHAR, window_start TIMESTAMP, window_end TIMESTAMP, value DOUBLE, highest DOUBLE, known_seconds DOUBLE,
        count BIGINT, glitches BIGINT, wraps BIGINT, resets BIGINT""",
        ("device_id", "window_start"),
        dict.fromkeys(("value", "highest", "known_seconds"), "size"),
    ),
}
"""Columns, key, and what may differ a little (see Comparison), by the table of gold."""
SESSIONS = """
  with marked as (select *, coalesce(event_time - lag(event_time) over same >= to_seconds({gap}), true) as begins from taken {where}
    window same as (partition by device_id order by event_time, metric)),
  numbered as (select *, sum(begins::int) over (partition by device_id order by event_time, metric) as number from marked)
  select device_id, min(event_time) as session_start, max(event_time) + to_seconds({gap}) as session_end, count(*) as count,
    min(value) as min, max(value) as max, sum(value) as sum, max(abs(value)) as size, list(value order by event_time, metric)[1] as first,
    list(value order by event_time desc, metric desc)[1] as latest, {lineage}
  from numbered group by device_id, number having max(event_time) + to_seconds({gap}) <= $until
"""
MATCHED = """
  create or replace temp table matched as
  select l.{shown} as key, {left}, {right} from taken l join taken r on l.{by} = r.{by} and {same_key}
    and l.metric = $left and r.metric = $right
    and l.fits_0 and r.fits_1 and r.event_time between l.event_time + to_seconds({first}) and l.event_time + to_seconds({last})
    and (l.bronze_batch, l.bronze_row, l.part) <> (r.bronze_batch, r.bronze_row, r.part)
"""
CANDIDATES = f"""
  select rowid, [{", ".join(f"left_{name}" for name in IDENTITY)}] as command, [{", ".join(f"right_{name}" for name in IDENTITY)}] as answer
  from matched order by left_time, left_device, right_time, right_device
"""
ALONE = """
  union all by name select {shown} as key, {side} from taken s
  where metric = ${name} and fits_{at} and event_time + to_seconds({wait}) < $until
    and not exists (from matched m where {same})
"""
SILENCE = """
  with following as (select *, lead(event_time) over same as next_time, lead(value) over same as next_value, {next_lineage} from taken
    window same as (partition by device_id order by event_time, metric)),
  silent as (select *, event_time + to_seconds({patience}) as begun from following
    where coalesce(next_time, $until) > event_time + to_seconds({patience}))
  select device_id, begun as changed_at, 'silent' as state, 'heard' as previous, {patience} as seconds from silent
  union all by name select device_id, next_time as changed_at, 'heard' as state, 'silent' as previous,
    epoch_us(next_time - begun) / 1e6 as seconds, next_value as value, {next} from silent where next_time is not null
"""
PLACED = """
  select y.device_id, y.event_time, y.value, x.value from taken y join taken x using (device_id, event_time)
  where y.metric = $latitude and x.metric = $longitude order by y.device_id, y.event_time
"""
DISTANCE = """
  select device_id, {window_start} as window_start, coalesce(sum(way), 0) as value, coalesce(max(way / seconds), 0) as highest,
    count(way) as count, count(*) filter (not is_position)::bigint as glitches, max(way) as size from ways_of_flow
  where way is not null or not is_position group by all
"""
WAYS = "device_id VARCHAR, event_time TIMESTAMP, is_position BOOLEAN, way DOUBLE, seconds DOUBLE"
DUTY_CYCLE = """
  with spans as (select *, least(event_time + to_seconds({hold}), coalesce(lead(event_time) over same, $until), $until) as ended from taken
    window same as (partition by device_id order by event_time)),
  cut as (select *, make_timestamp(unnest(range(epoch_us({window_start}), epoch_us(ended), {every}000000))) as window_start from spans
    where ended > event_time),
  pieces as (select *, epoch_us(least(ended, window_start + to_seconds({every})) - greatest(event_time, window_start)) / 1e6 as known
    from cut where fits_0 is not null)
  select device_id, window_start, sum(case when fits_0 then known else 0 end) / sum(known) as value, sum(known) as known_seconds,
    count(*) filter (event_time >= window_start) as count, 1.0 as size from pieces where known > 0 group by device_id, window_start
"""
WINDOW_START = "make_timestamp(whole_multiple(epoch_us(event_time), {}000000))"
COUNTS = ("glitches", "wraps", "resets")
STEPS = "device_id VARCHAR, event_time TIMESTAMP, rise DOUBLE, glitches BIGINT, wraps BIGINT, resets BIGINT, value DOUBLE"


def flow_outcome(store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, flow: FlowSpec) -> Outcome:
    """Rows of a flow against what readings of the prefix give."""
    columns, key, near = TABLES[flow.table]
    cells = [name for name in column_names(columns) if name not in key]

    def compare() -> Outcome:
        record(store, snapshot, f"gold.{flow.table}", "recorded_flow", columns, where=f"flow = '{flow.name}'")
        until = snapshot.closed_until.get(f"gold.flows/{flow.name}", EVER).replace(tzinfo=None)
        _take(store, flow, until, snapshot)
        _expect(store, flow, until)
        return compared(store, "recorded_flow", "expected_flow", Comparison(f"gold.{flow.name}", key, cells, near))

    return timed(compare)


def _take(store: duckdb.DuckDBPyConnection, flow: FlowSpec, until: datetime, snapshot: LakeSnapshot) -> None:
    """Makes `taken`: readings of the flow that came in time, before an instant, with its predicates as columns `fits_<n>`."""
    met = "".join(f", {evaluated(predicate, READINGS)} as fits_{at}" for at, predicate in enumerate(flow.predicates))
    in_time = f"semi join (from counted where not is_late) using ({listed(IDENTITY)})"
    conditions: dict[str, tuple[str, Any]] = {"until": ("event_time < $until", until)}
    if flow.metrics:
        conditions["metrics"] = "list_contains($metrics, metric)", list(flow.metrics)
    if flow.group:
        conditions["group"] = "list_contains(groups, $group)", flow.group
    where = " and ".join(condition for condition, _ in conditions.values())
    values = {name: value for name, (_, value) in conditions.items()}
    if isinstance(flow.kind, Pairs) and flow.kind.key is not None:
        met += f", element_at(attributes, {literal(flow.kind.key)})[1] as attribute"
    store.execute(f"create or replace temp table taken as select *{met} from accepted {in_time} where {where}", values)
    if snapshot.lanes is not None:
        of_flow = " and ".join(condition for name, (condition, _) in conditions.items() if name != "until") or "true"
        of_flow_alone = {name: value for name, value in values.items() if name != "until"}
        store.execute(passed(snapshot.lanes, snapshot.lateness_seconds, of_flow, in_time), of_flow_alone)
        store.execute("delete from taken using passed where taken.bronze_batch = passed.bronze_batch and event_time < passed_by")
    store.execute(WHOLE_MULTIPLE)


def _expect(store: duckdb.DuckDBPyConnection, flow: FlowSpec, until: datetime) -> None:
    """Makes `expected_flow`."""
    match flow.kind:
        case Sessions(gap_seconds=gap, when=when):
            first = ", ".join(f"list({name} order by event_time, metric)[1] as {name}" for name in IDENTITY)
            _make(store, SESSIONS.format(gap=gap, lineage=first, where="where fits_0" if when else ""), until=until)
        case Pairs() as pairs:
            _expect_pairs(store, pairs, until)
        case Silence(after_seconds=patience):
            following = ", ".join(f"lead({name}) over same as next_{name}" for name in IDENTITY)
            of_next = ", ".join(f"next_{name} as {name}" for name in IDENTITY)
            _make(store, SILENCE.format(patience=patience, next_lineage=following, next=of_next), until=until)
        case StateMachine() as machine:
            fits = f"[{', '.join(f'coalesce(fits_{at}, false)' for at in range(len(flow.predicates)))}]"
            changes = [change for device in _by_device(store, f", {fits}") for change in _states(machine, device, until)]
            fill(store, "expected_flow", STATES, changes)
        case Distance(latitude=latitude, longitude=longitude, every_seconds=every, most_plausible_speed=fastest):
            placed = store.execute(PLACED, {"latitude": latitude, "longitude": longitude}).fetchall()
            fill(store, "ways_of_flow", WAYS, [way for _, rows in groupby(placed, key=itemgetter(0)) for way in _ways(fastest, rows)])
            _make(store, _closed(DISTANCE.format(window_start=WINDOW_START.format(every)), every), until=until)
        case DutyCycle(every_seconds=every, hold_seconds=hold):
            sql = DUTY_CYCLE.format(window_start=WINDOW_START.format(every), every=every, hold=hold)
            _make(store, _closed(sql, every), until=until)
        case Counter(every_seconds=every) as counter:
            fill(store, "steps_of_flow", STEPS, (step for device in _by_device(store) for step in _steps(counter, device)))
            counts = ", ".join(f"sum({name})::bigint as {name}" for name in COUNTS)
            sql = (
                f"select device_id, {WINDOW_START.format(every)} as window_start, sum(rise) as value, max(rise) as highest,"
                f" count(*) as count, {counts}, max(abs(value)) as size from steps_of_flow group by all"
            )
            _make(store, _closed(sql, every), until=until)


def _make(store: duckdb.DuckDBPyConnection, sql: str, **values: object) -> None:
    """Makes `expected_flow`; columns that the query does not have are null."""
    store.execute(f"create or replace temp table expected_flow as (from recorded_flow limit 0) union all by name ({sql})", values or None)


def _closed(sql: str, every: int) -> str:
    ended = f"window_start + to_seconds({every})"
    return f"select *, {ended} as window_end from ({sql}) where {ended} <= $until"


def _expect_pairs(store: duckdb.DuckDBPyConnection, flow: Pairs, until: datetime) -> None:
    def side(name: str, alias: str) -> str:
        named = {"device_id": "device", "event_time": "time", "value": "value"} | {column: column for column in IDENTITY}
        return ", ".join(f"{alias}.{column} as {name}_{short}" for column, short in named.items())

    by = "device_id" if flow.by == "device" else "zone"
    sides = {"left": side("left", "l"), "right": side("right", "r")}
    shown, same_key = (by, "true") if flow.key is None else ("attribute", "l.attribute = r.attribute")
    matched = MATCHED.format(by=by, shown=shown, same_key=same_key, first=flow.from_seconds, last=flow.until_seconds, **sides)
    store.execute(matched, {"left": flow.left, "right": flow.right})
    if flow.key is not None:
        _answer_once(store)
    sql, values = "from matched where greatest(left_time, right_time) < $until", {"until": until}
    kept = {Join.INNER: (), Join.LEFT: ("left",), Join.FULL: ("left", "right")}[flow.join]
    for at, name in enumerate(kept):
        same = " and ".join(f"m.{name}_{column} = s.{column}" for column in IDENTITY)
        wait = max(0, flow.until_seconds if name == "left" else -flow.from_seconds)
        sql += ALONE.format(shown=shown, side=side(name, "s"), name=name, at=at, wait=wait, same=same)
        values |= {name: getattr(flow, name)}
    _make(store, sql, **values)


def _answer_once(store: duckdb.DuckDBPyConnection) -> None:
    """Leave in `matched` one answer a command: the first one that no earlier command has had."""
    commands, answers, chosen = set[str](), set[str](), list[tuple[int]]()
    for number, command, answer in store.execute(CANDIDATES).fetchall():
        if str(command) not in commands and str(answer) not in answers:
            commands.add(str(command))
            answers.add(str(answer))
            chosen.append((number,))
    fill(store, "chosen", "number BIGINT", chosen)
    store.execute("delete from matched where rowid not in (from chosen)")


def _by_device(store: duckdb.DuckDBPyConnection, more: str = "") -> Iterator[list[Row]]:
    columns = f"device_id, event_time, value, {listed(IDENTITY)}{more}"
    rows = store.execute(f"select {columns} from taken order by device_id, event_time").fetchall()
    yield from (list(of_device) for _, of_device in groupby(rows, key=itemgetter(0)))


def _ways(fastest: float, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield for each place of a device whether it is a position, and the metres and seconds from the last one that was."""
    before: Row | None = None
    for device_id, at, latitude, longitude in rows:
        is_position = -90 <= latitude <= 90 and -180 <= longitude <= 180 and (latitude, longitude) != (0, 0)
        way = seconds = None
        if is_position and before is not None:
            seconds = (at - before[1]).total_seconds()
            way = _great_circle(*before[2:], latitude, longitude)
            if way / seconds > fastest:
                is_position, way = False, None
        yield device_id, at, is_position, way, seconds
        if is_position:
            before = device_id, at, latitude, longitude


def _great_circle(*degrees: float) -> float:
    """Metres between two latitudes and longitudes, on a sphere of the mean radius."""
    y0, x0, y, x = map(radians, degrees)
    return 12742017.6 * asin(sqrt(min(1, sin((y - y0) / 2) ** 2 + cos(y0) * cos(y) * sin((x - x0) / 2) ** 2)))


def _states(machine: StateMachine, rows: list[Row], until: datetime) -> Iterator[Row]:
    """Row by row; between two rows, and behind the last one, time alone may change the state."""
    state, since = machine.initial, rows[0][1]
    nobody: Row = (rows[0][0], until, None, None, None, None, [])
    for device_id, at, value, batch, row, part, fits in [*rows, nobody]:
        while timed := [(wait, to.target) for to in machine.transitions if to.source == state and (wait := to.after_seconds) is not None]:
            wait, target = min(timed)
            changed = since + timedelta(seconds=wait)
            if changed > at:
                break
            yield device_id, changed, target, state, float(wait), None, None, None, None
            state, since = target, changed
        for to, fit in zip(machine.transitions, fits, strict=False):
            if fit and to.source == state:
                yield device_id, at, to.target, state, (at - since).total_seconds(), value, batch, row, part
                state, since = to.target, at
                break


def _steps(counter: Counter, rows: list[Row]) -> Iterator[Row]:
    """Yield what the meter of a device rose by to each reading but the first."""
    meter = Meter(counter)
    for device_id, at, value, *_ in rows:
        rise = meter.read(to_micros(at.replace(tzinfo=UTC)), float(value))
        if rise is not None:
            yield device_id, at, rise.amount, int(rise.glitch), int(rise.wrap), int(rise.reset), float(value)
