"""Planted bugs of flows and alerts: each kind of flow, and what an alert may forget or mistake; verify names them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gold.alerts.samples import samples
from gold.alerts.spec import Alert, Signal
from gold.alerts.states import Judged, judge
from gold.flows import steps
from gold.flows.spec import Counter, Kind, Pairs, Sessions, StateMachine, Transition
from gold.windows.spec import Group
from orchestration.engine.lake import Lake
from orchestration.jobs.gold import alert_rows, exact_alerts
from silver.aggregation import Aggregation
from silver.metric import Metric
from tests.declared_flow import flow_of
from tests.lakes import event, land, run
from tests.planted.day import START, Day

IN_TURNS = (Transition("idle", "hot", "value > 6"), Transition("hot", "idle", "value < 3"))
KINDS: dict[str, Kind] = {
    "open": Sessions(60, "door"),
    "answered": Pairs("command", "power", 20),
    "oven_state": StateMachine("power", "idle", (*IN_TURNS, Transition("hot", "left_on", None, 90))),
    "used": Counter(metric="meter", every_seconds=300, wraps_at=100),
}
ALERTS = (
    Alert("hot", Signal("reading", "power"), "value > 7", "value < 3", for_seconds=250, keep_firing_seconds=30),
    Alert("warm", Signal("window", "power", "kitchen"), "value > 4"),
    Alert("busy", Signal("account", every_seconds=1), "events > 100"),
)


def flows_and_alerts(day: Day) -> list[str]:
    """Half an hour of an oven in two runs: a slice ends while it is hot, and an alert waits. A late reading would warm a cold window."""
    metrics = {name: Metric(name, Aggregation.AVERAGE, 60) for name in ("power", "command", "door", "meter")}
    group = Group("kitchen", tuple(metrics), 60, "kitchen")
    declared, alerts = {name: flow_of(name, kind) for name, kind in KINDS.items()}, {alert.name: alert for alert in ALERTS}
    policy = replace(day.made.policy, lateness_seconds=60)
    made = replace(day.made, policy=policy, metrics=metrics, groups={"kitchen": group}, flows=declared, alerts=alerts)
    for name, seconds in (("1.json", range(0, 1000, 10)), ("2.json", range(1000, 1800, 10))):
        lines = [event("oven", "power", (1, 9, 5)[second // 200 % 3], START + timedelta(seconds=second)) for second in seconds]
        lines += [event("oven", "meter", second * 0.7 % 100, START + timedelta(seconds=second)) for second in seconds]
        lines += [event("oven", "command", 1, START + timedelta(seconds=second)) for second in seconds if second % 90 == 0]
        lines += [event("oven", "door", 1, START + timedelta(seconds=second)) for second in seconds if second % 300 in {0, 50, 110}]
        late = event("oven", "power", 1000, START + timedelta(seconds=61))
        land(made.folder, name, [*lines, *([late] if name == "2.json" else [])])
        run(made, day.spark)
    return Day(made, day.spark).wrong()


def other_flow(kind: type[Kind], **changes: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """A kind of flow is computed as if it were declared otherwise."""
    way = steps.WAYS[kind]
    return lambda patch: patch.setitem(steps.WAYS, kind, way._replace(step=lambda of, this: way.step(replace(of, **changes), this)))


def other_alert(**changes: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """Alerts that wait are judged as if they were declared otherwise."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(exact_alerts, "samples", lambda store, alert, *of: samples(store, _other(alert), *of))
        patch.setattr(exact_alerts, "judge", lambda alert, *of: judge(_other(alert), *of))

    def _other(alert: Alert) -> Alert:
        return replace(alert, **changes) if alert.for_seconds else alert

    return plant


def lost_recovery(patch: pytest.MonkeyPatch) -> None:
    def without_ends(*of: Any) -> Judged:
        judged = judge(*of)
        return judged._replace(changes=judged.changes.filter(pc.not_equal(judged.changes["state"], "normal")))

    patch.setattr(exact_alerts, "judge", without_ends)


def clock_that_restarts(patch: pytest.MonkeyPatch) -> None:
    """At each slice."""

    def restarted(alert: Alert, states: Any, *of: Any) -> Judged:
        later = {entity: state.last + alert.for_seconds * 10**6 for entity, state in states.items() if state.name == "pending"}
        return judge(alert, {**states, **{entity: replace(states[entity], due=due) for entity, due in later.items()}}, *of)

    patch.setattr(exact_alerts, "judge", restarted)


def lost_account(patch: pytest.MonkeyPatch) -> None:
    def arrived(lake: Lake, alert: Alert, *of: Any) -> pa.Table:
        rows = alert_rows.arrived(lake, alert, *of)
        return rows.slice(0, 0) if alert.signal.kind == "account" else rows

    patch.setattr(exact_alerts, "arrived", arrived)


def late_readings_left_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(alert_rows, "CAME_LATE", "cause = 'never'")


def wall_clock_that_is_fast(patch: pytest.MonkeyPatch) -> None:
    def a_second_later(alert: Alert, states: Any, rows: pa.Table, walls: Sequence[int]) -> Judged:
        return judge(alert, states, rows, [wall + 10**6 for wall in walls])

    patch.setattr(exact_alerts, "judge", a_second_later)


BUGS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Callable[[Day], list[str]]]] = {
    "end of a session": (other_flow(Sessions, gap_seconds=61), flows_and_alerts),
    "end of the range of a pair": (other_flow(Pairs, until_seconds=19), flows_and_alerts),
    "clock of a state": (other_flow(StateMachine, transitions=IN_TURNS), flows_and_alerts),
    "wraps of a flow": (other_flow(Counter, wraps_at=None), flows_and_alerts),
    "recovery of an alert": (lost_recovery, flows_and_alerts),
    "hold time of an alert": (other_alert(for_seconds=240), flows_and_alerts),
    "recovery threshold": (other_alert(recover_when=None), flows_and_alerts),
    "account of a batch": (lost_account, flows_and_alerts),
    "clock of an alert": (clock_that_restarts, flows_and_alerts),
    "late readings of an alert": (late_readings_left_out, flows_and_alerts),
    "wall clock of an alert": (wall_clock_that_is_fast, flows_and_alerts),
}
"""By what is mistaken, and what then happens."""
