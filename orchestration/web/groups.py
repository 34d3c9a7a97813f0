"""The view of groups: how fresh each is; for one group its windows and vectors as charts, with the newest values by device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from gold.spec import Group
from orchestration.web.charts import Chart, charts
from orchestration.web.freshness import Freshness, freshness, has_gold
from orchestration.web.queries import ViewRequest
from orchestration.web.spans import Span, instant, span_of

MOST_GROUPS, MOST_ROWS, MOST_DEVICES = 200, 200, 6
NEWEST = "select max(window_end) as newest from {table}_history"
OF_ALL = "silver.devices, gold.aggregates_history"
OF_ONE = f"{OF_ALL}, silver.readings, gold.{{group}}_aggregates_history, gold.{{group}}_vectors, gold.{{group}}_live"
VALUES = """
  select *, count(*) over () as every from (
    select device_id, metric, max(window_end) as ended_at, arg_max(value, window_end) as value, arg_max(count, window_end) as count,
      arg_max(revision, window_end) as revision, count(*) as windows, count(*) filter (revision > 0) as amended
    from {table} where window_end > {start} and window_end <= {end} group by all)
  order by ended_at, device_id, metric limit {most}
"""


@dataclass(frozen=True)
class Groups:
    """`all`: the first MOST_GROUPS of `count`, the worst first. `group` None: none is chosen, and what follows is empty; else `all` is.

    `newest`: the end of its newest window. `values`: rows of VALUES, the oldest first; `devices`: those in the charts.
    """

    at: datetime
    all: Sequence[Freshness]
    count: int
    group: Group | None = None
    fresh: Freshness | None = None
    newest: datetime | None = None
    span: Span | None = None
    values: Sequence[Mapping[str, Any]] = ()
    devices: Sequence[str] = ()
    charts: Sequence[Chart] = ()
    params: Mapping[str, Any] = field(default_factory=dict)

    def asked(self, **changes: Any) -> dict[str, Any]:
        """The parameters of this view, some of them changed."""
        return {name: value for name, value in {**self.params, **changes}.items() if value not in (None, "")}


def groups(request: ViewRequest) -> Groups:
    """`group`, `device` (again for each one), and a span; without a group the freshness of all."""
    group = request.conf.groups.get(request.params.get("group", ""))
    if group is None:
        every = freshness(request.conf, replace(request, tables=OF_ALL).rows)
        return Groups(request.now, every[:MOST_GROUPS], len(every))
    request = replace(request, tables=OF_ONE.format(group=group.name))
    (fresh,) = freshness(request.conf, request.rows, group.name)
    newest = fresh.newest_at
    if newest is None and has_gold(request.conf):
        newest = request.rows(NEWEST.format(table=f"gold.{group.name}_aggregates"))[0]["newest"]
    if newest is None:
        return Groups(request.now, (), 0, group, fresh)
    span = span_of(request.params, newest)
    values = _values(request, group, span)
    asked = [name for name in dict.fromkeys(request.params.getlist("device")) if name][:MOST_DEVICES]
    devices = asked or [*dict.fromkeys(row["device_id"] for row in sorted(values, key=lambda row: row["device_id"]))][:MOST_DEVICES]
    drawn = charts(request, group, span, devices, is_newest=span.end >= newest)
    params = {"group": group.name, "device": asked, **_span_as_asked(span)}
    return Groups(request.now, (), 0, group, fresh, newest, span, values, devices, drawn, params)


def _values(request: ViewRequest, group: Group, span: Span) -> list[dict[str, Any]]:
    between = {"start": instant(span.start), "end": instant(span.end), "most": MOST_ROWS}
    return request.rows(VALUES.format(table=f"gold.{group.name}_aggregates", **between))


def _span_as_asked(span: Span) -> dict[str, str]:
    return {"span": span.name} if span.name else {"from": span.start.isoformat(), "to": span.end.isoformat()}
