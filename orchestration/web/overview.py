"""The overview: the graph of queries with rates and lags, the account of events, and what is wrong now. Without Spark."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pyarrow.compute as pc

from expectations.wording import counted
from orchestration.conf.model import Conf
from orchestration.storage.delta import is_table, table_of
from orchestration.storage.ops_tables import COUNTED, LEDGER, LEDGER_SCHEMA, MEASUREMENTS
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import find_snapshot
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.health import LAG_VIEW, LONGEST_LAG_SECONDS, Problem, known_until, problems
from orchestration.supervisor.service_state import parts_of
from orchestration.supervisor.status import EVENTS, read_status
from orchestration.supervisor.status import LEDGER as LEDGER_FLOW
from orchestration.utc import from_iso
from orchestration.web.alerts import firing_alerts
from orchestration.web.last_hour import LastHour
from orchestration.web.queries import ViewRequest

ACCOUNT_PARTS = 120
LAYERS = ("sources", "bronze", "silver", "gold", "sinks")
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Node:
    """A source, flow or sink. `state`: up, down, paused, new, or behind, where rows wait for so long that it is a problem.

    `rows`: of its table, or of a source in the last hour. `own`: for how many seconds the oldest row waits that it could have read;
    `inherited`: those that the nodes before it add. `is_culprit`: the one that others wait for, see health. `watermark_at`: None where
    the flow has none. `rates`, `lags`: of the minutes of the last hour, the newest last.
    """

    name: str
    layer: str
    state: str
    rows: int
    last_at: datetime | None = None
    own: float | None = None
    behind: int | None = None
    note: str = ""
    inherited: float = 0.0
    is_culprit: bool = False
    watermark_at: datetime | None = None
    rates: Sequence[float] = ()
    lags: Sequence[float] = ()

    @property
    def subject(self) -> str:
        """The name of it in the list of what is wrong."""
        return f"{'source' if self.layer == 'sources' else 'query'} {self.name}"

    @property
    def rate(self) -> float:
        """Rows a second in the last whole minute."""
        return self.rates[-2] / 60


@dataclass(frozen=True)
class Overview:
    """`at`: when it was read, UTC. `account`: events of bronze, and by kind what became of measurements; `waiting`: events.

    `problems`: what is wrong, as of `known_until`; None where no run has looked yet. `batches`: the facts of the last batch of each flow.
    """

    at: datetime
    snapshot: Snapshot | None
    nodes: Sequence[Node]
    account: dict[str, int]
    problems: Sequence[Problem]
    known_until: datetime | None = None
    parts: Rows = field(default_factory=list)
    batches: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    firing: Sequence[Mapping[str, Any]] = ()
    over_time: Sequence[Mapping[str, int]] = ()

    def of_layer(self, layer: str) -> list[Node]:
        return [node for node in self.nodes if node.layer == layer]

    @property
    def shares(self) -> list[tuple[str, int, float]]:
        """List the parts of the bar, which make a whole: kind, count, percent."""
        kinds = {name: self.account[name] for name in (*MEASUREMENTS, "waiting") if self.account[name]}
        return [(name, count, 100 * count / sum(kinds.values())) for name, count in kinds.items()]


def overview(request: ViewRequest, hour: LastHour) -> Overview:
    """`hour`: of the server, which has seen the minutes before."""
    conf, now = request.conf, request.now
    status = read_status(conf, now)
    nodes = [*_of_sources(status.sources), *_of_flows(status.flows), *_of_sinks(status.sinks)]
    hour.note(conf.lake, now, [(node.name, node.own) for node in nodes])
    inherited = _inherited(nodes)
    wrong = problems(conf, now, status)
    culprit = next((problem.subject for problem in wrong if problem.view == LAG_VIEW), None)
    nodes = [
        replace(
            node,
            inherited=inherited[node.layer],
            is_culprit=node.subject == culprit,
            rates=hour.rates(node.name, now),
            lags=hour.lags(node.name, now),
        )
        for node in nodes
    ]
    account, over_time = _account(conf, next((row["rows"] for row in status.flows if row["table"] == EVENTS), 0))
    more = wrong, known_until(conf), parts_of(conf.lake), {**hour.batches}, firing_alerts(conf, now), over_time
    return Overview(now, find_snapshot(conf.lake), nodes, account, *more)


def _of_sources(sources: Rows) -> Iterator[Node]:
    for row in sources:
        note = f"{row['waiting_bytes']:,} bytes wait" if row["waiting_bytes"] else ""
        came_at, lag, behind = _instant(row["last_received_at"]), row["lag_seconds"], row["waiting_messages"]
        yield Node(row["source"], "sources", row["state"], row["rows_last_hour"], came_at, lag, behind, note)


def _inherited(nodes: Sequence[Node]) -> dict[str, float]:
    """Return the longest lags of the layers before each one, together. The ledger is not counted: nothing reads from it."""
    inherited, total = dict[str, float](), 0.0
    for layer in LAYERS:
        inherited[layer] = total
        total += max((node.own or 0.0 for node in nodes if node.layer == layer and node.name != LEDGER_FLOW), default=0.0)
    return inherited


def _of_flows(flows: Rows) -> Iterator[Node]:
    """One a flow: of several tables the first."""
    seen = set[str]()
    for row in flows:
        if row["flow"] in seen or row["flow"] == "gold.amendments":
            continue
        seen.add(row["flow"])
        layer = row["flow"].split(".", 1)[0]
        state = "new" if row["last_batch"] is None else "behind" if _is_behind(row) else "up"
        lag, behind, watermark_at = row["lag_seconds"], row["behind"], row["watermark_at"]
        yield Node(row["flow"], layer, state, row["rows"], row["last_batch_at"], lag, behind, watermark_at=watermark_at)


def _of_sinks(sinks: Rows) -> Iterator[Node]:
    for row in sinks:
        state = "down" if row["down_since"] else "new" if row["snapshot"] is None else "behind" if _is_behind(row) else "up"
        sent_at, lag, rows = _instant(row["sent_at"]), row["lag_seconds"], row["rows_behind"]
        dead = f"; {counted(row['dead_rows'], 'row')} in ops.dead_rows" if row["dead_rows"] else ""
        yield Node(row["sink"], "sinks", state, 0, sent_at, lag, rows, f"from {row['table']}{dead}")


def _account(conf: Conf, bronze: int) -> tuple[dict[str, int], list[dict[str, int]]]:
    """Sum up the ledger: as a whole, and in at most ACCOUNT_PARTS parts of as many bronze batches each, the oldest first."""
    ledger = LakeStore(conf).table_path(LEDGER)
    rows = table_of(ledger) if is_table(ledger) else LEDGER_SCHEMA.empty_table()
    sums = {name: pc.sum(rows[name]).as_py() or 0 for name in COUNTED}
    newest = pc.max(rows["bronze_batch"]).as_py() or 0
    part = pc.floor(pc.divide(pc.multiply(rows["bronze_batch"].cast("double"), min(newest + 1, ACCOUNT_PARTS)), newest + 1.0))
    by_part = rows.append_column("part", part).group_by("part").aggregate([(name, "sum") for name in MEASUREMENTS]).sort_by("part")
    over_time = [{name: row[f"{name}_sum"] for name in MEASUREMENTS} for row in by_part.to_pylist()]
    return sums | {"waiting": max(bronze - sums["events"], 0), "events": bronze}, over_time


def _is_behind(row: Mapping[str, Any]) -> bool:
    return (row["lag_seconds"] or 0.0) > LONGEST_LAG_SECONDS


def _instant(text: str | None) -> datetime | None:
    return from_iso(text) if text else None
