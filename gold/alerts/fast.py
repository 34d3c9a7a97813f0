"""Alerts on single readings, told where events arrive: judged as in states.py, in the order in which readings come, and by the clock.

They only tell sooner what gold.alerts says later, with the same `alert_id` and instant wherever readings come in order of time. A reading
that is not newer than the last one of its device is passed over. Nothing is told of what silver's rules would quarantine.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from gold.alerts.signals import of_signal, verdict
from gold.alerts.spec import Alert
from gold.alerts.states import FIRING, NORMAL, State, judge
from gold.instants import SECOND, to_micros
from gold.schema import SAMPLES
from silver.judging import EnrichedRows, conditions
from silver.policy import SilverConfig

NEITHER = 2
VERDICTS = {1: True, 0: False, NEITHER: None}


@dataclass
class Watched:
    """The entities of one alert."""

    states: dict[str, State] = field(default_factory=dict)


class FastAlerts:
    """Conditions are compiled once. `watched`: by alert, for the next process too. Not for several threads."""

    def __init__(self, alerts: Iterable[Alert], config: SilverConfig, devices: pa.Table, watched: Mapping[str, Watched]) -> None:
        """`devices`: rows of silver.devices; may be replaced when they change."""
        self.alerts = [alert for alert in alerts if alert.fast]
        self.watched = {alert.name: watched.get(alert.name) or Watched() for alert in self.alerts}
        self.devices, self._rows = devices, EnrichedRows(config)
        # Null for what is no sample of the alert.
        verdicts = [f"case when {of_signal(alert.signal)} then coalesce({verdict(alert)}::int, {NEITHER}) end" for alert in self.alerts]
        self._rows.store.execute(
            f"prepare verdicts as select device_id, epoch_us(event_time), epoch_us(ingested_at), value, {', '.join(verdicts)} "
            f"from measurement where {' and '.join(conditions(config).values())} order by event_time"
        )

    def take(self, events: pa.Table) -> Iterator[pa.Table]:
        """Changes by events as of bronze.events, whose `ingested_at` is now: rows of ALERTS, without lineage."""
        for _ in self._rows.pieces(events, self.devices):
            rows = self._rows.store.execute("execute verdicts").fetchall()
            for number, alert in enumerate(self.alerts, 4):
                yield from self._judge(alert, [(*row[:4], row[number]) for row in rows if row[number] is not None])

    def silences(self, now: datetime) -> Iterator[pa.Table]:
        """Changes of devices that have sent nothing for longer than `no_data` allows, by the clock."""
        micros = to_micros(now)
        for alert in self.alerts:
            if alert.no_data is not None:
                watched, patience = self.watched[alert.name], alert.no_data.after_seconds * SECOND
                silent = {entity: state for entity, state in watched.states.items() if micros - state.came > patience}
                due = {entity: state for entity, state in silent.items() if state.silent is None and state.name != FIRING}
                if due:
                    judged = judge(alert, due, SAMPLES.empty_table(), [micros])
                    watched.states |= judged.states
                    yield judged.changes

    def _judge(self, alert: Alert, rows: Sequence[tuple[str, int, int, float, int]]) -> Iterator[pa.Table]:
        """Judge rows in order of time. Most change nothing; only their instant is kept then."""
        watched = self.watched[alert.name]
        states, samples = dict[str, State](), list[dict[str, Any]]()
        for entity, at, ingested_at, value, number in rows:
            state = watched.states.get(entity)
            if state is None:
                state = watched.states[entity] = State(since=at)
            if at > state.last:
                if number == 1 or state.name != NORMAL or entity in states or state.silent is not None:
                    # As it was before the first of these samples: of those in between none changed it.
                    states.setdefault(entity, replace(state))
                    samples.append({"entity": entity, "at": at, "ingested_at": ingested_at, "value": value, "verdict": VERDICTS[number]})
                state.last = state.seen = state.quiet = at
                state.came = ingested_at
        if samples:
            in_step = [sample | {"step": 0} for sample in samples]
            judged = judge(alert, states, pa.Table.from_pylist(in_step, SAMPLES), [samples[-1]["ingested_at"]])
            watched.states |= judged.states
            yield judged.changes
