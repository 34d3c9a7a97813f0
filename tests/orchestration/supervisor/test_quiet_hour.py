"""An hour of the simulator, as a run would see it in batches of five seconds: no problem where none is, and the one that is put in."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from orchestration.conf.load import load
from orchestration.connectors.simulator.faults import Floats, Ints
from orchestration.connectors.simulator.messages import Arrivals, Defect, Kind, Messages
from orchestration.connectors.simulator.plan import WITHOUT_END, Odds, Plan, plan
from orchestration.jobs.watched_devices import Rest, Seen, SeenSource, WatchedDevices, add_rests, add_rows, add_sources
from orchestration.supervisor.device_health import Context, problems_of_devices
from orchestration.utc import to_micros
from tests.rows import at

CONF = Path(__file__).parents[3] / "conf"
START = at("2026-01-05T06:00:00")
BATCH_US, HOUR_US = 5_000_000, 3_600_000_000


def simulated(seed: int) -> Plan:
    """All devices of the default conf, with duplicates, late and broken lines; none is without a network."""
    conf, odds = load(CONF), Odds(offline=0)
    options = {"events": WITHOUT_END, "seed": seed, "start": START - timedelta(seconds=1), "interval_seconds": 10.0}
    return plan(conf, [*conf.devices.values()], shape="long", odds=odds, **options)  # type: ignore[arg-type]


def note(watched: WatchedDevices, messages: Messages, made: Plan, at_us: int) -> None:
    """As DataFusion sums up what silver makes of a batch."""
    for device in {int(row["device"]) for row in messages}:
        rows, name = messages[messages["device"] == device], made.devices[device].device_id
        future = rows["kind"] == Kind.FUTURE
        accepted, leads = rows["event_us"][~future], rows["event_us"] - at_us
        newest = int(accepted.max()) if len(accepted) else None
        add_rows(watched, [Seen(name, "plant", 1, at_us, at_us, newest, int(leads.min()))])
        for metric in {*rows["metric"][~future].tolist()}:
            of_metric = np.sort(rows[~future & (rows["metric"] == metric)], order="event_us")
            add_rests(watched, _rests(name, made.metrics[metric].name, of_metric["event_us"], of_metric["value"][:, 0]))


def _rests(device: str, metric: str, events: Ints, values: Floats) -> Iterator[Rest]:
    begins = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    for rest in np.split(np.arange(len(values)), begins[1:]):
        yield Rest(device, metric, float(values[rest[0]]), len(rest), int(events[rest[0]]), int(events[rest[-1]]))


def listed_in_an_hour(seed: int, silent: str = "") -> Counter[str]:
    """How many looks showed each problem. `silent`: a device that sends nothing from half past on."""
    made, watched, subjects = simulated(seed), WatchedDevices(), Counter[str]()
    arrivals, begin = Arrivals(made), to_micros(START)
    registered = {device.device_id for device in made.devices}
    names = np.array([device.device_id for device in made.devices])
    for at_us in range(begin + BATCH_US, begin + HOUR_US, BATCH_US):
        messages = arrivals.until(at_us)
        messages = messages[messages["defect"] == Defect.NONE]
        if at_us > begin + HOUR_US // 2:
            messages = messages[names[messages["device"]] != silent]
        note(watched, messages, made, at_us)
        late = int((messages["kind"] == Kind.LATE).sum())
        add_sources(watched, [SeenSource("plant", len(messages) - late, late, at_us)])
        known = Context(at_us, {"plant": 0}, registered=registered)
        subjects.update(problem.subject for problem in problems_of_devices(watched, known))
    return subjects


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_in_a_quiet_hour_no_problem_is_listed(seed: int) -> None:
    assert listed_in_an_hour(seed) == {}


def test_the_one_device_that_falls_silent_is_listed_until_the_end_and_no_other() -> None:
    subjects = listed_in_an_hour(1, silent="pump-02")
    assert subjects.keys() == {"device pump-02"}
    assert 350 <= subjects["device pump-02"] <= 357
