"""Flows of conf/flows.yml: one slice of each kind. Pure; see slices.py for what a slice is."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from gold.flows import measures, pairs, sessions, states
from gold.flows.slices import Slice, Stepped, with_predicates
from gold.flows.spec import Counter, Distance, DutyCycle, FlowSpec, Kind, Pairs, Sessions, Silence, StateMachine


class _Way(NamedTuple):
    """`carried`: columns of what a slice leaves for the next one; None for the readings themselves."""

    step: Callable[[Any, Slice], Stepped]
    carried: pa.Schema | None


WAYS: dict[type[Kind], _Way] = {
    Sessions: _Way(sessions.sessions, sessions.COLUMNS),
    Pairs: _Way(pairs.pairs, None),
    StateMachine: _Way(states.state_machine, states.STATE),
    Silence: _Way(states.silence, states.LAST),
    Distance: _Way(measures.distance, measures.ITEM),
    DutyCycle: _Way(measures.duty_cycle, measures.ITEM),
    Counter: _Way(measures.counter, measures.COUNTED),
}


def nothing_carried(flow: FlowSpec) -> pa.Table:
    """Before the first slice."""
    return (WAYS[type(flow.kind)].carried or readings_of(flow)).empty_table()


def readings_of(flow: FlowSpec) -> pa.Schema:
    """Columns of the readings that a flow takes: READING, its predicates, and the `key` of a join by one."""
    schema = with_predicates(len(flow.predicates))
    return schema if flow.join is None or flow.join.key is None else schema.append(pa.field("key", pa.string()))


def step(flow: FlowSpec, this: Slice) -> Stepped:
    """Rows that are certain at the end of the slice, with `flow` as their first column, and what the next slice needs."""
    stepped = WAYS[type(flow.kind)].step(flow.kind, this)
    named = stepped.rows.add_column(0, "flow", pa.array([flow.name] * len(stepped.rows), pa.string()))
    return Stepped(named, stepped.carried)
