"""Stream, broker and receiver are killed by turns while devices heat up and cool down: each time is told once, and its end."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestration.connectors.simulator.plan import DEFAULT_START
from tests.broker import Broker
from tests.chaos.kafka_feed import fed_by_kafka, produce
from tests.chaos.plants import Plant
from tests.chaos.receiver import Receiver
from tests.lakes import event

pytestmark = pytest.mark.processes
TOPIC, EVERY_SECONDS = "heat-1", 200
ALERTS = """
alerts:
  hot: {{reading: temperature, when: value > 280, recover_when: value < 260, digest_older_than_seconds: 315360000}}
channels:
  pager: {{webhook: {{url: "{address}"}}}}
"""
Episode = tuple[str, str, datetime]
"""Device, state and the instant at which it began."""


def planted(devices: int, seconds: int, chance: random.Random) -> tuple[list[tuple[str, float, datetime]], list[Episode]]:
    """Readings of devices in turn, each a second apart; and what must be told: in each EVERY_SECONDS a device is hot once."""
    begins = {(n, begin): begin + chance.randrange(20, 150) for n in range(devices) for begin in range(0, seconds, EVERY_SECONDS)}
    readings, told = [], []
    for second in range(seconds):
        at = DEFAULT_START + timedelta(seconds=second)
        for n in range(devices):
            since = second - begins[n, second - second % EVERY_SECONDS]
            readings.append((f"heat-{n}", 290.0 if 0 <= since < 20 else 270.0 if 20 <= since < 30 else 200 + n % 50, at))
            if since in (0, 30):
                told.append((f"heat-{n}", "firing" if since == 0 else "normal", at))
    return readings, told


def watched(folder: Path, servers: str, devices: int, receiver: Receiver) -> Plant:
    plant, conf = fed_by_kafka(folder, servers, "heat-[0-9]"), folder / "conf"
    (conf / "devices.yml").write_text("devices:\n" + "".join(f"  heat-{n}: {{groups: [kitchen]}}\n" for n in range(devices)))
    (conf / "flows.yml").unlink()
    (conf / "alerts.yml").write_text(ALERTS.format(address=receiver.address))
    (conf / "groups.yml").write_text("groups:\n  kitchen: {metrics: [temperature], lateness_seconds: 60}\n")
    return plant


def episodes(message: dict[str, Any]) -> Iterator[Episode]:
    """What a message tells: one change, or of what was over before it could be sent the begin and the end."""
    (device,) = message["entities"]
    begin, state = datetime.fromisoformat(message["changed_at"]), message["state"]
    yield device, "firing" if state == "over" else state, begin
    if state == "over":
        yield device, "normal", datetime.fromisoformat(message["ended_at"])


def disturb(plant: Plant, broker: Broker, receiver: Receiver, chosen: random.Random, kills: int) -> None:
    """Each of the three is killed in each turn, the run at its end."""
    for _ in range(kills):
        with plant.running("run"):
            time.sleep(chosen.uniform(12, 20))
            for server in chosen.sample([broker, receiver], 2):
                server.kill()
                time.sleep(chosen.uniform(0.5, 2))
                server.start()
                time.sleep(chosen.uniform(2, 6))


@pytest.mark.parametrize(
    ("devices", "seconds"), [pytest.param(100, 200, id="100"), pytest.param(1_000, 1_000, id="5000", marks=pytest.mark.slow)]
)
def test_each_condition_is_told_once_and_its_end_though_all_are_killed(
    running: Broker, tmp_path: Path, seed: int | None, devices: int, seconds: int
) -> None:
    chosen = random.Random(seed)
    readings, expected = planted(devices, seconds, chosen)
    kills = max(len(readings) // 250_000, 1)
    running.create(TOPIC)
    with Receiver(tmp_path).running() as receiver:
        plant = watched(tmp_path, running.servers, devices, receiver)

        def messages() -> Iterator[tuple[str, int, str]]:
            yield from ((TOPIC, 0, event(device, "temperature", value, at)) for device, value, at in readings)

        producer = threading.Thread(target=produce, args=(running.servers, messages(), max(len(readings) // 60, 2_000)))
        producer.start()
        disturb(plant, running, receiver, chosen, kills)
        producer.join()
        running.send(TOPIC, [event("heat-0", "temperature", 200, DEFAULT_START + timedelta(days=1)).encode()])
        assert [plant.exit_code(*command) for command in (("run", "--once"), ("ledger",), ("verify",))] == [0, 0, 0], plant.log_end()
        received = receiver.received()
    by_id = {message["key"]: message for message in received}
    told = Counter(episode for message in by_id.values() for episode in episodes(message))
    assert told.keys() == {*expected}
    # An answer that was lost in a kill, and then the end: what had fired is in the message about its end once more.
    assert all(count == 1 or (state == "firing" and count == 2) for (_, state, _), count in told.items())
    again = len(received) - len(by_id)
    print(f"{len(expected):,} messages for {len(expected) // 2:,} conditions; {again} came again under their ids after a kill")
    assert again <= 100 * 2 * kills
