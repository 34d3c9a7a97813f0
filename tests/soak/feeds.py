"""What feeds the plant of a soak, each source in a thread: simulated devices land files, one speaks by HTTP, one puts objects into a store.

Devices live 20 times as fast as the clock on the wall: windows of ten minutes close every half a minute. Their time begins in the past and
stays there, or their events would be of the future.
"""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

from botocore.exceptions import BotoCoreError

from orchestration.connectors.simulator.landing import Landing
from orchestration.connectors.simulator.messages import Arrivals
from orchestration.connectors.simulator.plan import WITHOUT_END, Odds, plan
from tests.soak.plant import OTHER_DEVICES, Plant

SPEED = 20
INTERVAL_SECONDS = 10.0
"""Between two readings of a simulated device, by its own time: 20 devices with 5 metrics send 200 events a second."""
LONGER = timedelta(hours=1)
"""No soak takes so much longer than it was told to."""
FILE_SECONDS, REQUEST_SECONDS, OBJECT_SECONDS = 1.0, 0.5, 3.0
EVENTS = 5
"""Of a request, and of an object."""


class Feeds:
    """`sent`: payloads of `web` and `bucket`, each once, in order; `landed`: the number of lines in files of `plant`."""

    def __init__(self, plant: Plant, minutes: float, seed: int) -> None:
        """Nothing is sent yet."""
        self._plant, self._seed = plant, seed
        self._start, self._begin = datetime.now(UTC) - SPEED * (timedelta(minutes=minutes) + LONGER), time.monotonic()
        self._stop = threading.Event()
        self.landed = 0
        self.sent: dict[str, list[bytes]] = {name: [] for name in OTHER_DEVICES}
        self._running: list[Future[None]] = []

    def raise_if_broken(self) -> None:
        """What ended one of them."""
        for running in self._running:
            if running.done():
                running.result()

    def stop(self) -> None:
        """What is being sent gets its answer first."""
        self._stop.set()
        for running in self._running:
            running.result()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Until the block ends."""
        with ThreadPoolExecutor(3, "feed") as threads:
            try:
                self._running = [threads.submit(feed) for feed in (self._land, self._post, self._put)]
                yield
            finally:
                self._stop.set()

    def _now(self) -> datetime:
        """By the devices."""
        return self._start + SPEED * timedelta(seconds=time.monotonic() - self._begin)

    def _land(self) -> None:
        conf = self._plant.conf
        devices = [device for name, device in conf.devices.items() if name not in OTHER_DEVICES.values()]
        options = {"events": WITHOUT_END, "seed": self._seed, "interval_seconds": INTERVAL_SECONDS, "shape": "long", "odds": Odds()}
        made = plan(conf, devices, start=self._start, **options)  # type: ignore[arg-type]
        arrivals, landing = Arrivals(made), Landing(self._plant.folder / "landing", made)
        while not self._stop.wait(FILE_SECONDS):
            messages = arrivals.until(round(self._now().timestamp() * 1_000_000))
            with landing.open() as file:
                file.write(messages)
                landing.publish(file)
            self.landed += len(messages)

    def _post(self) -> None:
        """Again, until the collector has acknowledged it: whether it has it after a broken connection, nobody knows."""
        while not self._stop.wait(REQUEST_SECONDS):
            events = self._events("web")
            self.sent["web"] += events
            _insist(lambda events=events: self._is_taken(b"\n".join(events)), self._stop)  # type: ignore[misc]

    def _is_taken(self, body: bytes) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._plant.port, timeout=60)
        try:
            connection.request("POST", "/events", body, {"Content-Type": "application/x-ndjson"})
            return connection.getresponse().status == 202
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _put(self) -> None:
        """A store that hangs answers in the end, or ends the connection when it goes on."""
        number = 0
        while not self._stop.wait(OBJECT_SECONDS):
            events, number = self._events("bucket"), number + 1
            key, content = f"{number:06}.jsonl", b"\n".join(events) + b"\n"
            _insist(lambda key=key, content=content: self._is_stored(key, content), self._stop)  # type: ignore[misc]
            self.sent["bucket"] += events

    def _is_stored(self, key: str, content: bytes) -> bool:
        """Once: whether it is there after a broken connection, the store knows."""
        store, bucket = self._plant.store, self._plant.bucket
        with suppress(BotoCoreError):
            if not store.client.list_objects_v2(Bucket=bucket, Prefix=key)["KeyCount"]:
                store.put(bucket, {key: content})
            return True
        return False

    def _events(self, source: str) -> list[bytes]:
        """No two are alike."""
        now = self._now()
        times = ((now + timedelta(milliseconds=number)).isoformat(timespec="milliseconds") for number in range(EVENTS))
        device = OTHER_DEVICES[source]
        return [json.dumps({"device": device, "metric": "temperature", "value": 20.0, "ts": at}).encode() for at in times]


def _insist(is_done: Callable[[], bool], stop: threading.Event) -> None:
    """Until it is. A soak that has failed already waits for nobody: its end is told by who asked for it."""
    while not is_done():
        time.sleep(REQUEST_SECONDS)
        if stop.is_set() and not is_done():
            raise AssertionError("what is sent last is not taken")
