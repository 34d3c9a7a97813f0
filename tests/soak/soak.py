"""A soak from its begin to its end: disturb, be quiet, damage the checkpoint, drain."""

import json
import random
import time
from collections.abc import Mapping
from pathlib import Path

from tests.services import rows
from tests.soak.disturbances import ANY, Kind, damage_checkpoint, end, order
from tests.soak.feeds import SPEED, Feeds
from tests.soak.picture import draw
from tests.soak.plant import Plant
from tests.soak.samples import Samples
from tests.soak.watch import Watch
from tests.waiting import until

LONG_MINUTES = 10.0
"""From here on a soak has a quiet end, its growth is judged, and the checkpoint is mended by a replay."""
QUIET = 0.25
"""Of the time: nobody disturbs, so that what grows would show."""
PAUSE_SECONDS = 5.0
"""Between two disturbances."""


class Soak:
    """`marks`: when each disturbance began, and its name. `told`: what each led to, as artifacts/soak.json has it."""

    def __init__(self, plant: Plant, minutes: float, seed: int) -> None:
        """`tidemark up` runs, and nothing is sent yet."""
        self.plant, self.minutes, self.seed, self._draw = plant, minutes, seed, random.Random(seed)
        self.samples, self.feeds, self.watch = Samples(plant.lake), Feeds(plant, minutes, seed), Watch(plant)
        self.marks: list[tuple[float, str]] = []
        self.told: list[dict[str, object]] = []
        self.is_long = minutes >= LONG_MINUTES
        self.quiet_at = 60 * minutes * (1 - QUIET if self.is_long else 1)

    def run(self) -> None:
        """To the end of what is disturbed; the plant is fed, and sampled."""
        with self.feeds.running(), self.samples.running():
            self.watch.recovers()
            self._disturb_until_quiet()
            while self.samples.now < 60 * self.minutes:
                self.feeds.raise_if_broken()
                time.sleep(1.0)
            assert self.watch.troubles("critical") == []
            self._damage()
            self._drain()

    def write(self, folder: Path) -> None:
        """What it took and what it led to, as far as it came."""
        folder.mkdir(exist_ok=True)
        self.samples.write(folder / "soak.csv")
        (folder / "soak.json").write_text(json.dumps(self.told, indent=1))
        events = self.feeds.landed + sum(map(len, self.feeds.sent.values()))
        subtitle = f"{len(self.marks)} disturbances, seed {self.seed}; {events:,} events, {SPEED} times as fast as the devices live"
        draw(self.samples, self.marks, subtitle, folder / "soak.png")

    def _disturb_until_quiet(self) -> None:
        kinds = order(self._draw, has_own_disk=self.plant.disk.is_own)
        while self.samples.now < self.quiet_at:
            kind = next(kinds)
            if self.samples.now + kind.seconds <= self.quiet_at:
                self._disturb(kind)
            time.sleep(PAUSE_SECONDS)

    def _disturb(self, kind: Kind) -> None:
        before, up = self._begin(kind.name), self.watch.up
        kind.disturb(self.watch, self._draw)
        self._settle(kind.restarts, before if self.watch.up is up else {})

    def _damage(self) -> None:
        before = self._begin("checkpoint damaged")
        damage_checkpoint(self.watch, by_replay=self.is_long)
        self._settle({"streams": ANY}, before)

    def _drain(self) -> None:
        """What was sent is through, to the target of the sink too; then all processes end."""
        self._begin("down")
        self.feeds.stop()
        until(self._is_through, lambda: [self.watch.overview(), rows(self.plant.conf_folder, "sinks")], pause_seconds=2.0)
        end(self.watch)

    def _is_through(self) -> bool:
        """By the newest snapshot, which the sink has. Of what was posted, a repeat may stand for one that waits."""
        sent = {"plant": self.feeds.landed, **{name: len(payloads) for name, payloads in self.feeds.sent.items()}}
        conf = self.plant.conf_folder
        query = "select source, count(*) as n from bronze.events group by source"
        known = {row["source"]: row["n"] for row in rows(conf, "sql", query)}
        waiting = [row["waiting_bytes"] for row in rows(conf, "status", "sources") if row["waiting_bytes"]]
        is_sent = [row["snapshots_behind"] for row in rows(conf, "sinks")] == [0]
        return is_sent and not waiting and all(known.get(name, 0) >= count for name, count in sent.items())

    def _begin(self, name: str) -> dict[str, int]:
        """How often each part was started again until now."""
        self.feeds.raise_if_broken()
        self.watch.begin()
        self.marks.append((self.samples.now, name))
        return self.watch.restarts()

    def _settle(self, expected: Mapping[str, int], before: Mapping[str, int]) -> None:
        """All is as it was, and no part was started again but those that had to be."""
        self.watch.recovers()
        gained = {part: count - before.get(part, 0) for part, count in self.watch.restarts().items()}
        unexpected = {part: count for part, count in gained.items() if expected.get(part, 0) not in (ANY, count)}
        assert not unexpected, (self.marks[-1], unexpected, self.watch.journal())
        at, name = self.marks[-1]
        reasons = [line.partition(" up ")[2] for line in self.watch.journal() if "running" not in line]
        self.told.append({"at": round(at), "disturbance": name, "seconds": self.watch.heard, "restarts": gained, "said": reasons})
        print(json.dumps(self.told[-1]), flush=True)
